//! Takes back what a loss did to the built-in controller, once nothing turns out to have been lost.

use super::{Congestion, KcpControl};
use crate::time::Time;

/// How the built-in controller stood before a loss. Source: RFC 4015.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::arq) struct Undo {
    before: KcpControl,
    /// Segments of those then in flight that are not acknowledged yet; 0: there was no loss, or it is over.
    left: u32,
}

impl Undo {
    /// The controller is about to be told of a loss, with so many segments from `snd_una` to `snd_nxt`.
    pub(in crate::arq) fn before_loss(&mut self, congestion: &Congestion, in_flight: u32) {
        if let Congestion::Kcp(control) = congestion
            && self.left == 0
        {
            *self = Self { before: *control, left: in_flight };
        }
    }

    /// `snd_una` has moved by so many segments.
    pub(in crate::arq) fn acknowledged(&mut self, segments: u32) {
        self.left = self.left.saturating_sub(segments);
    }

    /// A segment had arrived before it was sent again: nothing was lost.
    pub(in crate::arq) fn needless(&mut self, congestion: &mut Congestion, now: Time) {
        match congestion {
            Congestion::Kcp(control) if self.left > 0 => {
                control.cwnd = control.cwnd.max(self.before.cwnd);
                control.ssthresh = control.ssthresh.max(self.before.ssthresh);
                control.incr = control.incr.max(self.before.incr);
                self.left = 0;
            }
            Congestion::Kcp(_) => {}
            Congestion::Custom(custom) => custom.control.on_needless(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arq::congestion::Loss;

    fn timeout(congestion: &mut Congestion, undo: &mut Undo) {
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

    fn stands(congestion: &Congestion) -> (u32, Option<u32>) {
        (congestion.control().window(), congestion.control().ssthresh())
    }

    #[test]
    fn a_loss_that_was_none_leaves_the_window_as_it_was() {
        let mut congestion = Congestion::Kcp(KcpControl { cwnd: 24, ssthresh: 20, incr: 24 * 1376 });
        let mut undo = Undo::default();
        timeout(&mut congestion, &mut undo);
        timeout(&mut congestion, &mut undo); // a second one does not count as where to go back to
        assert_eq!(stands(&congestion), (1, Some(12)));
        undo.acknowledged(29);
        undo.needless(&mut congestion, Time::ZERO);
        assert_eq!(stands(&congestion), (24, Some(20)));
    }

    #[test]
    fn a_loss_is_final_once_all_that_was_in_flight_is_acknowledged() {
        let mut congestion = Congestion::Kcp(KcpControl { cwnd: 24, ssthresh: 20, incr: 24 * 1376 });
        let mut undo = Undo::default();
        timeout(&mut congestion, &mut undo);
        undo.acknowledged(30);
        undo.needless(&mut congestion, Time::ZERO);
        assert_eq!(stands(&congestion), (1, Some(12)));
    }
}
