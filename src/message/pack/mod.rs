//! Messages as bits: which fields a type has, within which bounds.
//!
//! [`BitWriter`] packs fields into bytes, [`BitReader`] takes them out again and refuses whatever is out of bounds. [`Message`] is
//! what a type is that they pack.

pub(crate) mod field;
#[cfg(feature = "serde")]
mod foreign;
mod impls;
mod int;
mod payload;
mod reader;
mod shape;
mod writer;

#[cfg(feature = "serde")]
pub use foreign::Serde;
pub use impls::DEFAULT_MAX_LEN;
pub use int::Int;
pub use payload::Payload;
pub use reader::BitReader;
pub use shape::shape;
pub use whitewater_derive::Message;
pub use writer::BitWriter;

use super::error::BitsError;
use std::ops::RangeInclusive;

/// A type that is sent as bits.
///
/// What [`unpack`](Self::unpack) reads has to be what [`pack`](Self::pack) wrote, bit by bit, and what it reads from hostile bytes
/// has to be a value or an error. Take memory only for what is there, and read types that can contain themselves by
/// [`BitReader::nested`].
///
/// ```
/// use whitewater::message::BitsError;
/// use whitewater::message::pack::{BitReader, BitWriter, Message, shape};
///
/// #[derive(Debug, PartialEq)]
/// struct Turret {
///     column: u8,
///     angle: f32,
///     name: Option<String>,
/// }
///
/// impl Message for Turret {
///     const SHAPE: u64 = shape("Turret: 0..=31, 0..=360 by 0.5", &[<Option<String>>::SHAPE]);
///
///     fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
///         to.int(self.column, 0..=31)?;
///         to.float(self.angle, 0.0..=360.0, 0.5)?;
///         self.name.pack(to)
///     }
///
///     fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
///         Ok(Self {
///             column: from.int(0..=31)?,
///             angle: from.float(0.0..=360.0, 0.5)?,
///             name: Message::unpack(from)?,
///         })
///     }
/// }
///
/// let turret = Turret { column: 3, angle: 90.0, name: None };
/// let mut writer = BitWriter::new(Vec::new());
/// turret.pack(&mut writer)?;
/// assert_eq!(writer.bits(), 5 + 10 + 1);
///
/// let bytes = writer.finish();
/// let mut reader = BitReader::new(&bytes);
/// assert_eq!(Turret::unpack(&mut reader)?, turret);
/// reader.finish()?;
/// # Ok::<(), BitsError>(())
/// ```
pub trait Message: Sized {
    /// What the bits mean: the kinds of the fields in their order, their ranges and maxima. Types whose bits differ have different
    /// ones, but for chance. Both ends of a session compare them. Make one with [`shape`].
    const SHAPE: u64;

    /// Writes the fields.
    ///
    /// # Errors
    ///
    /// A field is out of its bounds, or there is no room for it. Part of the message may have been written.
    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError>;

    /// Reads the fields.
    ///
    /// # Errors
    ///
    /// The bits are not those of such a message.
    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError>;

    /// [`pack`](Self::pack) for each item of a list of `max` at most, after their number. Bytes have a faster one.
    #[doc(hidden)]
    fn pack_list(items: &[Self], max: usize, to: &mut BitWriter) -> Result<(), BitsError> {
        to.list(items, max, |to, item| item.pack(to))
    }

    #[doc(hidden)]
    fn unpack_list(max: usize, from: &mut BitReader<'_>) -> Result<Vec<Self>, BitsError> {
        from.list(max, Self::unpack)
    }
}

/// Most boxes and lists in each other. A type that contains itself deeper than that is written and read by nobody.
pub const MAX_DEPTH: u32 = 32;

/// Distances of `relative` that take few bits: 0, 2, 4 and 8, after those that say which row it is.
const NEAR: [RangeInclusive<u16>; 4] = [1..=1, 2..=5, 6..=21, 22..=277];

/// Bits of a number from 0 to `span`.
#[inline]
const fn bits_of(span: u64) -> u32 {
    u64::BITS - span.leading_zeros()
}

/// Bits beyond whole units of `unit` bits.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "below a unit")]
const fn part(bits: usize, unit: u32) -> u32 {
    (bits % unit as usize) as u32
}

#[inline]
fn in_span(offset: u64, span: u64) -> Result<(), BitsError> {
    if offset <= span { Ok(()) } else { Err(BitsError::OutOfRange { offset, span }) }
}

/// The least value of a float, how wide its range is, and into how many steps it is divided.
#[inline]
fn float_steps(min: f32, max: f32, resolution: f32) -> Result<(f64, f64, f64), BitsError> {
    let (low, width) = (f64::from(min), f64::from(max) - f64::from(min));
    let steps = (width / f64::from(resolution)).ceil();
    if (1.0..=f64::from(u32::MAX)).contains(&steps) {
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
