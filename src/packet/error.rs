//! What can go wrong with each verb, and what to do then.

use crate::seq::Seq16;

errors! {
    /// Why [`Endpoint::send`](super::Endpoint::send) sent nothing.
    PacketSendError {
        /// The payload is longer than `payload_max`: send it in parts.
        "a payload of {len} bytes, where {max} is the most" TooLong { len: usize, max: u32 },
    }
}

errors! {
    /// Why [`Endpoint::receive`](super::Endpoint::receive) took nothing of a datagram. Nothing but a
    /// counter has changed.
    ReceiveError {
        /// It ends within its header.
        "{have} bytes are no whole header" Truncated { have: usize },
        /// It is of another protocol.
        "{found:#010x} is not our protocol" Protocol { found: u32 },
        /// Its flags do not go together.
        "{found:#04x} is no prefix" Prefix { found: u8 },
        /// Its header says in more bytes what can be said in fewer.
        "the header is not the shortest that says this" NotShortest,
        /// Its fragment is none of its packet, or the packet has only one.
        "there is no fragment {id} of 0 to {last}" Fragment { id: u8, last: u8 },
        /// Its fragment has no data, other data than its neighbours tell, or contradicts them in their number.
        "the fragment does not go together with the others of its packet" FragmentMismatch,
        /// The packet is longer than `payload_max`.
        "a payload of at least {len} bytes, where {max} is the most" TooLong { len: usize, max: u32 },
        /// It acknowledges a packet newer than any that was sent.
        "packet {ack} was not sent yet" AckUnsent { ack: Seq16 },
        /// The packet is too old to tell whether it came before. Nothing is wrong: it is late.
        "packet {sequence} is too old" Stale { sequence: Seq16 },
        /// The packet, or the fragment, came before. Nothing is wrong: the network doubled it.
        "packet {sequence} came before" Duplicate { sequence: Seq16 },
        /// The receiver of the payload refused it; see [`Endpoint::receive_if`](super::Endpoint::receive_if).
        "packet {sequence} was refused" Refused { sequence: Seq16 },
    }
}
