//! Messages of a session that the program has not read.

use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::mem::replace;

/// Messages of one session, by channel, each with its cost, bytes.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    messages: BTreeMap<u8, VecDeque<(Bytes, usize)>>,
    /// The event that reports readable messages waits to be taken.
    is_event_waiting: bool,
}

impl Inbox {
    /// Adds a message. Returns whether an event must report it: the channel was empty, and no such event is waiting.
    pub(super) fn push(&mut self, channel: u8, message: Bytes, cost: usize) -> bool {
        let queue = self.messages.entry(channel).or_default();
        queue.push_back((message, cost));
        queue.len() == 1 && !replace(&mut self.is_event_waiting, true)
    }

    /// Notes that the program has taken that event.
    pub(super) const fn on_told(&mut self) {
        self.is_event_waiting = false;
    }

    pub(super) fn pop(&mut self, channel: u8) -> Option<(Bytes, usize)> {
        let queue = self.messages.get_mut(&channel)?;
        let message = queue.pop_front();
        if queue.is_empty() {
            self.messages.remove(&channel);
        }
        message
    }

    /// Bytes of the next message.
    pub(super) fn next_len(&self, channel: u8) -> Option<usize> {
        self.messages.get(&channel)?.front().map(|(message, _)| message.len())
    }

    /// Drops all messages, and calls `drops` with the channel and cost of each.
    pub(super) fn clear(&mut self, mut drops: impl FnMut(u8, usize)) {
        for (channel, messages) in std::mem::take(&mut self.messages) {
            messages.into_iter().for_each(|(_, cost)| drops(channel, cost));
        }
    }
}
