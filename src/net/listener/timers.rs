//! When each session wants to be looked at again.

use super::session::SessionId;
use crate::time::Time;
use std::collections::BTreeSet;

/// The timers of all sessions, soonest first. A session has at most one, and holds its time.
#[derive(Debug, Default)]
pub(super) struct Timers {
    due: BTreeSet<(Time, SessionId)>,
}

impl Timers {
    /// Sets the timer of `id` to `at`; `armed` is what it was set to.
    pub(super) fn set(&mut self, id: SessionId, armed: Option<Time>, at: Time) {
        self.clear(id, armed);
        self.due.insert((at, id));
    }

    /// Takes the timer of `id` away; `armed` is what it was set to.
    pub(super) fn clear(&mut self, id: SessionId, armed: Option<Time>) {
        if let Some(armed) = armed {
            self.due.remove(&(armed, id));
        }
    }

    /// Takes a timer that has gone off at `now`.
    pub(super) fn pop(&mut self, now: Time) -> Option<SessionId> {
        self.due.first().filter(|(at, _)| *at <= now)?;
        self.due.pop_first().map(|(_, id)| id)
    }

    /// The soonest of all.
    pub(super) fn next(&self) -> Option<Time> {
        self.due.first().map(|(at, _)| *at)
    }
}
