//! How closely the packets of an end follow each other.

use crate::time::Time;

/// The mean gap between packets that leave at different times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    last: Time,
    /// µs.
    gap: u64,
}

impl Flow {
    /// A packet leaves.
    pub(super) fn left(&mut self, now: Time) {
        if now > self.last {
            let gap = now.micros_since(self.last).min(GAP_MAX);
            self.gap = if self.gap == 0 { gap } else { (7 * self.gap + gap) / 8 };
            self.last = now;
        }
    }

    /// Whether the next packet is likely to leave soon enough to carry a repair, by a round trip in µs.
    pub(super) const fn is_close(&self, rtt: u64) -> bool {
        self.gap <= rtt / CLOSE
    }
}

/// Longer gaps count as so long, µs.
const GAP_MAX: u64 = 1_000_000;
/// Gaps of this part of a round trip are short.
const CLOSE: u64 = 3;
