//! Streams and sessions for tokio.

mod bare;
mod client;
mod core;
mod driver;
mod kcp;
mod lane;
mod lane_stream;
mod listener;
mod server;
mod session;
mod sessions;
mod shared;
mod socket;
mod stream;
mod waiting;

pub use client::Client;
pub use kcp::{KcpReadHalf, KcpStream, KcpWriteHalf};
pub use lane_stream::{LaneReadHalf, LaneStream, LaneWriteHalf};
pub use listener::KcpListener;
pub use server::Server;
pub use session::Session;
