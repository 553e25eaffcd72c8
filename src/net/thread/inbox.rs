//! What has come from a session and waits for the program.

use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::mem::replace;

/// Messages of one session, by channel, each with what it counts for.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    messages: BTreeMap<u8, VecDeque<(Bytes, usize)>>,
    /// The program will be told that there is something to read: the event waits to be taken.
    is_event_waiting: bool,
}

impl Inbox {
    /// Keeps a message; returns whether the program has to be told that there is something to read: on a channel of which it has read all.
    pub(super) fn push(&mut self, channel: u8, message: Bytes, cost: usize) -> bool {
        let queue = self.messages.entry(channel).or_default();
        queue.push_back((message, cost));
        queue.len() == 1 && !replace(&mut self.is_event_waiting, true)
    }

    /// The program was told that there is something to read.
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

    /// Drops all messages, and tells what each counts for.
    pub(super) fn clear(&mut self, mut drops: impl FnMut(u8, usize)) {
        for (channel, messages) in std::mem::take(&mut self.messages) {
            messages.into_iter().for_each(|(_, cost)| drops(channel, cost));
        }
    }
}
