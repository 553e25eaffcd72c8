//! What a control block counts and measures.

use super::Kcp;
use crate::seq::Sn;
use crate::wire::Output;
use std::time::Duration;

/// A view of a control block: what it counted since it was made, and how it stands. From
/// [`Kcp::stats`](super::Kcp::stats).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// The oldest number not acknowledged.
    pub snd_una: Sn,
    /// The number that the next new segment gets.
    pub snd_nxt: Sn,
    /// The number expected next from the peer.
    pub rcv_nxt: Sn,
    /// Smoothed round trip; zero before the first.
    pub srtt: Duration,
    /// Mean deviation of the round trip.
    pub rttvar: Duration,
    /// Shortest round trip measured.
    pub min_rtt: Option<Duration>,
    /// Retransmission timeout of the next segment.
    pub rto: Duration,
    /// Congestion window, segments; with `nc` it is kept and does not apply.
    pub cwnd: u32,
    /// Window above which `cwnd` grows slowly, segments; `None`: the controller has none.
    pub ssthresh: Option<u32>,
    /// The peer's window as last heard, segments.
    pub rmt_wnd: u16,
    /// Segments sent and not acknowledged.
    pub in_flight: u32,
    /// Segments that wait to be sent.
    pub snd_queue: u32,
    /// Segments received in order and not read.
    pub rcv_queue: u32,
    /// Segments received that wait for earlier ones.
    pub rcv_buf: u32,
    /// Segments sent, of every command, resends included.
    pub segments_sent: u64,
    /// Segments received in good datagrams, of every command.
    pub segments_received: u64,
    /// Bytes of datagrams sent.
    pub bytes_sent: u64,
    /// Bytes of good datagrams received.
    pub bytes_received: u64,
    /// Segments sent again because their time was out.
    pub resends_timeout: u32,
    /// Segments sent again because later ones were acknowledged.
    pub resends_fast: u32,
    /// Repairs sent, copies to a peer that does not rebuild, and resends that left twice at once: none of these is a resend.
    pub repairs_sent: u32,
    /// Segments rebuilt from repairs.
    pub rebuilt: u32,
    /// PUSH segments received more than once.
    pub duplicates: u32,
    /// What was refused, by kind.
    pub rejected: Rejected,
}

/// Datagrams and segments that were refused or ignored, by kind. The first eight are datagrams that
/// [`Kcp::input`](super::Kcp::input) returned an error for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Rejected {
    /// Datagrams too short for a segment.
    pub too_short: u32,
    /// Datagrams longer than `rcv_mtu`.
    pub too_long: u32,
    /// Datagrams with a segment of another conversation.
    pub conv: u32,
    /// Datagrams that end within a segment's data.
    pub length: u32,
    /// Datagrams with an unknown command.
    pub command: u32,
    /// Datagrams that acknowledge what was never sent, by `una`.
    pub una: u32,
    /// Datagrams that acknowledge what was never sent, by an ACK.
    pub ack_unsent: u32,
    /// Datagrams with a fragment of a message larger than the receive window.
    pub fragment: u32,
    /// PUSH segments beyond the receive window; not acknowledged.
    pub window: u32,
    /// PUSH segments whose `frg` does not go on from their neighbour's; not acknowledged.
    pub fragment_chain: u32,
    /// ACKs whose echoed time is too old for a round trip; they acknowledge all the same.
    pub ts_age: u32,
    /// Repairs that are none, or of no use.
    pub repair: u32,
    /// PUSH segments received but not acknowledged, because enough acknowledgements wait.
    pub ack_overflow: u32,
}

impl Rejected {
    /// All of them together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_reason().into_iter().map(|(_, count)| u64::from(count)).sum()
    }

    /// Each with the name of its field.
    #[must_use]
    pub const fn by_reason(&self) -> [(&'static str, u32); 13] {
        let Self {
            too_short,
            too_long,
            conv,
            length,
            command,
            una,
            ack_unsent,
            fragment,
            window,
            fragment_chain,
            ts_age,
            repair,
            ack_overflow,
        } = *self;
        [
            ("too_short", too_short),
            ("too_long", too_long),
            ("conv", conv),
            ("length", length),
            ("command", command),
            ("una", una),
            ("ack_unsent", ack_unsent),
            ("fragment", fragment),
            ("window", window),
            ("fragment_chain", fragment_chain),
            ("ts_age", ts_age),
            ("repair", repair),
            ("ack_overflow", ack_overflow),
        ]
    }
}

/// Figures of [`Stats`] for who asks often: all of them take long to gather.
impl<O: Output> Kcp<O> {
    /// `snd_una`.
    pub(crate) fn snd_una(&self) -> Sn {
        self.sender.una()
    }

    /// The number after the last that was sent or waits.
    pub(crate) fn snd_end(&self) -> Sn {
        self.sender.ring.end()
    }

    /// `rmt_wnd`.
    pub(crate) const fn rmt_wnd(&self) -> u16 {
        self.rmt_wnd
    }

    /// `snd_queue`.
    pub(crate) fn waiting(&self) -> u32 {
        self.sender.waiting()
    }

    /// Segments refused because their `frg` did not go on.
    pub(crate) const fn broken_chains(&self) -> u32 {
        self.counters.rejected.fragment_chain
    }
}

/// Counts one more, up to the end of the counter: strangers may count it up for years.
#[inline]
pub(super) fn count(counter: &mut u32) {
    *counter = counter.saturating_add(1);
}

/// The counting half of [`Stats`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) segments_sent: u64,
    pub(super) segments_received: u64,
    pub(super) bytes_sent: u64,
    pub(super) bytes_received: u64,
    pub(super) resends_timeout: u32,
    pub(super) resends_fast: u32,
    pub(super) repairs_sent: u32,
    pub(super) rebuilt: u32,
    pub(super) duplicates: u32,
    pub(super) rejected: Rejected,
}
