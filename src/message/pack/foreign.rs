//! Types of serde as payloads.

use super::{Payload, shape};
use crate::message::BitsError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;

/// A payload of any type with serde's traits, encoded by [postcard](https://docs.rs/postcard):
/// `Channel<Serde<Scores>>`.
///
/// It takes whole bytes, about 2 for a small number, and checks no bounds. Its [`SHAPE`](Payload::SHAPE) does not
/// depend on the type, so the handshake does not notice if the ends differ in it. Derive [`Message`](super::Message)
/// for what is sent often or comes from strangers.
///
/// Hostile bytes can make postcard allocate up to 1 MiB for a list, and what the items own has no limit of its own: keep
/// items small, and without fields that serde skips. With a type that contains itself, they can overflow
/// the stack: do not use such types.
#[derive(Debug)]
pub struct Serde<T>(PhantomData<fn(T) -> T>);

impl<T: Serialize + DeserializeOwned> Payload for Serde<T> {
    type Sent = T;
    type Received = T;

    const SHAPE: u64 = shape("postcard", &[]);

    fn pack<'a>(message: &'a T, spare: &'a mut Vec<u8>) -> Result<(&'a [u8], usize), BitsError> {
        let mut bytes = std::mem::take(spare);
        bytes.clear();
        *spare = postcard::to_extend(message, bytes).map_err(|_| BitsError::Serde)?;
        Ok((spare, 8 * spare.len()))
    }

    fn unpack(bytes: &[u8]) -> Result<T, BitsError> {
        let (value, rest) = postcard::take_from_bytes(bytes).map_err(|_| BitsError::Serde)?;
        if rest.is_empty() { Ok(value) } else { Err(BitsError::Trailing { left: 8 * rest.len() }) }
    }
}
