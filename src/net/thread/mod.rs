//! Sessions on a thread of their own, for a program whose loop must not do I/O or runs too rarely.
//!
//! `worker` is the thread, `handle` the program's handle to one or several, `threads` the public types,
//! `outbox` what a session has not accepted yet, `shared` the state that both share.

mod handle;
mod outbox;
mod shared;
mod threads;
mod worker;

pub use threads::{ClientThread, ServerThread, ServerThreads};

use crate::message::channel::Received;
use crate::session::{Event, SendError};
use thiserror::Error;

/// How much may wait between a program and the thread of its sessions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "made for `ThreadConfig { .., ..ThreadConfig::default() }`")]
pub struct ThreadConfig {
    /// Bytes that may wait for one session to accept them, in addition to what its lanes and channels hold. A
    /// quarter is divided evenly among its lanes, its channels and its datagrams, so that none takes the room
    /// of another; the rest is first come, first served. If nothing waits, one message is always accepted.
    pub outgoing: usize,
    /// Bytes that may wait for the program to take them, over all sessions. Beyond that, the thread stops
    /// reading from the sessions, so their receive windows close and unreliable datagrams are dropped.
    pub incoming: usize,
}

impl Default for ThreadConfig {
    /// 256 KiB per session, 4 MiB for the program.
    fn default() -> Self {
        Self { outgoing: 256 << 10, incoming: 4 << 20 }
    }
}

/// A path through a session: data on one does not wait for data on another.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[expect(clippy::exhaustive_enums, reason = "all that a session has")]
pub enum Way {
    /// A reliable lane.
    Lane(usize),
    /// Unreliable datagrams.
    Datagrams,
    /// A channel.
    Channel(usize),
}

/// What a thread reports about a session.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Incoming<M> {
    /// Something happened; all events except [`Event::Readable`]. [`Event::Closed`] comes last.
    Event(Event),
    /// A message of a reliable lane.
    Message {
        /// The lane.
        lane: usize,
        /// The message, or in a stream some bytes of it.
        bytes: Vec<u8>,
    },
    /// An unreliable datagram.
    Datagram(Vec<u8>),
    /// A message or a block of a channel.
    Channel {
        /// The channel.
        channel: usize,
        /// The message or block.
        received: Received<M>,
    },
    /// The session refused something that was sent.
    Refused(Refused),
}

/// Why a session refused what was sent. If it was closed first, everything that still waited is refused.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum Refused {
    /// A message of a lane.
    #[error(transparent)]
    Lane(SendError),
    /// An unreliable datagram.
    #[error(transparent)]
    Datagram(SendError),
    /// A message or a block of a channel.
    #[error(transparent)]
    Channel(SendError),
}

/// Why nothing was passed to the thread.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum NotSent {
    /// As much waits on this lane, on this channel or as datagrams as [`ThreadConfig::outgoing`] allows, or a
    /// thousand closures wait. This is back-pressure, not a failure: send again later.
    #[error("there is no room now")]
    Full,
    /// The session is not connected, was closed, or the thread has ended.
    #[error("the session is not connected")]
    Gone,
}
