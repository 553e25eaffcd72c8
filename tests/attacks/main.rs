//! Attacks as programs over the public API. Each test is named by what it promises, and each file covers whoever attacks or what they attack.

#[cfg(test)]
#[path = "../common/mod.rs"]
mod common;

mod acks;
mod bare;
#[cfg(feature = "crypto")]
mod clock;
mod handshake;
#[cfg(feature = "crypto")] // other sessions have nothing to mask with
mod headers;
#[cfg(feature = "pq")]
mod hybrid;
#[cfg(feature = "crypto")] // others have no keys
mod keys;
mod measured;
mod memory;
mod network;
#[cfg(feature = "crypto")] // other sessions cannot move
mod paths;
mod resets;
#[cfg(feature = "crypto")] // a table of all suites
mod table;
mod work;
