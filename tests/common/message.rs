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
