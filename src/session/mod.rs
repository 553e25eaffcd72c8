//! Sessions, protocol WW/1: connections between two ends that need not trust the network.
//!
//! [`Client`] is a client's end, [`Server`] a server's end, with many sessions on one socket. Neither has a clock, a
//! socket or a source of random bytes: datagrams and time go in; datagrams, events and the time of the next call come
//! out. Both are a [`Machine`](crate::machine::Machine): after any call, drain `poll_transmit` and `poll_event`, then
//! call `poll_timeout`. A [`Connection`] is a session that is up: its channels, each carried by a
//! [`Kcp`](crate::kcp::Kcp) or in packets, and unreliable datagrams with receipts, all in the same datagrams.
//!
//! ```
//! use std::net::SocketAddr;
//! use whitewater::machine::Machine;
//! use whitewater::rand_core::UnwrapErr;
//! use whitewater::session::{Client, Server};
//! use whitewater::{Channel, ClientConfig, Event, ServerConfig, SessionConfig, Time};
//!
//! const CHAT: Channel = Channel::ordered(0);
//! let rng = UnwrapErr(getrandom::SysRng); // in a test, one with a seed, such as that of the crate `whitewater-sim`
//! let (here, there) = (SocketAddr::from(([10, 0, 0, 1], 1000)), SocketAddr::from(([10, 0, 0, 2], 4000)));
//! let session = SessionConfig::default(); // the same at both ends
//! let mut server = Server::new(&ServerConfig::insecure(session.clone()), rng)?;
//! let mut client = Client::new(&ClientConfig::insecure(session), rng)?;
//! let (mut now, mut buf) = (Time::ZERO, Vec::new());
//! client.connect(now, &[there])?;
//!
//! let id = loop {
//!     while client.poll_transmit(now, &mut buf).is_some() {
//!         server.handle_datagram(now, here.into(), &mut buf);
//!         buf.clear();
//!     }
//!     while server.poll_transmit(now, &mut buf).is_some() {
//!         client.handle_datagram(now, there.into(), &mut buf);
//!         buf.clear();
//!     }
//!     if let Some((id, Event::Connected)) = server.poll_event() {
//!         break id;
//!     }
//!     now = now + std::time::Duration::from_millis(1); // or as long as `poll_timeout` says
//! };
//! client.connection_mut().ok_or("not up")?.send(CHAT, b"hello")?;
//! while client.poll_transmit(now, &mut buf).is_some() {
//!     server.handle_datagram(now, here.into(), &mut buf);
//!     buf.clear();
//! }
//! let message = server.connection_mut(id).ok_or("gone")?.recv(CHAT).ok_or("no message")?;
//! assert_eq!(message, "hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! docs/BEHAVIOUR.md describes states, timers and limits; docs/WIRE.md each byte.

/// `Debug` with only these fields: the others are secret, or long.
macro_rules! printed_without_secrets {
    ($($name:ident $(<$life:lifetime>)? { $($field:ident),* }),*) => {$(
        impl std::fmt::Debug for $name $(<$life>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut printed = f.debug_struct(stringify!($name));
                printed$(.field(stringify!($field), &self.$field))*.finish_non_exhaustive()
            }
        }
    )*};
}

mod client;
mod config;
mod connection;
pub(crate) mod cookie;
mod crypto;
mod error;
mod event;
pub(crate) mod exchange;
mod host_ticket;
mod local_key;
pub(crate) mod peers;
mod repair;
pub(crate) mod replay;
pub(crate) mod seal;
mod seats;
mod secret;
mod server;
mod shape;
mod stats;
mod suite;
pub mod token;
mod wheel;
pub(crate) mod wire;

#[cfg(feature = "net")]
pub(crate) use crate::channel::DATAGRAMS;
pub use client::{Client, ClientState, ConnectError, SecondNetwork};
pub use connection::{Connection, ConnectionState};
#[cfg(feature = "net")]
pub(crate) use connection::{check_close, code_of_close};
#[cfg(feature = "crypto")]
pub use crypto::noise::public_key;
pub use error::{CloseTextError, DecisionError, RedirectError};
pub use event::{DatagramId, SessionEvent, Undelivered, code};
pub use exchange::HandshakeError;
pub(crate) use front::SessionConfig;
#[cfg(feature = "net")]
pub(crate) use front::{ClientConfig, CloseReason, Event, ServerConfig, SessionId};
pub use host_ticket::HostTicket;
pub use repair::RepairStats;
pub use secret::Secret;
pub use server::{Pass, RejectedRequests, Request, SHARDS_MAX, Server, ServerStats, shard_of};
pub use shape::Mismatch;
pub use stats::{ConnectionStats, KcpTotals, RejectedDatagrams};
pub use suite::{Cipher, Pattern, Suite};
pub use wire::DenyReason;

/// What is at the root of the crate, and only there.
pub(crate) mod front {
    pub use crate::session::client::ClientConfig;
    pub use crate::session::config::SessionConfig;
    pub use crate::session::event::{CloseReason, Event};
    pub use crate::session::server::{ServerConfig, SessionId};
}

use rand_core::CryptoRng;

/// The owner's source of random numbers.
struct Random(Box<dyn CryptoRng + Send + Sync>);

printed_without_secrets! { Random {} }

/// Random bytes. Every number is made from these, so results do not depend on how a generator makes numbers.
fn random<const N: usize>(rng: &mut dyn CryptoRng) -> [u8; N] {
    let mut bytes = [0; N];
    rng.fill_bytes(&mut bytes);
    bytes
}

/// The concatenated parts, padded with zeros.
fn concat<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut bytes = [0; N];
    for (to, from) in bytes.iter_mut().zip(parts.iter().copied().flatten()) {
        *to = *from;
    }
    bytes
}

fn hash_key(rng: &mut dyn CryptoRng) -> [u64; 2] {
    [u64::from_le_bytes(random(rng)), u64::from_le_bytes(random(rng))]
}

#[cfg(test)]
mod tests;
