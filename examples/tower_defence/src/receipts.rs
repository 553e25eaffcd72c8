//! What was in which datagram: so that a receipt for a datagram tells what has arrived.

use std::collections::VecDeque;

/// What was in the newest datagrams, by their numbers.
#[derive(Debug)]
pub(crate) struct Receipts<T> {
    sent: VecDeque<(u64, T)>,
}

impl<T> Receipts<T> {
    pub(crate) const fn new() -> Self {
        Self { sent: VecDeque::new() }
    }

    /// Notes what was in a datagram. Their numbers go up.
    pub(crate) fn note(&mut self, datagram: u64, what: T) {
        if self.sent.len() >= KEPT {
            self.sent.pop_front();
        }
        self.sent.push_back((datagram, what));
    }

    /// Takes what was in a datagram, and forgets those before: what came later has made up for them.
    pub(crate) fn take(&mut self, datagram: u64) -> Option<T> {
        let index = self.sent.binary_search_by_key(&datagram, |(number, _)| *number).ok()?;
        self.sent.drain(..index);
        self.sent.pop_front().map(|(_, what)| what)
    }
}

/// Datagrams that are remembered: four seconds of them.
const KEPT: usize = 128;
