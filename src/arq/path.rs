//! The peer is reached by another path: what was measured of the old one is forgotten.

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
}
