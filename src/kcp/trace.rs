//! The state under the names of ikcp.c: for comparison with recorded traces, and for the C library.

use super::Kcp;
use super::congestion::{CongestionControl, Controller, KcpControl};
use super::rtt::SAMPLE_MAX;
use crate::seq::Conv;
use crate::wire::Output;

impl<O: Output> Kcp<O> {
    /// The field of `struct IKCPCB` with this name. `None`: there is no counterpart here.
    #[doc(hidden)]
    #[must_use]
    pub fn trace_state(&self, field: &str) -> Option<i64> {
        let config = &self.config;
        let control = self.congestion.control();
        Some(match field {
            "state" => i64::from(if self.sender.dead { u32::MAX } else { 0 }),
            "snd_una" => self.sender.una().0.into(),
            "snd_nxt" => self.sender.nxt.0.into(),
            "rcv_nxt" => self.receiver.nxt.0.into(),
            "cwnd" => control.window().into(),
            "ssthresh" => control.ssthresh()?.into(),
            "incr" => match self.congestion {
                Controller::Kcp(control) => control.incr.into(),
                Controller::Custom(_) => return None,
            },
            "snd_wnd" => config.snd_wnd.into(),
            "rcv_wnd" => config.rcv_wnd.into(),
            "rmt_wnd" => self.sender.rmt_wnd.into(),
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
            "nocwnd" => config.congestion.is_none().into(),
            "stream" => config.stream.into(),
            "dead_link" => config.dead_link.into(),
            "mtu" => config.mtu.into(),
            "mss" => config.mss().into(),
            "xmit" => self.counters.resends_timeout.into(),
            _ => return None,
        })
    }

    /// Sets such a field, as a program that uses ikcp.c writes to its control block. Fields that cannot be set are
    /// ignored.
    #[doc(hidden)]
    pub fn set_trace_state(&mut self, field: &str, value: u32) {
        // Limited like a sample, so that sums of it stay in range.
        let time = value.min(SAMPLE_MAX.cast_unsigned()) * if self.config.is_by_time() { 1000 } else { 1 };
        match (field, &mut self.congestion) {
            ("ccops", congestion) if value == 0 => *congestion = Controller::Kcp(KcpControl::default()),
            ("conv", _) => self.conv = Conv(value),
            ("state", _) => self.sender.dead = value == u32::MAX,
            ("rmt_wnd", _) => self.sender.rmt_wnd = u16::try_from(value).unwrap_or(u16::MAX),
            ("interval", _) => self.config.interval = u16::try_from(value).unwrap_or(u16::MAX),
            ("rx_srtt", _) => self.rtt.srtt = time,
            ("rx_rttval", _) => self.rtt.rttvar = time,
            ("rx_rto", _) => self.rtt.rto = time,
            ("xmit", _) => self.counters.resends_timeout = value,
            ("cwnd", Controller::Kcp(control)) => control.cwnd = value,
            ("ssthresh", Controller::Kcp(control)) => control.ssthresh = value,
            ("incr", Controller::Kcp(control)) => control.incr = value,
            _ => {}
        }
        self.wake();
        if let Some(work) = &mut self.work {
            work.by_time.reckon(&self.rtt);
        }
    }

    /// Replaces the congestion controller. For one whose state a plain constructor function cannot provide.
    #[doc(hidden)]
    pub fn install(&mut self, control: Box<dyn CongestionControl>) {
        self.congestion = Controller::custom(control);
    }
}
