//! When stored messages expire. Finding the next takes a few steps, however many are stored.

use crate::seq::Seq16;
use crate::time::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The times at which messages expire, with their ids. The entry of a message that is gone is dropped when
/// its turn comes, or when such entries are half of all.
#[derive(Debug, Default)]
pub(super) struct Expiry(BinaryHeap<Reverse<(Time, u16)>>);

impl Expiry {
    /// Adds a message, the newest of `stored` ones. `is_there` says which of the others are still stored.
    pub(super) fn insert(
        &mut self,
        at: Time,
        id: Seq16,
        stored: u16,
        is_there: impl Fn(Time, Seq16) -> bool,
    ) {
        if self.0.len() >= 2 * usize::from(stored.max(FEW)) {
            self.0.retain(|Reverse((at, id))| is_there(*at, Seq16(*id)));
        }
        self.0.push(Reverse((at, id.0)));
    }

    /// Drops the entries before the first whose message is still stored.
    pub(super) fn tidy(&mut self, is_there: impl Fn(Time, Seq16) -> bool) {
        while self.0.peek().is_some_and(|Reverse((at, id))| !is_there(*at, Seq16(*id))) {
            self.0.pop();
        }
    }

    /// No message expires before this.
    pub(super) fn first(&self) -> Option<Time> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes a message whose time has come.
    pub(super) fn pop(&mut self, now: Time) -> Option<Seq16> {
        self.first().filter(|at| *at <= now)?;
        self.0.pop().map(|Reverse((_, id))| Seq16(id))
    }

    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.0.capacity() * size_of::<Reverse<(Time, u16)>>()
    }
}

/// Up to this many entries, those of messages that are gone may stay.
const FEW: u16 = 64;
