//! Connect tokens that work once in a group of servers that share a `server_id` and key.
//!
//! A whitewater server remembers by itself which tokens were used, but each server of a group does that for itself. With [`UsedTokens`]
//! the group has one memory, such as a Redis: the first server that asks for a token gets it, and the others reject its client.
//!
//! ```no_run
//! use whitewater::session::token::ServerKey;
//! use whitewater::{Event, Server, ServerConfig, SessionConfig};
//! use whitewater_fleet::{LIMIT, Redis, UsedTokens, WhenGone};
//!
//! # let key = ServerKey::new(1, 0, [7; 32]);
//! let config = ServerConfig { ask: true, ..ServerConfig::tokens(SessionConfig::default(), key) };
//! let mut used = UsedTokens::new(&config, Redis::open("redis://:password@10.0.0.5/")?, LIMIT, WhenGone::Refuse)?;
//! let mut server = Server::bind("0.0.0.0:4000", &config)?;
//! loop {
//!     server.pump()?;
//!     while let Some((id, event)) = used.poll_event(&mut server) { // in place of server.poll_event()
//!         match event {
//!             Event::Requested => _ = server.admit(id, b""), // its token was used at no other server
//!             event => println!("{id:?} {event:?}"),
//!         }
//!     }
//!     # break;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The loop never waits for Redis: a thread does, and a question is over after [`LIMIT`]. A loop that sleeps calls [`UsedTokens::poll`] in
//! place of `server.poll`, and an answer wakes it. [`WhenGone`] says what happens when there is no answer.
//! A tokio server asks with [`UsedTokens::ask`]. docs/FLEET.md explains what the memory promises and what it does not.

/// The code of the page is a doc test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/FLEET.md")]
mod page {}

mod question;
mod redis_store;
mod store;
mod used_tokens;
mod worker;

pub use question::{Question, Refusal};
pub use redis_store::Redis;
pub use store::{Store, StoreError};
pub use used_tokens::{ConfigError, UsedTokens, UsedTokensStats, WhenGone};

use std::time::Duration;

/// How long a question may take, as a rule: a Redis nearby takes a tenth of it, and players do not notice it.
pub const LIMIT: Duration = Duration::from_millis(5);
