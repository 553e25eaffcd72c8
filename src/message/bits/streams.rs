//! The streams: bits to values, values to bits, and how many bits those are.

use super::{BitsError, Stream, check_bits};
use crate::message::Serialize;

/// Takes values out of bytes, as [`Write`] packed them, and refuses those out of their bounds.
#[derive(Clone, Debug)]
pub struct Read<'a> {
    /// Bytes not looked at yet.
    rest: &'a [u8],
    /// Bits that are next, the first one lowest.
    scratch: u64,
    held: u32,
    /// Bits not read yet.
    left: usize,
}

impl<'a> Read<'a> {
    /// A stream of the bits of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, scratch: 0, held: 0, left: 8 * bytes.len() }
    }

    /// Ends the reading: what is left has to be the padding of the last byte.
    ///
    /// # Errors
    ///
    /// There is more, or it is not zero.
    pub fn finish(mut self) -> Result<(), BitsError> {
        self.align()?;
        if self.left == 0 { Ok(()) } else { Err(BitsError::Trailing { left: self.left }) }
    }

    /// Takes up to 32 bits more into the scratch, which has room for them.
    #[inline]
    fn refill(&mut self) {
        if let Some((word, rest)) = self.rest.split_first_chunk() {
            self.scratch |= u64::from(u32::from_le_bytes(*word)) << self.held;
            self.held += 32;
            self.rest = rest;
        } else {
            self.refill_from_last();
        }
    }

    #[cold]
    fn refill_from_last(&mut self) {
        for byte in std::mem::take(&mut self.rest) {
            self.scratch |= u64::from(*byte) << self.held;
            self.held += 8;
        }
    }
}

impl Stream for Read<'_> {
    const READS: bool = true;

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "at most 32 bits")]
    fn bits(&mut self, value: &mut u32, count: u32) -> Result<(), BitsError> {
        check_bits(0, count)?;
        let (need, left) = (count as usize, self.left);
        self.left = left.checked_sub(need).ok_or(BitsError::Truncated { need, left })?;
        if self.held < count {
            self.refill();
        }
        *value = (self.scratch & ((1 << count) - 1)) as u32;
        self.scratch >>= count;
        self.held -= count;
        Ok(())
    }

    #[inline]
    fn left(&self) -> usize {
        self.left
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "below 8")]
    fn padding(&self) -> u32 {
        (self.left % 8) as u32
    }
}

/// Packs values into bytes: the first bit into the lowest of the first byte.
#[derive(Debug)]
pub struct Write<'a> {
    /// Bytes not written yet.
    rest: &'a mut [u8],
    /// Bits not in a byte yet, the first one lowest; fewer than 32 between two calls.
    scratch: u64,
    held: u32,
    /// Bits that can still be written.
    left: usize,
    len: usize,
}

impl<'a> Write<'a> {
    /// A stream that fills `bytes` from the front.
    #[must_use]
    pub const fn new(bytes: &'a mut [u8]) -> Self {
        let len = bytes.len();
        Self { rest: bytes, scratch: 0, held: 0, left: 8 * len, len }
    }

    /// Writes the last bits, and zeros up to a whole byte. Returns the bytes written.
    #[must_use]
    pub fn finish(self) -> usize {
        for (to, from) in self.rest.iter_mut().zip(self.scratch.to_le_bytes()).take(bytes_of(self.held)) {
            *to = from;
        }
        self.len - self.left / 8
    }

    /// Writes 32 bits, which there are.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
    fn store(&mut self) {
        if let Some((word, rest)) = std::mem::take(&mut self.rest).split_first_chunk_mut() {
            *word = (self.scratch as u32).to_le_bytes();
            self.rest = rest;
        }
        self.scratch >>= 32;
        self.held -= 32;
    }
}

impl Stream for Write<'_> {
    const READS: bool = false;

    #[inline]
    fn bits(&mut self, value: &mut u32, count: u32) -> Result<(), BitsError> {
        check_bits(*value, count)?;
        let (need, left) = (count as usize, self.left);
        self.left = left.checked_sub(need).ok_or(BitsError::Full { need, left })?;
        self.scratch |= u64::from(*value) << self.held;
        self.held += count;
        if self.held >= 32 {
            self.store();
        }
        Ok(())
    }

    #[inline]
    fn left(&self) -> usize {
        self.left
    }

    #[inline]
    fn padding(&self) -> u32 {
        self.held.wrapping_neg() % 8
    }
}

const fn bytes_of(bits: u32) -> usize {
    bits.div_ceil(8) as usize
}

/// Counts the bits that a value takes, wherever it is written: exactly, but for 7 bits a padding.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measure {
    bits: usize,
}

impl Measure {
    /// Most bits that `value` takes.
    ///
    /// # Errors
    ///
    /// A field is out of its bounds, so `value` cannot be written.
    pub fn of(value: &mut impl Serialize) -> Result<usize, BitsError> {
        let mut measure = Self::default();
        value.serialize(&mut measure)?;
        Ok(measure.bits)
    }

    /// Bits so far.
    #[must_use]
    pub const fn bits(&self) -> usize {
        self.bits
    }
}

impl Stream for Measure {
    const READS: bool = false;

    #[inline]
    fn bits(&mut self, value: &mut u32, count: u32) -> Result<(), BitsError> {
        check_bits(*value, count)?;
        self.bits += count as usize;
        Ok(())
    }

    fn left(&self) -> usize {
        usize::MAX - self.bits
    }

    fn padding(&self) -> u32 {
        7
    }
}
