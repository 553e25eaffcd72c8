//! What a thread and its handle look at together.

use super::Way;
use crate::net::driver::{Call, Shape};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError};

/// Wakes a thread that waits for datagrams, and counts what it has delivered.
#[derive(Debug, Default)]
pub(super) struct Shared {
    is_asleep: AtomicBool,
    call: Mutex<Option<Call>>,
    /// What was delivered and not yet taken.
    pub(super) incoming: Budget,
    /// Closures that wait to be run.
    pub(super) runs: Budget,
}

impl Shared {
    /// Has the thread look at what is new, if it sleeps. Whatever is new has to be there already.
    pub(super) fn wake(&self) {
        if self.is_asleep.swap(false, SeqCst)
            && let Some(call) = &*self.call.lock().unwrap_or_else(PoisonError::into_inner)
        {
            call.send();
        }
    }

    /// Says that the thread is about to sleep, or is awake. Between the first and its sleep it has to look once more for what is new.
    pub(super) fn set_asleep(&self, is_asleep: bool) {
        self.is_asleep.store(is_asleep, SeqCst);
    }

    pub(super) fn set_call(&self, call: Call) {
        *self.call.lock().unwrap_or_else(PoisonError::into_inner) = Some(call);
    }
}

/// Bytes between two threads: one adds, the other takes away. Whoever has the same budget has a copy.
#[derive(Clone, Debug, Default)]
pub(super) struct Budget(Arc<AtomicUsize>);

impl Budget {
    pub(super) fn used(&self) -> usize {
        self.0.load(SeqCst)
    }

    pub(super) fn add(&self, cost: usize) {
        self.0.fetch_add(cost, SeqCst);
    }

    /// Returns what was used before.
    pub(super) fn take_away(&self, cost: usize) -> usize {
        self.0.fetch_sub(cost, SeqCst)
    }

    /// Whether so much more is within `limit`. Something always is when there is nothing.
    pub(super) fn has_room(&self, cost: usize, limit: usize) -> bool {
        let used = self.used();
        used == 0 || used.saturating_add(cost) <= limit
    }
}

/// What waits for one session, bytes by way. One end adds, the other takes away; both have a copy.
#[derive(Clone, Debug)]
pub(super) struct Budgets {
    /// Of the lanes, then of the datagrams, then of the channels.
    used: Arc<[AtomicUsize]>,
    lanes: usize,
}

impl Budgets {
    pub(super) fn new(shape: &Shape) -> Self {
        let used = (0..=shape.lanes + shape.channels).map(|_| AtomicUsize::new(0)).collect();
        Self { used, lanes: shape.lanes }
    }

    /// Of a lane or channel that is not there, it is that of the datagrams: what is sent there is refused soon.
    fn of(&self, way: Way) -> Option<&AtomicUsize> {
        let index = match way {
            Way::Lane(lane) => Some(lane).filter(|lane| *lane < self.lanes),
            Way::Datagrams => None,
            Way::Channel(channel) => channel.checked_add(self.lanes + 1),
        };
        index.and_then(|index| self.used.get(index)).or_else(|| self.used.get(self.lanes))
    }

    pub(super) fn add(&self, way: Way, cost: usize) {
        if let Some(used) = self.of(way) {
            used.fetch_add(cost, SeqCst);
        }
    }

    pub(super) fn take_away(&self, way: Way, cost: usize) {
        if let Some(used) = self.of(way) {
            used.fetch_sub(cost, SeqCst);
        }
    }

    /// What may be added to a way: a quarter of `limit` is shared out among them, and of the rest it has what the others have left.
    pub(super) fn room(&self, way: Way, limit: usize) -> usize {
        let own = limit / 4 / self.used.len();
        let rest = limit - own * self.used.len();
        let Some(way) = self.of(way) else { return 0 };
        let others = self.used.iter().filter(|other| !std::ptr::eq(*other, way));
        let taken = others.map(|other| other.load(SeqCst).saturating_sub(own)).sum();
        (own + rest.saturating_sub(taken)).saturating_sub(way.load(SeqCst))
    }

    /// Whether so much more may be added. Something always may when there is nothing.
    pub(super) fn has_room(&self, way: Way, cost: usize, limit: usize) -> bool {
        self.of(way).is_some_and(|used| used.load(SeqCst) == 0) || cost <= self.room(way, limit)
    }
}
