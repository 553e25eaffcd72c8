//! tokio, except that the UDP sockets of a thread are connected only with each other, by a network that a test sets.

#![allow(missing_docs, reason = "only for tests")]

pub use real_tokio::*;

pub mod net;
