//! Bits to values.

use super::{BitsError, Stream, check_bits};

/// Takes values out of bytes, as [`Write`](super::Write) packed them, and refuses those out of their bounds.
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
