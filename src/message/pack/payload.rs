//! What a channel carries.

use super::{BitReader, BitWriter, Message, shape};
use crate::message::BitsError;
use bytes::Bytes;

/// What a channel carries: bytes (`[u8]`), or a type of [`Message`].
///
/// A message is coded in one of two ways, by what carries its channel. In a packet of many messages it is part of a stream of bits
/// ([`write`](Self::write), [`read`](Self::read), [`skip`](Self::skip)). Where it has bytes of its own, it is those
/// ([`to_bytes`](Self::to_bytes), [`from_bytes`](Self::from_bytes), [`check`](Self::check)). None of these functions has a type of
/// the payload in its name but those that take or return a message: what only passes messages on keeps `skip` and `check` as
/// function pointers.
///
/// `max` is the most bytes that a message of the channel may have, the same at both ends.
///
/// Implement it yourself for another coding, on a marker type of your own.
pub trait Payload {
    /// What is sent.
    type Sent: ?Sized;
    /// What is received.
    type Received;

    /// As [`Message::SHAPE`].
    const SHAPE: u64;

    /// Writes a message into a stream of bits, from which [`skip`](Self::skip) finds its end.
    ///
    /// # Errors
    ///
    /// It is too long, out of its bounds, or there is no room for it. Part of it may have been written.
    fn write(message: &Self::Sent, max: usize, to: &mut BitWriter) -> Result<(), BitsError>;

    /// Reads what [`write`](Self::write) has written.
    ///
    /// # Errors
    ///
    /// The bits are not those of such a message.
    fn read(max: usize, from: &mut BitReader<'_>) -> Result<Self::Received, BitsError>;

    /// Passes over what [`write`](Self::write) has written, and checks it. After that [`read`](Self::read) reads it without an error.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read).
    fn skip(max: usize, from: &mut BitReader<'_>) -> Result<(), BitsError> {
        Self::read(max, from).map(drop)
    }

    /// A message as bytes of its own: those of the message, or `spare` with them.
    ///
    /// # Errors
    ///
    /// It is out of its bounds. How long it may be is not checked here.
    fn to_bytes<'a>(message: &'a Self::Sent, spare: &'a mut Vec<u8>) -> Result<&'a [u8], BitsError>;

    /// The message that these bytes are.
    ///
    /// # Errors
    ///
    /// They are not those of such a message.
    fn from_bytes(bytes: Bytes) -> Result<Self::Received, BitsError>;

    /// Whether [`from_bytes`](Self::from_bytes) makes a message of these bytes.
    ///
    /// # Errors
    ///
    /// Those of [`from_bytes`](Self::from_bytes).
    fn check(bytes: &[u8]) -> Result<(), BitsError>;
}

/// Any bytes. In a stream of bits their number comes before them, from 0 to `max`.
impl Payload for [u8] {
    type Sent = Self;
    type Received = Bytes;

    const SHAPE: u64 = shape("bytes", &[]);

    fn write(message: &Self, max: usize, to: &mut BitWriter) -> Result<(), BitsError> {
        to.byte_vec(message, max)
    }

    fn read(max: usize, from: &mut BitReader<'_>) -> Result<Bytes, BitsError> {
        from.byte_vec(max).map(Bytes::from)
    }

    fn skip(max: usize, from: &mut BitReader<'_>) -> Result<(), BitsError> {
        from.skip_byte_vec(max)
    }

    fn to_bytes<'a>(message: &'a Self, _: &'a mut Vec<u8>) -> Result<&'a [u8], BitsError> {
        Ok(message)
    }

    fn from_bytes(bytes: Bytes) -> Result<Bytes, BitsError> {
        Ok(bytes)
    }

    fn check(_: &[u8]) -> Result<(), BitsError> {
        Ok(())
    }
}

/// Its bits. They tell where they end, so nothing comes before them; as bytes of their own they are filled up with zeros.
impl<T: Message> Payload for T {
    type Sent = T;
    type Received = T;

    const SHAPE: u64 = T::SHAPE;

    fn write(message: &T, _: usize, to: &mut BitWriter) -> Result<(), BitsError> {
        message.pack(to)
    }

    fn read(_: usize, from: &mut BitReader<'_>) -> Result<T, BitsError> {
        T::unpack(from)
    }

    fn to_bytes<'a>(message: &'a T, spare: &'a mut Vec<u8>) -> Result<&'a [u8], BitsError> {
        let mut writer = BitWriter::new(std::mem::take(spare));
        let done = message.pack(&mut writer);
        *spare = writer.finish();
        done.map(|()| spare.as_slice())
    }

    fn from_bytes(bytes: Bytes) -> Result<T, BitsError> {
        whole(&bytes)
    }

    fn check(bytes: &[u8]) -> Result<(), BitsError> {
        whole::<T>(bytes).map(drop)
    }
}

/// The message that all of these bytes are.
fn whole<T: Message>(bytes: &[u8]) -> Result<T, BitsError> {
    let mut reader = BitReader::new(bytes);
    let message = T::unpack(&mut reader)?;
    reader.finish()?;
    Ok(message)
}
