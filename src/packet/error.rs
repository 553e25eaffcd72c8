//! What can go wrong with each call, and what to do about it.

use crate::seq::Seq16;

errors! {
    /// Why [`Endpoint::send`](super::Endpoint::send) sent nothing.
    PacketSendError {
        /// The payload is longer than `payload_max`. Send it in parts.
        "payload has {len} bytes, more than the maximum of {max}" TooLong { len: usize, max: u32 },
    }
}

errors! {
    /// Why [`Endpoint::receive`](super::Endpoint::receive) rejected a datagram. Nothing but a counter has
    /// changed.
    ReceiveError {
        /// The datagram ends within its header.
        "datagram of {have} bytes ends within its header" Truncated { have: usize },
        /// It belongs to another protocol.
        "protocol id {found:#010x} is not ours" Protocol { found: u32 },
        /// Its flags contradict each other.
        "{found:#04x} is not a valid prefix" Prefix { found: u8 },
        /// Its header is not the shortest one with this content.
        "header is not in its shortest form" NotShortest,
        /// It has an impossible fragment number, or is the only fragment of its packet.
        "fragment {id} of 0 to {last} is impossible" Fragment { id: u8, last: u8 },
        /// The fragment is empty, or its data, size or count contradicts the other fragments of its packet.
        "fragment contradicts the others of its packet" FragmentMismatch,
        /// The packet is longer than `payload_max`.
        "payload has at least {len} bytes, more than the maximum of {max}" TooLong { len: usize, max: u32 },
        /// It acknowledges a packet newer than any that was sent.
        "packet {ack} is acknowledged but was never sent" AckUnsent { ack: Seq16 },
        /// The packet is so old that a duplicate would not be recognised. This is no error: it was delayed by
        /// the network.
        "packet {sequence} is too old" Stale { sequence: Seq16 },
        /// The packet, or the fragment, was received before. This is no error: the network duplicated it.
        "packet {sequence} is a duplicate" Duplicate { sequence: Seq16 },
        /// The application refused it; see [`Endpoint::receive_if`](super::Endpoint::receive_if).
        "packet {sequence} was refused by the application" Refused { sequence: Seq16 },
    }
}
