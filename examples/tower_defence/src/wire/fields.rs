//! Fields for both directions: a writer takes them, a reader replaces them. So one function per type does both, and the
//! ends cannot disagree, even if the encoding depends on what the reader has.

use std::ops::RangeInclusive;
use whitewater::message::{BitReader, BitWriter, BitsError, Int};

/// Where fields are passed to.
pub(super) trait Fields: Sized {
    /// Whether fields are replaced by what is read.
    const READS: bool;

    fn bool(&mut self, value: &mut bool) -> Result<(), BitsError>;

    fn int<T: Int>(&mut self, value: &mut T, range: RangeInclusive<T>) -> Result<(), BitsError>;

    fn u64(&mut self, value: &mut u64) -> Result<(), BitsError>;

    /// Up to `max` bytes.
    fn string(&mut self, value: &mut String, max: usize) -> Result<(), BitsError>;

    /// A value that both ends already know.
    fn check(&mut self, expected: u32) -> Result<(), BitsError>;

    /// Up to `max` items; `each` passes an item.
    fn list<T: Default>(
        &mut self,
        items: &mut Vec<T>,
        max: usize,
        mut each: impl FnMut(&mut Self, &mut T) -> Result<(), BitsError>,
    ) -> Result<(), BitsError> {
        let mut len = items.len();
        self.int(&mut len, 0..=max)?;
        items.resize_with(len, T::default);
        items.iter_mut().try_for_each(|item| each(self, item))
    }

    /// A value or none; `some` passes the value.
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
}

impl Fields for BitWriter {
    const READS: bool = false;

    fn bool(&mut self, value: &mut bool) -> Result<(), BitsError> {
        self.bool(*value)
    }

    fn int<T: Int>(&mut self, value: &mut T, range: RangeInclusive<T>) -> Result<(), BitsError> {
        self.int(*value, range)
    }

    fn u64(&mut self, value: &mut u64) -> Result<(), BitsError> {
        self.u64(*value)
    }

    fn string(&mut self, value: &mut String, max: usize) -> Result<(), BitsError> {
        self.string(value, max)
    }

    fn check(&mut self, expected: u32) -> Result<(), BitsError> {
        self.check(expected)
    }
}

impl Fields for BitReader<'_> {
    const READS: bool = true;

    fn bool(&mut self, value: &mut bool) -> Result<(), BitsError> {
        *value = self.bool()?;
        Ok(())
    }

    fn int<T: Int>(&mut self, value: &mut T, range: RangeInclusive<T>) -> Result<(), BitsError> {
        *value = self.int(range)?;
        Ok(())
    }

    fn u64(&mut self, value: &mut u64) -> Result<(), BitsError> {
        *value = self.u64()?;
        Ok(())
    }

    fn string(&mut self, value: &mut String, max: usize) -> Result<(), BitsError> {
        *value = self.string(max)?;
        Ok(())
    }

    fn check(&mut self, expected: u32) -> Result<(), BitsError> {
        self.check(expected)
    }
}

/// Makes a message from a type that one function passes.
macro_rules! message {
    ($name:ident, $shape:literal, $blank:expr) => {
        impl whitewater::Message for $name {
            const SHAPE: u64 = whitewater::message::shape($shape, &[]);

            fn pack(&self, to: &mut whitewater::message::BitWriter) -> Result<(), BitsError> {
                self.clone().pass(to)
            }

            fn unpack(from: &mut whitewater::message::BitReader<'_>) -> Result<Self, BitsError> {
                let mut blank = $blank;
                blank.pass(from)?;
                Ok(blank)
            }
        }
    };
}
pub(super) use message;
