//! How much may be in flight. A controller sees values and answers with a window and a rate; it
//! cannot send.
//!
//! That of ikcp.c is built in (`Config::nc` turns it off); [`Copa`], [`Cubic`] and [`GoodBad`] are to be installed.
//! docs/TUNING.md has what each is worth, but for [`GoodBad`], which looks for no room and is not measured there.

mod copa;
mod cubic;
mod good_bad;
pub(crate) mod kcp;
#[cfg(test)]
mod tests;
mod window;

pub use copa::Copa;
pub use cubic::Cubic;
pub use good_bad::GoodBad;
pub(crate) use kcp::KcpControl;
pub(super) use kcp::Undo;

use super::config::Config;
use super::send::Sender;
use crate::seq::Sn;
use crate::time::Time;
use std::fmt;
use std::time::Duration;

/// A congestion controller. Install one with [`Kcp::set_congestion`](super::Kcp::set_congestion).
pub trait CongestionControl: fmt::Debug + Send {
    /// Segments that may be in flight: sent, and not acknowledged.
    fn window(&self) -> u32;

    /// Window above which growth slows down, segments, where the controller has one.
    fn ssthresh(&self) -> Option<u32> {
        None
    }

    /// A datagram acknowledged segments, in order or not. If it measured round trips as well,
    /// [`on_rtt`](Self::on_rtt) has been told of them.
    fn on_ack(&mut self, _ack: &Ack) {}

    /// A flush resent segments.
    fn on_loss(&mut self, _loss: &Loss) {}

    /// A segment had arrived before it was sent again, so that nothing was lost: what [`on_loss`](Self::on_loss) has changed for it may be taken
    /// back. Source: RFC 4015.
    fn on_needless(&mut self, _now: Time) {}

    /// The path has marked a segment, for a queue is filling (ECN): as if one had been lost, which is not sent again. Once a round trip at
    /// most.
    fn on_mark(&mut self, loss: &Loss) {
        self.on_loss(loss);
    }

    /// A round trip was measured: a transmission that left `rtt` ago has arrived.
    fn on_rtt(&mut self, _now: Time, _rtt: Duration) {}

    /// A segment is sent, for the first time or again.
    fn on_sent(&mut self, _sent: &Sent) {}

    /// A flush found nothing more to send although the windows have room beside `in_flight` segments.
    fn on_app_limited(&mut self, _in_flight: u32) {}

    /// The peer is reached by another path, of which nothing is known: begin anew.
    fn on_path_change(&mut self, _now: Time) {}

    /// A flush begins; [`pacing_rate`](Self::pacing_rate) and [`window`](Self::window) are asked next.
    fn on_flush(&mut self, _now: Time) {}

    /// A flush has ended.
    fn on_tick(&mut self, _now: Time, _mss: u16) {}

    /// Payload bytes that may leave a second; `None`: no pacing. Acknowledgements and probes are
    /// not counted. What is not used is kept, up to [`PACING_BURST`]; a segment leaves when anything
    /// is left and may overdraw it, so that no rate is too small.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }
}

/// Acknowledged segments, by one datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Ack {
    /// When it arrived.
    pub now: Time,
    /// Segments by which `snd_una` moved; 0: one before those acknowledged is missing.
    pub segments: u32,
    /// Payload bytes that the datagram acknowledged, below `snd_una` or not.
    pub bytes: u32,
    /// Segments in flight before it.
    pub in_flight: u32,
    /// The peer's window, segments.
    pub rmt_wnd: u16,
    /// Largest payload of a segment, bytes.
    pub mss: u16,
}

/// Segments resent by one flush.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Loss {
    /// When.
    pub now: Time,
    /// Segments resent because their time was out.
    pub timeouts: u32,
    /// Segments resent because later ones were acknowledged.
    pub fast: u32,
    /// From `snd_una` to `snd_nxt`, segments, the acknowledged among them included.
    pub in_flight: u32,
    /// The window before the flush.
    pub prior_window: u32,
    /// The knob of that name.
    pub fast_resend: u16,
    /// Largest payload of a segment, bytes.
    pub mss: u16,
}

/// One transmission.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Sent {
    /// When.
    pub now: Time,
    /// The segment.
    pub sn: Sn,
    /// Payload bytes.
    pub len: u16,
    /// How often it has been sent, this one included.
    pub xmit: u16,
    /// Segments in flight, this one included.
    pub in_flight: u32,
}

/// The built-in controller in place, or another one.
#[derive(Debug)]
pub(super) enum Congestion {
    Kcp(KcpControl),
    Custom(Box<Custom>),
}

/// A controller and its token bucket. A segment leaves when the budget is above zero and may overdraw it, so that no
/// rate is too small for a segment; the debt is paid before the next one.
#[derive(Debug)]
pub(super) struct Custom {
    control: Box<dyn CongestionControl>,
    /// Bytes that may leave, negative after an overdraft, in units of 1/1,000,000 byte.
    budget: i64,
    /// When it was filled last; `None`: not paced.
    filled: Option<Time>,
}

