//! Sessions on threads of their own. [`crate::thread`] exports the public types.
//!
//! `worker` is the thread, `handle` the program's handle to one or more threads, `threads` the public types, `outbox`
//! what a session has not accepted yet, `inbox` what the program has not read yet, `shared` the state that thread and
//! handle share.

mod handle;
mod inbox;
mod outbox;
mod shared;
mod threads;
mod worker;

pub use threads::{Client, Server};

/// How much may be queued between a program and the thread of its sessions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "made for `ThreadConfig { .., ..ThreadConfig::default() }`")]
pub struct ThreadConfig {
    /// Bytes that may wait for one session to accept them, in addition to what its channels hold. A
    /// quarter is divided evenly among its channels and its datagrams, so that none takes the room
    /// of another; the rest is first come, first served. If nothing waits, one message is always accepted.
    pub outgoing: usize,
    /// Bytes that may wait for the program to take them, over all sessions. Beyond that, the thread stops reading
    /// from the sessions, so their receive windows close and unreliable datagrams are dropped. One session of a
    /// server may use an eighth of it. A 32nd of that eighth is reserved for the session, whatever the others use. On
    /// each channel that the program has read completely, one message may wait within that eighth.
    pub incoming: usize,
}

impl Default for ThreadConfig {
    /// 256 KiB per session, 4 MiB for the program.
    fn default() -> Self {
        Self { outgoing: 256 << 10, incoming: 4 << 20 }
    }
}
