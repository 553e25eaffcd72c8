//! What kcp-go and kcptun put around KCP, for [`whitewater`]: ciphers, checksums and parity.
//!
//! A [`Config`] says what. It is the settings of an [envelope](whitewater::kcp::Envelope):
//! [`kcp::PeersConfig::envelope`](whitewater::kcp::PeersConfig) gives it to a listener or a stream of tokio,
//! `kcp::Socket::connect_with_envelope` to a socket. All else is as with bare KCP. What is counted is in [`Stats`].
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
//! let server = kcp::PeersConfig { kcp: Mode::Fast2.config(), envelope: Some(Arc::new(wire)), ..kcp::PeersConfig::open() };
//! # server.check().unwrap();
//! ```
//!
//! # A datagram on the wire
//!
//! ```text
//! null           inner
//! aes-128-gcm    nonce 12 | inner, hidden | tag 16
//! all others     random 16 | CRC-32 of inner, 4 | inner          all of it hidden, but for `none`
//!
//! inner          KCP
//!                seqid 4 | 0xf1, 2 | size 2 | KCP                data shard; `size` counts itself
//!                seqid 4 | 0xf2, 2 | parity of the data shards from `size` on, padded with zeros
//! ```
//!
//! All numbers are little-endian. The shards of a sender are numbered one after another, modulo the largest multiple of data + parity that fits
//! 32 bits; of each group the data comes first. The parity follows the last data shard of its group at once, unless that came 500 ms after the
//! one before it: then only its numbers are used up. Source: kcp-go v5, `sess.go`, `crypt.go`, `fec.go`.
//!
//! # What is different here
//!
//! - A peer is an address and a conv. In kcp-go it is an address, and whoever sends one datagram in its name, with another conv and the number 0,
//!   ends its session. Here that is another peer, under the [limits](whitewater::kcp::PeersConfig) of strangers.
//! - What is rebuilt counts as received at once, and says nothing of round trips or windows: it is old. An end without parity of its own takes data
//!   shards of the other.
//! - Shards of a stranger who is not [proven](whitewater::kcp::Strangers::Proven) yet are of no use but for the KCP in them.
//! - An empty message is [refused](whitewater::kcp::SendError::Empty): the reader of kcp-go never gets past one.
//! - A shard from too long ago, or one that says that it is longer than it is, is counted and changes nothing else. If all are so, as after a
//!   restart of the other, the groups begin anew.
//! - kcp-go tries to find out how many shards the other has. Here both ends have to be told. A shard in the wrong place says that they were not
//!   told the same: nothing is rebuilt until 256 and a group's worth in a row have fitted, for it would be wrong and KCP would not see it.
//!
//! What is between kcp-go and the program in kcptun (snappy, smux) is not here.

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

/// The code of the guide is a doc test.
#[cfg(all(doctest, feature = "net"))]
#[doc = include_str!("../../../docs/migrate/kcp-go.md")]
mod guide {}
