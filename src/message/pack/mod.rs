//! Messages as bits: the fields of a type, and their bounds.
//!
//! [`Message`] is the trait of such a type: derive it. [`BitWriter`] packs the fields into bytes, [`BitReader`] reads
//! them and refuses whatever is out of range.

pub(crate) mod field;
#[cfg(feature = "serde")]
mod foreign;
mod impls;
mod int;
mod payload;
mod reader;
#[cfg(doctest)]
mod refused;
mod shape;
mod writer;

#[cfg(feature = "serde")]
pub use foreign::Serde;
pub use impls::DEFAULT_MAX_LEN;
pub use int::Int;
pub use payload::{Payload, Skip};
pub use reader::BitReader;
pub use shape::shape;
pub use whitewater_derive::Message;
pub use writer::BitWriter;

use super::error::BitsError;
use std::ops::RangeInclusive;

/// A type that is sent as bits. Derive it.
///
/// ```
/// use whitewater::message::{BitReader, BitWriter, BitsError};
/// use whitewater::Message;
///
/// #[derive(Debug, Message, PartialEq)]
/// struct Turret {
///     #[bits(0..=31)]
///     column: u8,
///     #[float(0.0..=360.0, 0.5)]
///     angle: f32,
///     #[max_len(15)]
///     name: Option<String>,
///     target: Target,
/// }
///
/// #[derive(Debug, Message, PartialEq)]
/// enum Target {
///     None,
///     Player(u16),
///     Place { x: u8, y: u8 },
/// }
///
/// let turret = Turret { column: 3, angle: 90.0, name: None, target: Target::Player(7) };
/// let mut writer = BitWriter::new(Vec::new());
/// turret.pack(&mut writer)?;
/// assert_eq!(writer.bits(), 5 + 10 + 1 + (2 + 16)); // 5 bytes
///
/// let bytes = writer.finish();
/// let mut reader = BitReader::new(&bytes);
/// assert_eq!(Turret::unpack(&mut reader)?, turret);
/// reader.finish()?;
/// # Ok::<(), BitsError>(())
/// ```
///
/// # The size of fields
///
/// | type | bits |
/// |---|---|
/// | `bool` | 1 |
/// | integers, `f32`, `f64` | all that they have; `usize` and `isize` 64 |
/// | `#[bits(0..=63)]` on an integer up to 64 bits | as many as the range takes: 6. A value outside is an error at both ends |
/// | `#[float(-512.0..=512.0, 0.01)]` on `f32` | as many as it takes to number values at most 0.01 apart: 17. What arrives is the nearest one |
/// | `String`, `Vec` | the length, in 16 bits, and the bytes or items. At most [`DEFAULT_MAX_LEN`] |
/// | `#[max_len(200)]` on these | the length, in as few bits as the maximum takes: 8, and the bytes or items |
/// | `Option` | 1, and the value if there is one |
/// | arrays, tuples of up to 4, `Box`, derived structs | what is in them |
/// | derived enums | the number of the variant, in as few bits as their count takes, and its fields |
///
/// On a `Vec`, `bits` and `float` apply to its items. All attributes also apply inside `Option`, arrays and `Box`.
/// `max_len(10, 32)` is for a list of lists or strings: 10 of them, with 32 items each. Bounds are constant
/// expressions. Type parameters must be messages.
///
/// # Changing a type
///
/// A message has no room for additions of another version of its type: both ends need the same type, and
/// [`SHAPE`](Self::SHAPE) tells versions apart. It includes the names of fields and variants. Names take no bits; but
/// reading `x, y` as `y, x` would be wrong although the bits are the same, and renaming a field looks the same. Names
/// of types are not included.
///
/// # Implementing it by hand
///
/// [`unpack`](Self::unpack) must read exactly what [`pack`](Self::pack) wrote, and turn hostile bytes into a value or
/// an error. Allocate memory only for items that are there: [`BitReader::list`] does, and counts it; for other memory,
/// call [`BitWriter::own`] and [`BitReader::own`]. If a field can contain its own type, pack and unpack it
/// with [`BitWriter::nested`] and [`BitReader::nested`], as `Box` and `Vec` do.
///
/// ```
/// use whitewater::message::{shape, BitReader, BitWriter, BitsError};
/// use whitewater::Message;
///
/// /// Minutes and seconds.
/// struct Clock(u16);
///
/// impl Message for Clock {
///     const SHAPE: u64 = shape("clock: minutes in 0..=59, seconds in 0..=59", &[]);
///
///     fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
///         to.int(self.0 / 60, 0..=59)?;
///         to.int(self.0 % 60, 0..=59)
///     }
///
///     fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
///         Ok(Self(60 * from.int(0..=59)? + from.int(0..=59)?))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a message",
    label = "not a message",
    note = "derive it: `#[derive(Message)]`; or implement `Message` by hand"
)]
pub trait Message: Sized {
    /// The meaning of the bits, as a hash: names, kinds, ranges and maxima of the fields in order. Types with another
    /// meaning have another hash, except by chance. Make one with [`shape`].
    const SHAPE: u64;

