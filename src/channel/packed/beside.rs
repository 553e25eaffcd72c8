//! What a session needs from its channels: messages that are already packed, and places in order for messages that
//! KCP carries.

use super::receive::Ready;
use super::{Channels, One, ReadError, find, len32};
use crate::channel::{ChannelKind, SendError};
use crate::seq::Seq16;
use crate::time::Time;
use std::time::Duration;

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

    /// No packet before this one will be acknowledged: messages in it are sent again.
    pub(crate) fn forget_before(&mut self, sequence: Seq16) {
        self.carried.forget_before(sequence);
    }

    /// Whether the path loses nothing: then only later packets show soon that a queue before it has dropped one.
    pub(crate) const fn set_lossless(&mut self, is_lossless: bool) {
        self.is_lossless = is_lossless;
    }

    /// Whether the peer takes nothing of a channel: it has acknowledged none of its messages for `slow_peer`.
    pub(crate) fn is_stuck(&self, now: Time, rtt: Duration, slow_peer: Duration) -> bool {
        let resend = |one: &One| one.config.resend_after(rtt, self.is_lossless);
        let is_stuck = |one: &One| one.sender.is_stuck(now, resend(one), slow_peer);
        self.channels.iter().any(is_stuck)
    }

    /// [`read`](Self::read) in `left` bytes of memory. Returns how many it has taken. `has_come`: as for
    /// [`is_readable`](Self::is_readable).
    ///
    /// What has arrived and cannot be read may wait for a message of this packet. If there is no memory for it and
    /// nothing to read, that packet may take a little.
    pub(crate) fn read_in(
        &mut self,
        payload: &[u8],
        left: u64,
        has_come: impl FnMut(u8) -> bool,
    ) -> Result<usize, ReadError> {
        let is_awaited = |channels: &[One]| channels.iter().any(|one| one.receiver.has_staged_next());
        let mut read = self.read_within(payload, usize::try_from(left).unwrap_or(usize::MAX), |_| true);
        if matches!(read, Err(ReadError::NoRoom { .. })) && !self.is_readable(has_come) {
            read = self.read_within(payload, A_LITTLE, is_awaited).or(read);
        }
        read.inspect_err(|error| self.rejected.count(error))
    }

    /// Takes the next message, and calls `read` with its bytes.
    pub(crate) fn take<T>(&mut self, channel: u8, read: impl FnOnce(&[u8]) -> T) -> Option<Next<T>> {
        let Self { channels, moved, .. } = self;
        let receiver = &mut find(channels, channel)?.receiver;
        if let Ready::Elsewhere = receiver.ready.front()? {
            return Some(Next::Elsewhere);
        }
        let Some(Ready::Message(bytes)) = receiver.pop() else { return None };
        *moved = moved.wrapping_add(len32(bytes.bytes().len()));
        let read = read(bytes.bytes());
        receiver.keep(bytes.into_spare());
        Some(Next::Message(read))
    }

    /// Bytes of the next message; `None`: there is none, or it comes by another way.
    pub(crate) fn next_len(&self, channel: u8) -> Option<usize> {
        match self.one(channel)?.receiver.ready.front()? {
            Ready::Message(bytes) => Some(bytes.bytes().len()),
            Ready::Elsewhere => None,
        }
    }

    /// Bytes of memory that messages of a channel take which were not read yet.
    pub(crate) fn unread(&self, channel: u8) -> usize {
        self.one(channel).map_or(0, |one| one.receiver.unread())
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

/// Bytes that the messages of one packet may take when there is no memory, so that what was received can be read.
const A_LITTLE: usize = 16 << 10;
