//! What can go wrong, and what to do then.

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
    /// The bounds of a field leave no value, or need more bits than there are. Repair the `pack` of the type.
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
