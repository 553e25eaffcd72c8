//! Sockets driven by tokio tasks. [`crate::tokio`] exports the public types.

mod client;
mod core;
mod driver;
mod kcp;
mod request;
mod server;
mod session;
mod shared;
mod stream;
mod waiting;

pub use client::Client;
pub use kcp::{KcpListener, KcpReadHalf, KcpStream, KcpWriteHalf};
pub use request::Request;
pub use server::Server;
pub use session::{ReadHalf, Session, Stream, WriteHalf};
