//! What each verb may refuse, and what to do then.

use crate::seq::{Conv, Sn};

errors! {
    /// Why [`Kcp::send`](super::Kcp::send) took nothing.
    SendError {
        /// The message needs more than 127 fragments. Send it in parts.
        "a message of {len} bytes, longer than the maximum of {max}" TooLong { len: usize, max: usize },
        /// The send queue is full. This is back-pressure, not a failure: send again when the peer has acknowledged
        /// something.
        "the send queue is full: {segments} segments, {bytes} bytes wait" Full { segments: usize, bytes: usize },
        /// The message is empty, and the peer would never read past it; see
        /// [`Kcp::refuse_empty`](super::Kcp::refuse_empty).
        "an empty message, which the peer cannot read" Empty,
    }
}

impl SendError {
    /// Whether the same message may fit later: back-pressure, not a failure.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        matches!(self, Self::Full { .. })
    }
}

errors! {
    /// Why [`Kcp::recv_into`](super::Kcp::recv_into) returned no message.
    RecvError {
        /// The next message has `need` bytes. It stays queued: call again with a buffer of that size.
        "the next message has {need} bytes, the buffer {have}" BufferTooSmall { have: usize, need: usize },
        /// No whole message has arrived yet. Not a failure: a driver maps it to `WouldBlock`.
        "no whole message has arrived" NoMessage,
    }
}

errors! {
    /// Why [`Kcp::input`](super::Kcp::input) refused a datagram. Only a counter has changed.
    InputError {
        /// Too short for one segment.
        "a datagram of {have} bytes is too short" TooShort { have: usize },
        /// Longer than `rcv_mtu`.
        "a datagram of {have} bytes, longer than the maximum of {max}" TooLong { have: usize, max: usize },
        /// A segment of another conversation.
        "conv {found} where {expected} was expected" Conv { expected: Conv, found: Conv },
        /// A segment announces more data than the datagram has.
        "{have} bytes of data where the segment announces {need}" Length { have: usize, need: u32 },
        /// An unknown command.
        "{found} is not a command" Command { found: u8 },
        /// A segment acknowledges what was never sent. An honest peer does this only after one end has restarted with
        /// the same conv.
        "una {una} beyond snd_nxt {snd_nxt}" Una { una: Sn, snd_nxt: Sn },
        /// An ACK for a segment that was never sent.
        "an ACK for sn {sn}, not before snd_nxt {snd_nxt}" AckUnsent { sn: Sn, snd_nxt: Sn },
        /// A fragment of a message larger than the receive window, which could never be completed.
        "{frg} fragments follow, the receive window is {rcv_wnd}" Fragment { frg: u8, rcv_wnd: u16 },
    }
}
