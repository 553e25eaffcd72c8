use super::{Ack, Congestion, CongestionControl, Cubic, Delay, KcpControl, PACING_BURST, Sent};
use crate::kcp::config::Config;
use crate::kcp::send::Sender;
use crate::time::Time;
use std::time::Duration;

/// KCP's controller, stored inline, or another one.
#[derive(Debug)]
pub(in crate::kcp) enum Controller {
    Kcp(KcpControl),
    Custom(Box<Custom>),
}

/// A controller with its token bucket. A segment may be sent while the budget is above zero, and may overdraw it, so
/// that no rate is too small for a segment. The debt is paid before the next one.
#[derive(Debug)]
pub(in crate::kcp) struct Custom {
    control: Box<dyn CongestionControl>,
    /// Bytes that may be sent, in units of 1/1,000,000 byte. Negative after an overdraft.
    budget: i64,
    /// When it was last filled. `None`: not paced.
    filled: Option<Time>,
}

impl Controller {
    pub(in crate::kcp) fn new(congestion: Congestion) -> Self {
        match congestion {
            Congestion::None | Congestion::Kcp => Self::Kcp(KcpControl::default()),
            Congestion::Cubic => Self::custom(Box::new(Cubic::new())),
            Congestion::Delay => Self::custom(Box::new(Delay::new())),
            Congestion::Own(make) => Self::custom(make()),
        }
    }

    pub(in crate::kcp) fn custom(control: Box<dyn CongestionControl>) -> Self {
        Self::Custom(Box::new(Custom { control, budget: 0, filled: None }))
    }

    pub(in crate::kcp) fn control(&self) -> &dyn CongestionControl {
        match self {
            Self::Kcp(control) => control,
            Self::Custom(custom) => &*custom.control,
        }
    }

    #[inline]
    pub(in crate::kcp) fn control_mut(&mut self) -> &mut dyn CongestionControl {
        match self {
            Self::Kcp(control) => control,
            Self::Custom(custom) => &mut *custom.control,
        }
    }

    /// Segments that may still be sent.
    ///
    /// The windows of both ends, and KCP's congestion window, count from `snd_una` on. For other controllers, what has
    /// arrived no longer counts as in flight; otherwise one missing segment would stop a full path.
    pub(in crate::kcp) fn room(&self, config: &Config, sender: &Sender) -> u32 {
        let room = window_room(config, sender);
        match self {
            Self::Kcp(_) if config.congestion.is_none() => room,
            Self::Kcp(control) => room.min(control.window().saturating_sub(sender.span())),
            Self::Custom(custom) => room.min(custom.control.window().saturating_sub(sender.in_flight)),
        }
    }

    /// The window in segments, unless a custom controller is installed, which does its own pacing.
    pub(in crate::kcp) fn window_of_kcp(&self, config: &Config, rmt_wnd: u16) -> Option<u32> {
        let Self::Kcp(control) = self else { return None };
        let window = u32::from(config.snd_wnd.min(rmt_wnd));
        Some(if config.congestion.is_none() { window } else { window.min(control.window()) })
    }

    /// Whether segments wait although the windows of both ends have room for them.
    pub(in crate::kcp) fn holds_back(config: &Config, sender: &Sender) -> bool {
        sender.waiting() > 0 && window_room(config, sender) > 0
    }

    /// Whether only the windows of both ends limit what is in flight.
    pub(in crate::kcp) const fn is_open(&self, config: &Config) -> bool {
        matches!(self, Self::Kcp(_)) && config.congestion.is_none()
    }

    /// Whether a controller other than KCP's limits what is in flight.
    pub(in crate::kcp) const fn is_paced(&self) -> bool {
        matches!(self, Self::Custom(_))
    }

