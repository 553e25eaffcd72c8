//! What can go wrong, and what to do then.

use thiserror::Error;

/// Why a stream of bits took or gave no value.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum BitsError {
    /// Writing: the bytes given are full.
    #[error("a field of {need} bits, where room for {left} is left")]
    Full {
        /// Bits of the field.
        need: usize,
        /// Bits left.
        left: usize,
    },
    /// Reading: the bytes end within a field.
    #[error("a field of {need} bits, where {left} are left")]
    Truncated {
        /// Bits of the field.
        need: usize,
        /// Bits left.
        left: usize,
    },
    /// A number, or the length of a string or list, beyond its range: ours when writing, the peer's when reading.
    #[error("a value {offset} above the least of its range, which ends {span} above it")]
    OutOfRange {
        /// How far above the least value, modulo 2^64.
        offset: u64,
        /// How far the largest value is.
        span: u64,
    },
    /// Writing: a float out of its range, or none.
    #[error("{value} is outside {min} to {max}")]
    Float {
        /// The value.
        value: f32,
        /// The least allowed.
        min: f32,
        /// The largest allowed.
        max: f32,
    },
    /// The bounds of a field leave no value, or need more bits than there are. Repair the `serialize` of the type.
    #[error("no value is within the bounds of the field")]
    Bounds,
    /// Reading: padding that is not zero.
    #[error("padding of {found:#x}, not 0")]
    Padding {
        /// What is there instead.
        found: u32,
    },
    /// Reading: another check value, so what was read before is not what was written.
    #[error("the check value is {found:#x}, not {expected:#x}")]
    Check {
        /// The value read.
        found: u32,
        /// The value that the type has there.
        expected: u32,
    },
    /// Reading: a string that is no UTF-8.
    #[error("a string that is no UTF-8")]
    Utf8,
    /// Reading: a sequence in more bits than it takes.
    #[error("a distance of {distance} in the long form")]
    NotShortest {
        /// Distance from the base.
        distance: u16,
    },
    /// Reading: whole bytes are left at the end.
    #[error("{left} bits are left at the end")]
    Trailing {
        /// Bits left.
        left: usize,
    },
}
