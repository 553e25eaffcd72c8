//! Remembers the content of datagrams, so that a receipt tells what has arrived.

use std::collections::VecDeque;

/// The content of the newest datagrams, by number.
#[derive(Debug)]
pub(crate) struct Receipts<T> {
    sent: VecDeque<(u64, T)>,
}

impl<T> Receipts<T> {
    pub(crate) const fn new() -> Self {
        Self { sent: VecDeque::new() }
    }

    /// Notes the content of a datagram. Numbers must increase.
    pub(crate) fn note(&mut self, datagram: u64, what: T) {
        if self.sent.len() >= KEPT {
            self.sent.pop_front();
        }
        self.sent.push_back((datagram, what));
    }

    /// Takes the content of a datagram, and drops that of earlier ones, which later ones have made up for.
    pub(crate) fn take(&mut self, datagram: u64) -> Option<T> {
        let index = self.sent.binary_search_by_key(&datagram, |(number, _)| *number).ok()?;
        self.sent.drain(..index);
        self.sent.pop_front().map(|(_, what)| what)
    }
}

/// Datagrams to remember: four seconds.
const KEPT: usize = 128;
