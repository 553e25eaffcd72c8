//! A relay for players who host a game, and whose network lets nobody in. It passes on datagrams that it cannot read.
//!
//! A relay and a matchmaker share a [`RelayKey`], which makes tickets: a [`HostTicket`](whitewater::session::HostTicket) for whoever hosts, and a [`GuestTicket`] for each who joins, as the routing
//! token of its connect token. A host gives its ticket to its server, as [`ServerConfig::relay`](whitewater::ServerConfig::relay). [`serve`] is the relay on a socket, and [`Relay`] is it without I/O.

/// The code of the page is a doc test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/PEERS.md")]
mod page {}

mod counts;
mod hosts;
mod links;
mod rate;
mod relay;
mod serve;
mod slab;
mod ticket;

pub use counts::Counts;
pub use relay::{Now, Passed, Relay, RelayConfig};
pub use serve::serve;
pub use ticket::{GUEST_LEN, GuestTicket, HostGrant, RelayKey};
