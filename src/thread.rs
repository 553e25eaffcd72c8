//! Sessions on threads of their own, for a program whose loop must not do I/O or runs too rarely.
//!
//! [`Server`] and [`Client`] have the calls of those at the [root of the crate](crate), without `pump`: a thread does it.

pub use crate::net::thread::{Client, Server, ThreadConfig};
