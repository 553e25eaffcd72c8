//! Messages as bits: what [channels](crate::channel) carry, other than bytes.
//!
//! A type declares its fields and their bounds; see [`Message`](crate::Message). [`BitWriter`] packs them into bytes,
//! [`BitReader`] reads them and refuses whatever is out of range.

mod error;
pub(crate) mod pack;

pub use error::BitsError;
#[cfg(feature = "serde")]
pub use pack::Serde;
pub use pack::{
    BitReader, BitWriter, DEFAULT_MAX_LEN, Int, MAX_DEPTH, OWNED_PER_BIT, OWNED_START, Payload, Skip, shape,
};
