//! The payload of a channel.

use super::{BitReader, BitWriter, Message, shape};
use crate::message::BitsError;
use bytes::Bytes;

/// What a channel carries: bytes (`[u8]`), or a type that implements [`Message`].
///
/// A message is bytes, of which the last may have unused bits, which are zeros. If many messages share a packet, those
/// of a type follow each other bit by bit, and [`SKIP`](Self::SKIP) finds where each ends. Payloads without it have
/// their length in bytes before them.
///
/// Implement this yourself for another encoding, on a marker type of your own.
pub trait Payload {
    /// What is sent.
    type Sent: ?Sized;
    /// What is received.
    type Received;

    /// As [`Message::SHAPE`].
    const SHAPE: u64;

    /// Skips a message in a bit stream, and checks it. `None`: the encoding does not tell where a message ends.
    const SKIP: Option<Skip> = None;

    /// Returns a message as bytes, and its length in bits: its own bytes, or `spare` filled with them.
    ///
    /// # Errors
    ///
    /// It is out of range. Its length is not checked here.
    fn pack<'a>(message: &'a Self::Sent, spare: &'a mut Vec<u8>) -> Result<(&'a [u8], usize), BitsError>;

    /// Returns the message in these bytes.
    ///
    /// # Errors
    ///
    /// The bytes are not a valid message.
    fn unpack(bytes: &[u8]) -> Result<Self::Received, BitsError>;

    /// The same for bytes that it may keep.
    ///
    /// # Errors
    ///
    /// The same as [`unpack`](Self::unpack).
    fn unpack_owned(bytes: Bytes) -> Result<Self::Received, BitsError> {
        Self::unpack(&bytes)
    }
}

/// Skips one message in a bit stream, and checks it.
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

/// The bits of a message.
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
