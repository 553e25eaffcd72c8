//! Bare KCP and sessions for [`tokio`](https://docs.rs/tokio), with the feature `tokio`.
//!
//! | | many on one socket | one |
//! |---|---|---|
//! | [sessions](crate::session), between two ends of this crate | [`Server`] | [`Client`] |
//! | bare KCP, to any KCP peer | [`KcpListener`] | [`KcpStream`] |
//!
//! A [`Session`] sends and receives messages on its channels, and datagrams. Channels of the kind stream, and a
//! [`KcpStream`], are streams of bytes, for `tokio_util::codec`, `tokio::io::copy_bidirectional` and everything
//! else that takes `AsyncRead` and `AsyncWrite`.
//!
//! ```
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! use whitewater::tokio::{Client, Server};
//! use whitewater::{Channel, ClientConfig, ServerConfig, SessionConfig};
//!
//! const BYTES: Channel = Channel::stream(0);
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! // Without encryption, as on a local network.
//! let config = SessionConfig::new(1, [BYTES.into()]); // the same at both ends
//! let server = Server::bind("127.0.0.1:0", &ServerConfig::insecure(config.clone()))?;
//! let address = server.local_addr();
//! tokio::spawn(async move {
//!     while let Ok(session) = server.accept().await {
//!         tokio::spawn(async move {
//!             let (mut from, mut to) = session.stream(BYTES).into_split();
//!             tokio::io::copy(&mut from, &mut to).await?;
//!             to.shutdown().await // after the end of what the client sends
//!         });
//!     }
//! });
//! let session = Client::connect(address, &ClientConfig::insecure(config)).await?;
//! let mut stream = session.stream(BYTES);
//! stream.write_all(b"hello").await?;
//! stream.shutdown().await?;
//! let mut answer = String::new();
//! stream.read_to_string(&mut answer).await?;
//! assert_eq!(answer, "hello");
//! # Ok(())
//! # }
//! ```
//!
//! # Tasks
//!
//! Functions that create a socket panic outside of a tokio runtime with I/O and time enabled. A socket has
//! one task, its driver, however many sessions it has. Handles and the driver share the sessions behind one
//! mutex, which is never held across a wait or a system call. One poll of the driver reads and sends a
//! bounded number of datagrams and then gives other tasks their turn. To use more than one core on one port,
//! see [`Server::bind_shards`] and [`KcpListener::bind_shards`].
//!
//! Arriving data wakes the tasks that wait for it, and the driver sends after they have run, so an answer
//! leaves in the datagram that acknowledges the question. That only holds for spawned tasks; the future
//! passed to `block_on`, or `main`, runs later.
//!
//! A session that nobody reads closes its window, and its peer waits; the other sessions do not notice. A
//! writer waits when the send queue of its channel is full, until half of it is empty. `snd_queue` of a
//! [`Config`](crate::kcp::Config) limits how much a slow peer can make wait here.
//!
//! The driver ends after the last handle is dropped, once everything sent has arrived or its time is over.
//! Then the port is free.

pub use crate::net::tokio::{
    Client, KcpListener, KcpReadHalf, KcpStream, KcpWriteHalf, ReadHalf, Request, Server, Session, Stream,
    WriteHalf,
};
