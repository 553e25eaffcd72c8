//! Whether the peer is still there, by time.

use crate::time::Time;
use std::time::Duration;

/// How long the peer has said nothing while data was in flight.
///
/// It counts time that was pumped: a program that stood still does not blame its peer.
#[derive(Debug)]
pub(super) struct Silence {
    /// How much of it means that the peer is gone.
    pub(super) timeout: Option<Duration>,
    so_far: Duration,
    looked: Time,
}

impl Silence {
    pub(super) const fn new() -> Self {
        Self { timeout: Some(TIMEOUT), so_far: Duration::ZERO, looked: Time::ZERO }
    }

    /// Looks at a pump. Returns the silence so far when it is too long.
    pub(super) fn pumped(&mut self, now: Time, heard: bool, in_flight: bool) -> Option<Duration> {
        let step = now.since(self.looked).min(LONGEST_STEP);
        self.looked = now;
        self.so_far = if heard || !in_flight { Duration::ZERO } else { self.so_far + step };
        Some(self.so_far).filter(|so_far| self.timeout.is_some_and(|timeout| *so_far >= timeout))
    }
}

/// Silence that ends a session unless set otherwise. A mobile handover takes seconds, no game
/// waits for half a minute.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Longest time between two pumps that counts as silence, and longest wait that a pump may ask for
/// while data is in flight.
pub(super) const LONGEST_STEP: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_counts_while_data_is_in_flight_and_ends_with_a_datagram() {
        let mut silence = Silence::new();
        let mut at = |ms, heard, in_flight| silence.pumped(Time::from_millis(ms), heard, in_flight);
        for ms in (0..100_000).step_by(500) {
            assert_eq!(at(ms, false, false), None, "nothing in flight");
        }
        assert_eq!(at(99_600, false, true), None);
        for ms in (100_000..129_500).step_by(500) {
            assert_eq!(at(ms, false, true), None, "{ms}");
        }
        assert_eq!(at(130_000, false, true), Some(Duration::from_millis(30_500)));
        assert_eq!(at(130_500, true, true), None);
        assert_eq!(at(131_000, false, true), None);
    }

    #[test]
    fn a_program_that_stood_still_does_not_blame_its_peer() {
        let mut silence = Silence::new();
        assert_eq!(silence.pumped(Time::from_millis(60_000), false, true), None);
        assert_eq!(silence.pumped(Time::from_millis(600_000), false, true), None);
    }
}
