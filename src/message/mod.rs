//! Messages as bits: what [channels](crate::channel) carry, when it is not bytes.
//!
//! A type says which fields it has and within which bounds, see [`pack::Message`]. [`pack::BitWriter`] packs them into bytes,
//! [`pack::BitReader`] takes them out again and refuses whatever is out of bounds.

mod error;
pub mod pack;

pub use error::BitsError;
