use super::{Ack, CongestionControl, Loss};
use crate::time::Time;

/// The congestion control built into KCP: slow start up to a threshold that starts at 2, then
/// growth by about one segment a window; half the flight after a fast resend, one segment after a
/// timeout. Source: ikcp.c 2.1.1 `ikcp_input`, `ikcp_flush`.
///
/// Where recovery by time finds that nothing had been lost, all is again as it was before. Source: RFC 4015.
#[derive(Clone, Copy, Debug)]
pub struct KcpControl {
    /// Congestion window, segments; 0 until the first flush.
    pub(in crate::arq) cwnd: u32,
    pub(in crate::arq) ssthresh: u32,
    /// The window in bytes, which grows in finer steps.
    pub(in crate::arq) incr: u32,
}

impl KcpControl {
    /// As after `ikcp_create`: a window of 0 until the first flush.
    #[must_use]
    pub const fn new() -> Self {
        Self { cwnd: 0, ssthresh: THRESH_INIT, incr: 0 }
    }
}

impl Default for KcpControl {
    fn default() -> Self {
        Self::new()
    }
}

impl CongestionControl for KcpControl {
    fn window(&self) -> u32 {
        self.cwnd
    }

    fn ssthresh(&self) -> Option<u32> {
        Some(self.ssthresh)
    }

    /// Grows once a datagram, however much it acknowledged.
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
        *self = Self::new();
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
/// Least slow start threshold, segments. Source: ikcp.c `IKCP_THRESH_MIN`.
const THRESH_MIN: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(rmt_wnd: u16) -> Ack {
        Ack { now: Time::ZERO, segments: 1, bytes: 0, in_flight: 1, rmt_wnd, mss: 1376 }
    }

    fn loss(timeouts: u32, fast: u32) -> Loss {
        let now = Time::ZERO;
        Loss { now, timeouts, fast, in_flight: 30, prior_window: 24, fast_resend: 2, mss: 1376 }
    }

    #[test]
    fn it_starts_at_one_after_the_first_flush_and_stops_at_the_peer_window() {
        let mut control = KcpControl::new();
        assert_eq!(control.window(), 0);
        control.on_tick(Time::ZERO, 1376);
        let mut windows = vec![control.window()];
        for _ in 0..300 {
            control.on_ack(&ack(9));
            windows.push(control.window());
        }
        windows.dedup();
        assert_eq!(windows, [1, 2, 4, 6, 8, 9]); // in steps of two, as ikcp.c does
    }

    #[test]
    fn a_timeout_falls_to_one_and_a_fast_resend_to_half_the_flight() {
        let mut control = KcpControl { cwnd: 24, ssthresh: 24, incr: 24 * 1376 };
        control.on_loss(&loss(0, 1));
        assert_eq!((control.cwnd, control.ssthresh), (17, 15));
        control.on_loss(&loss(1, 0));
        assert_eq!((control.cwnd, control.ssthresh, control.incr), (1, 12, 1376));
    }
}
