//! What can go wrong with channels, and what to do then.

use super::AnyChannel;
use crate::message::BitsError;
use thiserror::Error;

/// Why a handle is none of the session's channels: the channels of its config and the constants in the program differ.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ChannelError {
    /// There is no channel with this number.
    #[error("there is no channel {number}: the session has {count}")]
    Missing {
        /// The number of the handle.
        number: u8,
        /// How many channels there are.
        count: usize,
    },
    /// The channel with this number is of another kind, or carries another type.
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

/// Why something was not taken to be sent.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum SendError {
    /// As much waits as may. This is back-pressure, not a failure: send it again in a later frame, or less. After
    /// [`Event::Writable`](crate::Event::Writable) there is room on reliable channels.
    #[error("channel {channel} is full: send it later")]
    Full {
        /// The number of the channel.
        channel: u8,
    },
    /// It is longer than a message of the channel may be, or than one datagram where it may not be cut.
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
    /// The handle is none of the session's channels.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// A field of the message is out of its bounds.
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
    /// Whether there may be room for the same later: back-pressure, not a failure.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        matches!(self, Self::Full { .. })
    }
}

/// Why nothing was put into a buffer.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum RecvError {
    /// There is no message yet.
    #[error("there is no message")]
    Empty,
    /// The message does not fit into the buffer. It stays.
    #[error("a message of {need} bytes, and a buffer of {have}")]
    BufferTooSmall {
        /// Bytes of the buffer.
        have: usize,
        /// Bytes of the message.
        need: usize,
    },
    /// The handle is none of the session's channels.
    #[error(transparent)]
    Channel(#[from] ChannelError),
}
