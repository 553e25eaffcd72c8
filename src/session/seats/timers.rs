//! When each session wants to be looked at again.

use crate::time::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The timers of all sessions, soonest first; a session has at most one, and keeps its time: never, if it has none.
///
/// A timer goes off too early rather than being moved back, so that traffic, which moves deadlines back all the time, costs nothing. One
/// that was moved to an earlier time stays in the heap as well, and is nobody's when it comes up. Where there are few, neither is so: there
/// is nobody else for whom the thread that they wake would be awake anyway.
#[derive(Debug)]
pub(super) struct Timers<Id> {
    due: BinaryHeap<Reverse<(Time, Id)>>,
    /// Sessions that have one.
    armed: usize,
    /// Of so many, those that are nobody's are taken out.
    tidy_at: usize,
}

impl<Id: Copy + Ord> Timers<Id> {
    /// Has `id` looked at by `at`; `armed` is the session's timer.
    pub(super) fn arm(&mut self, id: Id, armed: &mut Time, at: Time) {
        let are_few = self.due.len() <= FEW;
        if *armed <= at && !(are_few && at.micros_since(*armed) >= WORTH) {
            return;
        }
        if are_few && *armed != Time::NEVER {
            self.due.retain(|Reverse((_, other))| *other != id);
        }
        self.armed += usize::from(std::mem::replace(armed, at) == Time::NEVER);
        self.due.push(Reverse((at, id)));
    }

    pub(super) fn clear(&mut self, armed: &mut Time) {
        self.armed -= usize::from(std::mem::replace(armed, Time::NEVER) != Time::NEVER);
        if self.armed == 0 {
            self.due.clear();
        }
    }

    /// What has come up; whether it is still somebody's says [`has_gone_off`](Self::has_gone_off).
    pub(super) fn pop(&mut self, now: Time) -> Option<(Time, Id)> {
        self.due.peek().filter(|Reverse((at, _))| *at <= now)?;
        self.due.pop().map(|Reverse(timer)| timer)
    }

    /// Whether what came up is the timer of the session, which has none then.
    pub(super) fn has_gone_off(&mut self, armed: &mut Time, at: Time) -> bool {
        let is_its = *armed == at;
        if is_its {
            *armed = Time::NEVER;
            self.armed -= 1;
        }
        is_its
    }

    pub(super) fn next(&self) -> Option<Time> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes out those that are nobody's, if there may be many. `armed` is the timer of each session, which may be later than some that
    /// were moved.
    pub(super) fn tidy(&mut self, armed: impl Fn(Id) -> Option<Time>) {
        if self.due.len() < self.tidy_at {
            return;
        }
        let mut due = std::mem::take(&mut self.due).into_vec();
        due.retain(|Reverse((at, id))| armed(*id) == Some(*at));
        if due.len() > self.armed {
            due.sort_unstable(); // what was moved, and then moved back, is there twice
            due.dedup();
        }
        self.tidy_at = TIDY_MIN.max(2 * due.len());
        due.shrink_to(self.tidy_at);
        self.due = due.into();
    }
}

/// Timers that are moved back.
const FEW: usize = 8;
/// By how much at least, µs.
const WORTH: u64 = 1000;

impl<Id: Ord> Default for Timers<Id> {
    fn default() -> Self {
        Self { due: BinaryHeap::new(), armed: 0, tidy_at: TIDY_MIN }
    }
}

/// Fewer are not worth it.
const TIDY_MIN: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// Datagrams of 100 sessions bring timers forward, which are far away again when they have gone off.
    #[test]
    fn no_timer_is_lost_that_is_set_after_one_that_was_moved() {
        let (mut timers, mut armed) = (Timers::default(), [Time::NEVER; 100]);
        for (ms, id) in (0..5_000).zip((0..armed.len()).cycle().step_by(37)) {
            let now = Time::from_millis(ms);
            while let Some((at, id)) = timers.pop(now) {
                if timers.has_gone_off(&mut armed[id], at) {
                    timers.arm(id, &mut armed[id], now.after(500_000));
                }
            }
            if ms % 1000 < 300 {
                timers.arm(id, &mut armed[id], now.after(10_000));
            }
            timers.tidy(|id| Some(armed[id]));
            let late = armed.iter().position(|at| *at <= now);
            assert_eq!(late, None, "at {now:?}");
            assert!(timers.due.len() <= 2 * armed.len() + 1, "{} at {now:?}", timers.due.len());
        }
    }

    #[test]
    fn a_timer_goes_off_when_it_was_armed_for_last_and_what_was_moved_takes_no_room() {
        let (mut timers, mut armed) = (Timers::default(), [Time::NEVER; 10]);
        for ms in (1..=10_000).rev() {
            let at = Time::from_millis(ms);
            for (id, armed) in armed.iter_mut().enumerate() {
                timers.arm(id, armed, at);
                timers.arm(id, armed, at.after(1));
            }
            timers.tidy(|id| Some(armed[id]));
        }
        assert!(timers.due.len() <= TIDY_MIN, "{}", timers.due.len());
        let mut gone_off = Vec::new();
        assert_eq!((timers.pop(Time::ZERO), timers.next()), (None, Some(Time::from_millis(1))));
        timers.clear(&mut armed[3]);
        while let Some((at, id)) = timers.pop(Time::from_millis(20_000)) {
            if timers.has_gone_off(&mut armed[id], at) {
                gone_off.push((at.as_millis(), id));
            }
        }
        assert!(gone_off.into_iter().eq([0, 1, 2, 4, 5, 6, 7, 8, 9].map(|id| (1, id))));
        timers.arm(1, &mut armed[1], Time::ZERO);
        timers.clear(&mut armed[1]);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn a_timer_is_moved_back_by_a_millisecond_at_least_and_only_among_few() {
        let at = Time::from_millis;
        let (mut timers, mut armed) = (Timers::default(), Time::NEVER);
        for (wanted, expected) in [(5, 5), (30, 30), (20, 20), (21, 21)] {
            timers.arm(0, &mut armed, at(wanted));
            assert_eq!((armed, timers.next()), (at(expected), Some(at(expected))));
        }
        timers.arm(0, &mut armed, at(21).after(999));
        assert_eq!(armed, at(21));
        let mut others = [Time::NEVER; FEW];
        for (id, armed) in (1..).zip(&mut others) {
            timers.arm(id, armed, at(100));
        }
        assert_eq!(timers.due.len(), 1 + FEW, "what was moved is not there any more");
        timers.arm(0, &mut armed, at(40));
        assert_eq!((armed, timers.pop(at(21)), timers.next()), (at(21), Some((at(21), 0)), Some(at(100))));
    }
}
