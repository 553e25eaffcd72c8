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
        Duration::from_secs_f64(self.smoothed / 1e6)
    }

    /// Mean distance of a round trip from the smoothed one, smoothed in the same way.
    #[must_use]
    pub fn jitter(&self) -> Duration {
        Duration::from_secs_f64(self.jitter / 1e6)
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

/// How much of the difference a sample makes.
const WEIGHT: f64 = 0.1;
