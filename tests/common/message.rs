//! Messages as bits.

use whitewater::Message;
use whitewater::message::{BitReader, BitWriter, BitsError};

/// The bytes of a message, and how many bits it takes.
pub(crate) fn packed<T: Message>(value: &T) -> (Vec<u8>, usize) {
    let mut to = BitWriter::new(Vec::new());
    value.pack(&mut to).unwrap();
    let bits = to.bits();
    (to.finish(), bits)
}

/// The message of these bytes, which have to be its alone.
pub(crate) fn unpacked<T: Message>(bytes: &[u8]) -> Result<T, BitsError> {
    let mut from = BitReader::new(bytes);
    let value = T::unpack(&mut from)?;
    from.finish()?;
    Ok(value)
}

/// A byte that the reader refuses if it is more than `MAX`. The writer may have another one: the shape is the same.
#[derive(Debug)]
pub(crate) struct Digit<const MAX: u8>(pub(crate) u8);

impl<const MAX: u8> Message for Digit<MAX> {
    const SHAPE: u64 = 1;

    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        to.int(self.0, 0..=255)
    }

    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        let digit = from.int(0..=255)?;
        if digit > MAX {
            return Err(BitsError::OutOfRange { offset: digit.into(), span: MAX.into() });
        }
        Ok(Self(digit))
    }
}
