//! Sockets and the clock: bare KCP over std's `UdpSocket`. No thread, no runtime, no dependency.
//!
//! [`KcpSocket`] is one session on one socket, [`KcpListener`] many sessions on one socket. Both
//! work the same way: the control blocks never see the socket; a *pump* reads the datagrams that
//! wait, feeds them in, updates, sends what came out, and says when it wants to be called again.
//! A game calls `pump` once a frame; a program without a loop of its own calls the blocking
//! [`KcpSocket::recv`] or [`KcpListener::poll`], which pump while they wait.
//!
//! # What an error means
//!
//! The network is lossy and so is its error reporting: an ICMP "port unreachable", a full send
//! buffer, a datagram too long for the path are packet loss. They are counted in [`SocketStats`],
//! logged at most once a second, and KCP sends again. What comes back as an [`io::Error`] is:
//!
//! | kind | when | inside |
//! |---|---|---|
//! | `WouldBlock` | no message, no room to send, or the timeout you set has passed | nothing |
//! | `TimedOut` | the peer is gone | [`Error::DeadLink`], [`Error::PeerSilent`] |
//! | `InvalidInput` | a message too long, a buffer too small, a config out of range | [`Error`] |
//! | any other | the socket itself failed | the system's error |
//!
//! [`Error::of`] finds the one inside.
//!
//! # What std cannot do
//!
//! A socket's receive buffer keeps the system's size, on Linux some 90 full datagrams. A window
//! larger than that comes as bursts that overflow it, which is loss: make the socket with another
//! crate, with a larger buffer, and wrap it. Waiting is std's too: a blocking call wakes at once
//! for a datagram, and within a millisecond for a timer.
//!
//! [`io::Error`]: std::io::Error

mod clock;
mod error;
mod listener;
mod port;
mod random;
mod silence;
mod socket;

pub use clock::Clock;
pub use error::Error;
pub use listener::KcpListener;
pub use port::SocketStats;
pub use socket::KcpSocket;
