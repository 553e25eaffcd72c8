//! What the table of a server and that of bare peers have in common: whose turn it is, when each is looked at, whose addresses have how
//! many seats, and who must not come back at once.

mod names;
mod timers;

pub(super) use names::{Graves, Hosts, Name};

use crate::time::Time;
use std::collections::VecDeque;
use timers::Timers;

/// Whose turn it is to send, and when each of the others is looked at.
///
/// Who may have something to send is on a list, because a datagram came, a timer went off or the program looked at it. The rest costs
/// nothing. It is a round robin by bytes: each turn is the same for all, and enough for neighbours of one address to leave as one. Who has
/// little to send waits for one turn of each of the others at most, whatever they have. Source: Shreedhar and Varghese, Efficient Fair
/// Queueing Using Deficit Round Robin, 1995; without the deficit, for no datagram is more than a small part of a turn.
#[derive(Debug)]
pub(super) struct Agenda<Id> {
    listed: VecDeque<Id>,
    /// What the first of them has sent in a row.
    sent: usize,
    timers: Timers<Id>,
}

/// What a seat keeps of the agenda.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// When it has something to do.
    pub(super) due: Time,
    /// When it is looked at next, which is not later; never, if there is no timer of it.
    wake: Time,
    is_listed: bool,
}

impl Entry {
    /// Of a seat that has something to do at `due`, once that is [put down](Agenda::put_off).
    pub(super) const fn at(due: Time) -> Self {
        Self { due, wake: Time::NEVER, is_listed: false }
    }

    /// Whether it is on the list of those that may have something to send.
    pub(super) const fn is_listed(&self) -> bool {
        self.is_listed
    }
}

impl<Id: Copy + Ord> Agenda<Id> {
    #[inline]
    pub(super) fn list(&mut self, id: Id, entry: &mut Entry) {
        if !std::mem::replace(&mut entry.is_listed, true) {
            self.listed.push_back(id);
        }
    }

    /// Whose turn it is.
    pub(super) fn first(&self) -> Option<Id> {
        self.listed.front().copied()
    }

    /// The first has sent so many bytes.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.sent >= QUANTUM {
            self.sent = 0;
            self.listed.rotate_left(1);
        }
    }

    /// The first has nothing more to send, or is not there any more and has no entry.
    pub(super) fn end_turn(&mut self, entry: Option<&mut Entry>) {
        self.sent = 0;
        self.listed.pop_front();
        if let Some(entry) = entry {
            entry.is_listed = false;
        }
    }

    /// Has the seat looked at when it is due.
    #[inline]
    pub(super) fn put_off(&mut self, id: Id, entry: &mut Entry) {
        if entry.due != Time::NEVER {
            self.timers.arm(id, &mut entry.wake, entry.due);
        }
    }

    /// The next timer that has come up. It may be nobody's any more: see [`is_due`](Self::is_due).
    pub(super) fn pop(&mut self, now: Time) -> Option<(Time, Id)> {
        self.timers.pop(now)
    }

    /// Whether a seat has something to do, a timer of which has come up; if not it is put off.
    pub(super) fn is_due(&mut self, now: Time, at: Time, id: Id, entry: &mut Entry) -> bool {
        if !self.timers.has_gone_off(&mut entry.wake, at) {
            return false;
        }
        if entry.due > now && !entry.is_listed {
            self.put_off(id, entry);
            return false;
        }
        true
    }

    pub(super) fn leave(&mut self, entry: &mut Entry) {
        self.timers.clear(&mut entry.wake);
    }

    /// Takes out timers that are nobody's, if there may be many. `entry` is that of each seat.
    pub(super) fn tidy<'a>(&mut self, entry: impl Fn(Id) -> Option<&'a Entry>) {
        self.timers.tidy(|id| Some(entry(id)?.wake));
    }

    /// When something is to be sent, or a timer comes up.
    pub(super) fn poll_timeout(&self, now: Time) -> Option<Time> {
        if self.listed.is_empty() { self.timers.next() } else { Some(now) }
    }
}

impl<Id: Ord> Default for Agenda<Id> {
    fn default() -> Self {
        Self { listed: VecDeque::new(), sent: 0, timers: Timers::default() }
    }
}

/// Timers that one call looks at: enough for a thousand calls a second, or for one a frame of some ten thousand seats.
pub(super) const TIMERS_EACH: usize = 4096;
/// Bytes of a turn: 14 datagrams of 1200 bytes.
const QUANTUM: usize = 16 << 10;
