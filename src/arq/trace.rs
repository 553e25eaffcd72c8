//! The state under the names that ikcp.c gives it, for the comparison with recorded traces.

use super::Kcp;
use super::congestion::Congestion;
use crate::wire::Output;

impl<O: Output> Kcp<O> {
    /// The field of `struct IKCPCB` called `field`; `None` where there is none like it here.
    #[doc(hidden)]
    #[must_use]
    pub fn trace_state(&self, field: &str) -> Option<i64> {
        let config = &self.config;
        let control = self.congestion.control();
        Some(match field {
            "state" => i64::from(if self.dead { u32::MAX } else { 0 }),
            "snd_una" => self.sender.una().0.into(),
            "snd_nxt" => self.sender.nxt.0.into(),
            "rcv_nxt" => self.receiver.nxt.0.into(),
            "cwnd" => control.window().into(),
            "ssthresh" => control.ssthresh()?.into(),
            "incr" => match self.congestion {
                Congestion::Kcp(control) => control.incr.into(),
                Congestion::Custom(_) => return None,
            },
            "snd_wnd" => config.snd_wnd.into(),
            "rcv_wnd" => config.rcv_wnd.into(),
            "rmt_wnd" => self.rmt_wnd.into(),
            "rx_srtt" => self.rtt.srtt.into(),
            "rx_rttval" => self.rtt.rttvar.into(),
            "rx_rto" => self.rtt.rto.into(),
            "rx_minrto" => config.rto_min().into(),
            "nsnd_que" => self.sender.waiting().into(),
            "nsnd_buf" => self.sender.in_flight.into(),
            "nrcv_buf" => self.receiver.parked.into(),
            "nrcv_que" => self.receiver.queued().into(),
            "ackcount" => self.work.as_ref().map_or(Some(0), |work| i64::try_from(work.acks.len()).ok())?,
            "probe" => i64::from(self.probe.ask) + 2 * i64::from(self.probe.tell),
            "probe_wait" => self.probe.wait.into(),
            "ts_probe" => self.probe.at.0.into(),
            "ts_flush" => self.timer.flush?.0.into(),
            "interval" => config.interval.into(),
            "updated" => self.timer.flush.is_some().into(),
            "nodelay" => config.nodelay.into(),
            "fastresend" => config.fast_resend.into(),
            "fastlimit" => config.fast_limit.into(),
            "nocwnd" => config.nc.into(),
            "stream" => config.stream.into(),
            "dead_link" => config.dead_link.into(),
            "mtu" => config.mtu.into(),
            "mss" => config.mss().into(),
            "xmit" => self.counters.resends_timeout.into(),
            _ => return None,
        })
    }
}
