//! What can go wrong, and what to do then.

use crate::seq::Seq16;
use thiserror::Error;

/// Why a stream of bits took or gave no value.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum BitsError {
    /// Writing: the bytes given are full.
    #[error("a field of {need} bits, where room for {left} is left")]
    Full { need: usize, left: usize },
    /// Reading: the bytes end within a field.
    #[error("a field of {need} bits, where {left} are left")]
    Truncated { need: usize, left: usize },
    /// A number, or the length of a string or list, beyond its range: ours when writing, the peer's when reading.
    #[error("a value {offset} above the least of its range, which ends {span} above it")]
    OutOfRange { offset: u64, span: u64 },
    /// Writing: a float out of its range, or none.
    #[error("{value} is outside {min} to {max}")]
    Float { value: f32, min: f32, max: f32 },
    /// The bounds of a field leave no value, or need more bits than there are. Repair the `serialize` of the type.
    #[error("no value is within the bounds of the field")]
    Bounds,
    /// Reading: padding that is not zero.
    #[error("padding of {found:#x}, not 0")]
    Padding { found: u32 },
    /// Reading: another check value, so what was read before is not what was written.
    #[error("the check value is {found:#x}, not {expected:#x}")]
    Check { found: u32, expected: u32 },
    /// Reading: a string that is no UTF-8.
    #[error("a string that is no UTF-8")]
    Utf8,
    /// Reading: a sequence in more bits than it takes.
    #[error("a distance of {distance} in the long form")]
    NotShortest { distance: u16 },
    /// Reading: a message of a kind that there is not.
    #[error("there is no message of kind {kind}")]
    Kind { kind: u32 },
    /// Boxes and lists in each other are deeper than [`MAX_DEPTH`](super::pack::MAX_DEPTH).
    #[error("boxes and lists in each other, deeper than {max}")]
    Depth { max: u32 },
    /// Reading: bytes that are not of the type, by serde. Writing: a value that serde cannot put into bytes.
    #[error("serde and postcard refuse the value")]
    Serde,
    /// An item of a list takes no bits, so a length alone would take memory. Give its type a field that can have two values.
    #[error("an item of a list takes no bits")]
    EmptyItem,
    /// Reading: whole bytes are left at the end.
    #[error("{left} bits are left at the end")]
    Trailing { left: usize },
}

/// Why a channel did not take a message or a block.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ChannelSendError {
    /// As much waits or is under way as the config allows. This is back-pressure, not a failure: send again when the peer has
    /// acknowledged some.
    #[error("{waiting} messages wait, {max} is the most")]
    Full { waiting: u16, max: u16 },
    /// The message takes more than one packet: send it as a block, or make it smaller.
    #[error("a message of {bits} bits, where {max} fit")]
    TooLarge { bits: usize, max: usize },
    /// A block under way has not arrived yet: send the next one later.
    #[error("another block is under way")]
    BlockUnderWay,
    /// The block is empty or too long, or the channel carries none.
    #[error("a block of {len} bytes, outside 1 to {max}")]
    BlockLength { len: usize, max: u32 },
    /// A field of the message is out of its bounds.
    #[error(transparent)]
    Bits(#[from] BitsError),
    /// There is no such channel.
    #[error("there is no channel {index}, only {count}")]
    NoChannel { index: usize, count: usize },
}

/// Why the payload of a packet was refused. Nothing but a counter has changed, and the packet must not be acknowledged.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ReadError {
    /// Its bits are not those of messages.
    #[error(transparent)]
    Bits(#[from] BitsError),
    /// It has no message, which takes no payload to say.
    #[error("a payload without a message")]
    Empty,
    /// A message lies beyond the buffer. With an honest peer too little was read: read what has come, and it will be sent again.
    #[error("no room for message {id}")]
    NoRoom { id: Seq16 },
}
