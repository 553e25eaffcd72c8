//! Below the drivers: sockets, clocks, errors and counters, which all of them share.
//!
//! A driver is a [machine](crate::machine) on a UDP socket with a clock: [`Driver`]. A *pump* reads the datagrams that wait, feeds them in,
//! updates, sends what came out, and says when it wants to be called again. What is below never sees the socket. The drivers of sessions are
//! [`Server`] and [`Client`], those of bare KCP [`kcp::Listener`](crate::kcp::Listener) and
//! [`kcp::Socket`](crate::kcp::Socket); [`thread`](crate::thread) and [`tokio`](crate::tokio) have their own loops.
//!
//! # Many players
//!
//! One pump is one core. On Linux several servers [share a port](crate::Server::bind_shards), each with a thread of its own. Limits are each one's, so
//! for 10,000 players each of four has to let in a quarter of them, and some more, for they do not spread evenly:
//!
//! ```no_run
//! use whitewater::thread::{Server, ThreadConfig};
//! use whitewater::{ServerConfig, SessionConfig};
//!
//! let config = ServerConfig {
//!     max_sessions: 3000,        // who comes beyond is told that the server is busy
//!     half_open: 3000,           // all of them may come at once, after a restart
//!     memory: 1 << 30,           // bytes: a quiet session holds 4 KiB at most, one whose buffers are all full some 640
//!     ..ServerConfig::insecure(SessionConfig::default()) // encrypted: as of `Server`
//! };
//! let server = Server::bind_shards("0.0.0.0:4000", &config, 4, &ThreadConfig::default())?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! [Threads](crate::thread) have the loop. Under tokio it is `bind_shards` of its `Server`. Many players behind one address, as in a test, also need larger
//! [`sessions_per_address`](crate::ServerConfig::sessions_per_address), `half_open_per_address`, `accepts_per_second` and `accept_burst`.
//! What shards share, and what not, is in docs/BEHAVIOUR.md.
//!
//! # When a session lags
//!
//! [`Connection::stats`](crate::session::Connection::stats) says where: a long `rtt` or much `loss` is the path; `kcp.snd_queue` is what is sent faster than
//! it leaves; `kcp.rcv_queue` is what this program has not read. Then [log its events](crate::session::Connection::log_events) for
//! some seconds and draw them: docs/EVENTS.md says how, and what to look for. To watch all of them all the time there is
//! [`metrics`](crate::metrics). docs/TUNING.md has the knobs.
//!
//! # What an error means
//!
//! The network is lossy and so is its error reporting: an ICMP "port unreachable", a full send
//! buffer, a datagram too long for the path are packet loss. They are counted in [`SocketStats`],
//! logged at most once a second, and what is reliable is sent again. That a session is over is an event. What comes back as an
//! [`io::Error`] is:
//!
//! | kind | when | inside |
//! |---|---|---|
//! | `WouldBlock` | of a [`kcp::Socket`](crate::kcp::Socket): no message, no room to send, or the timeout you set has passed | nothing |
//! | `TimedOut` | of a [`kcp::Socket`](crate::kcp::Socket): the peer is gone | [`Error::DeadLink`], [`Error::PeerSilent`] |
//! | `InvalidInput` | a message too long, a buffer too small, a config that cannot be, no address | [`Error`] |
//! | any other | the socket itself failed | the system's error |
//!
//! [`Error::of`] finds the one inside.
//!
//! # What the system does
//!
//! With the feature `batch`, which is on by default, many datagrams move in one system call where there are such calls, by `quinn-udp`
//! and `rustix`. Without it, and where a system refuses, each takes a call of std's. What arrives is the same.
//!
//! | | Linux | Android | Windows | FreeBSD | macOS, iOS | other BSDs | any, without `batch` |
//! |---|---|---|---|---|---|---|---|
//! | neighbours of one size to one address leave as one | GSO, from 4.18 | GSO, from 4.18 | USO | no | no | no | no |
//! | others leave in one call | `sendmmsg` | no | no | no | no | no | no |
//! | datagrams of one sender arrive as one | GRO, from 5.0 | GRO, from 5.0 | no | no | no | no | no |
//! | others arrive in one call | `recvmmsg` | `recvmmsg` | no | `recvmmsg` | no | no | no |
//! | marks of ECN are read | yes | yes | yes | yes | of IPv4 not on a socket of both | of IPv6 | no |
//! | "don't fragment" (below) | yes | yes | yes | yes | yes | of IPv6 | no |
//! | a wait ends on time, and with room in the send buffer | yes | within 1 ms | within 1 ms | within 1 ms | within 1 ms | within 1 ms | within 1 ms |
//!
//! Sockets of bare KCP take these calls from when there are several datagrams to move at once; until then std's, which are cheaper for one.
//!
//! [`SocketTraffic`] counts datagrams and calls. Should a card or a driver turn out not to do what its system promises, or one of joined
//! datagrams be too long, they go one by one (`not_joined`).
//!
//! Of ECN, marks are counted (`congestion_marks`) where such calls read them. What is sent says that it heeds marks only where a session does, with `ecn` at both ends: who
//! does not slow down for them must not say so (RFC 3168, 5). Marked datagrams leave joined, or in calls of their own.
//!
//! **Fragments.** Datagrams of sessions go with "don't fragment" set where `batch` is: one that is too long for an
//! interface is counted in [`SocketStats::too_long`], for a router behind it it is lost. Sessions begin with at most 1200 bytes, which every
//! usual path carries, and look for longer ones up to `path_mtu`, but only on such a socket. Those of [`kcp::Socket`](crate::kcp::Socket) and
//! [`kcp::Listener`](crate::kcp::Listener), whose usual mtu is 1400, may be cut on the way as ever; on systems other than Linux, and on IPv6, they use std's calls
//! for that reason.
//!
//! **Buffers.** Whatever arrives between two pumps has to fit into the socket's receive buffer. Each driver asks for 2 MiB, and
//! for 512 KiB to send, when it takes over a socket that has less; [`SocketBuffers`] tells what it got.
//!
//! [`io::Error`]: std::io::Error

mod client;
mod clock;
mod driver;
mod end;
mod error;
pub(crate) mod listener;
mod server;
mod shards;
pub(crate) mod socket;
mod tally;
pub(crate) mod thread;
#[cfg(feature = "tokio")]
pub(crate) mod tokio;
mod verbs;

pub use clock::Clock;
pub use driver::Driver;
pub use error::Error;
pub(crate) use front::{Client, Server};
pub use tally::{SocketStats, SocketTraffic};
#[doc(inline)]
pub use whitewater_udp::SocketBuffers;

/// What is at the root of the crate, and only there.
pub(crate) mod front {
    pub use crate::net::client::Client;
    pub use crate::net::server::Server;
}
