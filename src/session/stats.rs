//! What a connection counts and measures.

use super::repair::RepairStats;
use crate::arq::Stats;
use crate::pace::Mode;
use std::time::Duration;

/// What one end of a session has counted since it was made, and how it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Round trip, smoothed; zero before the first.
    pub rtt: Duration,
    /// Its mean deviation, smoothed as well.
    pub rttvar: Duration,
    /// The shortest round trip; zero before the first.
    pub rtt_min: Duration,
    /// Share of the packets sent that got lost on the way to the peer, 0 to 1: of those of which the peer has told within the last 10 s,
    /// whatever was in them. `None`: they are fewer than 50, so it is not known, as in a session at rest. What the peer sends says
    /// nothing of it.
    pub loss: Option<f64>,
    /// Packets sent of which it is decided whether they got lost.
    pub packets_judged: u64,
    /// Of them, lost.
    pub packets_lost: u64,
    /// All lanes together; [`lane_stats`](super::Connection::lane_stats) has each.
    pub lanes: LaneTotals,
    /// Unreliable datagrams that wait to leave.
    pub datagrams_waiting: usize,
    /// Messages and slices of reliable channels that are not acknowledged.
    pub messages_unacked: usize,
    /// Bytes that it holds, see [`memory`](super::Connection::memory).
    pub memory: usize,
    /// The mode of `pacing`, if there is.
    pub mode: Option<Mode>,
    /// Datagrams sent.
    pub sent: u64,
    /// Bytes of them.
    pub bytes_sent: u64,
    /// Datagrams received that were authentic and new.
    pub received: u64,
    /// Bytes of them.
    pub bytes_received: u64,
    /// Of those sent, those with a ping: because nothing else was to be said, or nothing that is answered.
    pub pings: u64,
    /// Bytes of the longest datagram that may leave now: `max_datagram`, or more once `path_mtu` has found more.
    pub mtu: u16,
    /// Of those sent, probes of a longer one.
    pub mtu_probes: u64,
    /// Of these, those that were lost, which says nothing of congestion.
    pub mtu_probes_lost: u64,
    /// Times that long datagrams did not arrive any more, and shorter ones were sent from then on.
    pub black_holes: u64,
    /// Whether what is sent says that it heeds the marks of ECN, and the path leaves them alone.
    pub ecn: bool,
    /// Packets sent that the peer says were marked, for a queue on the way was filling.
    pub congestion_marks: u64,
    /// Times that the peer has moved to another address.
    pub moves: u64,
    /// Times that our keys were updated.
    pub key_updates: u64,
    /// Unreliable datagrams that found no room, because too little was read.
    pub datagrams_refused: u64,
    /// Payloads of channels that were refused: no room, or not what a peer of the same channels sends.
    pub messages_refused: u64,
    /// Tokens by which the server has sent us to another one, each counted once.
    pub redirects: u64,
    /// REDIRECTs that had no token, or one that was out of date.
    pub redirects_refused: u64,
    /// What repairs of packets have cost and brought, if both ends use them.
    pub repairs: RepairStats,
    /// Datagrams dropped.
    pub rejected: RejectedDatagrams,
}

/// The counting part of [`ConnectionStats`]; the rest is looked up when it is asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    pub(super) sent: u64,
    pub(super) bytes_sent: u64,
    pub(super) received: u64,
    pub(super) bytes_received: u64,
    pub(super) pings: u64,
    /// Made for the first of them.
    rare: Option<Box<RareCounters>>,
}

/// What most sessions never count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RareCounters {
    pub(super) moves: u64,
    pub(super) datagrams_refused: u64,
    pub(super) messages_refused: u64,
    pub(super) redirects: u64,
    pub(super) redirects_refused: u64,
    pub(super) rejected: RejectedDatagrams,
}

