//! Round trips.

use std::time::Duration;

/// Round trips: smoothed, extremes, jitter. All are zero before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rtt {
    /// µs, and a fraction of one.
    smoothed: f64,
    jitter: f64,
    min: Duration,
    max: Duration,
    samples: u64,
}

impl Rtt {
    /// Takes one round trip.
    pub fn sample(&mut self, rtt: Duration) {
        let micros = rtt.as_secs_f64() * 1e6;
        if self.samples == 0 {
            (self.smoothed, self.min, self.max) = (micros, rtt, rtt);
        }
        let difference = micros - self.smoothed;
        self.smoothed += WEIGHT * difference;
        self.jitter += WEIGHT * (difference.abs() - self.jitter);
        (self.min, self.max) = (self.min.min(rtt), self.max.max(rtt));
        self.samples += 1;
    }

    /// Smoothed: each round trip moves it by 10 % of the difference.
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

    /// Mean distance of a round trip from the smoothed one, smoothed in the same way.
    #[must_use]
    pub fn jitter(&self) -> Duration {
        duration(self.jitter)
    }

    /// The shortest.
    #[must_use]
    pub const fn min(&self) -> Duration {
        self.min
    }

    /// The longest.
    #[must_use]
    pub const fn max(&self) -> Duration {
        self.max
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_moves_it_by_a_tenth() {
        let mut rtt = Rtt::default();
        let ms =
            |rtt: &Rtt| [rtt.smoothed(), rtt.jitter(), rtt.min(), rtt.max()].map(|time| time.as_micros());
        let mut sample = |millis| {
            rtt.sample(Duration::from_millis(millis));
            ms(&rtt)
        };
        assert_eq!(sample(100), [100_000, 0, 100_000, 100_000]);
        assert_eq!(sample(200), [110_000, 10_000, 100_000, 200_000]);
        assert_eq!(sample(10), [100_000, 19_000, 10_000, 200_000]);
        assert_eq!(rtt.samples(), 3);
    }

    #[test]
    fn no_time_is_too_long() {
        let mut rtt = Rtt::default();
        [Duration::MAX, Duration::ZERO, Duration::MAX].into_iter().for_each(|time| rtt.sample(time));
        assert!(rtt.smoothed() > Duration::MAX / 2 && rtt.jitter() > Duration::ZERO);
    }
}
