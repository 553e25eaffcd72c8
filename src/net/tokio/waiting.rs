//! Who waits for what of one session.

use super::core::Closed;
use crate::session::Event;
use std::collections::VecDeque;
use std::task::Waker;

/// What a task waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum For {
    /// A message on a lane.
    Recv(usize),
    /// Room on a lane, or that what was sent there has arrived.
    Send(usize),
    /// A datagram, or a message of a channel.
    Other,
    Event,
    Closed,
}

/// One session, as its users see it.
pub(super) struct Waiting<R> {
    /// Handles of it; without any it is released.
    pub(super) handles: usize,
    /// How it has ended, and what can still be read.
    pub(super) closed: Option<(Closed, R)>,
    tasks: Vec<(For, Waker)>,
    events: VecDeque<Event>,
}

impl<R> Waiting<R> {
    pub(super) const fn new(handles: usize) -> Self {
        Self { handles, closed: None, tasks: Vec::new(), events: VecDeque::new() }
    }

    /// Has a task woken when that happens next. A task that is there already is not there twice.
    pub(super) fn wait(&mut self, what: For, waker: &Waker) {
        if !self.tasks.iter().any(|(other, task)| *other == what && task.will_wake(waker)) {
            self.tasks.push((what, waker.clone()));
        }
    }

    /// Moves the tasks that wait for something `is_due` to `woken`.
    pub(super) fn wake(&mut self, woken: &mut Vec<Waker>, mut is_due: impl FnMut(For) -> bool) {
        let due = self.tasks.extract_if(.., |(what, _)| is_due(*what));
        woken.extend(due.map(|(_, waker)| waker));
    }

    /// Keeps an event, of many that nobody takes the newest.
    pub(super) fn tell(&mut self, event: Event) {
        if self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    pub(super) fn pop_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}

/// Events that nobody takes.
const EVENTS_MAX: usize = 16;
