//! Values to bits.

use super::{BitsError, Stream, check_bits};

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
