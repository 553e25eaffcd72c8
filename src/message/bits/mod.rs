//! Streams of bits, and the fields that they are made of.

mod streams;

pub use streams::{Measure, Read, Write};

use super::error::BitsError;
use super::pack::Int;
use std::mem;
use std::ops::RangeInclusive;

/// A stream of bits that a value is written to, read from, or measured with: [`Write`], [`Read`], [`Measure`].
///
/// Each method passes one field. A reader puts what it has read in its place, a writer and a measure leave it alone. docs/WIRE.md
/// says how each field is coded.
///
/// All of them fail with what [`BitsError`] names: a writer when its bytes are full or a value is out of its bounds, a measure when
/// a value is, a reader when its bytes end or have a value out of its bounds.
#[expect(clippy::missing_errors_doc, reason = "the trait says it for all of them")]
pub trait Stream: Sized {
    /// Whether fields are replaced by what is in the stream.
    const READS: bool;

    /// The lowest `count` bits of a number, 1 to 32. The others are zero.
    fn bits(&mut self, value: &mut u32, count: u32) -> Result<(), BitsError>;

    /// Bits that can still be written or read.
    fn left(&self) -> usize;

    /// Bits up to the next whole byte: 0 to 7. A measure knows only that there are 7 at most.
    fn padding(&self) -> u32;

    /// Zeros up to the next whole byte.
    fn align(&mut self) -> Result<(), BitsError> {
        let (mut found, count) = (0, self.padding());
        if count > 0 {
            self.bits(&mut found, count)?;
        }
        if found == 0 { Ok(()) } else { Err(BitsError::Padding { found }) }
    }

    /// A value of 32 bits that both ends know. A reader that finds another one has lost its place: the types of the ends differ, or
    /// the bytes are damaged.
    fn check(&mut self, expected: u32) -> Result<(), BitsError> {
        let mut found = expected;
        self.bits(&mut found, 32)?;
        if found == expected { Ok(()) } else { Err(BitsError::Check { found, expected }) }
    }

    /// One bit.
    #[inline]
    fn bool(&mut self, value: &mut bool) -> Result<(), BitsError> {
        let mut bit = (*value).into();
        self.bits(&mut bit, 1)?;
        *value = bit == 1;
        Ok(())
    }

    /// A whole number within `range`, in as many bits as its largest offset takes: none if there is only one value.
    #[inline]
    fn int<T: Int>(&mut self, value: &mut T, range: RangeInclusive<T>) -> Result<(), BitsError> {
        let (min, max) = range.into_inner();
        if min > max {
            return Err(BitsError::Bounds);
        }
        let span = max.offset_from(min);
        let mut offset = if Self::READS { 0 } else { value.offset_from(min) };
        in_span(offset, span)?;
        wide_bits(self, &mut offset, u64::BITS - span.leading_zeros())?;
        in_span(offset, span)?;
        *value = T::at_offset(min, offset);
        Ok(())
    }

    /// Any 64 bits.
    #[inline]
    fn u64(&mut self, value: &mut u64) -> Result<(), BitsError> {
        wide_bits(self, value, u64::BITS)
    }

    /// A number within `range`, as the nearest of evenly spread ones that are at most `resolution` apart.
    fn float(
        &mut self,
        value: &mut f32,
        range: RangeInclusive<f32>,
        resolution: f32,
    ) -> Result<(), BitsError> {
        let (min, max) = range.into_inner();
        let (low, width) = (f64::from(min), f64::from(max) - f64::from(min));
        let steps = (width / f64::from(resolution)).ceil();
        if !(1.0..=f64::from(u32::MAX)).contains(&steps) {
            return Err(BitsError::Bounds);
        }
        let mut step = 0;
        if !Self::READS {
            if !(min..=max).contains(value) {
                return Err(BitsError::Float { value: *value, min, max });
            }
            step = to_u32((f64::from(*value) - low) / width * steps);
        }
        self.int(&mut step, 0..=to_u32(steps))?;
        if Self::READS {
            *value = to_f32(low + width * f64::from(step) / steps).clamp(min, max);
        }
        Ok(())
    }

    /// Bytes whose number both ends know.
    fn bytes(&mut self, value: &mut [u8]) -> Result<(), BitsError> {
        let (words, rest) = value.as_chunks_mut();
        for word in words {
            let mut bits = u32::from_le_bytes(*word);
            self.bits(&mut bits, 32)?;
            *word = bits.to_le_bytes();
        }
        for byte in rest {
            self.int(byte, 0..=u8::MAX)?;
        }
        Ok(())
    }