/// Lanes of a session together: the fields of [`Stats`], added up.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct LaneTotals {
    /// Segments sent and not acknowledged.
    pub in_flight: u64,
    /// Segments that wait to be sent.
    pub snd_queue: u64,
    /// Segments received in order and not read.
    pub rcv_queue: u64,
    /// Segments received that wait for earlier ones.
    pub rcv_buf: u64,
    /// Segments sent, of every command, resends included.
    pub segments_sent: u64,
    /// Segments received, of every command.
    pub segments_received: u64,
    /// Segments sent again because their time was out.
    pub resends_timeout: u64,
    /// Segments sent again because later ones were acknowledged.
    pub resends_fast: u64,
    /// Repairs and copies sent.
    pub repairs_sent: u64,
    /// Segments rebuilt from repairs.
    pub rebuilt: u64,
    /// Segments received more than once.
    pub duplicates: u64,
}

impl LaneTotals {
    pub(super) fn add(&mut self, lane: &Stats) {
        self.in_flight += u64::from(lane.in_flight);
        self.snd_queue += u64::from(lane.snd_queue);
        self.rcv_queue += u64::from(lane.rcv_queue);
        self.rcv_buf += u64::from(lane.rcv_buf);
        self.segments_sent += lane.segments_sent;
        self.segments_received += lane.segments_received;
        self.resends_timeout += u64::from(lane.resends_timeout);
        self.resends_fast += u64::from(lane.resends_fast);
        self.repairs_sent += u64::from(lane.repairs_sent);
        self.rebuilt += u64::from(lane.rebuilt);
        self.duplicates += u64::from(lane.duplicates);
    }
}

impl ConnectionStats {
    /// What was refused: datagrams, and what was in them, each with the name of its field.
    #[must_use]
    pub const fn refused(&self) -> [(&'static str, u64); 9] {
        let others = [self.datagrams_refused, self.messages_refused, self.redirects_refused];
        refused(&self.rejected, others)
    }
}

impl Counters {
    pub(super) fn rare(&self) -> RareCounters {
        self.rare.as_deref().copied().unwrap_or_default()
    }

    /// The same, to count.
    pub(super) fn rare_mut(&mut self) -> &mut RareCounters {
        self.rare.get_or_insert_default()
    }

    /// See [`ConnectionStats::refused`].
    pub(super) fn refused(&self) -> [(&'static str, u64); 9] {
        let rare = self.rare();
        let others = [rare.datagrams_refused, rare.messages_refused, rare.redirects_refused];
        refused(&rare.rejected, others)
    }

    /// Bytes of the heap.
    pub(super) const fn memory(&self) -> usize {
        if self.rare.is_some() { size_of::<RareCounters>() } else { 0 }
    }
}

const fn refused(datagrams: &RejectedDatagrams, others: [u64; 3]) -> [(&'static str, u64); 9] {
    let [malformed, stranger, forged, duplicate, stale, late] = datagrams.by_reason();
    let [datagrams, messages, redirects] = others;
    let datagrams = ("datagrams_refused", datagrams);
    let messages = ("messages_refused", messages);
    let redirects = ("redirects_refused", redirects);
    [malformed, stranger, forged, duplicate, stale, late, datagrams, messages, redirects]
}

/// Datagrams that changed nothing, by what was wrong.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct RejectedDatagrams {
    /// No packet of the protocol, or one that has no place here.
    pub malformed: u64,
    /// Another session, attempt, suite or address.
    pub stranger: u64,
    /// Not authentic.
    pub forged: u64,
    /// Received before.
    pub duplicate: u64,
    /// Older than what can be told apart.
    pub stale: u64,
    /// After the end.
    pub late: u64,
}

impl RejectedDatagrams {
    /// All of them together.
    #[must_use]
    pub const fn total(&self) -> u64 {
        let Self { malformed, stranger, forged, duplicate, stale, late } = *self;
        malformed + stranger + forged + duplicate + stale + late
    }

    /// Each with the name of its field.
    #[must_use]
    pub const fn by_reason(&self) -> [(&'static str, u64); 6] {
        let Self { malformed, stranger, forged, duplicate, stale, late } = *self;
        [
            ("malformed", malformed),
            ("stranger", stranger),
            ("forged", forged),
            ("duplicate", duplicate),
            ("stale", stale),
            ("late", late),
        ]
    }
}
