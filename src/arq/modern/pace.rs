//! Acknowledgements that wait for the next message of a game's beat.

use crate::time::Time;

/// The time between packets that come, or go, one after another.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gap {
    last: Time,
    /// Average, µs.
    average: u64,
}

impl Gap {
    /// A packet came or went.
    pub(super) fn packet(&mut self, now: Time) {
        let gap = now.micros_since(self.last).min(GAP_MAX);
        self.average = (7 * self.average + gap) / 8;
        self.last = now;
    }

    /// The average, µs, if an acknowledgement may wait for the packet after this one: they are neither
    /// so close that little is gained, nor so far apart that much is lost.
    pub(super) fn wait(self) -> Option<u64> {
        WAITS.contains(&self.average).then_some(self.average)
    }
}

/// Longest gap that counts, µs.
const GAP_MAX: u64 = 1_000_000;
/// Gaps that an acknowledgement waits for, µs: of 40 to 200 packets a second.
const WAITS: std::ops::RangeInclusive<u64> = 5000..=25_000;
