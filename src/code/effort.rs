//! Limits how much a decoder computes: each datagram of the peer pays for some work.

use crate::time::Time;

/// Work that was paid for and has not been done yet, in units of about 64 instructions.
///
/// A peer decides what its repairs cost, and the last of them can cause many milliseconds of work at once. So
/// each datagram pays for some work, more than honest repairs take. Work that is not paid for is not done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    left: u32,
    /// All work so far.
    pub(super) spent: u64,
    /// When a datagram last paid.
    paid_at: Time,
}

impl Effort {
    /// Starts with the most that can be saved up, because losses may come first.
    pub(super) const FULL: Self = Self { left: SAVED_MAX, spent: 0, paid_at: Time::ZERO };

    /// Adds what a datagram of `bytes` bytes pays. If several parts of a datagram come at the same time, the
    /// later ones pay by their bytes alone.
    pub(super) fn earn(&mut self, now: Time, bytes: usize) {
        let each = if self.paid_at == now { 0 } else { EACH };
        self.paid_at = now;
        let bytes = u32::try_from(bytes / BYTES).unwrap_or(SAVED_MAX).min(SAVED_MAX);
        self.left = (self.left + each + bytes).min(SAVED_MAX);
    }

    /// Spends the price of some work. Returns `false`, and spends nothing, if less is left.
    pub(super) fn spend(&mut self, price: u32) -> bool {
        let Some(left) = self.left.checked_sub(price) else { return false };
        (self.left, self.spent) = (left, self.spent + u64::from(price));
        true
    }
}

/// Price of reading or writing so many bytes of symbols.
pub(super) fn of_bytes(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(64)).unwrap_or(SAVED_MAX).min(SAVED_MAX)
}

/// Price of so many additions of rows of coefficients, or of adding up the coefficients of so many repairs.
pub(super) fn of_rows(rows: usize) -> u32 {
    u32::try_from(rows).map_or(SAVED_MAX, |rows| rows.saturating_mul(ROW))
}

/// Most that can be saved up: up to 6 million instructions, as `tools/work.sh` counts them. More than any sum of
/// segments that fit into a datagram takes.
pub(super) const SAVED_MAX: u32 = 1 << 16;
/// What each datagram pays, and the bytes for which it pays one unit more: together less than 50,000
/// instructions for the longest datagram on most paths.
const EACH: u32 = 400;
const BYTES: usize = 4;
/// Price of adding a row to another, or of the coefficients of a repair.
const ROW: u32 = 13;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_was_paid_for_and_savings_have_a_limit() {
        let mut effort = Effort::FULL;
        assert!(!effort.spend(SAVED_MAX + 1) && effort.spend(SAVED_MAX) && !effort.spend(1));
        effort.earn(Time::from_millis(1), 1400);
        assert!(effort.spend(750) && !effort.spend(1));
        (0..40).for_each(|_| effort.earn(Time::from_millis(1), 30)); // parts of the same datagram
        assert!(effort.spend(280) && !effort.spend(1));
        (0..1000).for_each(|ms| effort.earn(Time::from_millis(ms), usize::MAX));
        assert!(effort.spend(SAVED_MAX) && !effort.spend(1));
        assert_eq!(effort.spent, 2 * u64::from(SAVED_MAX) + 1030);
    }
}
