//! How many bits a value takes.

use super::{BitsError, Stream, check_bits};
use crate::message::Serialize;

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
