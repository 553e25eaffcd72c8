//! A session, a server of them, and peers without one.

use super::{Measure, Measures, To};
use crate::pace::Mode;
use crate::session::{ConnectionStats, LaneTotals, RejectedRequests, RepairStats, ServerStats, raw};

impl Measures for ConnectionStats {
    fn measures(&self, each: &mut dyn FnMut(Measure)) {
        let mut to = To(each);
        to.seconds("whitewater_session_rtt_seconds", "smoothed round trip; 0 before the first", self.rtt);
        to.seconds("whitewater_session_rttvar_seconds", "its mean deviation", self.rttvar);
        to.seconds("whitewater_session_rtt_min_seconds", "shortest round trip", self.rtt_min);
        to.gauge(
            "whitewater_session_loss_ratio",
            "share of packets lost, 0 to 1; NaN if not known",
            self.loss.unwrap_or(f64::NAN),
        );
        let is_bad = f64::from(u8::from(self.mode == Some(Mode::Bad)));
        to.gauge("whitewater_session_bad_mode", "1: less may leave, by `pacing`", is_bad);
        to.gauge("whitewater_session_memory_bytes", "what it holds", self.memory as f64);
        to.gauge(
            "whitewater_session_datagrams_waiting",
            "unreliable ones to leave",
            self.datagrams_waiting as f64,
        );
        to.gauge("whitewater_session_messages_unacked", "of reliable channels", self.messages_unacked as f64);
        to.counter("whitewater_session_datagrams_sent_total", "all that left", self.sent);
        to.counter("whitewater_session_datagrams_received_total", "authentic and new", self.received);
        to.counter("whitewater_session_bytes_sent_total", "of datagrams", self.bytes_sent);
        to.counter("whitewater_session_bytes_received_total", "of datagrams", self.bytes_received);
        to.counter("whitewater_session_pings_total", "sent, alone or with what is not answered", self.pings);
        to.counter(
            "whitewater_session_packets_judged_total",
            "packets known to have arrived or not",
            self.packets_judged,
        );
        to.counter("whitewater_session_packets_lost_total", "of them, lost", self.packets_lost);
        to.gauge("whitewater_session_mtu_bytes", "longest datagram now", self.mtu.into());
        to.counter(
            "whitewater_session_mtu_probes_total",
            "longer datagrams, to see if they arrive",
            self.mtu_probes,
        );
        to.counter("whitewater_session_mtu_probes_lost_total", "of them, lost", self.mtu_probes_lost);
        to.counter("whitewater_session_black_holes_total", "times that long ones got lost", self.black_holes);
        to.counter("whitewater_session_moves_total", "of the peer to another address", self.moves);
        to.counter("whitewater_session_key_updates_total", "of our keys", self.key_updates);
        to.counter("whitewater_session_congestion_marks_total", "told by the peer", self.congestion_marks);
        repairs(&mut to, &self.repairs);
        to.counters(
            "whitewater_session_rejected_total",
            "datagrams and what was in them",
            "reason",
            self.refused(),
        );
        lanes(&mut to, &self.lanes);
    }
}

fn repairs(to: &mut To<'_>, repairs: &RepairStats) {
    to.counter("whitewater_session_packet_repairs_sent_total", "of packets, `repairs`", repairs.sent);
    to.counter("whitewater_session_packet_repairs_bytes_total", "of them, in datagrams", repairs.bytes);
    let by = [("here", repairs.rebuilt), ("peer", repairs.rebuilt_by_peer)];
    to.counters("whitewater_session_packets_rebuilt_total", "lost and rebuilt", "by", by);
    let reasons =
        [("needless", repairs.needless), ("late", repairs.late), ("refused", repairs.refused_total())];
    to.counters("whitewater_session_packet_repairs_unused_total", "received for nothing", "reason", reasons);
}

