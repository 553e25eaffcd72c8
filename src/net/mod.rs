//! Sockets and the clock: sessions, and bare KCP, over std's `UdpSocket`. No runtime, and no thread unless you ask for one.
//!
//! | | many sessions on one socket | one |
//! |---|---|---|
//! | [sessions](crate::session), between two ends of this crate | [`Server`] | [`Client`] |
//! | the same behind a thread, for a loop that must not do I/O | [`ServerThread`] | [`ClientThread`] |
//! | bare KCP, to any KCP peer | [`KcpListener`] | [`KcpSocket`] |
//!
//! All but the threads, which do it for you, work the same way: what is below never sees the socket;
//! a *pump* reads the datagrams that wait, feeds them in, updates, sends what came out, and says when
//! it wants to be called again. A game calls `pump` once a frame; a program without a loop of its own
//! calls `poll`, or the blocking calls of a [`KcpSocket`], which pump while they wait.
//!
//! # Sessions in a game loop
//!
//! ```
//! use std::time::Duration;
//! use whitewater::net::{Client, Server};
//! use whitewater::session::{ClientConfig, Event, ServerConfig, Target};
//!
//! // Without encryption, as on a local network. With it: `examples/arena`.
//! let mut server: Server = Server::bind("127.0.0.1:0", &ServerConfig::insecure())?;
//! let mut client: Client = Client::connect(Target::insecure(server.local_addr()?), &ClientConfig::default())?;
//! let mut message = [0; 1200];
//! let answer = loop {
//!     server.pump()?; // once a frame: reads what has come, sends what is due
//!     while let Some((id, event)) = server.poll_event() {
//!         if event == Event::Readable {
//!             while let Ok(len) = server.recv(id, 0, &mut message) {
//!                 // Lane 0 is reliable and ordered. An error is of this client, and must not end the server.
//!                 let _ = server.send(id, 0, &message[..len]);
//!             }
//!         }
//!     }
//!     client.pump()?;
//!     while let Some(event) = client.poll_event() {
//!         match event {
//!             Event::Connected => drop(client.send(0, b"hello")?),
//!             Event::Closed { reason, .. } => return Err(format!("no session: {reason:?}").into()),
//!             _ => {}
//!         }
//!     }
//!     if let Ok(len) = client.recv(0, &mut message) {
//!         break &message[..len];
//!     }
//!     std::thread::sleep(Duration::from_millis(1)); // the rest of the frame
//! };
//! assert_eq!(answer, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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
//! | `WouldBlock` | of a [`KcpSocket`]: no message, no room to send, or the timeout you set has passed | nothing |
//! | `TimedOut` | of a [`KcpSocket`]: the peer is gone | [`Error::DeadLink`], [`Error::PeerSilent`] |
//! | `InvalidInput` | a message too long, a buffer too small, a config out of range, a target that cannot be | [`Error`] |
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

mod client;
mod clock;
mod driver;
mod error;
mod listener;
mod port;
mod random;
mod server;
mod silence;
mod socket;
mod thread;

pub use client::Client;
pub use clock::Clock;
pub use error::Error;
pub use listener::KcpListener;
pub use port::SocketStats;
pub use server::Server;
pub use socket::KcpSocket;
pub use thread::{ClientThread, Incoming, NotSent, Refused, ServerThread, ThreadConfig};