    /// Up to `max` bytes, after their number.
    fn byte_vec(&mut self, value: &mut Vec<u8>, max: usize) -> Result<(), BitsError> {
        let mut len = value.len();
        self.int(&mut len, 0..=max)?;
        if Self::READS {
            let (need, left) = (len.saturating_mul(8), self.left());
            if need > left {
                return Err(BitsError::Truncated { need, left }); // before memory is taken for them
            }
            value.resize(len, 0);
        }
        self.bytes(value)
    }

    /// UTF-8 of up to `max` bytes, after their number.
    fn string(&mut self, value: &mut String, max: usize) -> Result<(), BitsError> {
        let mut bytes = mem::take(value).into_bytes();
        let done = self.byte_vec(&mut bytes, max);
        match String::from_utf8(bytes) {
            Ok(text) => {
                *value = text;
                done
            }
            Err(_) => done.and(Err(BitsError::Utf8)),
        }
    }

    /// Up to `max` items, after their number; `each` passes one of them. A reader takes memory as items come, not by their number.
    fn vec<T: Default>(
        &mut self,
        value: &mut Vec<T>,
        max: usize,
        mut each: impl FnMut(&mut Self, &mut T) -> Result<(), BitsError>,
    ) -> Result<(), BitsError> {
        let mut len = value.len();
        self.int(&mut len, 0..=max)?;
        value.truncate(len);
        for item in &mut *value {
            each(self, item)?;
        }
        while value.len() < len {
            let mut item = T::default();
            each(self, &mut item)?;
            value.push(item);
        }
        Ok(())
    }

    /// A value or none, after a bit that says which; `some` passes the value.
    fn option<T: Default>(
        &mut self,
        value: &mut Option<T>,
        some: impl FnOnce(&mut Self, &mut T) -> Result<(), BitsError>,
    ) -> Result<(), BitsError> {
        let mut is_some = value.is_some();
        self.bool(&mut is_some)?;
        if !is_some {
            *value = None;
            return Ok(());
        }
        some(self, value.get_or_insert_default())
    }

    /// A number that counts up and wraps, by how far it is after `base`, which both ends know: 1 bit for the next one, 4, 7 and 12
    /// for up to 5, 21 and 277 after it, 20 for all others.
    fn relative(&mut self, value: &mut u16, base: u16) -> Result<(), BitsError> {
        let mut distance = if Self::READS { 0 } else { value.wrapping_sub(base) };
        for near in NEAR {
            let mut is_near = near.contains(&distance);
            self.bool(&mut is_near)?;
            if is_near {
                self.int(&mut distance, near)?;
                *value = base.wrapping_add(distance);
                return Ok(());
            }
        }
        self.int(&mut distance, 0..=u16::MAX)?;
        if NEAR.iter().any(|near| near.contains(&distance)) {
            return Err(BitsError::NotShortest { distance });
        }
        *value = base.wrapping_add(distance);
        Ok(())
    }
}

/// Distances of [`Stream::relative`] that take few bits: 0, 2, 4 and 8, after those that say which row it is.
const NEAR: [RangeInclusive<u16>; 4] = [1..=1, 2..=5, 6..=21, 22..=277];

/// The lowest `count` bits of a number, 0 to 64, the lower 32 first.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the halves of the number")]
fn wide_bits<S: Stream>(stream: &mut S, value: &mut u64, count: u32) -> Result<(), BitsError> {
    let (mut low, mut high) = (*value as u32, (*value >> 32) as u32);
    if count > 0 {
        stream.bits(&mut low, count.min(32))?;
    }
    if count > 32 {
        stream.bits(&mut high, count - 32)?;
    }
    *value = u64::from(high) << 32 | u64::from(low);
    Ok(())
}

#[inline]
fn in_span(offset: u64, span: u64) -> Result<(), BitsError> {
    if offset <= span { Ok(()) } else { Err(BitsError::OutOfRange { offset, span }) }
}

/// Whether `count` is one of [`Stream::bits`] and `value` has no more bits.
#[inline]
fn check_bits(value: u32, count: u32) -> Result<(), BitsError> {
    if !(1..=32).contains(&count) {
        return Err(BitsError::Bounds);
    }
    in_span(value.into(), (1 << count) - 1)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 2^32 - 1")]
fn to_u32(value: f64) -> u32 {
    value.round() as u32
}

#[expect(clippy::cast_possible_truncation, reason = "to the nearest")]
const fn to_f32(value: f64) -> f32 {
    value as f32
}