    /// Reports acknowledged segments. The built-in controller hears only of those that moved `snd_una`: once per
    /// datagram as in ikcp.c, or with modern recovery once per segment, because a peer may acknowledge a whole round
    /// trip at once. Source: RFC 3465.
    #[inline]
    pub(in crate::kcp) fn on_ack(&mut self, ack: &Ack, is_by_time: bool) {
        match self {
            Self::Kcp(control) => {
                let times = if is_by_time { ack.segments } else { ack.segments.min(1) };
                (0..times).for_each(|_| control.on_ack(ack));
            }
            Self::Custom(custom) => custom.control.on_ack(ack),
        }
    }

    /// Reports a transmission. The built-in controller does not need it.
    #[inline]
    pub(in crate::kcp) fn on_sent(&mut self, sent: impl FnOnce() -> Sent) {
        if let Self::Custom(custom) = self {
            let sent = sent();
            custom.spend(sent.len);
            custom.control.on_sent(&sent);
        }
    }

    /// Takes the bytes of a repair from the pacing budget. No controller sees it.
    pub(in crate::kcp) fn spend(&mut self, len: u16) {
        if let Self::Custom(custom) = self {
            custom.spend(len);
        }
    }

    /// Reports a round trip. The built-in controller does not need it.
    #[inline]
    pub(in crate::kcp) fn on_rtt(&mut self, now: Time, rtt: Duration) {
        if let Self::Custom(custom) = self {
            custom.control.on_rtt(now, rtt);
        }
    }

    pub(in crate::kcp) fn path_changed(&mut self, now: Time, mss: u16) {
        self.control_mut().on_path_change(now);
        self.control_mut().on_tick(now, mss);
        if let Self::Custom(custom) = self {
            (custom.budget, custom.filled) = (0, None);
        }
    }

    /// A flush begins: fills the pacing budget up to `now`.
    #[inline]
    pub(in crate::kcp) fn refill(&mut self, now: Time) {
        if let Self::Custom(custom) = self {
            custom.control.on_flush(now);
            custom.refill(now);
        }
    }

    /// Whether a segment may be sent. Asked before the segment is touched.
    #[inline]
    pub(in crate::kcp) fn allows(&self) -> bool {
        match self {
            Self::Kcp(_) => true,
            Self::Custom(custom) => custom.allows(),
        }
    }

    /// When a segment may be sent. `None`: not at the present rate.
    pub(in crate::kcp) fn allows_at(&self, now: Time) -> Option<Time> {
        match self {
            Self::Kcp(_) => Some(now),
            Self::Custom(custom) => custom.allows_at(now),
        }
    }
}

/// Segments that fit into the windows of both ends.
fn window_room(config: &Config, sender: &Sender) -> u32 {
    u32::from(config.snd_wnd.min(sender.rmt_wnd)).saturating_sub(sender.span())
}

impl Custom {
    /// Adds the budget for the time since the last call.
    fn refill(&mut self, now: Time) {
        let Some(rate) = self.control.pacing_rate() else {
            self.filled = None;
            return;
        };
        let worth = |time: Duration| {
            let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
            i64::try_from(rate).unwrap_or(i64::MAX).saturating_mul(micros)
        };
        let burst = worth(PACING_BURST);
        self.budget =
            self.filled.map_or(burst, |last| self.budget.saturating_add(worth(now.since(last))).min(burst));
        self.filled = Some(now);
    }

    fn allows(&self) -> bool {
        self.filled.is_none() || self.budget > 0
    }

    /// When a segment may be sent. `None`: not at the present rate.
    fn allows_at(&self, now: Time) -> Option<Time> {
        match (self.filled, self.control.pacing_rate()) {
            (Some(_), Some(0)) if !self.allows() => None,
            (Some(filled), Some(rate)) if !self.allows() => {
                let wait = self.budget.unsigned_abs() / rate + 1;
                Some((filled + Duration::from_micros(wait)).max(now))
            }
            _ => Some(now),
        }
    }

    fn spend(&mut self, len: u16) {
        self.budget = self.budget.saturating_sub(i64::from(len) * 1_000_000);
    }
}
