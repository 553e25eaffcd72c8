//! The peer is reached by another path: what was measured of the old one is forgotten.

use super::congestion::Loss;
use super::rtt::Rtt;
use super::{Kcp, Work};
use crate::time::Time;
use crate::wire::Output;

impl<O: Output> Kcp<O> {
    /// Forgets what is known of the path, for the peer is reached by another one from now on: round trips, what overtakes what, and
    /// how much may be in flight, of which the congestion controller begins anew. What is in flight stays, and is sent again by the
    /// timeout of a fresh session.
    ///
    /// For a peer that has moved to another network, and not for one that only has another port. Source: RFC 9000 section 9.4.
    pub fn path_changed(&mut self, now: Time) {
        self.rtt = Rtt::new();
        self.congestion.path_changed(now, self.config.mss());
        if let Some(Work { by_time, observer, .. }) = self.work.as_deref_mut() {
            by_time.path_changed(now);
            if let Some(observer) = observer {
                observer.path_changed(now);
            }
        }
    }

    /// Takes note that a queue on the path marks what passes it (ECN), for it is filling: the congestion controller is told once a round trip,
    /// and nothing is sent again. KCP's own format has no place to tell it to the other end: whoever carries the control block has to. Source:
    /// RFC 3168 (6.1.2).
    pub fn congestion_marked(&mut self, now: Time) {
        // Without traffic there is nothing to slow down.
        let Some(work) = self.work.as_mut().filter(|work| work.marked_until <= now) else { return };
        let micros =
            if self.config.is_by_time() { self.rtt.srtt.into() } else { u64::from(self.rtt.srtt) * 1000 };
        work.marked_until = now.after(micros.max(1));
        let control = self.congestion.control_mut();
        let prior_window = control.window();
        control.on_mark(&Loss {
            now,
            timeouts: 0,
            fast: 1,
            in_flight: self.sender.span(),
            prior_window,
            fast_resend: self.config.fast_resend,
            mss: self.config.mss(),
        });
    }
}
