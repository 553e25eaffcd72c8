//! Messages as bits: what [channels](crate::channel) carry, when it is not bytes.
//!
//! A type says which fields it has and within which bounds, see [`Message`](crate::Message). [`BitWriter`] packs them into bytes,
//! [`BitReader`] takes them out again and refuses whatever is out of bounds.

mod error;
pub(crate) mod pack;

pub use error::BitsError;
#[cfg(feature = "serde")]
pub use pack::Serde;
pub use pack::{BitReader, BitWriter, DEFAULT_MAX_LEN, Int, MAX_DEPTH, Payload, Skip, shape};