impl Congestion {
    pub(super) fn custom(control: Box<dyn CongestionControl>) -> Self {
        Self::Custom(Box::new(Custom { control, budget: 0, filled: None }))
    }

    pub(super) fn control(&self) -> &dyn CongestionControl {
        match self {
            Self::Kcp(control) => control,
            Self::Custom(custom) => &*custom.control,
        }
    }

    #[inline]
    pub(super) fn control_mut(&mut self) -> &mut dyn CongestionControl {
        match self {
            Self::Kcp(control) => control,
            Self::Custom(custom) => &mut *custom.control,
        }
    }

    /// Segments that may still be taken into flight.
    ///
    /// The windows of both ends count from `snd_una` on, and so does that of KCP. To another
    /// controller what has arrived is no more under way, or one missing segment stops a full path.
    pub(super) fn room(&self, config: &Config, rmt_wnd: u16, sender: &Sender) -> u32 {
        let room = window_room(config, rmt_wnd, sender);
        match self {
            Self::Kcp(_) if config.nc => room,
            Self::Kcp(control) => room.min(control.window().saturating_sub(sender.span())),
            Self::Custom(custom) => room.min(custom.control.window().saturating_sub(sender.in_flight)),
        }
    }

    /// The window, segments, unless a controller is installed, which paces as it likes.
    pub(super) fn window_of_kcp(&self, config: &Config, rmt_wnd: u16) -> Option<u32> {
        let Self::Kcp(control) = self else { return None };
        let window = u32::from(config.snd_wnd.min(rmt_wnd));
        Some(if config.nc { window } else { window.min(control.window()) })
    }

    /// Whether segments wait though both windows have room for them.
    pub(super) fn holds_back(config: &Config, rmt_wnd: u16, sender: &Sender) -> bool {
        sender.waiting() > 0 && window_room(config, rmt_wnd, sender) > 0
    }

    /// Whether nothing but the windows of both ends limits what is in flight.
    pub(super) const fn is_open(&self, config: &Config) -> bool {
        matches!(self, Self::Kcp(_)) && config.nc
    }

    /// Tells of acknowledged segments; the built-in controller only of those that moved `snd_una`: once a datagram, as ikcp.c does, or by time
    /// of each, since a peer may acknowledge all of a round trip at once. Source: RFC 3465.
    #[inline]
    pub(super) fn on_ack(&mut self, ack: &Ack, is_by_time: bool) {
        match self {
            Self::Kcp(control) => {
                let times = if is_by_time { ack.segments } else { ack.segments.min(1) };
                (0..times).for_each(|_| control.on_ack(ack));
            }
            Self::Custom(custom) => custom.control.on_ack(ack),
        }
    }

    /// Tells of a transmission; the built-in controller does not ask.
    #[inline]
    pub(super) fn on_sent(&mut self, sent: impl FnOnce() -> Sent) {
        if let Self::Custom(custom) = self {
            let sent = sent();
            custom.spend(sent.len);
            custom.control.on_sent(&sent);
        }
    }

    /// Takes the bytes of a repair from the pacing budget; no controller sees it.
    pub(super) fn spend(&mut self, len: u16) {
        if let Self::Custom(custom) = self {
            custom.spend(len);
        }
    }

    /// Tells of a round trip; the built-in controller does not ask.
    #[inline]
    pub(super) fn on_rtt(&mut self, now: Time, rtt: Duration) {
        if let Self::Custom(custom) = self {
            custom.control.on_rtt(now, rtt);
        }
    }

    pub(super) fn path_changed(&mut self, now: Time, mss: u16) {
        self.control_mut().on_path_change(now);
        self.control_mut().on_tick(now, mss);
        if let Self::Custom(custom) = self {
            (custom.budget, custom.filled) = (0, None);
        }
    }

    /// A flush begins: fills the pacing budget up to `now`.
    #[inline]
    pub(super) fn refill(&mut self, now: Time) {
        if let Self::Custom(custom) = self {
            custom.control.on_flush(now);
            custom.refill(now);
        }
    }

    /// Whether a segment may leave. Asked before the segment is touched.
    #[inline]
    pub(super) fn allows(&self) -> bool {
        match self {
            Self::Kcp(_) => true,
            Self::Custom(custom) => custom.allows(),
        }
    }

    /// When one may; `None`: not at the present rate.
    pub(super) fn allows_at(&self, now: Time) -> Option<Time> {
        match self {
            Self::Kcp(_) => Some(now),
            Self::Custom(custom) => custom.allows_at(now),
        }
    }
}

/// Segments for which the windows of both ends have room.
fn window_room(config: &Config, rmt_wnd: u16, sender: &Sender) -> u32 {
    u32::from(config.snd_wnd.min(rmt_wnd)).saturating_sub(sender.span())
}

/// Longest time whose budget is kept.
pub const PACING_BURST: Duration = Duration::from_millis(20);

impl Custom {
    /// Adds what the rate is worth since the last call.
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

    /// When a segment may leave; `None`: not at the present rate.
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
