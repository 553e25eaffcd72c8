//! What a session needs from its channels: messages that are already packed, and places in order for messages that
//! KCP carries.

use super::receive::Ready;
use super::{Channels, find};
use crate::channel::{ChannelKind, SendError};
use crate::seq::Seq16;
use crate::time::Time;

/// What is next on a channel.
#[derive(Debug)]
pub(crate) enum Next<T> {
    Message(T),
    /// A message that comes by another way. Once it has arrived, it is [read](Channels::pop_elsewhere).
    Elsewhere,
}

impl Channels {
    /// Stores a packed message; `None`: it is too long for a packet.
    pub(crate) fn store(
        &mut self,
        now: Time,
        channel: u8,
        packed: (&[u8], usize),
    ) -> Result<Option<Seq16>, SendError> {
        let Some(one) = find(&mut self.channels, channel) else { return Ok(None) };
        let lifetime = one.config.expire_after;
        one.sender.push(now, packed, lifetime)
    }

    /// Stores a placeholder for a message of an ordered channel that is sent by another way.
    pub(crate) fn store_elsewhere(&mut self, now: Time, channel: u8) -> Result<(), SendError> {
        find(&mut self.channels, channel).map_or(Ok(()), |one| one.sender.push_elsewhere(now).map(drop))
    }

    /// Unacknowledged placeholders of a channel.
    pub(crate) fn elsewhere(&self, channel: u8) -> usize {
        self.one(channel).map_or(0, |one| one.sender.elsewhere.into())
    }

    /// Takes the next message, and calls `read` with its bytes.
    pub(crate) fn take<T>(&mut self, channel: u8, read: impl FnOnce(&[u8]) -> T) -> Option<Next<T>> {
        let receiver = &mut find(&mut self.channels, channel)?.receiver;
        if let Ready::Elsewhere = receiver.ready.front()? {
            return Some(Next::Elsewhere);
        }
        let Some(Ready::Message(bytes)) = receiver.pop() else { return None };
        let read = read(&bytes);
        receiver.keep(bytes);
        Some(Next::Message(read))
    }

    /// Bytes of the next message; `None`: there is none, or it comes by another way.
    pub(crate) fn next_len(&self, channel: u8) -> Option<usize> {
        match self.one(channel)?.receiver.ready.front()? {
            Ready::Message(bytes) => Some(bytes.len()),
            Ready::Elsewhere => None,
        }
    }

    /// Whether the next message comes by another way.
    pub(crate) fn is_elsewhere(&self, channel: u8) -> bool {
        let one = self.one(channel);
        one.is_some_and(|one| matches!(one.receiver.ready.front(), Some(Ready::Elsewhere)))
    }

    /// Whether a message of a channel that comes by another way may be read now. On an ordered channel, it waits for
    /// its place.
    pub(crate) fn lets_read(&self, channel: u8) -> bool {
        self.one(channel).is_none_or(|one| {
            one.config.channel.kind != ChannelKind::Ordered
                || matches!(one.receiver.ready.front(), Some(Ready::Elsewhere))
        })
    }

    /// Notes that the message that comes by another way was read.
    pub(crate) fn pop_elsewhere(&mut self, channel: u8) {
        if self.is_elsewhere(channel)
            && let Some(one) = find(&mut self.channels, channel)
        {
            one.receiver.pop();
        }
    }

    /// Whether a channel has a message, or one that comes by another way and `has_come` there.
    pub(crate) fn is_readable(&self, mut has_come: impl FnMut(u8) -> bool) -> bool {
        self.channels.iter().any(|one| match one.receiver.ready.front() {
            Some(Ready::Message(_)) => true,
            Some(Ready::Elsewhere) => has_come(one.config.channel.number),
            None => false,
        })
    }
}