fn lanes(to: &mut To<'_>, lanes: &LaneTotals) {
    to.gauge("whitewater_session_in_flight_segments", "sent and not acknowledged", lanes.in_flight as f64);
    to.gauge("whitewater_session_snd_queue_segments", "waiting to be sent", lanes.snd_queue as f64);
    to.gauge("whitewater_session_rcv_queue_segments", "in order and not read", lanes.rcv_queue as f64);
    to.gauge("whitewater_session_rcv_buf_segments", "waiting for earlier ones", lanes.rcv_buf as f64);
    to.counter("whitewater_session_segments_sent_total", "of every command", lanes.segments_sent);
    to.counter("whitewater_session_segments_received_total", "of every command", lanes.segments_received);
    let causes = [("timeout", lanes.resends_timeout), ("fast", lanes.resends_fast)];
    to.counters("whitewater_session_resends_total", "segments sent again", "cause", causes);
    to.counter("whitewater_session_repairs_sent_total", "repairs and copies", lanes.repairs_sent);
    to.counter("whitewater_session_rebuilt_total", "segments rebuilt from repairs", lanes.rebuilt);
    to.counter("whitewater_session_duplicates_total", "segments received again", lanes.duplicates);
}

impl Measures for ServerStats {
    fn measures(&self, each: &mut dyn FnMut(Measure)) {
        let mut to = To(each);
        to.gauge("whitewater_server_sessions", "asked for, up, and just over", self.sessions as f64);
        to.counter("whitewater_server_datagrams_sent_total", "of any kind", self.datagrams_sent);
        to.counter("whitewater_server_bytes_sent_total", "of datagrams", self.bytes_sent);
        to.counter("whitewater_server_bytes_received_total", "of datagrams", self.bytes_received);
        to.counter("whitewater_server_dropped_total", "DATA that its session dropped", self.dropped);
        to.gauge("whitewater_server_memory_bytes", "what all sessions hold", self.memory as f64);
        to.counter("whitewater_server_datagrams_received_total", "of any kind", self.datagrams);
        to.counter("whitewater_server_challenges_total", "cookies given out", self.challenges);
        to.counter(
            "whitewater_server_requested_total",
            "clients the application was asked about",
            self.requested,
        );
        to.counter("whitewater_server_accepted_total", "sessions begun, confirmed or not", self.accepted);
        to.counter("whitewater_server_accepts_repeated_total", "ACCEPTs sent again", self.accepts_repeated);
        to.counter("whitewater_server_confirmed_total", "sessions whose client was heard", self.confirmed);
        to.counter("whitewater_server_unconfirmed_total", "sessions never confirmed", self.unconfirmed);
        to.counter("whitewater_server_resets_total", "RESETs sent", self.resets);
        to.counter("whitewater_server_denials_total", "DENYs sent", self.denials);
        let reasons = rejected(&self.rejected);
        to.counters("whitewater_server_rejected_total", "dropped without a session", "reason", reasons);
    }
}

const fn rejected(rejected: &RejectedRequests) -> [(&'static str, u64); 17] {
    [
        ("malformed", rejected.malformed),
        ("version", rejected.version),
        ("suite", rejected.suite),
        ("protocol", rejected.protocol),
        ("challenge_rate", rejected.challenge_rate),
        ("cookie", rejected.cookie),
        ("repeated", rejected.repeated),
        ("accept_rate", rejected.accept_rate),
        ("per_address", rejected.per_address),
        ("full", rejected.full),
        ("token", rejected.token),
        ("outdated", rejected.outdated),
        ("handshake", rejected.handshake),
        ("declined", rejected.declined),
        ("unanswered", rejected.unanswered),
        ("unknown", rejected.unknown),
        ("replies", rejected.replies),
    ]
}

impl Measures for raw::Stats {
    fn measures(&self, each: &mut dyn FnMut(Measure)) {
        let mut to = To(each);
        to.counter("whitewater_listener_datagrams_received_total", "of any kind", self.datagrams);
        to.counter("whitewater_listener_accepted_total", "strangers that became peers", self.accepted);
        let closed =
            [("idle", self.closed_idle), ("dead_link", self.closed_dead), ("here", self.closed_here)];
        to.counters("whitewater_listener_closed_total", "peers that are gone", "reason", closed);
        let rejected = [
            ("rejected", self.rejected),
            ("garbage", self.garbage),
            ("stray", self.strays),
            ("quarantined", self.quarantined),
            ("strangers", self.refused_strangers),
            ("full", self.refused_full),
            ("per_address", self.refused_per_address),
            ("rate", self.refused_rate),
        ];
        to.counters("whitewater_listener_rejected_total", "datagrams dropped", "reason", rejected);
    }
}
