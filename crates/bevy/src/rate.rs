//! Bytes a second, from counters.

use bevy::prelude::*;
use std::time::Duration;

/// What a session moves, on the wire: the bytes of its datagrams, without the headers of UDP and IP.
#[derive(Clone, Component, Copy, Debug, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "there are two directions")]
pub struct Traffic {
    /// Bytes sent in the last full second.
    pub sent: f64,
    /// Bytes received in the last full second.
    pub received: f64,
}

/// Takes the rates of counters once a second.
#[derive(Clone, Component, Copy, Debug)]
pub(crate) struct Meter<const N: usize = 2> {
    since: Option<Duration>,
    counted: [u64; N],
    rates: [f64; N],
}

impl<const N: usize> Default for Meter<N> {
    fn default() -> Self {
        Self { since: None, counted: [0; N], rates: [0.0; N] }
    }
}

impl<const N: usize> Meter<N> {
    /// It is `now`, and the counters show `counted`. Returns what each has counted a second, zero in the first one.
    pub(crate) fn measure(&mut self, now: Duration, counted: [u64; N]) -> [f64; N] {
        let is_of_another_session = counted.iter().zip(&self.counted).any(|(new, old)| new < old);
        let Some(since) = self.since.filter(|_| !is_of_another_session) else {
            *self = Self { since: Some(now), counted, rates: [0.0; N] };
            return self.rates;
        };
        let passed = now.saturating_sub(since);
        if passed >= WINDOW {
            for (rate, (new, old)) in self.rates.iter_mut().zip(counted.iter().zip(self.counted)) {
                *rate = (new - old) as f64 / passed.as_secs_f64();
            }
            (self.since, self.counted) = (Some(now), counted);
        }
        self.rates
    }
}

const WINDOW: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_the_last_second_and_begin_again_with_another_session() {
        let mut meter = Meter::default();
        let mut at = |ms, counted| meter.measure(Duration::from_millis(ms), counted);
        assert_eq!(at(500, [1000, 10]), [0.0; 2], "nothing is known yet");
        assert_eq!(at(1000, [2000, 20]), [0.0; 2]);
        assert_eq!(at(1500, [3000, 30]), [2000.0, 20.0]);
        assert_eq!(at(1600, [9000, 90]), [2000.0, 20.0], "until another second is over");
        assert_eq!(at(3500, [7000 + 3000, 30]), [3500.0, 0.0]);
        assert_eq!(at(4000, [5, 5]), [0.0; 2], "counters of another session");
        assert_eq!(at(5000, [105, 5]), [100.0, 0.0]);
    }
}
