//! Sessions, protocol WW/1: what turns datagrams between strangers into a conversation of two.
//!
//! Here are the parts that know no clock, no socket and no source of randomness: bytes in, bytes and values out. Secrets and random
//! bytes come from the caller, who takes them from the operating system.
//!
//! ```text
//!   wire      packets and frames: bytes <-> values
//!   cookie    a server proves an address before it remembers anything
//!   reset     a server that has forgotten a session ends it
//!   exchange  the two messages of the handshake, which give the keys (Noise with the feature `crypto`)
//!   seal      what protects a DATA packet: checksum or cipher, packet numbers, key update
//!   number    32 bits of a packet number -> 64      replay   every packet number once
//!   token     connect tokens: who may come in, sealed by a matchmaker (with the feature `crypto`)
//! ```

pub mod cookie;
pub mod exchange;
#[cfg(feature = "crypto")]
mod noise;
pub mod number;
pub mod replay;
pub mod reset;
pub mod seal;
mod suite;
#[cfg(feature = "crypto")]
pub mod token;
pub mod wire;

pub use suite::{Cipher, Pattern, Suite};

#[cfg(test)]
mod tests;
