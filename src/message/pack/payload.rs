//! What a channel carries.

use super::{BitReader, BitWriter, Message, shape};
use crate::message::BitsError;
use bytes::Bytes;

/// What a channel carries: bytes (`[u8]`), or a type of [`Message`].
///
/// A message is bytes, of the last of which not all bits may count: the rest are zeros. Where many messages share a packet, those of a
/// type stand bit behind bit, and [`SKIP`](Self::SKIP) finds where each ends; others have the number of their bytes before them.
///
/// Implement it yourself for another coding, on a marker type of your own.
pub trait Payload {
    /// What is sent.
    type Sent: ?Sized;
    /// What is received.
    type Received;

    /// As [`Message::SHAPE`].
    const SHAPE: u64;

    /// Passes over a message in a stream of bits, and checks it. `None`: it does not tell where it ends.
    const SKIP: Option<Skip> = None;

    /// A message as bytes, and how many bits of them it has: the bytes of the message, or `spare` with them.
    ///
    /// # Errors
    ///
    /// It is out of its bounds. How long it may be is not checked here.
    fn pack<'a>(message: &'a Self::Sent, spare: &'a mut Vec<u8>) -> Result<(&'a [u8], usize), BitsError>;

    /// The message that these bytes are.
    ///
    /// # Errors
    ///
    /// They are not those of such a message.
    fn unpack(bytes: &[u8]) -> Result<Self::Received, BitsError>;

    /// The same of bytes that it may keep.
    ///
    /// # Errors
    ///
    /// Those of [`unpack`](Self::unpack).
    fn unpack_owned(bytes: Bytes) -> Result<Self::Received, BitsError> {
        Self::unpack(&bytes)
    }
}

/// Passes over one message in a stream of bits, and checks it.
pub type Skip = fn(&mut BitReader<'_>) -> Result<(), BitsError>;

/// Any bytes.
impl Payload for [u8] {
    type Sent = Self;
    type Received = Bytes;

    const SHAPE: u64 = shape("bytes", &[]);

    fn pack<'a>(message: &'a Self, _: &'a mut Vec<u8>) -> Result<(&'a [u8], usize), BitsError> {
        Ok((message, 8 * message.len()))
    }

    fn unpack(bytes: &[u8]) -> Result<Bytes, BitsError> {
        Ok(Bytes::copy_from_slice(bytes))
    }

    fn unpack_owned(bytes: Bytes) -> Result<Bytes, BitsError> {
        Ok(bytes)
    }
}

/// Its bits.
impl<T: Message> Payload for T {
    type Sent = T;
    type Received = T;

    const SHAPE: u64 = T::SHAPE;
    const SKIP: Option<Skip> = Some(|from| T::unpack(from).map(drop));

    fn pack<'a>(message: &'a T, spare: &'a mut Vec<u8>) -> Result<(&'a [u8], usize), BitsError> {
        let mut writer = BitWriter::new(std::mem::take(spare));
        let done = message.pack(&mut writer);
        let bits = writer.bits();
        *spare = writer.finish();
        done.map(|()| (spare.as_slice(), bits))
    }

    fn unpack(bytes: &[u8]) -> Result<T, BitsError> {
        let mut reader = BitReader::new(bytes);
        let message = T::unpack(&mut reader)?;
        reader.finish()?;
        Ok(message)
    }
}
