//! Round trips and the timeout that follows from them; and what is forgotten when the path is another one.

use super::config::{Config, RTO_MAX};
use super::congestion::Loss;
use super::{Event, Kcp, Work};
use crate::time::Time;
use crate::wire::Output;

/// Estimate of the round trip, all in ms, or by time in µs. Source: ikcp.c `ikcp_update_ack`; RFC 6298.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rtt {
    /// Smoothed round trip; 0: none measured or expected yet.
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

    /// Folds one round trip, ms, into the estimate. A sample of 0 ms leaves a fresh estimate unset,
    /// as in ikcp.c.
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

    /// As long as no round trip is measured, it is taken to be this one.
    const fn expect(&mut self, rtt: u32) {
        (self.srtt, self.rttvar) = (rtt, rtt / 8);
    }

    /// The same as [`sample`](Self::sample) by time: the first one takes the place of what was expected.
    #[inline]
    pub(super) fn measure(&mut self, rtt: u32) {
        if self.min().is_none() {
            self.srtt = 0;
        }
        self.sample(rtt);
    }

    /// The RTO that follows from the estimate.
    ///
    /// The peer may hold an ACK for a flush interval, so the RTO stays at least that far above
    /// `srtt`: RFC 6298 (2.3) with the interval where it has the clock granularity.
    pub(super) fn update_rto(&mut self, config: &Config) {
        let rto = self.srtt + (4 * self.rttvar).max(config.interval.into());
        self.rto = rto.max(config.rto_min()).min(RTO_MAX.into());
    }

    /// By time: the smoothed round trip; `None`: it is not known, or only expected.
    pub(super) fn measured(&self) -> Option<u32> {
        (self.srtt > 0 && self.min != u32::MAX).then_some(self.srtt)
    }

    /// Shortest round trip measured, ms.
    pub(super) fn min(&self) -> Option<u32> {
        (self.min != u32::MAX).then_some(self.min)
    }
}

impl<O: Output> Kcp<O> {
    /// Tells a round trip of the path, µs, that was measured elsewhere; 0: none was. By time, until one is measured here, nothing counts as
    /// lost before half as long again; the first that is told counts.
    #[inline]
    pub(crate) fn expect_round_trip(&mut self, micros: u64) {
        if self.rtt.srtt == 0 && micros > 0 && self.rtt.min().is_none() && self.config.is_by_time() {
            self.rtt.expect(u32::try_from(micros).unwrap_or(u32::MAX).min(EXPECTED_MAX));
        }
    }

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
                observer.log.push(now, Event::Path);
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

/// RTO before the first sample, ms. Source: ikcp.c `IKCP_RTO_DEF`.
const RTO_DEFAULT: u32 = 200;

/// Longest round trip that is taken from elsewhere, µs: a standstill may have made it too long. Source: RFC 6298 (2.1), the first RTO.
const EXPECTED_MAX: u32 = 1_000_000;

/// Largest round trip that is believed, ms: two of the largest RTO. An older echo is forged, or from
/// before the clock jumped.
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
            kcp.expect_round_trip(expected);
            kcp.send(b"first").unwrap();
            kcp.flush(Time::ZERO);
            assert_eq!(kcp.due_at(Time::ZERO), Time::from_millis(timeout), "{expected} us");
            kcp.rtt.measure(20_000);
            assert_eq!((kcp.rtt.srtt, kcp.rtt.rttvar), (20_000, 10_000));
            kcp.expect_round_trip(900_000);
            assert_eq!(kcp.rtt.srtt, 20_000);
        }
    }
}
