//! What kcp-go and kcptun wrap around KCP, for [`whitewater`]: ciphers, checksums and parity.
//!
//! A [`Config`] says which. It creates an [envelope](whitewater::kcp::Envelope): set it in
//! [`kcp::PeersConfig::envelope`](whitewater::kcp::PeersConfig) for a listener or a tokio stream, or
//! pass it to `kcp::Socket::connect_with_envelope` for a socket. Everything else works as with bare KCP.
//! [`Stats`] has the counters.
//!
//! ```
//! use std::sync::Arc;
//! use whitewater::kcp;
//! use whitewater_kcp_go::{Config, Crypt, Key, Mode, Shards};
//!
//! // As kcptun-server --key "our secret" --crypt salsa20 --mode fast2 --datashard 5 --parityshard 2
//! let wire = Config {
//!     crypt: Crypt::Salsa20,
//!     shards: Some(Shards { data: 5, parity: 2 }),
//!     ..Config::kcptun(Key::kcptun("our secret"))
//! };
//! let server = kcp::PeersConfig { kcp: Mode::Fast2.config(), envelope: Some(Arc::new(wire)), ..kcp::PeersConfig::default() };
//! # server.check().unwrap();
//! ```
//!
//! # A datagram on the wire
//!
//! ```text
//! null           inner
//! aes-128-gcm    nonce 12 | inner, encrypted | tag 16
//! all others     random 16 | CRC-32 of inner, 4 | inner          all encrypted, except for `none`
//!
//! inner          KCP
//!                seqid 4 | 0xf1, 2 | size 2 | KCP                data shard; `size` counts itself
//!                seqid 4 | 0xf2, 2 | parity of the data shards from `size` on, padded with zeros
//! ```
//!
//! All numbers are little-endian. A sender numbers its shards consecutively, modulo the largest multiple of
//! data + parity that fits 32 bits; in each group the data shards come first. The parity follows the last
//! data shard of its group at once, unless that came more than 500 ms after the one before: then the numbers
//! of the parity are skipped. Source: kcp-go v5, `sess.go`, `crypt.go`, `fec.go`.
//!
//! # Differences from kcp-go
//!
//! - A peer is an address and a conv. In kcp-go it is an address, and anyone who sends one datagram from that address,
//!   with another conv and the number 0, ends its session. Here that is another peer, subject to the
//!   [limits](whitewater::kcp::PeersConfig) on strangers.
//! - A rebuilt datagram counts as received at once, but does not update round trips or windows, since it is old. An end
//!   without parity of its own accepts data shards of the peer.
//! - Of a stranger who has not [proven](whitewater::kcp::Strangers::Proven) their address, only the KCP inside of shards
//!   is used.
//! - An empty message is [refused](whitewater::kcp::SendError::Empty), since the reader of kcp-go gets stuck on one.
//! - A shard that is far too old, or that claims to be longer than it is, is counted and changes nothing else. If all
//!   shards are too old, as after a restart of the peer, the groups start over.
//! - kcp-go tries to detect how many shards the peer uses. Here both ends must be configured. A shard in the wrong place
//!   shows that their configs differ. Then nothing is rebuilt until 256 consecutive shards plus a group were in their
//!   places, since the result would be wrong and KCP would not notice. If a shard with the same number is in its place,
//!   the other one was forged and changes nothing; so does one whose number is not near the newest.
//!
//! What kcptun puts between kcp-go and the program (snappy, smux) is not included.

mod config;
mod crypt;
mod datagram;
mod envelope;
mod fec;
mod key;
mod nonce;
mod shield;
mod stats;
#[cfg(test)]
mod tests;

pub use config::{Config, Mode, Shards};
pub use crypt::{Crypt, UnknownCrypt};
pub use key::Key;
pub use stats::Stats;

/// Tests the code in the guide as doc tests.
#[cfg(all(doctest, feature = "net"))]
#[doc = include_str!("../../../docs/migrate/kcp-go.md")]
mod guide {}
