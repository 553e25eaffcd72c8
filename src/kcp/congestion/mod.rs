//! How much may be in flight. A controller sees values and answers with a window and a rate; it
//! cannot send. [`Congestion`] chooses one; docs/TUNING.md has what each is worth.

mod controller;
mod copa;
mod cubic;
pub(crate) mod kcp;
#[cfg(test)]
mod tests;
mod window;

pub(super) use controller::Controller;
pub(crate) use copa::Copa;
pub(crate) use cubic::Cubic;
pub(crate) use kcp::KcpControl;
pub(super) use kcp::Undo;

use crate::seq::Sn;
use crate::time::Time;
use std::fmt;
use std::time::Duration;

/// What limits how much is in flight, besides the windows of both ends.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Congestion {
    /// Nothing. For game traffic, which sets its own rate.
    None,
    /// KCP's congestion window. Source: ikcp.c.
    Kcp,
    /// CUBIC (RFC 9438), which most of TCP uses: takes loss as a sign of a full path, and fills the queue of the bottleneck until there is
    /// some. For a fair share beside such flows.
    Cubic,
    /// Copa: keeps the queue of the bottleneck short, and does not take loss as a sign of a full path. For bulk beside a game.
    Copa,
    /// A controller of your own. The function is called once for each control block, by [`Kcp::new`](super::Kcp::new) or
    /// [`Kcp::configure`](super::Kcp::configure).
    Own(fn() -> Box<dyn CongestionControl>),
}

impl Congestion {
    #[inline]
    pub(super) const fn is_none(self) -> bool {
        matches!(self, Self::None)
    }

    /// Whether a control block with `self` goes on with its controller when told `other`. KCP's keeps its window up to date even while it does
    /// not apply.
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

/// A congestion controller, to be chosen by [`Congestion::Own`].
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

/// Longest time whose budget is kept.
pub const PACING_BURST: Duration = Duration::from_millis(20);
