//! A matchmaker for fleets of whitewater servers. It knows the servers by leases, reserves places for players by region, and makes their connect
//! tokens, over HTTPS. [`messages`] has the bodies of all requests; docs/MATCHMAKER.md of the repository shows how to run it.
//!
//! | request | bearer secret | body, answer |
//! |---|---|---|
//! | `POST /servers` | servers' | none, an [`Identity`](messages::Identity): a number and a key for a server that starts |
//! | `PUT /servers/{id}` | that server's | a [`Report`](messages::Report), a [`Lease`](messages::Lease) |
//! | `DELETE /servers/{id}` | that server's | none: the server has ended |
//! | `POST /servers/{id}/move` | that server's, with a lease | a [`Move`](messages::Move) of its players, an [`Allocation`](messages::Allocation) on another server |
//! | `POST /join` | backend's | a [`Join`](messages::Join), an [`Allocation`](messages::Allocation) |
//! | `POST /servers/{id}/drain` | operator's | none: no more players for this server, and it learns of it with its next report |
//! | `GET /servers` | operator's | a list of [`Listed`](messages::Listed) |
//! | `GET /metrics` | operator's | the text format of Prometheus |
//! | `GET /health` | none | 200 if it works, 503 if its Redis does not answer |
//! | `GET /` | none | a page that asks for the operator's secret and shows the servers |
//!
//! Feature `client` alone is for what asks a matchmaker: a game server or a backend. Without any, there are the messages.

#[cfg(feature = "client")]
#[cfg_attr(not(feature = "server"), expect(dead_code, reason = "a client shows secrets"))]
mod access;
#[cfg(feature = "server")]
mod api;
#[cfg(feature = "server")]
mod body;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "server")]
mod fleet;
#[cfg(feature = "server")]
mod listen;
#[cfg(feature = "server")]
mod matchmaker;
#[cfg_attr(not(feature = "server"), expect(dead_code, reason = "the matchmaker checks them"))]
pub mod messages;
#[cfg(feature = "server")]
mod metrics;
#[cfg(feature = "server")]
mod open;
#[cfg(feature = "server")]
mod rate;
#[cfg(feature = "server")]
pub mod settings;
#[cfg(feature = "server")]
mod store;
#[cfg(feature = "server")]
mod tokens;

#[cfg(feature = "client")]
pub use access::Bearer;
#[cfg(feature = "server")]
pub use matchmaker::{Matchmaker, StartError};
