//! Connect tokens: a matchmaker decides which clients may join, and the server verifies that without asking anybody.
//!
//! The matchmaker seals a token for one server, with a key that it derives from the key of the whole fleet. The server
//! needs only its own key and its own memory, no store shared between servers: each token is for one server, so only
//! that server must remember its use, and a restarted server accepts no earlier tokens. The client cannot read the
//! sealed part. It gets the same pre-shared key with the token, over a confidential connection.
//!
//! All of this needs the feature `crypto`. Without it, no token can be made or accepted.

mod public;
mod sealed;
mod verify;

#[cfg(feature = "crypto")]
pub use super::crypto::noise::FleetKey;
pub use public::PublicToken;
pub use sealed::{Grant, Order, SEALED_LEN, ServerKey, TokenId, USER_MAX};
pub use verify::Verifier;

#[cfg(feature = "crypto")]
pub(super) use sealed::LABEL;
pub(super) use sealed::NONCE_LEN;

use super::wire::Short;

errors! {
    /// Why a token cannot be made or is not accepted, in the order of the checks.
    TokenError {
        /// The [`Order`] is invalid.
        "{field}: {must}" Order { field: &'static str, must: &'static str },
        "{have} bytes is not the length of a token" Length { have: usize },
        "token version {found} is not supported" Version { found: u8 },
        "the token is for server {found}" Server { found: u64 },
        /// It is sealed with a key that we do not have, or no longer have.
        "the token is sealed with key {found}" Key { found: u8 },
        "the token expired at {expires}" Expired { expires: u64 },
        /// It is valid for longer than allowed.
        "the token expires at {expires}, too far in the future" TooLong { expires: u64 },
        /// The matchmaker did not seal it, or it is for another protocol.
        "the token is not authentic" Forged,
        "the token is for suite {found:#06x}" Suite { found: u16 },
        "the sealed part is not a token" Content,
        /// It was made before this server started.
        "the token was made at {created}, before the server" BeforeStart { created: u64 },
        "the token was used before" Used,
        /// So many tokens were used that no more can be remembered. The client may try again later.
        "no room to remember another token" Full,
        /// The driver has never called [`Machine::set_unix_time`](crate::machine::Machine::set_unix_time).
        "the server was not told the time" NoTime,
        /// The program was built without the feature `crypto`.
        "tokens are not built in" NotBuiltIn,
    }
}

impl From<Short> for TokenError {
    fn from(Short { have }: Short) -> Self {
        Self::Length { have }
    }
}

/// Longest time that a token may be valid, s.
pub const LIFE_MAX: u64 = 600;
/// Times after this one, in the year 5138, are not taken as seconds since 1970: they were given in ms.
pub(super) const LATEST: u64 = 100_000_000_000;
/// Largest accepted difference between the clocks of a matchmaker and a server, s.
pub const SKEW: u64 = 5;
/// Most addresses in a [`PublicToken`].
pub const ADDRESSES_MAX: usize = 4;
