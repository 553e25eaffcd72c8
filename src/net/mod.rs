//! What all drivers share: the clock, errors, and the counters of a socket.
//!
//! A driver puts a [machine](crate::machine) on a UDP socket with a clock: [`Driver`]. A *pump* reads the datagrams that have arrived, feeds
//! them to the machine, handles timers, sends the result, and says when it wants to be called again. The machine never sees the socket. The
//! drivers of sessions are [`Server`] and [`Client`]; those of bare KCP are [`kcp::Listener`](crate::kcp::Listener) and
//! [`kcp::Socket`](crate::kcp::Socket). [`thread`](crate::thread) and [`tokio`](crate::tokio) have loops of their own.
//!
//! # Many players
//!
//! One pump uses one core. On Linux, several servers can [share a port](crate::Server::bind_shards), each with a thread of its own. Every limit
//! applies to each of them. So for 10,000 players, each of four servers has to accept a quarter of them, and a few more, because they do not
//! spread evenly:
//!
//! ```no_run
//! use whitewater::thread::{Server, ThreadConfig};
//! use whitewater::{ServerConfig, SessionConfig};
//!
//! let config = ServerConfig {
//!     max_sessions: 3000,        // clients beyond that are told that the server is busy
//!     half_open: 3000,           // all of them may connect at once, after a restart
//!     memory: 1 << 30,           // bytes: a quiet session holds 4 KiB at most, one with full buffers about 640 KiB
//!     ..ServerConfig::insecure(SessionConfig::default()) // or encrypted, as with any `Server`
//! };
//! let server = Server::bind_shards("0.0.0.0:4000", &config, 4, &ThreadConfig::default())?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! tokio's `Server` has `bind_shards`, too. If many players connect from one address, as in a test, also raise
//! [`sessions_per_address`](crate::ServerConfig::sessions_per_address), `half_open_per_address`, `accepts_per_second` and `accept_burst`.
//! docs/BEHAVIOUR.md lists what shards share.
//!
//! # When a session lags
//!
//! [`Connection::stats`](crate::session::Connection::stats) tells the cause. A high `rtt` or much `loss` is the path. `kcp.snd_queue` is data
//! that you send faster than it leaves. `kcp.rcv_queue` is data that your program has not read. Then
//! [log the events](crate::session::Connection::log_events) of the session for some seconds and draw them: docs/EVENTS.md explains how, and
//! what to look for. [`metrics`](crate::metrics) watch all sessions all the time. docs/TUNING.md lists the knobs.
//!
//! # What an error means
//!
//! Networks are lossy, and so are their error reports. An ICMP "port unreachable", a full send buffer and a datagram too long for the path count
//! as packet loss: [`SocketStats`] counts them, the log mentions them once a second at most, and reliable data is sent again. The end of a
//! session is an event. An [`io::Error`] means:
//!
//! | kind | when | inside |
//! |---|---|---|
//! | `WouldBlock` | from a [`kcp::Socket`](crate::kcp::Socket): no message, no room to send, or your timeout has passed | nothing |
//! | `TimedOut` | from a [`kcp::Socket`](crate::kcp::Socket): the peer is gone | [`Error::DeadLink`], [`Error::PeerSilent`] |
//! | `InvalidInput` | a message too long, a buffer too small, an invalid config, no address | [`Error`] |
//! | any other | the socket failed | the system's error |
//!
//! [`Error::of`] finds the error inside.
//!
//! # What the system does
//!
//! With the feature `batch`, which is on by default, one system call moves many datagrams where the system can do that, by `quinn-udp` and
//! `rustix`. Otherwise each datagram takes a call of its own, through `std`. The same datagrams arrive either way.
//!
//! | | Linux | Android | Windows | FreeBSD | macOS, iOS | other BSDs | any, without `batch` |
//! |---|---|---|---|---|---|---|---|
//! | consecutive datagrams of one size to one address leave as one | GSO, from 4.18 | GSO, from 4.18 | USO | no | no | no | no |
//! | others leave in one call | `sendmmsg` | no | no | no | no | no | no |
//! | datagrams from one sender arrive as one | GRO, from 5.0 | GRO, from 5.0 | no | no | no | no | no |
//! | others arrive in one call | `recvmmsg` | `recvmmsg` | no | `recvmmsg` | no | no | no |
//! | ECN marks are read | yes | yes | yes | yes | not from IPv4 on a socket for both | from IPv6 | no |
//! | "don't fragment" (below) | yes | yes | yes | yes | yes | for IPv6 | no |
//! | a wait ends on time, and with room in the send buffer | yes | within 1 ms | within 1 ms | within 1 ms | within 1 ms | within 1 ms | within 1 ms |
//!
//! On Linux, sockets of bare KCP over IPv4 and of sessions without `ecn` use these calls only once there are several datagrams to move at
//! once. For a single one, those of `std` are cheaper.
//!
//! [`SocketTraffic`] counts datagrams and calls. If a network card or driver cannot do what its system promises, or if one of several joined
//! datagrams is too long, they are sent one by one (`not_joined`).
//!
//! **ECN.** Marks are counted (`congestion_marks`) while these calls read them. Datagrams are marked as ECN-capable only by sessions with `ecn`
//! at both ends, because whoever does not slow down for marks must not claim to (RFC 3168, 5). They leave joined, or in calls of their own.
//!
//! **Fragments.** With `batch`, datagrams of sessions are sent with "don't fragment" set. [`SocketStats::too_long`] counts those that are too long
//! for an interface; a router behind it drops those that are too long for it. Sessions begin with at most 1200 bytes, which every usual path
//! carries, and probe for longer datagrams up to `path_mtu`, but only on such a socket. Datagrams of [`kcp::Socket`](crate::kcp::Socket) and
//! [`kcp::Listener`](crate::kcp::Listener), whose usual mtu is 1400, may be fragmented as usual. For that reason they use the calls of `std` on
//! systems other than Linux, and on IPv6.
//!
//! **Buffers.** Whatever arrives between two pumps has to fit into the socket's receive buffer. A driver asks for 2 MiB, and for 512 KiB to
//! send, if its socket has less; [`SocketBuffers`] says what it got.
//!
//! [`io::Error`]: std::io::Error

mod client;
mod clock;
mod driver;
mod end;
mod ends;
mod error;
mod line;
pub(crate) mod listener;
mod server;
mod shards;
pub(crate) mod socket;
mod sync;
#[cfg_attr(not(all(target_os = "linux", feature = "batch")), path = "no_takeover.rs")]
mod takeover;
mod tally;
pub(crate) mod thread;
#[cfg(feature = "tokio")]
pub(crate) mod tokio;
mod transport;
mod verbs;
mod way;

pub use clock::Clock;
pub use driver::Driver;
pub use error::Error;
pub(crate) use front::{Client, Server};
pub use tally::{SocketStats, SocketTraffic};
pub use transport::{Transport, Waker};
#[doc(inline)]
pub use whitewater_udp::SocketBuffers;

/// What is at the root of the crate, and only there.
pub(crate) mod front {
    pub use crate::net::client::Client;
    pub use crate::net::server::Server;
}
