//! What a thread and its handle look at together.

use crate::net::driver::Call;
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
