//! The least value of the last while.

use crate::time::Time;
use std::time::Duration;

/// The least of the values of about a window of time, kept by halves: of the last half of it at least,
/// of one and a half at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowedMin {
    /// Least of the half before.
    before: u64,
    /// Least of the half that `began`.
    latest: u64,
    began: Time,
}

impl WindowedMin {
    pub(super) const fn new() -> Self {
        Self { before: NONE, latest: NONE, began: Time::ZERO }
    }

    /// Takes a value into a window that is as long as `window` from now on.
    pub(super) fn add(&mut self, now: Time, value: u64, window: Duration) {
        let age = now.since(self.began);
        if age >= window / 2 {
            self.before = if age < window { self.latest } else { NONE };
            (self.latest, self.began) = (NONE, now);
        }
        self.latest = self.latest.min(value);
    }

    /// The least value; `None`: there has been none.
    pub(super) fn get(&self) -> Option<u64> {
        Some(self.before.min(self.latest)).filter(|&least| least != NONE)
    }
}

const NONE: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// It lies between the least of the longest and that of the shortest time.
        #[test]
        fn it_is_the_least_of_a_window(steps in prop::collection::vec((0u64..40, 0u64..1000), 1..200)) {
            let (mut least, mut now, mut seen) = (WindowedMin::new(), 0, Vec::new());
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
