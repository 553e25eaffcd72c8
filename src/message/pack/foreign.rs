//! Types of serde as payloads.

use super::{Payload, shape};
use crate::message::BitsError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;

/// A payload of any type that has serde's traits, coded by [postcard](https://docs.rs/postcard): `Channel<Serde<Scores>>`.
///
/// It takes whole bytes, about 2 for a small number, and no bounds are checked. [`SHAPE`](Payload::SHAPE) does not know the type:
/// ends that differ in it are not told. Derive [`Message`](super::Message) for what is sent often or comes from strangers.
///
/// Hostile bytes can make postcard take up to 1 MiB of memory for a list. They can take all of the stack of a type that contains
/// itself: do not use such a type.
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
