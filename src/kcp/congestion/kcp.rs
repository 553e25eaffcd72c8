use super::{Ack, CongestionControl, Controller, Loss};
use crate::time::Time;

/// The congestion control built into KCP: slow start up to a threshold that starts at 2, then growth by about one
/// segment per window; half the flight after a fast resend, one segment after a timeout. Source: ikcp.c 2.1.1
/// `ikcp_input`, `ikcp_flush`.
///
/// If modern recovery finds that nothing had been lost, the reduction is undone. Source: RFC 4015.
#[derive(Clone, Copy, Debug)]
pub struct KcpControl {
    /// The window in segments; 0 until the first flush.
    pub(in crate::kcp) cwnd: u32,
    pub(in crate::kcp) ssthresh: u32,
    /// The window in bytes, which grows in finer steps.
    pub(in crate::kcp) incr: u32,
}

impl Default for KcpControl {
    /// The state after `ikcp_create`: a window of 0 until the first flush.
    fn default() -> Self {
        Self { cwnd: 0, ssthresh: THRESH_INIT, incr: 0 }
    }
}

impl CongestionControl for KcpControl {
    fn window(&self) -> u32 {
        self.cwnd
    }

    fn ssthresh(&self) -> Option<u32> {
        Some(self.ssthresh)
    }

    /// Grows once per datagram, however much it acknowledged.
    fn on_ack(&mut self, ack: &Ack) {
        let (mss, rmt_wnd) = (u32::from(ack.mss), u32::from(ack.rmt_wnd));
        if self.cwnd >= rmt_wnd || mss == 0 {
            return;
        }
        if self.cwnd < self.ssthresh {
            self.cwnd += 1;
            self.incr = self.incr.saturating_add(mss);
        } else {
            self.incr = self.incr.max(mss);
            self.incr = self.incr.saturating_add(mss * mss / self.incr + mss / 16);
            if (u64::from(self.cwnd) + 1) * u64::from(mss) <= u64::from(self.incr) {
                self.cwnd = self.incr.div_ceil(mss);
            }
        }
        if self.cwnd > rmt_wnd {
            self.cwnd = rmt_wnd;
            self.incr = rmt_wnd.saturating_mul(mss);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        let mss = u32::from(loss.mss);
        if loss.fast > 0 {
            self.ssthresh = (loss.in_flight / 2).max(THRESH_MIN);
            self.cwnd = self.ssthresh + u32::from(loss.fast_resend);
            self.incr = self.cwnd.saturating_mul(mss);
        }
        if loss.timeouts > 0 {
            self.ssthresh = (loss.prior_window / 2).max(THRESH_MIN);
            self.cwnd = 1;
            self.incr = mss;
        }
    }

    fn on_path_change(&mut self, _now: Time) {
        *self = Self::default();
    }

    fn on_tick(&mut self, _now: Time, mss: u16) {
        if self.cwnd < 1 {
            self.cwnd = 1;
            self.incr = mss.into();
        }
    }
}

/// First slow start threshold, segments. Source: ikcp.c `IKCP_THRESH_INIT`.
const THRESH_INIT: u32 = 2;
/// Smallest slow start threshold, segments. Source: ikcp.c `IKCP_THRESH_MIN`.
const THRESH_MIN: u32 = 2;

/// The state of the built-in controller before a loss. Source: RFC 4015.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::kcp) struct Undo {
    before: KcpControl,
    /// Segments then in flight that are still unacknowledged. 0: there was no loss, or it is over.
    left: u32,
}

impl Undo {
    /// The controller is about to be told of a loss, with this many segments from `snd_una` to `snd_nxt`.
    pub(in crate::kcp) fn before_loss(&mut self, congestion: &Controller, in_flight: u32) {
        if let Controller::Kcp(control) = congestion
            && self.left == 0
        {
            *self = Self { before: *control, left: in_flight };
        }
    }

    pub(in crate::kcp) fn acknowledged(&mut self, segments: u32) {
        self.left = self.left.saturating_sub(segments);
    }

    /// A segment had arrived before it was resent, so nothing was lost.
    pub(in crate::kcp) fn needless(&mut self, congestion: &mut Controller, now: Time) {
        match congestion {
            Controller::Kcp(control) if self.left > 0 => {
                control.cwnd = control.cwnd.max(self.before.cwnd);
                control.ssthresh = control.ssthresh.max(self.before.ssthresh);
                control.incr = control.incr.max(self.before.incr);
                self.left = 0;
            }
            Controller::Kcp(_) => {}
            Controller::Custom(_) => congestion.control_mut().on_needless(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kcp::congestion::Loss;

    fn timeout(congestion: &mut Controller, undo: &mut Undo) {
        undo.before_loss(congestion, 30);
        congestion.control_mut().on_loss(&Loss {
            now: Time::ZERO,
            timeouts: 1,
            fast: 0,
            in_flight: 30,
            prior_window: 24,
            fast_resend: 2,
            mss: 1376,
        });
    }

    #[test]
    fn a_loss_that_was_none_is_undone_until_all_that_was_in_flight_is_acknowledged() {
        for (acknowledged, after) in [(29, (24, Some(20))), (30, (1, Some(12)))] {
            let mut congestion = Controller::Kcp(KcpControl { cwnd: 24, ssthresh: 20, incr: 24 * 1376 });
            let mut undo = Undo::default();
            timeout(&mut congestion, &mut undo);
            timeout(&mut congestion, &mut undo); // a second one does not become the state to return to
            undo.acknowledged(acknowledged);
            undo.needless(&mut congestion, Time::ZERO);
            assert_eq!((congestion.control().window(), congestion.control().ssthresh()), after);
        }
    }
}
