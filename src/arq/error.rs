//! What can go wrong with each verb, and what to do then.

use crate::seq::{Conv, Sn};
use thiserror::Error;

pub use crate::config::ConfigError;

/// Why [`Kcp::send`](super::Kcp::send) took nothing.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum SendError {
    /// The message needs more than 127 fragments: send it in parts.
    #[error("a message of {len} bytes, where {max} is the most")]
    TooLong {
        /// Bytes of the message.
        len: usize,
        /// Most bytes a message may have at the current mtu.
        max: usize,
    },
    /// As much waits as the config allows. This is back-pressure, not a failure: send again when
    /// the peer has acknowledged some.
    #[error("the send queue is full: {segments} segments, {bytes} bytes wait")]
    QueueFull {
        /// Segments that wait.
        segments: usize,
        /// Bytes that wait.
        bytes: usize,
    },
    /// The message is empty, and the peer is known never to get past such a one: see [`Kcp::refuse_empty`](super::Kcp::refuse_empty).
    #[error("an empty message, which the peer cannot read")]
    Empty,
}

/// Why [`Kcp::recv`](super::Kcp::recv) returned no message.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum RecvError {
    /// The next message has `need` bytes; nothing was taken, call again with that much room.
    #[error("the next message has {need} bytes, the buffer {have}")]
    BufferTooSmall {
        /// Bytes of the buffer.
        have: usize,
        /// Bytes of the message.
        need: usize,
    },
    /// No whole message yet. Not a failure: a driver maps it to `WouldBlock`.
    #[error("no whole message has arrived")]
    NoMessage,
}

/// Why [`Kcp::input`](super::Kcp::input) refused a datagram. Nothing but a counter has changed.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum InputError {
    /// Too short for one segment.
    #[error("a datagram of {have} bytes")]
    TooShort {
        /// Bytes of the datagram.
        have: usize,
    },
    /// Longer than `rcv_mtu`.
    #[error("a datagram of {have} bytes, where {max} is the most")]
    TooLong {
        /// Bytes of the datagram.
        have: usize,
        /// The configured `rcv_mtu`.
        max: usize,
    },
    /// A segment of another conversation.
    #[error("conv {found} where {expected} was expected")]
    Conv {
        /// Our conversation.
        expected: Conv,
        /// The conversation of the segment.
        found: Conv,
    },
    /// A segment announces more data than the datagram has.
    #[error("{have} bytes of data where the segment announces {need}")]
    Length {
        /// Bytes there are.
        have: usize,
        /// Bytes announced.
        need: u32,
    },
    /// A command that KCP does not have.
    #[error("{found} is no command")]
    Command {
        /// The byte in its place.
        found: u8,
    },
    /// A segment acknowledges what was never sent. Honest peers cannot; after a restart of one end
    /// with the same conv they do.
    #[error("una {una} beyond snd_nxt {snd_nxt}")]
    Una {
        /// The acknowledgement.
        una: Sn,
        /// The first number not sent yet.
        snd_nxt: Sn,
    },
    /// An ACK for a segment that was never sent.
    #[error("an ACK for sn {sn}, not before snd_nxt {snd_nxt}")]
    AckUnsent {
        /// The acknowledged number.
        sn: Sn,
        /// The first number not sent yet.
        snd_nxt: Sn,
    },
    /// A fragment of a message larger than the receive window: it could never be completed.
    #[error("{frg} fragments follow, the receive window is {rcv_wnd}")]
    Fragment {
        /// Fragments that follow.
        frg: u8,
        /// The receive window, segments.
        rcv_wnd: u16,
    },
}
