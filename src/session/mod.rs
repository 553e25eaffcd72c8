//! Sessions, protocol WW/1: what turns datagrams between strangers into a conversation of two.
//!
//! Here are the parts that know no clock, no socket and no source of randomness: bytes in, bytes and values out. Secrets and random
//! bytes come from the caller, who takes them from the operating system.
//!
//! ```text
//!   wire      packets and frames: bytes <-> values
//!   cookie    a server proves an address before it remembers anything
//!   reset     a server that has forgotten a session ends it
//!   exchange  the two messages of the handshake, which give the keys (Noise with the feature `crypto`)
//!   seal      what protects a DATA packet: checksum or cipher, packet numbers, key update
//!   number    32 bits of a packet number -> 64      replay   every packet number once
//!   token     connect tokens: who may come in, sealed by a matchmaker (with the feature `crypto`)
//! ```

mod blob;
mod client;
mod config;
mod connection;
pub mod cookie;
mod error;
mod event;
pub mod exchange;
#[cfg(feature = "crypto")]
mod noise;
pub mod number;
mod random;
pub mod replay;
pub mod reset;
pub mod seal;
mod server;
mod stats;
mod suite;
#[cfg(feature = "crypto")]
pub mod token;
pub mod wire;

pub use blob::Blob;
pub use client::{ClientConfig, ClientState, ConnectConfig, ConnectError, Session, Target};
pub use config::SessionConfig;
pub use connection::Connection;
pub use error::{SendDatagramError, SendError, SendMessageError};
pub use event::{CloseReason, DatagramId, Event, Timer, Undelivered, code};
pub use random::Random;
#[cfg(feature = "crypto")]
pub use server::Pass;
pub use server::{RejectedRequests, Server, ServerConfig, ServerStats, SessionId};
pub use stats::{ConnectionStats, RejectedDatagrams};
pub use suite::{Cipher, Pattern, Suite};

#[cfg(test)]
mod tests;
