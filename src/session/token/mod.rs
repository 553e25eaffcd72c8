//! Connect tokens: a matchmaker says who may come in, and the server believes it without asking anybody.
//!
//! The matchmaker seals a token for one server, whose key it derives from a key of the whole fleet. The server needs its own key and
//! its own memory, no store that servers share: a token fits one server, so only that one has to remember that it was used, and a
//! server that was started again takes none from before. The client cannot read the sealed part; it gets the same pre-shared key
//! beside it, over a connection that is secret.
//!
//! All of it takes the feature `crypto`; without that no token is made, and none is good.

mod error;
mod key;
mod public;
pub(super) mod sealed;
mod used;
mod verify;

#[cfg(feature = "crypto")]
pub use super::crypto::noise::FleetKey;
pub use error::{MintError, TokenError};
pub use key::{Order, ServerKey};
pub use public::PublicToken;
pub use sealed::{Grant, SEALED_LEN, USER_MAX};
pub use verify::Verifier;

/// Longest time from now to the end of a token, s.
pub const LIFE_MAX: u64 = 600;
/// How far the clocks of a matchmaker and a server may differ, s.
pub const SKEW: u64 = 5;
/// Most addresses in a [`PublicToken`].
pub const ADDRESSES_MAX: usize = 4;
