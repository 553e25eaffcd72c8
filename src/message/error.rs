//! What can go wrong, and what to do then.

use thiserror::Error;

/// Why a bit stream could not be written or read.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum BitsError {
    /// Writing: there is no room left.
    #[error("a field of {need} bits, but only room for {left}")]
    Full { need: usize, left: usize },
    /// Reading: the bytes end within a field.
    #[error("a field of {need} bits, but only {left} are left")]
    Truncated { need: usize, left: usize },
    /// A number, or the length of a string or list, is out of range: ours when writing, the peer's when reading.
    #[error("a value {offset} above the start of its range, which ends {span} above it")]
    OutOfRange { offset: u64, span: u64 },
    /// Writing: a float out of range, or NaN.
    #[error("{value} is outside {min} to {max}")]
    Float { value: f32, min: f32, max: f32 },
    /// The bounds of a field allow no value, or need more bits than there are. Fix the `pack` of the type.
    #[error("no value is within the bounds of the field")]
    Bounds,
    /// Reading: padding that is not zero.
    #[error("padding of {found:#x}, not 0")]
    Padding { found: u32 },
    /// Reading: the check value differs, so what was read before is not what was written.
    #[error("the check value is {found:#x}, not {expected:#x}")]
    Check { found: u32, expected: u32 },
    /// Reading: a string that is not UTF-8.
    #[error("a string that is not UTF-8")]
    Utf8,
    /// Reading: a sequence number in a longer form than needed.
    #[error("a distance of {distance} in the long form")]
    NotShortest { distance: u16 },
    /// Reading: an unknown kind of message.
    #[error("there is no message of kind {kind}")]
    Kind { kind: u32 },
    /// Boxes and lists are nested deeper than [`MAX_DEPTH`](super::pack::MAX_DEPTH).
    #[error("boxes and lists are nested deeper than {max}")]
    Depth { max: u32 },
    /// The items of lists and boxes would take too much memory for so short a message: limit the lists, or make their
    /// items smaller. See [`OWNED_START`](super::pack::OWNED_START).
    #[error("the value takes {need} bytes of memory, and a message as short as this may take {max}")]
    Memory { need: usize, max: usize },
    /// Reading: the bytes do not contain the type, according to serde. Writing: serde cannot encode the value.
    #[error("serde and postcard refuse the value")]
    Serde,
    /// An item of a list takes no bits, so a length alone would take memory. Give its type a field with more than one
    /// value.
    #[error("an item of a list takes no bits")]
    EmptyItem,
    /// Reading: whole bytes are left at the end.
    #[error("{left} bits are left at the end")]
    Trailing { left: usize },
}
