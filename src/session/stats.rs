//! The statistics of a connection.

use super::repair::RepairStats;
use crate::counters::{Figure, Metric, Value};
use crate::kcp::Stats;
use crate::pace::Mode;
use std::time::Duration;

stats! {
    /// What one end of a session has counted since it was made, and its current state.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub struct ConnectionStats {
        /// Round trip, smoothed; zero before the first.
        pub rtt: Duration => "whitewater_session_rtt_seconds",
        /// Mean deviation of the round trip, smoothed.
        pub rttvar: Duration => "whitewater_session_rttvar_seconds",
        /// Shortest round trip; zero before the first.
        pub rtt_min: Duration => "whitewater_session_rtt_min_seconds",
        /// Share of the packets sent that got lost on the way to the peer, 0 to 1; NaN for collectors if unknown. Based
        /// on the packets that the peer reported in the last 10 s, whatever they contained. `None`: fewer than 50, so
        /// it is unknown, as in an idle session. Packets from the peer do not count.
        pub loss: Option<f64> => "whitewater_session_loss_ratio",
        /// Packets sent with a known outcome: arrived or lost.
        pub packets_judged: u64 => "whitewater_session_packets_judged_total",
        /// Packets sent that got lost.
        pub packets_lost: u64 => "whitewater_session_packets_lost_total",
        /// What KCP does for all channels together; [`kcp_stats`](super::Connection::kcp_stats) has each channel.
        pub kcp: KcpTotals => all,
        /// Unreliable datagrams that wait to be sent.
        pub datagrams_waiting: usize => "whitewater_session_datagrams_waiting",
        /// Unacknowledged messages and slices of reliable channels.
        pub messages_unacked: usize => "whitewater_session_messages_unacked",
        /// Bytes that the session holds. See [`memory`](super::Connection::memory).
        pub memory: usize => "whitewater_session_memory_bytes",
        /// Whether `max_rate` limits sending more strictly: its mode, if it is set.
        pub mode: Option<Mode> => "whitewater_session_bad_mode",
        /// Length of the longest datagram now, bytes: `max_datagram`, or more once `path_mtu` has found more.
        pub mtu: u16 => "whitewater_session_mtu_bytes",
        /// Datagrams sent to probe for a larger path MTU.
        pub mtu_probes: u64 => "whitewater_session_mtu_probes_total",
        /// Lost probes for a larger path MTU; this is not a sign of congestion.
        pub mtu_probes_lost: u64 => "whitewater_session_mtu_probes_lost_total",
        /// How often long datagrams stopped arriving, so that shorter ones were sent from then on.
        pub black_holes: u64 => "whitewater_session_black_holes_total",
        /// Whether datagrams are sent with an ECN mark: both ends use ECN, and the path preserves the marks.
        pub ecn: bool,
        /// Packets sent that the peer reports as marked, because a queue on the path was filling.
        pub congestion_marks: u64 => "whitewater_session_congestion_marks_total",
        /// How often our keys were replaced.
        pub key_updates: u64 => "whitewater_session_key_updates_total",
        /// The cost and effect of repairs of packets, if both ends use them.
        pub repairs: RepairStats => all,
    }
    counted by Counters {
        /// Datagrams sent.
        pub sent: u64 => "whitewater_session_datagrams_sent_total",
        /// Bytes of datagrams sent.
        pub bytes_sent: u64 => "whitewater_session_bytes_sent_total",
        /// Datagrams received that were authentic and new.
        pub received: u64 => "whitewater_session_datagrams_received_total",
        /// Bytes of datagrams received that were authentic and new.
        pub bytes_received: u64 => "whitewater_session_bytes_received_total",
        /// Datagrams sent with a ping: because nothing else was to be sent, or nothing that is acknowledged.
        pub pings: u64 => "whitewater_session_pings_total",
        ; rare: Option<Box<RareCounters>>
    }
    counted by #[derive(Copy)] RareCounters {
        /// How often the peer has moved to another address.
        pub moves: u64 => "whitewater_session_moves_total",
        /// Datagrams that were sent again by a second path at once, with what is urgent.
        pub doubled: u64 => "whitewater_session_doubled_total",
        /// Tokens with which the server sent us to another one, each counted once.
        pub redirects: u64,
        /// Datagrams dropped, and refused parts of datagrams.
        pub rejected: RejectedDatagrams => "whitewater_session_rejected_total",
        /// Unreliable datagrams without room, because too little was read.
        pub datagrams_refused: u64 => "whitewater_session_rejected_total" [reason: "datagrams_refused", "Datagrams dropped, and refused parts of datagrams"],
        /// Parts of KCP frames that were dropped: no memory, or more in a packet than count.
        pub parts_refused: u64 => "whitewater_session_rejected_total" [reason: "parts_refused", "Datagrams dropped, and refused parts of datagrams"],
        /// KCP frames that are not segments with compact headers, or are more than a packet may have, which end the session.
        pub segments_refused: u64 => "whitewater_session_rejected_total" [reason: "segments_refused", "Datagrams dropped, and refused parts of datagrams"],
        /// Payloads of channels that were refused: no room, or not what a peer with the same channels sends.
        pub messages_refused: u64 => "whitewater_session_rejected_total" [reason: "messages_refused", "Datagrams dropped, and refused parts of datagrams"],
        /// REDIRECTs without a valid token, or with an outdated one.
        pub redirects_refused: u64 => "whitewater_session_rejected_total" [reason: "redirects_refused", "Datagrams dropped, and refused parts of datagrams"],
        /// Halves of new keys that the peer should not have sent: too soon, or another than before.
        pub rekeys_refused: u64 => "whitewater_session_rejected_total" [reason: "rekeys_refused", "Datagrams dropped, and refused parts of datagrams"],
        /// Acknowledgements of packets that were never sent, which end the session, and answers to pings that
        /// were never sent or were sent more than an hour ago.
        pub false_acks: u64 => "whitewater_session_rejected_total" [reason: "false_acks", "Datagrams dropped, and refused parts of datagrams"],
    }
}

