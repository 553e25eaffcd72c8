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

impl For {
    const fn lane(self) -> usize {
        match self {
            Self::Recv(lane) | Self::Send(lane) => lane,
            Self::Other | Self::Event | Self::Closed => 0,
        }
    }
}

/// One session, as its users see it.
pub(super) struct Waiting<R> {
    /// Handles of it; without any it is released.
    pub(super) handles: usize,
    /// How it has ended, and what can still be read.
    pub(super) closed: Option<(Closed, R)>,
    tasks: Vec<Task>,
    /// Tasks that were woken for room and have had none yet: they keep their turn.
    woken: Vec<Task>,
    /// The turn of the next task that waits.
    next: u64,
    events: VecDeque<Event>,
}

/// A task that waits.
struct Task {
    what: For,
    waker: Waker,
    /// Who has waited longest has the least.
    turn: u64,
}

impl Task {
    fn is(&self, what: For, waker: &Waker) -> bool {
        self.what == what && self.waker.will_wake(waker)
    }
}

impl<R> Waiting<R> {
    pub(super) const fn new(handles: usize) -> Self {
        Self { handles, closed: None, tasks: Vec::new(), woken: Vec::new(), next: 0, events: VecDeque::new() }
    }

    /// Has a task woken when that happens next. A task that is there already is not there twice. One that was woken in vain keeps its turn.
    pub(super) fn wait(&mut self, what: For, waker: &Waker) {
        if self.tasks.iter().any(|task| task.is(what, waker)) {
            return;
        }
        let turn = self.serve(what, waker).unwrap_or_else(|| {
            self.next += 1;
            self.next
        });
        self.tasks.push(Task { what, waker: waker.clone(), turn });
    }

    /// A task has got what it was woken for: if it waits again, it does so behind the others. Returns its turn.
    pub(super) fn serve(&mut self, what: For, waker: &Waker) -> Option<u64> {
        let at = self.woken.iter().position(|task| task.is(what, waker))?;
        Some(self.woken.swap_remove(at).turn)
    }

    /// Moves the tasks that wait for something `is_due` to `woken`.
    pub(super) fn wake(&mut self, woken: &mut Vec<Waker>, mut is_due: impl FnMut(For) -> bool) {
        let due = self.tasks.extract_if(.., |task| is_due(task.what));
        woken.extend(due.map(|task| task.waker));
    }

    /// The same for those who wait for room: the most urgent lane first, and of a lane who has waited longest.
    pub(super) fn wake_senders(&mut self, woken: &mut Vec<Waker>) {
        self.woken.clear(); // who was woken before and has not come does not want to
        self.woken.extend(self.tasks.extract_if(.., |task| matches!(task.what, For::Send(_))));
        self.woken.sort_unstable_by_key(|task| (task.what.lane(), task.turn));
        woken.extend(self.woken.iter().map(|task| task.waker.clone()));
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
