//! Limits what is in flight. A controller receives measurements and answers with a window and a rate; it cannot send.
//! [`Congestion`] chooses one; docs/TUNING.md compares them.

mod controller;
mod cubic;
mod delay;
pub(crate) mod kcp;
mod rival;
mod start;
#[cfg(test)]
mod tests;
mod tolerance;
mod window;

pub(super) use controller::Controller;
pub(crate) use cubic::Cubic;
pub(crate) use delay::Delay;
pub(crate) use kcp::KcpControl;
pub(super) use kcp::Undo;

use crate::seq::Sn;
use crate::time::Time;
use std::fmt;
use std::time::Duration;

/// What limits the segments in flight, besides the windows of both ends.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Congestion {
    /// No limit. For game traffic, which sets its own rate.
    None,
    /// KCP's congestion window. Source: ikcp.c.
    Kcp,
    /// CUBIC (RFC 9438), as in most of TCP. Takes loss as the sign of a full path, and fills the queue at the
    /// bottleneck until there is loss. Gives a fair share beside such flows.
    Cubic,
    /// Keeps the queue at the bottleneck short, by delay, and does not take loss as the sign of a full path. Follows paths
    /// whose rate varies, and competes with flows that fill the queue. For bulk data beside a game.
    Delay,
    /// Your own controller. [`Kcp::new`](super::Kcp::new) or [`Kcp::configure`](super::Kcp::configure) calls the
    /// function once per control block.
    Own(fn() -> Box<dyn CongestionControl>),
}

impl Congestion {
    #[inline]
    pub(super) const fn is_none(self) -> bool {
        matches!(self, Self::None)
    }

    /// Whether a control block keeps its controller when switched from `self` to `other`. KCP's updates its window even
    /// while it does not apply.
    pub(super) fn shares_controller(self, other: Self) -> bool {
        let is_kcps = |congestion| matches!(congestion, Self::None | Self::Kcp);
        self == other || (is_kcps(self) && is_kcps(other))
    }
}

impl Eq for Congestion {}

impl PartialEq for Congestion {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Own(a), Self::Own(b)) => std::ptr::fn_addr_eq(*a, *b),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// A congestion controller, chosen by [`Congestion::Own`].
pub trait CongestionControl: fmt::Debug + Send + Sync {
    /// Segments that may be in flight: sent, and not acknowledged.
    fn window(&self) -> u32;

    /// Window above which growth slows down, segments, if the controller has one.
    fn ssthresh(&self) -> Option<u32> {
        None
    }

    /// A datagram acknowledged segments, in order or not. If it also measured a round trip, [`on_rtt`](Self::on_rtt)
    /// was called before.
    fn on_ack(&mut self, _ack: &Ack) {}

    /// A flush resent segments.
    fn on_loss(&mut self, _loss: &Loss) {}

    /// A segment had arrived before it was resent, so nothing was lost. The controller may undo what
    /// [`on_loss`](Self::on_loss) changed for it. Source: RFC 4015.
    fn on_needless(&mut self, _now: Time) {}

    /// The path has marked a segment because a queue is filling (ECN). Treated like a loss, but nothing is resent.
    /// Called at most once per round trip.
    fn on_mark(&mut self, loss: &Loss) {
        self.on_loss(loss);
    }

    /// A round trip was measured: a transmission sent `rtt` ago has arrived.
    fn on_rtt(&mut self, _now: Time, _rtt: Duration) {}

    /// A segment is sent, for the first time or again.
    fn on_sent(&mut self, _sent: &Sent) {}

    /// A flush had nothing more to send, although the windows have room beyond the `in_flight` segments.
    fn on_app_limited(&mut self, _in_flight: u32) {}

    /// The peer is reached over another path, of which nothing is known: start afresh.
    fn on_path_change(&mut self, _now: Time) {}

    /// A flush begins. [`pacing_rate`](Self::pacing_rate) and [`window`](Self::window) are asked next.
    fn on_flush(&mut self, _now: Time) {}

    /// A flush has ended.
    fn on_tick(&mut self, _now: Time, _mss: u16) {}

    /// Payload bytes that may be sent per second. `None`: no pacing. Acknowledgements and probes do not count. Unused
    /// budget is kept, up to [`PACING_BURST`]. A segment is sent while any budget is left, and may overdraw it, so that
    /// no rate is too small.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }
}

/// Segments acknowledged by one datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Ack {
    /// When it arrived.
    pub now: Time,
    /// How many segments `snd_una` moved. 0: an earlier segment is still missing.
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
    /// When they were resent.
    pub now: Time,
    /// Segments resent because their timeout expired.
    pub timeouts: u32,
    /// Segments resent because later ones were acknowledged.
    pub fast: u32,
    /// Segments from `snd_una` to `snd_nxt`, including acknowledged ones.
    pub in_flight: u32,
    /// The window before the flush.
    pub prior_window: u32,
    /// The setting `fast_resend`.
    pub fast_resend: u16,
    /// Largest payload of a segment, bytes.
    pub mss: u16,
}

/// One transmission.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Sent {
    /// When it was sent.
    pub now: Time,
    /// The segment.
    pub sn: Sn,
    /// Payload bytes.
    pub len: u16,
    /// How often it has been sent, including this transmission.
    pub xmit: u16,
    /// Segments in flight, including this one.
    pub in_flight: u32,
}

/// Longest time for which unused budget is kept.
pub const PACING_BURST: Duration = Duration::from_millis(20);
