//! Connect tokens: a matchmaker says who may come in, and the server believes it without asking anybody.
//!
//! The matchmaker seals a token for one server, whose key it derives from a key of the whole fleet. The server needs its own key and
//! its own memory, no store that servers share: a token fits one server, so only that one has to remember that it was used, and a
//! server that was started again takes none from before. The client cannot read the sealed part; it gets the same pre-shared key
//! beside it, over a connection that is secret.
//!
//! All of it takes the feature `crypto`; without that no token is made, and none is good.

mod public;
mod sealed;
mod verify;

#[cfg(feature = "crypto")]
pub use super::crypto::noise::FleetKey;
pub use public::PublicToken;
pub use sealed::{Grant, Order, SEALED_LEN, ServerKey, USER_MAX};
pub use verify::Verifier;

#[cfg(feature = "crypto")]
pub(super) use sealed::LABEL;

use super::wire::Short;

errors! {
    /// Why no token is made, or why one does not let anybody in, in the order in which it is looked at.
    TokenError {
        /// It cannot be made of such an [`Order`].
        "{field}: {must}" Order { field: &'static str, must: &'static str },
        "{have} bytes are no token" Length { have: usize },
        "version {found} of tokens is not ours" Version { found: u8 },
        "the token is for server {found}" Server { found: u64 },
        /// It is sealed with a key that we do not have, or not any more.
        "the token is sealed with key {found}" Key { found: u8 },
        "the token expired at {expires}" Expired { expires: u64 },
        /// It would hold for longer than any may.
        "the token expires at {expires}, too far in the future" TooLong { expires: u64 },
        /// It is not what the matchmaker sealed, or for another protocol.
        "the token is not authentic" Forged,
        "the token is for suite {found:#06x}" Suite { found: u16 },
        "there is no token under the seal" Content,
        /// It is older than this server.
        "the token was made at {created}, before the server" BeforeStart { created: u64 },
        "the token was used before" Used,
        /// So many tokens were used that no more can be remembered: the client may try again later.
        "no room to remember another token" Full,
        /// The program was built without the feature `crypto`, which tokens take.
        "tokens are not built in" NotBuiltIn,
    }
}

impl From<Short> for TokenError {
    fn from(Short { have }: Short) -> Self {
        Self::Length { have }
    }
}

/// Longest time from now to the end of a token, s.
pub const LIFE_MAX: u64 = 600;
/// The latest time that is taken for one in seconds since 1970, in the year 5138: what is later was counted in ms.
pub(super) const LATEST: u64 = 100_000_000_000;
/// How far the clocks of a matchmaker and a server may differ, s.
pub const SKEW: u64 = 5;
/// Most addresses in a [`PublicToken`].
pub const ADDRESSES_MAX: usize = 4;
