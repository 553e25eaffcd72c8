//! What an endpoint counts and measures.

use super::error::ReceiveError;
use crate::pace::PaceState;
use crate::time::Time;
use std::time::Duration;

/// A view of an endpoint: what it counted since it was made, and how it stands as of its last call. From
/// [`Endpoint::stats`](super::Endpoint::stats).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Round trip, smoothed by 10 %; zero before the first. The time until the peer sends its next
    /// packet is in it, since only that tells what has arrived.
    pub rtt: Duration,
    /// Shortest round trip.
    pub rtt_min: Duration,
    /// Longest round trip.
    pub rtt_max: Duration,
    /// Mean distance of a round trip from the smoothed one, smoothed by 10 %.
    pub jitter: Duration,
    /// Share of the packets that were not acknowledged in time, 0 to 1, of about the last 64.
    pub loss: f64,
    /// Bytes of datagrams sent in a second, smoothed over about one. Headers of IP and UDP are not in
    /// it.
    pub sent_bandwidth: f64,
    /// The same of datagrams received that were taken.
    pub received_bandwidth: f64,
    /// The same of datagrams sent, when their packets become known to have arrived.
    pub acked_bandwidth: f64,
    /// Packets sent, keepalives included.
    pub sent: u64,
    /// Of these, keepalives.
    pub keepalives: u64,
    /// Datagrams sent: a packet in fragments is several.
    pub datagrams_sent: u64,
    /// Whole packets received, empty ones included.
    pub received: u64,
    /// Packets sent that have arrived.
    pub acked: u64,
    /// Packets that were not acknowledged in time. A late acknowledgement still counts in `acked`,
    /// so a packet can be both.
    pub lost: u64,
    /// Packets acknowledged that nobody asked for before as many others were: see
    /// [`pop_acked`](super::Endpoint::pop_acked).
    pub acked_unread: u64,
    /// Packets evidently lost, by one sent later that arrived: see [`pop_lost`](super::Endpoint::pop_lost). Those that were only late
    /// are among them.
    pub overtaken: u64,
    /// Packets given up with some of their fragments missing.
    pub abandoned: u64,
    /// When a packet, or a part of one, was last received; `None`: nothing was, or it is
    /// `forget_after` ago.
    pub heard: Option<Time>,
    /// Good or bad mode, since when, and what it takes to get out of it.
    pub pace: PaceState,
    /// What was refused, by kind.
    pub rejected: Rejected,
}

/// Datagrams that [`Endpoint::receive`](super::Endpoint::receive) refused, by the [`ReceiveError`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Rejected {
    /// [`ReceiveError::Truncated`].
    pub truncated: u64,
    /// [`ReceiveError::Protocol`].
    pub protocol: u64,
    /// [`ReceiveError::Prefix`].
    pub prefix: u64,
    /// [`ReceiveError::NotShortest`].
    pub not_shortest: u64,
    /// [`ReceiveError::Fragment`].
    pub fragment: u64,
    /// [`ReceiveError::FragmentMismatch`].
    pub fragment_mismatch: u64,
    /// [`ReceiveError::TooLong`].
    pub too_long: u64,
    /// [`ReceiveError::AckUnsent`].
    pub ack_unsent: u64,
    /// [`ReceiveError::Stale`].
    pub stale: u64,
    /// [`ReceiveError::Duplicate`].
    pub duplicate: u64,
    /// [`ReceiveError::Refused`].
    pub refused: u64,
}

impl Rejected {
    /// All of them together.
    #[must_use]
    pub fn total(&self) -> u64 {
        let Self { truncated, protocol, prefix, not_shortest, fragment, .. } = *self;
        let Self { fragment_mismatch, too_long, ack_unsent, stale, duplicate, refused, .. } = *self;
        let of_header = truncated + protocol + prefix + not_shortest + fragment;
        of_header + fragment_mismatch + too_long + ack_unsent + stale + duplicate + refused
    }

    pub(super) const fn count(&mut self, error: ReceiveError) {
        *match error {
            ReceiveError::Truncated { .. } => &mut self.truncated,
            ReceiveError::Protocol { .. } => &mut self.protocol,
            ReceiveError::Prefix { .. } => &mut self.prefix,
            ReceiveError::NotShortest => &mut self.not_shortest,
            ReceiveError::Fragment { .. } => &mut self.fragment,
            ReceiveError::FragmentMismatch => &mut self.fragment_mismatch,
            ReceiveError::TooLong { .. } => &mut self.too_long,
            ReceiveError::AckUnsent { .. } => &mut self.ack_unsent,
            ReceiveError::Stale { .. } => &mut self.stale,
            ReceiveError::Duplicate { .. } => &mut self.duplicate,
            ReceiveError::Refused { .. } => &mut self.refused,
        } += 1;
    }
}
