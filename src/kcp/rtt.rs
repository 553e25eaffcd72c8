//! Estimates round trips and the timeout, and clears them when the path changes.

use super::config::{Config, RTO_MAX};
use super::congestion::Loss;
use super::{Event, Kcp, Rest, Work};
use crate::time::Time;
use crate::wire::Output;

/// Estimate of the round trip, in ms, or in µs with modern recovery. Source: ikcp.c `ikcp_update_ack`; RFC 6298.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rtt {
    /// Smoothed round trip; 0: nothing measured or expected yet.
    pub(super) srtt: u32,
    /// Mean deviation.
    pub(super) rttvar: u32,
    /// Retransmission timeout.
    pub(super) rto: u32,
    /// Shortest round trip measured; `u32::MAX`: none.
    min: u32,
}

impl Rtt {
    pub(super) const fn new() -> Self {
        Self { srtt: 0, rttvar: 0, rto: RTO_DEFAULT, min: u32::MAX }
    }

    /// Adds a measured round trip, ms. As in ikcp.c, a sample of 0 ms leaves a new estimate unset.
    #[inline]
    pub(super) fn sample(&mut self, rtt: u32) {
        if self.srtt == 0 {
            self.srtt = rtt;
            self.rttvar = rtt / 2;
        } else {
            self.rttvar = (3 * self.rttvar + rtt.abs_diff(self.srtt)) / 4;
            self.srtt = ((7 * self.srtt + rtt) / 8).max(1);
        }
        self.min = self.min.min(rtt);
    }

    /// Assumes this round trip until one is measured.
    const fn expect(&mut self, rtt: u32) {
        (self.srtt, self.rttvar) = (rtt, rtt / 8);
    }

    /// [`sample`](Self::sample) for modern recovery: the first sample replaces the assumed round trip.
    #[inline]
    pub(super) fn measure(&mut self, rtt: u32) {
        if self.min().is_none() {
            self.srtt = 0;
        }
        self.sample(rtt);
    }

    /// Derives the RTO from the estimate.
    ///
    /// The peer may hold an ACK for a flush interval, so the RTO stays at least that far above `srtt`: RFC 6298 (2.3),
    /// with the interval in place of the clock granularity.
    pub(super) fn update_rto(&mut self, config: &Config) {
        let rto = self.srtt + (4 * self.rttvar).max(config.interval.into());
        self.rto = rto.max(config.rto_min()).min(RTO_MAX.into());
    }

    /// Modern recovery: the smoothed round trip. `None`: unknown, or only assumed.
    pub(super) fn measured(&self) -> Option<u32> {
        (self.srtt > 0 && self.min != u32::MAX).then_some(self.srtt)
    }

    /// Shortest round trip measured, ms.
    pub(super) fn min(&self) -> Option<u32> {
        (self.min != u32::MAX).then_some(self.min)
    }
}

/// What whoever carries a control block knows of the path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathHint {
    /// A round trip, µs; 0: unknown.
    pub(crate) rtt: u64,
    /// The shortest that the peer could not have faked, µs; 0: unknown.
    pub(crate) least: u64,
    /// Nothing is lost on it, however long it takes, as over a WebSocket. Then nothing is protected, and only what comes after
    /// a segment shows soon that a queue before the path has dropped it.
    pub(crate) is_lossless: bool,
}

impl<O: Output> Kcp<O> {
    /// Takes what is known of the path elsewhere. Modern recovery uses the round trip until it measures one itself: nothing
    /// counts as lost before 1.5 times that. Only the first has an effect. Acknowledgements that come sooner than `least`
    /// count after that time.
    #[inline]
    pub(crate) fn expect(&mut self, path: PathHint) {
        let is_new =
            self.rtt.srtt == 0 && path.rtt > 0 && self.rtt.min().is_none() && self.config.is_by_time();
        if is_new {
            self.rtt.expect(u32::try_from(path.rtt).unwrap_or(u32::MAX).min(EXPECTED_MAX));
        }
        if let Some(Work { by_time, rest, .. }) = self.work.as_deref_mut() {
            by_time.believe_from(u32::try_from(path.least).unwrap_or(u32::MAX)); // without it, nothing is in flight
            if std::mem::replace(&mut by_time.rack.is_lossless, path.is_lossless) != path.is_lossless
                || is_new
            {
                by_time.reckon(&self.rtt);
                *rest = Rest::default();
            }
        }
    }

    /// Clears what is known of the path: round trips, reordering, and the congestion controller, which starts afresh.
    /// Call it when the peer is reached over another path. Segments in flight stay and are resent after the timeout of
    /// a new session.
    ///
    /// Meant for a peer that has moved to another network, not for one that only has another port. Source: RFC 9000
    /// section 9.4.
    pub fn path_changed(&mut self, now: Time) {
        self.rtt = Rtt::new();
        self.congestion.path_changed(now, self.config.mss());
        self.wake();
        if let Some(Work { by_time, observer, .. }) = self.work.as_deref_mut() {
            by_time.path_changed(now);
            by_time.reckon(&self.rtt);
            if let Some(observer) = observer {
                observer.log.push(now, Event::Path);
            }
        }
    }

    /// The same if nothing comes through on the old path any more: with recovery by time, what is in flight is resent at once.
    pub(crate) fn path_died(&mut self, now: Time) {
        self.path_changed(now);
        if let Some(Work { by_time, .. }) = self.work.as_deref_mut() {
            by_time.path_died(self.sender.nxt);
            by_time.reckon(&self.rtt);
        }
    }

    /// Tells the congestion controller, at most once per round trip, that a queue on the path marks packets because it
    /// is filling (ECN). Nothing is resent. KCP's format cannot carry the marks back to the sender, so whatever carries
    /// the control block must. Source: RFC 3168 (6.1.2).
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

/// RTO before the first sample, ms. Source: ikcp.c `IKCP_RTO_DEF`.
const RTO_DEFAULT: u32 = 200;

/// Longest round trip accepted from elsewhere, µs: a standstill may have made it too long. Source: RFC 6298 (2.1), the
/// first RTO.
const EXPECTED_MAX: u32 = 1_000_000;

/// Longest round trip accepted, ms: two of the largest RTO. An older echo is forged, or from before the clock jumped.
pub(super) const SAMPLE_MAX: i32 = 2 * RTO_MAX as i32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seq::Conv;
    use crate::wire::DatagramQueue;

    #[test]
    fn an_expected_round_trip_can_only_make_the_first_timeout_longer_and_gives_way_to_a_measured_one() {
        for (expected, timeout) in [(0, 200), (20_000, 200), (140_000, 210), (300_000, 450)] {
            let mut kcp = Kcp::new(Conv(1), &Config::default(), DatagramQueue::new()).unwrap();
            kcp.expect(PathHint { rtt: expected, ..PathHint::default() });
            kcp.send(b"first").unwrap();
            kcp.flush(Time::ZERO);
            assert_eq!(kcp.due_at(Time::ZERO), Time::from_millis(timeout), "{expected} us");
            kcp.rtt.measure(20_000);
            assert_eq!((kcp.rtt.srtt, kcp.rtt.rttvar), (20_000, 10_000));
            kcp.expect(PathHint { rtt: 900_000, ..PathHint::default() });
            assert_eq!(kcp.rtt.srtt, 20_000);
        }
    }
}
