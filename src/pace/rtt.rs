//! Round trips.

use crate::time::Time;
use std::time::Duration;

/// Round trips: smoothed, extremes, jitter. All are zero before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rtt {
    /// µs, and a fraction of one.
    smoothed: f64,
    jitter: f64,
    min: f64,
    max: f64,
    samples: u64,
    /// When the newest of what was answered had left.
    left: Time,
}

impl Rtt {
    /// Takes one round trip, of what left at a time.
    pub fn sample(&mut self, left: Time, rtt: Duration) {
        let micros = rtt.as_secs_f64() * 1e6;
        if self.samples == 0 {
            (self.smoothed, self.min, self.max) = (micros, micros, micros);
        }
        let difference = micros - self.smoothed;
        let weight = weight(left.since(self.left));
        self.smoothed += weight * difference;
        self.jitter += weight.min(JITTER_MOST) * (difference.abs() - self.jitter);
        (self.min, self.max) = (self.min.min(micros), self.max.max(micros));
        self.left = self.left.max(left);
        self.samples += 1;
    }

    /// Smoothed: each round trip moves it by 10 % of the difference, or by more where they are seldom: by all of it if what was answered
    /// left 125 ms or longer after the one before. So it follows a path that changes within a second, also by two pings a second.
    #[must_use]
    pub fn smoothed(&self) -> Duration {
        duration(self.smoothed)
    }

    /// The same in whole µs, for who asks for each packet.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is positive, and the cast ends where 64 bits do"
    )]
    pub(crate) const fn smoothed_micros(&self) -> u64 {
        self.smoothed as u64
    }

    /// Mean distance of a round trip from the smoothed one, smoothed in the same way, but each makes half of the difference at most.
    #[must_use]
    pub fn jitter(&self) -> Duration {
        duration(self.jitter)
    }

    /// The shortest.
    #[must_use]
    pub fn min(&self) -> Duration {
        duration(self.min)
    }

    /// The longest.
    #[must_use]
    pub fn max(&self) -> Duration {
        duration(self.max)
    }

    /// How many were measured.
    #[must_use]
    pub const fn samples(&self) -> u64 {
        self.samples
    }
}

/// To the nearest ns. Who sends packets asks for each of them, so it is quick for round trips that there are.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is positive and less than that"
)]
fn duration(micros: f64) -> Duration {
    if micros < A_YEAR {
        return Duration::from_nanos((micros * 1e3 + 0.5) as u64);
    }
    Duration::try_from_secs_f64(micros / 1e6).unwrap_or(Duration::MAX)
}

/// µs, fewer than what 64 bits have of ns.
const A_YEAR: f64 = 3.15e13;

/// How much of the difference a sample makes.
const WEIGHT: f64 = 0.1;
/// So long after the one before it makes all of it, s.
const ALL_AFTER: f64 = 0.125;

/// How much of the difference of the jitter a sample makes at most: one is no mean.
const JITTER_MOST: f64 = 0.5;

/// How much of the difference a sample makes so long after the one before.
fn weight(gap: Duration) -> f64 {
    (gap.as_secs_f64() / ALL_AFTER).clamp(WEIGHT, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_moves_it_by_a_tenth() {
        let mut rtt = Rtt::default();
        let ms =
            |rtt: &Rtt| [rtt.smoothed(), rtt.jitter(), rtt.min(), rtt.max()].map(|time| time.as_micros());
        let mut sample = |millis| {
            rtt.sample(Time::ZERO, Duration::from_millis(millis));
            ms(&rtt)
        };
        assert_eq!(sample(100), [100_000, 0, 100_000, 100_000]);
        assert_eq!(sample(200), [110_000, 10_000, 100_000, 200_000]);
        assert_eq!(sample(10), [100_000, 19_000, 10_000, 200_000]);
        assert_eq!(rtt.samples(), 3);
    }

    #[test]
    fn what_is_measured_seldom_counts_for_more() {
        let (mut rtt, ms) = (Rtt::default(), Duration::from_millis);
        let mut sample = |left, millis| {
            rtt.sample(Time::from_millis(left), ms(millis));
            rtt.smoothed().as_millis()
        };
        assert_eq!(sample(1000, 60), 60);
        assert_eq!(sample(1010, 160), 70, "100 times a second");
        assert_eq!(sample(1060, 170), 110, "20 times");
        assert_eq!(sample(1560, 300), 300, "a ping");
        assert_eq!(sample(1500, 200), 290, "it left before the last one");
    }

    #[test]
    fn no_time_is_too_long() {
        let mut rtt = Rtt::default();
        [Duration::MAX, Duration::ZERO, Duration::MAX]
            .into_iter()
            .for_each(|time| rtt.sample(Time::ZERO, time));
        assert!(rtt.smoothed() > Duration::MAX / 2 && rtt.jitter() > Duration::ZERO);
    }
}