    /// Writes the fields.
    ///
    /// # Errors
    ///
    /// A field is out of range, or there is no room for it. Part of the message may have been written.
    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError>;

    /// Reads the fields.
    ///
    /// # Errors
    ///
    /// The bits are not a valid message.
    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError>;

    /// [`pack`](Self::pack) for each item of a list of at most `max`, after their number. Bytes have a faster
    /// implementation.
    #[doc(hidden)]
    fn pack_list(items: &[Self], max: usize, to: &mut BitWriter) -> Result<(), BitsError> {
        to.list(items, max, |to, item| item.pack(to))
    }

    #[doc(hidden)]
    fn unpack_list(max: usize, from: &mut BitReader<'_>) -> Result<Vec<Self>, BitsError> {
        from.list(max, Self::unpack)
    }
}

/// Deepest nesting of boxes and lists. A value of a recursive type that is deeper can be neither written nor read.
pub const MAX_DEPTH: u32 = 32;

/// Bytes of the heap that a message may own however short it is.
pub const OWNED_START: usize = 256 << 10;

/// Bytes that it may own in addition, for each bit.
pub const OWNED_PER_BIT: usize = 32;

/// Bytes that a value owns: the items of its lists and boxes. A few bits can stand for a large item, so the length of a
/// message does not limit them.
#[derive(Clone, Debug)]
struct Owned(usize);

impl Owned {
    const NOTHING: Self = Self(0);

    /// Counts `bytes`. Returns whether they need a [check](Self::check).
    #[inline]
    const fn is_beyond_start(&mut self, bytes: usize) -> bool {
        self.0 = self.0.saturating_add(bytes);
        self.0 > OWNED_START
    }

    #[cold]
    const fn check(&self, bits: usize) -> Result<(), BitsError> {
        let max = OWNED_START.saturating_add(bits.saturating_mul(OWNED_PER_BIT));
        if self.0 > max { Err(BitsError::Memory { need: self.0, max }) } else { Ok(()) }
    }
}

/// Distances that `relative` encodes in few bits: 0, 2, 4 and 8, after those that select the row.
const NEAR: [RangeInclusive<u16>; 4] = [1..=1, 2..=5, 6..=21, 22..=277];

/// Bits for a number from 0 to `span`.
#[inline]
const fn bits_of(span: u64) -> u32 {
    u64::BITS - span.leading_zeros()
}

/// Bits left over after whole units of `unit` bits.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "below a unit")]
const fn part(bits: usize, unit: u32) -> u32 {
    (bits % unit as usize) as u32
}

#[inline]
fn in_span(offset: u64, span: u64) -> Result<(), BitsError> {
    if offset <= span { Ok(()) } else { Err(BitsError::OutOfRange { offset, span }) }
}

/// The minimum of a float, the width of its range, and the number of steps in it.
#[inline]
fn float_steps(min: f32, max: f32, resolution: f32) -> Result<(f64, f64, f64), BitsError> {
    let (low, width) = (f64::from(min), f64::from(max) - f64::from(min));
    let steps = (width / f64::from(resolution)).ceil();
    if resolution > 0.0 && (1.0..=f64::from(u32::MAX)).contains(&steps) {
        Ok((low, width, steps))
    } else {
        Err(BitsError::Bounds)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 2^32 - 1")]
fn to_u32(value: f64) -> u32 {
    value.round() as u32
}

#[expect(clippy::cast_possible_truncation, reason = "to the nearest")]
const fn to_f32(value: f64) -> f32 {
    value as f32
}
