//! An endpoint of packets.

use super::{Measure, Measures, To};
use crate::packet::{Rejected, Stats};

impl Measures for Stats {
    fn measures(&self, each: &mut dyn FnMut(Measure)) {
        let mut to = To(each);
        to.seconds("whitewater_packet_rtt_seconds", "smoothed round trip; 0 before the first", self.rtt);
        to.seconds("whitewater_packet_jitter_seconds", "mean distance from that", self.jitter);
        to.seconds("whitewater_packet_rtt_min_seconds", "shortest round trip", self.rtt_min);
        to.gauge("whitewater_packet_loss_ratio", "share not acknowledged in time, 0 to 1", self.loss);
        to.gauge("whitewater_packet_sent_bytes_per_second", "datagrams sent", self.sent_bandwidth);
        to.gauge("whitewater_packet_received_bytes_per_second", "datagrams taken", self.received_bandwidth);
        to.counter("whitewater_packet_sent_total", "packets, keepalives included", self.sent);
        to.counter("whitewater_packet_datagrams_sent_total", "packets may be several", self.datagrams_sent);
        to.counter("whitewater_packet_received_total", "whole packets", self.received);
        to.counter("whitewater_packet_acked_total", "known to have arrived", self.acked);
        to.counter("whitewater_packet_lost_total", "not acknowledged in time", self.lost);
        to.counter("whitewater_packet_abandoned_total", "given up with fragments missing", self.abandoned);
        to.counters(
            "whitewater_packet_rejected_total",
            "datagrams refused",
            "reason",
            rejected(&self.rejected),
        );
    }
}

const fn rejected(rejected: &Rejected) -> [(&'static str, u64); 11] {
    [
        ("truncated", rejected.truncated),
        ("protocol", rejected.protocol),
        ("prefix", rejected.prefix),
        ("not_shortest", rejected.not_shortest),
        ("fragment", rejected.fragment),
        ("fragment_mismatch", rejected.fragment_mismatch),
        ("too_long", rejected.too_long),
        ("ack_unsent", rejected.ack_unsent),
        ("stale", rejected.stale),
        ("duplicate", rejected.duplicate),
        ("refused", rejected.refused),
    ]
}
