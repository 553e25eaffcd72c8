//! Why a payload is refused, and how many were.

use crate::message::BitsError;
use crate::seq::Seq16;
use thiserror::Error;

/// Why the payload of a packet was refused. Nothing but a counter has changed, and the packet must not be acknowledged.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ReadError {
    /// Its bits do not decode as messages.
    #[error(transparent)]
    Bits(#[from] BitsError),
    /// It has no message. An honest peer sends an empty payload then.
    #[error("a payload without a message")]
    Empty,
    /// It has more messages than an honest peer puts into a packet.
    #[error("more than {max} messages in a packet")]
    TooMany { max: u16 },
    /// A message lies beyond the buffer, or the session has no memory for it. With an honest peer, too little was read:
    /// read what has arrived, and it will be sent again.
    #[error("no room for message {id}")]
    NoRoom { id: Seq16 },
}

reasons! {
    /// Payloads that were refused, by the [`ReadError`].
    pub struct RejectedPayloads: u64, by ReadError {
        bits: Bits,
        empty: Empty,
        too_many: TooMany,
        no_room: NoRoom,
    }
}
