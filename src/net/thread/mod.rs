//! Sessions behind a thread of their own, for a program whose loop must not do I/O, or is called too seldom.
//!
//! `worker` is a thread, `handle` the program's end of one or several, `threads` what a program has, `outbox` what a session does not take yet, `shared` what both look at.

mod handle;
mod outbox;
mod shared;
mod threads;
mod worker;

pub use threads::{ClientThread, ServerThread, ServerThreads};

use crate::message::channel::Received;
use crate::session::{Event, SendError};
use thiserror::Error;

/// How much waits between a program and the thread of its sessions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "made for `ThreadConfig { .., ..ThreadConfig::default() }`")]
pub struct ThreadConfig {
    /// Bytes that may wait for one session to take them, beyond what its lanes and channels hold by themselves. A quarter is shared out
    /// evenly among its lanes, its channels and its datagrams, so that none takes the room of another; the rest is for whoever comes first.
    /// Where nothing waits, one message always may.
    pub outgoing: usize,
    /// Bytes of all sessions that may wait for the program to take them. Beyond, the thread reads no more from the sessions, so that
    /// the windows told to the peers close, and unreliable datagrams are dropped.
    pub incoming: usize,
}

impl Default for ThreadConfig {
    /// 256 KiB for each session, 4 MiB for the program.
    fn default() -> Self {
        Self { outgoing: 256 << 10, incoming: 4 << 20 }
    }
}

/// A way from one end of a session to the other: what is sent on one waits for none of the others.
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

/// What a thread tells of a session.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Incoming<M> {
    /// Something has happened, but for [`Event::Readable`]. With [`Event::Closed`] all has been told.
    Event(Event),
    /// A message of a reliable lane.
    Message {
        /// The lane.
        lane: usize,
        /// The message; of a stream, bytes of it.
        bytes: Vec<u8>,
    },
    /// An unreliable datagram.
    Datagram(Vec<u8>),
    /// A message or a block of a channel.
    Channel {
        /// The channel.
        channel: usize,
        /// What it is.
        received: Received<M>,
    },
    /// The session did not take something that was sent.
    Refused(Refused),
}

/// Why a session did not take what was sent. That it was closed before also counts what still waited for it.
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

/// Why nothing was handed to the thread.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum NotSent {
    /// As much waits on this lane, this channel or of datagrams as [`ThreadConfig::outgoing`] allows, or a thousand closures. This is back-pressure, not a failure: send again later.
    #[error("as much waits there as may")]
    Full,
    /// The session is not up, or was closed, or the thread has ended.
    #[error("there is no such session")]
    Gone,
}
