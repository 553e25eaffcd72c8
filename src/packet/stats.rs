//! What an endpoint counts and measures.

use super::error::ReceiveError;
use crate::pace::PaceState;
use crate::time::Time;
use std::time::Duration;

stats! {
    /// A view of an endpoint: what it counted since it was made, and how it stands as of its last call. From
    /// [`Endpoint::stats`](super::Endpoint::stats).
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub struct PacketStats {
        /// Round trip, smoothed by 10 %; zero before the first. The time until the peer sends its next
        /// packet is in it, since only that tells what has arrived.
        pub rtt: Duration => "whitewater_packet_rtt_seconds",
        /// Shortest round trip.
        pub rtt_min: Duration => "whitewater_packet_rtt_min_seconds",
        /// Longest round trip.
        pub rtt_max: Duration,
        /// Mean distance of a round trip from the smoothed one, smoothed by 10 %.
        pub jitter: Duration => "whitewater_packet_jitter_seconds",
        /// Share of the packets that were not acknowledged in time, 0 to 1, of about the last 64.
        pub loss: f64 => "whitewater_packet_loss_ratio",
        /// Bytes of datagrams sent in a second, smoothed over about one. Headers of IP and UDP are not in
        /// it.
        pub sent_bandwidth: f64 => "whitewater_packet_sent_bytes_per_second",
        /// Bytes of datagrams received and taken in a second, smoothed likewise.
        pub received_bandwidth: f64 => "whitewater_packet_received_bytes_per_second",
        /// Bytes of datagrams sent in a second, counted when their packets become known to have arrived.
        pub acked_bandwidth: f64,
        /// Packets that were not acknowledged in time. A late acknowledgement still counts in `acked`,
        /// so a packet can be both.
        pub lost: u64 => "whitewater_packet_lost_total",
        /// Packets given up with some of their fragments missing.
        pub abandoned: u64 => "whitewater_packet_abandoned_total",
        /// When a packet, or a part of one, was last received; `None`: nothing was, or it is
        /// `forget_after` ago.
        pub heard: Option<Time>,
        /// Good or bad mode, since when, and what it takes to get out of it.
        pub pace: PaceState,
    }
    counted by #[derive(Copy)] Counts {
        /// Packets sent, keepalives included.
        pub sent: u64 => "whitewater_packet_sent_total",
        /// Of these, keepalives.
        pub keepalives: u64,
        /// Datagrams sent: a packet in fragments is several.
        pub datagrams_sent: u64 => "whitewater_packet_datagrams_sent_total",
        /// Whole packets received, empty ones included.
        pub received: u64 => "whitewater_packet_received_total",
        /// Packets sent that have arrived.
        pub acked: u64 => "whitewater_packet_acked_total",
        /// Packets acknowledged that nobody asked for before as many others were: see
        /// [`pop_acked`](super::Endpoint::pop_acked).
        pub acked_unread: u64,
        /// Packets evidently lost, by one sent later that arrived: see [`pop_lost`](super::Endpoint::pop_lost). Those that were only late
        /// are among them.
        pub overtaken: u64,
        /// What was refused, by kind.
        pub rejected: RejectedPackets => "whitewater_packet_rejected_total",
    }
}

reasons! {
    /// Datagrams that [`Endpoint::receive`](super::Endpoint::receive) refused, by the [`ReceiveError`].
    pub struct RejectedPackets: u64, by ReceiveError {
        truncated: Truncated,
        protocol: Protocol,
        prefix: Prefix,
        not_shortest: NotShortest,
        fragment: Fragment,
        fragment_mismatch: FragmentMismatch,
        too_long: TooLong,
        ack_unsent: AckUnsent,
        stale: Stale,
        duplicate: Duplicate,
        refused: Refused,
    }
}

/// Bytes a second: the mean of the first ten [`SLOT`]s, then each moves it by 10 % of the difference.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate {
    per_second: f64,
    /// Bytes of the slot that is running.
    bytes: u64,
    /// When it began; `None`: nothing was counted yet.
    began: Option<Time>,
    /// Slots before it.
    slots: u64,
}

impl Rate {
    pub(super) fn add(&mut self, now: Time, bytes: u64) {
        self.update(now);
        self.began.get_or_insert(now);
        self.bytes += bytes;
    }

    /// Ends the slots that are over.
    pub(super) fn update(&mut self, now: Time) {
        let Some(mut began) = self.began else {
            return;
        };
        if now.since(began) >= FORGOTTEN {
            *self = Self::default();
            return;
        }
        while now.since(began) >= SLOT {
            self.slots += 1;
            let weight = 1.0 / self.slots.min(MEMORY) as f64;
            self.per_second += weight * (self.bytes as f64 / SLOT.as_secs_f64() - self.per_second);
            self.bytes = 0;
            began = began + SLOT;
        }
        self.began = Some(began);
    }

    pub(super) const fn per_second(&self) -> f64 {
        self.per_second
    }
}

const SLOT: Duration = Duration::from_millis(100);
/// One by the weight of a slot.
const MEMORY: u64 = 10;
/// After this much silence nothing is left of the rate: 0.9^600.
const FORGOTTEN: Duration = Duration::from_secs(60);
