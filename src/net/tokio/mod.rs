//! Bare KCP and sessions for [`tokio`](https://docs.rs/tokio), with the feature `tokio`.
//!
//! | | many on one socket | one |
//! |---|---|---|
//! | [sessions](crate::session), between two ends of this crate | [`Server`] | [`Client`] |
//! | bare KCP, to any KCP peer | [`KcpListener`] | [`KcpStream`] |
//!
//! A [`Session`] sends and receives messages, datagrams and channels; its lanes, and a [`KcpStream`], are streams of bytes as well, for
//! `tokio_util::codec`, `tokio::io::copy_bidirectional` and everything else that takes `AsyncRead` and `AsyncWrite`.
//!
//! ```
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! use whitewater::net::tokio::{Client, Server, Session};
//! use whitewater::session::{ClientConfig, ServerConfig, Target};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! // Without encryption, as on a local network.
//! let server: Server = Server::bind(([127, 0, 0, 1], 0).into(), &ServerConfig::insecure())?;
//! let target = Target::insecure(server.local_addr());
//! tokio::spawn(async move {
//!     while let Ok(session) = server.accept().await {
//!         tokio::spawn(async move {
//!             let (mut from, mut to) = session.lane(0).into_split();
//!             tokio::io::copy(&mut from, &mut to).await?;
//!             to.shutdown().await // after the end of what the client sends
//!         });
//!     }
//! });
//! let session: Session = Client::connect(target, &ClientConfig::default()).await?;
//! let mut lane = session.lane(0);
//! lane.write_all(b"hello").await?;
//! lane.shutdown().await?;
//! let mut answer = String::new();
//! lane.read_to_string(&mut answer).await?;
//! assert_eq!(answer, "hello");
//! # Ok(())
//! # }
//! ```
//!
//! # Tasks
//!
//! What makes a socket panics outside of a runtime of tokio with I/O and time. A socket has one task, its driver, however many sessions it has; handles and the driver share the sessions behind one mutex, which is
//! never held over a wait or a system call. A poll of the driver reads and sends a bounded number of datagrams and then lets the other
//! tasks have their turn. For more than one core on one port: [`Server::bind_shards`], [`KcpListener::bind_shards`].
//!
//! What has arrived wakes who waits for it, and the driver sends when they have had their turn: so an answer leaves in the datagram that
//! acknowledges the question. That is so for tasks that were spawned; what is given to `block_on`, or is `main`, comes later.
//!
//! A session that nobody reads closes its window, and its peer waits; the others do not notice. A writer waits when the send queue of
//! its lane is full, until half of it is empty: `snd_queue` of a [`Config`](crate::kcp::Config) is how much a slow peer can make wait here.
//!
//! The driver ends with the last handle, when what was sent has arrived or its time is over. Then the port is free.

mod client;
mod core;
mod driver;
mod kcp;
mod lane;
mod server;
mod session;
mod shared;
mod waiting;

pub use client::Client;
pub use kcp::{KcpListener, KcpReadHalf, KcpStream, KcpWriteHalf};
pub use server::Server;
pub use session::{LaneReadHalf, LaneStream, LaneWriteHalf, Session};
