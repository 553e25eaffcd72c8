//! A congestion window in bytes, for a trait that counts segments.

use super::{Ack, Loss, Sent};
use crate::time::Time;
use std::time::Duration;

/// A congestion window in bytes. Counted in segments, it is larger if they are short, so that a game's small messages
/// do not wait for a window meant for large ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Bytes; 0: the segment size is not known yet.
    pub(super) bytes: u64,
    /// Mean payload of segments sent, in 1/16 bytes.
    mean: u64,
}

impl Window {
    pub(super) const NEW: Self = Self { bytes: 0, mean: 0 };

    /// Sets it to `bytes`, within the limits for segments of `mss` bytes.
    pub(super) fn set(&mut self, bytes: u64, mss: u16) {
        let mss = u64::from(mss);
        self.bytes = bytes.clamp(LEAST * mss, MOST * mss);
    }

    pub(super) fn open(&mut self, mss: u16) {
        if self.bytes == 0 {
            self.set(INITIAL * u64::from(mss), mss);
        }
    }

    /// The window in segments of the mean size.
    pub(super) fn segments(&self) -> u32 {
        let segments = if self.bytes == 0 { INITIAL } else { self.in_segments(self.bytes).max(LEAST) };
        u32::try_from(segments).unwrap_or(u32::MAX)
    }

    /// `bytes` in segments of the mean size.
    pub(super) fn in_segments(&self, bytes: u64) -> u64 {
        bytes / (self.mean / 16).max(SHORT)
    }

    /// `quarters` / 4 of it per `rtt` µs, in bytes per second. `None`: it is closed.
    pub(super) fn rate(&self, quarters: u64, rtt: u64) -> Option<u64> {
        let rate = self.bytes.saturating_mul(250_000 * quarters) / rtt.max(1);
        (self.bytes > 0).then_some(rate.max(1))
    }

    pub(super) fn on_sent(&mut self, sent: &Sent) {
        let len = u64::from(sent.len);
        self.mean = if self.mean == 0 { 16 * len } else { self.mean - self.mean / 16 + len };
    }

    /// Whether at least half of it was in use. If not, the application limits what is in flight, and acknowledgements
    /// say nothing about the window. Source: RFC 7661.
    pub(super) fn is_used(&self, ack: &Ack) -> bool {
        ack.in_flight >= self.segments() / 2
    }
}

/// Initial window, segments. Source: RFC 6928.
pub(super) const INITIAL: u64 = 10;
/// Smallest window, segments: enough to keep acknowledgements coming. Source: BBR,
/// draft-cardwell-iccrg-bbr-congestion-control, `BBRMinPipeCwnd`.
const LEAST: u64 = 4;
/// Largest window, segments: twice what may be in flight.
const MOST: u64 = 1 << 17;
/// What shorter segments count as, bytes.
const SHORT: u64 = 64;

/// The minimum of the values of about a window of time, kept in halves: at least the last half window, at most one and
/// a half.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowedMin {
    /// Minimum of the half before.
    before: u64,
    /// Minimum of the half that started at `began`.
    latest: u64,
    began: Time,
}

impl WindowedMin {
    pub(super) const NEW: Self = Self { before: NONE, latest: NONE, began: Time::ZERO };

    /// Adds a value. From now on the window has the length `window`.
    pub(super) fn add(&mut self, now: Time, value: u64, window: Duration) {
        let age = now.since(self.began);
        if age >= window / 2 {
            self.before = if age < window { self.latest } else { NONE };
            (self.latest, self.began) = (NONE, now);
        }
        self.latest = self.latest.min(value);
    }

    /// The minimum. `None`: there has been no value.
    pub(super) fn get(&self) -> Option<u64> {
        Some(self.before.min(self.latest)).filter(|&least| least != NONE)
    }
}

const NONE: u64 = u64::MAX;

/// Separates round trips: one ends when a transmission has arrived that was sent after its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    /// Smoothed round trip, µs; 0: not measured.
    srtt: u64,
    /// Its mean deviation, µs.
    pub(super) rttvar: u64,
    round: Round,
    began: Time,
    is_over: bool,
}

/// A round trip. What is delivered during one is the rate of the path, whatever else is lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Round {
    /// Duration, µs.
    pub(super) lasted: u64,
    /// Payload bytes acknowledged.
    pub(super) delivered: u64,
    /// Segments resent.
    pub(super) lost: u32,
    /// Number of round trips measured.
    pub(super) samples: u32,
    /// The shortest of them, µs.
    pub(super) least: u64,
}

impl Rounds {
    pub(super) const NEW: Self = Self {
        srtt: 0,
        rttvar: 0,
        round: Round { lasted: 0, delivered: 0, lost: 0, samples: 0, least: u64::MAX },
        began: Time::ZERO,
        is_over: false,
    };

    /// Smoothed round trip, µs. `None`: not measured. Source: RFC 6298.
    pub(super) fn srtt(&self) -> Option<u64> {
        Some(self.srtt).filter(|&srtt| srtt > 0)
    }

    /// A transmission sent `rtt` ago has arrived.
    pub(super) fn on_rtt(&mut self, now: Time, rtt: Duration) {
        let rtt = micros(rtt);
        self.is_over |= now.before(rtt) >= self.began;
        if self.srtt == 0 {
            (self.srtt, self.rttvar) = (rtt, rtt / 2);
        } else {
            self.rttvar = (3 * self.rttvar + rtt.abs_diff(self.srtt)) / 4;
            self.srtt = (7 * self.srtt + rtt) / 8;
        }
        self.round.samples = self.round.samples.saturating_add(1);
        self.round.least = self.round.least.min(rtt);
    }

    pub(super) fn on_loss(&mut self, loss: &Loss) {
        self.round.lost = self.round.lost.saturating_add(loss.timeouts).saturating_add(loss.fast);
    }

    /// A segment that was resent had arrived before.
    pub(super) fn on_needless(&mut self) {
        self.round.lost = self.round.lost.saturating_sub(1);
    }

    /// Counts acknowledged bytes. Returns the round trip that this ends, if any.
    pub(super) fn on_ack(&mut self, ack: &Ack) -> Option<Round> {
        self.round.delivered = self.round.delivered.saturating_add(ack.bytes.into());
        if !self.is_over {
            return None;
        }
        let round = Round { lasted: micros(ack.now.since(self.began)), ..self.round };
        self.restart(ack.now);
        Some(round)
    }

    /// Starts a new round trip, and drops the current one.
    pub(super) fn restart(&mut self, now: Time) {
        *self = Self { srtt: self.srtt, rttvar: self.rttvar, began: now, ..Self::NEW };
    }
}

/// In µs, between 1 µs and one hour, so that small multiples stay in range.
pub(super) fn micros(duration: Duration) -> u64 {
    duration.clamp(Duration::from_micros(1), Duration::from_secs(3600)).as_micros().try_into().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// It lies between the minimum of the longest and of the shortest possible time.
        #[test]
        fn it_is_the_least_of_a_window(steps in prop::collection::vec((0u64..40, 0u64..1000), 1..200)) {
            let (mut least, mut now, mut seen) = (WindowedMin::NEW, 0, Vec::new());
            for (step, value) in steps {
                now += step;
                seen.push((now, value));
                least.add(Time::from_millis(now), value, Duration::from_millis(100));
                let of_last = |ms| seen.iter().filter(|(at, _)| at + ms > now).map(|(_, value)| *value).min();
                prop_assert!(least.get() >= of_last(151) && least.get() <= of_last(50));
            }
        }
    }
}