stats! {
    /// The totals of KCP for all channels: the fields of [`Stats`], added up.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct KcpTotals: sum of Stats {
        /// Segments sent and not acknowledged.
        pub in_flight: u64 => "whitewater_session_in_flight_segments",
        /// Segments that wait to be sent.
        pub snd_queue: u64 => "whitewater_session_snd_queue_segments",
        /// Segments received in order and not read.
        pub rcv_queue: u64 => "whitewater_session_rcv_queue_segments",
        /// Segments received that wait for earlier ones.
        pub rcv_buf: u64 => "whitewater_session_rcv_buf_segments",
        /// Segments sent, of every command, resends included.
        pub segments_sent: u64 => "whitewater_session_segments_sent_total",
        /// Segments received, of every command.
        pub segments_received: u64 => "whitewater_session_segments_received_total",
        /// Segments sent again because their timeout expired.
        pub resends_timeout: u64 => "whitewater_session_resends_total" [cause: "timeout", "Segments sent again"],
        /// Segments sent again because later ones were acknowledged.
        pub resends_fast: u64 => "whitewater_session_resends_total" [cause: "fast", "Segments sent again"],
        /// Repairs and copies sent.
        pub repairs_sent: u64 => "whitewater_session_repairs_sent_total",
        /// Segments rebuilt from repairs.
        pub rebuilt: u64 => "whitewater_session_rebuilt_total",
        /// Segments received more than once.
        pub duplicates: u64 => "whitewater_session_duplicates_total",
    }
}

impl ConnectionStats {
    /// What was refused, datagrams and parts of them, each with the name of its field.
    pub fn refused(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        self.rejected.by_reason().into_iter().chain([
            ("datagrams_refused", self.datagrams_refused),
            ("parts_refused", self.parts_refused),
            ("segments_refused", self.segments_refused),
            ("messages_refused", self.messages_refused),
            ("redirects_refused", self.redirects_refused),
            ("rekeys_refused", self.rekeys_refused),
            ("false_acks", self.false_acks),
        ])
    }
}

impl Counters {
    pub(super) fn rare(&self) -> RareCounters {
        self.rare.as_deref().copied().unwrap_or_default()
    }

    pub(super) fn rare_mut(&mut self) -> &mut RareCounters {
        self.rare.get_or_insert_default()
    }

    pub(super) const fn memory(&self) -> usize {
        if self.rare.is_some() { size_of::<RareCounters>() } else { 0 }
    }
}

reasons! {
    /// Datagrams that changed nothing, by reason.
    pub struct RejectedDatagrams: u64 {
        /// Not a packet of the protocol, or not one that this end receives.
        malformed,
        /// From another session, attempt, suite or address.
        stranger,
        /// Not authentic.
        forged,
        /// Received before.
        duplicate,
        /// Too old to tell whether it was received before.
        stale,
        /// Received after the end.
        late,
    }
}

gauges! {
    Option<Mode>: |mode| f64::from(u8::from(mode == Some(Mode::Bad))),
}
