//! Connect tokens: a matchmaker says who may come in, and the server believes it without asking anybody.
//!
//! The matchmaker seals a token for one server, whose key it derives from a key of the whole fleet. The server needs its own key and
//! its own memory, no store that servers share: a token fits one server, so only that one has to remember that it was used, and a
//! server that was started again takes none from before. The client cannot read the sealed part; it gets the same pre-shared key
//! beside it, over a connection that is secret.
//!
//! ```
//! use whitewater::session::Suite;
//! use whitewater::session::token::{FleetKey, Order, PublicToken, Verifier};
//!
//! // The matchmaker. Keys, `psk` and `nonce` are random bytes, times are seconds since 1970.
//! let (fleet, now) = (FleetKey::new([1; 32]), 1_900_000_000);
//! let order = Order {
//!     protocol_id: 7,
//!     suite: Suite::TOKEN,
//!     client_id: 99,
//!     match_id: [0; 16],
//!     created: now,
//!     expires: now + 45,
//!     addresses: &["192.0.2.1:4000".parse()?],
//!     server_key: None,
//!     user: b"red team",
//! };
//! let bytes = fleet.server_key(5, 0).mint(&order, [2; 32], [3; 24])?.encode();
//!
//! // The client.
//! let token = PublicToken::decode(&bytes)?;
//!
//! // Server 5, which was started before.
//! let mut verifier = Verifier::new(7, fleet.server_key(5, 0), now - 60);
//! let grant = verifier.open(now + 1, Suite::TOKEN, &token.sealed)?;
//! assert_eq!((grant.client_id, grant.user.as_slice()), (99, b"red team".as_slice()));
//! verifier.use_up(now + 1, &grant)?; // once the client has shown that it knows the pre-shared key
//! assert!(verifier.open(now + 2, Suite::TOKEN, &token.sealed).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod key;
mod public;
mod sealed;
mod used;
mod verify;

pub use error::{MintError, TokenError};
pub use key::{FleetKey, Order, ServerKey};
pub use public::PublicToken;
pub use sealed::{Grant, SEALED_LEN, USER_MAX};
pub use verify::Verifier;

/// Longest time from now to the end of a token, s.
pub const LIFE_MAX: u64 = 600;
/// How far the clocks of a matchmaker and a server may differ, s.
pub const SKEW: u64 = 5;
/// Most addresses in a [`PublicToken`].
pub const ADDRESSES_MAX: usize = 4;
