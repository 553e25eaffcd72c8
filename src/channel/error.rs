//! What can go wrong with channels, and what to do then.

use super::AnyChannel;
use crate::message::BitsError;
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
    #[error("channel {channel} is full: send it later")]
    Full {
        /// The number of the channel.
        channel: u8,
    },
    /// It is longer than the channel allows, or than a datagram on a channel whose messages are not split.
    #[error(
        "a message of {len} bytes, where channel {channel} takes {max}: raise its `max_message`, or send it on a reliable channel"
    )]
    TooLong {
        /// The number of the channel.
        channel: u8,
        /// Bytes of the message.
        len: usize,
        /// The most there may be.
        max: usize,
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
