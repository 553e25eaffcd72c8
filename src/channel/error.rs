//! What can go wrong with channels, and what to do then.

use super::AnyChannel;
use crate::message::BitsError;
use std::fmt;
use thiserror::Error;

/// Why a handle does not match a channel of the session: the config and the constants of the program differ.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ChannelError {
    /// There is no channel with this number.
    #[error("there is no channel {number}: the session has {count}")]
    Missing {
        /// The number of the handle.
        number: u8,
        /// How many channels there are, numbered from 0.
        count: usize,
    },
    /// The channel with this number has another kind or another type.
    #[error("channel {} is {there}, and the handle is {handle}", handle.number())]
    Wrong {
        /// The handle.
        handle: AnyChannel,
        /// The channel of the session.
        there: AnyChannel,
    },
}

impl ChannelError {
    pub(crate) const fn wrong(handle: AnyChannel, there: AnyChannel) -> Self {
        Self::Wrong { handle, there }
    }
}

/// Why a message was not accepted for sending.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum SendError {
    /// The channel is full. This is back-pressure, not a failure: send again in a later frame, or send less. On
    /// reliable channels, [`Event::Writable`](crate::Event::Writable) reports when there is room.
    #[error("{} is full: send it later", Place(*channel))]
    Full {
        /// The number of the channel.
        channel: u8,
    },
    /// It is longer than the channel allows, or than a datagram on a channel whose messages are not split.
    #[error("a message of {len} bytes, where {} takes {max}: {cure}", Place(*channel))]
    TooLong {
        /// The number of the channel.
        channel: u8,
        /// Bytes of the message.
        len: usize,
        /// The most there may be.
        max: usize,
        /// What to do, in words: which setting is the limit, or how to send it instead.
        cure: &'static str,
    },
    /// The handle does not match a channel of the session.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// A field of the message is out of range.
    #[error(transparent)]
    Bits(#[from] BitsError),
    /// The session is not up yet: wait for [`Event::Connected`](crate::Event::Connected).
    #[error("the session is not connected yet")]
    NotConnected,
    /// The session is closing or closed.
    #[error("the session is closed")]
    Closed,
}

/// Unreliable datagrams, which are no channel of the config, where a channel is named.
pub(crate) const DATAGRAMS: u8 = u8::MAX;

/// What can be done about messages that are too long.
pub(crate) mod cure {
    pub(crate) const MAX_MESSAGE: &str = "raise its `max_message`";
    pub(crate) const RELIABLE: &str = "send it on a reliable channel";
    pub(crate) const CUT: &str = "send it as several messages";
    pub(crate) const SEND_MEMORY: &str = "raise `send_memory`";
    pub(crate) const SND_QUEUE: &str = "raise `snd_queue` and `snd_queue_bytes` of its `kcp`";
    pub(crate) const WRITE: &str =
        "send less at once with `write`, or raise `send_memory`, and `snd_queue` of its `kcp`";
}

/// A channel, or the datagrams, in an error.
struct Place(u8);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            DATAGRAMS => f.write_str("the queue of datagrams"),
            channel => write!(f, "channel {channel}"),
        }
    }
}

impl SendError {
    /// Whether there may be room for the same message later: back-pressure, not a failure.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        matches!(self, Self::Full { .. })
    }
}

/// Why no message was written to the buffer.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum RecvError {
    /// There is no message yet.
    #[error("there is no message")]
    Empty,
    /// The message does not fit into the buffer. It stays queued.
    #[error("a message of {need} bytes, and a buffer of {have}")]
    BufferTooSmall {
        /// Bytes of the buffer.
        have: usize,
        /// Bytes of the message.
        need: usize,
    },
    /// The handle does not match a channel of the session.
    #[error(transparent)]
    Channel(#[from] ChannelError),
}
