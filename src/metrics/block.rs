//! A control block.

use super::{Measure, Measures, To};
use crate::arq::Stats;

impl Measures for Stats {
    fn measures(&self, each: &mut dyn FnMut(Measure)) {
        let mut to = To(each);
        to.seconds("whitewater_kcp_srtt_seconds", "smoothed round trip; 0 before the first", self.srtt);
        to.seconds("whitewater_kcp_rttvar_seconds", "mean deviation of the round trip", self.rttvar);
        to.seconds(
            "whitewater_kcp_min_rtt_seconds",
            "shortest round trip; 0 before the first",
            self.min_rtt.unwrap_or_default(),
        );
        to.seconds("whitewater_kcp_rto_seconds", "retransmission timeout", self.rto);
        to.gauge("whitewater_kcp_cwnd_segments", "congestion window", self.cwnd.into());
        to.gauge("whitewater_kcp_rmt_wnd_segments", "the peer's window", self.rmt_wnd.into());
        to.gauge("whitewater_kcp_in_flight_segments", "sent and not acknowledged", self.in_flight.into());
        to.gauge("whitewater_kcp_snd_queue_segments", "waiting to be sent", self.snd_queue.into());
        to.gauge("whitewater_kcp_rcv_queue_segments", "in order and not read", self.rcv_queue.into());
        to.gauge("whitewater_kcp_rcv_buf_segments", "waiting for earlier ones", self.rcv_buf.into());
        to.counter("whitewater_kcp_segments_sent_total", "of every command", self.segments_sent);
        to.counter("whitewater_kcp_segments_received_total", "of every command", self.segments_received);
        to.counter("whitewater_kcp_bytes_sent_total", "of datagrams", self.bytes_sent);
        to.counter("whitewater_kcp_bytes_received_total", "of good datagrams", self.bytes_received);
        let causes = [("timeout", self.resends_timeout.into()), ("fast", self.resends_fast.into())];
        to.counters("whitewater_kcp_resends_total", "segments sent again", "cause", causes);
        to.counter("whitewater_kcp_repairs_sent_total", "repairs and copies", self.repairs_sent.into());
        to.counter("whitewater_kcp_rebuilt_total", "segments rebuilt from repairs", self.rebuilt.into());
        to.counter("whitewater_kcp_duplicates_total", "segments received again", self.duplicates.into());
        let rejected = self.rejected.by_reason().map(|(reason, count)| (reason, count.into()));
        to.counters("whitewater_kcp_rejected_total", "refused or ignored", "reason", rejected);
    }
}
