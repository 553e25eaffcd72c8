//! The round trip of the path without a queue.

use crate::code::budget::is_queued;
use crate::time::Time;

/// The shortest round trip lately: over the last one to two times [`PERIOD`]. A path may change to a
/// longer one for good.
#[derive(Clone, Copy, Debug)]
pub(super) struct Floor {
    /// When the present period began.
    since: Time,
    /// The shortest in it, and in the one before, µs; `u32::MAX`: none.
    present: u32,
    before: u32,
}

impl Default for Floor {
    fn default() -> Self {
        Self { since: Time::ZERO, present: u32::MAX, before: u32::MAX }
    }
}

impl Floor {
    /// A round trip of so many µs was measured.
    pub(super) fn sample(&mut self, now: Time, rtt: u32) {
        if now.micros_since(self.since) >= PERIOD || now < self.since {
            *self = Self { since: now, present: u32::MAX, before: self.present };
        }
        self.present = self.present.min(rtt);
    }

    /// Whether a smoothed round trip, µs, is longer than jitter makes it, so that something may queue on the path.
    pub(super) fn may_be_under_queue(self, srtt: u32) -> bool {
        let min = self.present.min(self.before);
        srtt.saturating_sub(min) > min / 8 + JITTER
    }

    /// Whether a smoothed round trip, µs, is so much longer that something queues on the path.
    pub(super) fn is_under_queue(self, srtt: u32) -> bool {
        is_queued(srtt.into(), self.present.min(self.before).into())
    }
}

/// How long the shortest is kept at least, µs: longer than most queues last.
const PERIOD: u64 = 30_000_000;
/// Part of a round trip that may be jitter, µs.
const JITTER: u32 = 5_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_round_trip_is_a_queue_until_it_has_lasted() {
        let mut floor = Floor::default();
        assert!(!floor.is_under_queue(0) && !floor.is_under_queue(10_000_000), "nothing is known");
        let mut queue_until = 0;
        for second in 0..200 {
            let rtt = if second < 40 { 10_000 } else { 100_000 };
            floor.sample(Time::from_millis(second * 1000), rtt);
            assert!(!floor.is_under_queue(35_000) && floor.is_under_queue(170_001));
            if floor.is_under_queue(rtt) {
                queue_until = second;
            }
        }
        assert!((40 + 20..40 + 60).contains(&queue_until), "{queue_until} s");
    }
}
