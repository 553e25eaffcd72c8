//! When each session wants to be looked at again.

use crate::time::Time;
use std::collections::BTreeSet;

/// The timers of all sessions, soonest first; a session has at most one, and keeps its time.
///
/// A timer goes off too early rather than being moved back, so that traffic, which moves deadlines back all the time, costs nothing.
#[derive(Debug)]
pub(super) struct Timers<Id> {
    due: BTreeSet<(Time, Id)>,
}

impl<Id: Copy + Ord> Timers<Id> {
    /// Has `id` looked at by `at`; `armed` is the session's timer.
    pub(super) fn arm(&mut self, id: Id, armed: &mut Option<Time>, at: Time) {
        if armed.is_some_and(|armed| armed <= at) {
            return;
        }
        self.clear(id, armed);
        self.due.insert((at, id));
        *armed = Some(at);
    }

    /// Takes the timer of `id` away.
    pub(super) fn clear(&mut self, id: Id, armed: &mut Option<Time>) {
        if let Some(armed) = armed.take() {
            self.due.remove(&(armed, id));
        }
    }

    /// Takes a timer that has gone off. The session's own is to be taken as well.
    pub(super) fn pop(&mut self, now: Time) -> Option<Id> {
        self.due.first().filter(|(at, _)| *at <= now)?;
        self.due.pop_first().map(|(_, id)| id)
    }

    /// The soonest of all.
    pub(super) fn next(&self) -> Option<Time> {
        self.due.first().map(|(at, _)| *at)
    }
}

impl<Id> Default for Timers<Id> {
    fn default() -> Self {
        Self { due: BTreeSet::new() }
    }
}
