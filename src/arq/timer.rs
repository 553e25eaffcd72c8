//! When to flush.

use crate::time::{Millis, Time};

/// The beat of the flushes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timer {
    /// When `update` flushes next; `None`: it has not been called. Source: ikcp.c `ts_flush`.
    pub(super) flush: Option<Millis>,
}

impl Timer {
    /// Whether `update` flushes now, and then when next. Source: ikcp.c `ikcp_update`.
    pub(super) fn tick(&mut self, now: Millis, interval: u16) -> bool {
        let mut at = self.flush.filter(|at| is_near(now, *at)).unwrap_or(now);
        let due = at.is_due(now);
        if due {
            at = at.add(interval.into());
            if at.is_due(now) {
                at = now.add(interval.into());
            }
        }
        self.flush = Some(at);
        due
    }

    /// When `update` flushes next; `None`: whenever it is called.
    pub(super) fn flush_at(&self, now: Time) -> Option<Time> {
        self.flush.filter(|at| is_near(now.wire(), *at)).map(|at| now.when(at))
    }
}

/// Whether the clock did not jump between the two. Source: ikcp.c `ikcp_update`, `slap`.
fn is_near(now: Millis, at: Millis) -> bool {
    (-JUMP..JUMP).contains(&now.since(at))
}

/// A clock this far from the next flush, ms, has jumped.
const JUMP: i32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_keep_their_beat_and_skip_what_was_missed() {
        let mut timer = Timer::default();
        let flushed: Vec<u32> =
            [5, 6, 15, 24, 25, 61, 62, 71].into_iter().filter(|&ms| timer.tick(Millis(ms), 10)).collect();
        assert_eq!(flushed, [5, 15, 25, 61, 71]);
    }

    #[test]
    fn a_clock_that_jumps_starts_a_new_beat() {
        let mut timer = Timer::default();
        assert!(timer.tick(Millis(50_000), 10));
        assert!(!timer.tick(Millis(45_000), 10), "10 s back or less: waits, as ikcp.c does");
        assert!(timer.tick(Millis(30_000), 10));
        assert!(timer.tick(Millis(30_010), 10));
    }
}
