//! A reliable lane of a session as a stream of bytes.

use super::lane::{Lane, Reader, Writer};
use super::sessions::Sessions;
use super::stream::{async_read, async_write};
use crate::message::Message;
use crate::session::Blob;
use std::time::Duration;

/// A reliable lane as a stream of bytes: [`AsyncRead`](::tokio::io::AsyncRead) and [`AsyncWrite`](::tokio::io::AsyncWrite), at best a lane
/// with [`Config::stream`](crate::Config::stream), which packs small writes together.
///
/// # The end
///
/// - `shutdown` ends what this end writes, and waits until all of it is acknowledged; it fails with `TimedOut` if for
///   [so long](Self::set_shutdown_timeout) nothing more of it was. The peer reads what was written, and then the end: 0 bytes. What the peer
///   writes is read as before. On the wire the end is an empty message.
/// - Who reads the end and closes the session in the same moment may keep the peer's `shutdown` from hearing that all has arrived: it fails
///   then. So let that end close, or drop, the session which was the last to shut down.
/// - Dropped without, there is no end. The session goes on while something else holds it; otherwise it closes, see
///   [`Session`](super::Session), and then the peer reads what was written, and then an error. So half of a file never looks like a whole one.
#[derive(Debug)]
pub struct LaneStream<M: Message + Send + 'static = Blob> {
    reader: Reader<Sessions<M>>,
    writer: Writer<Sessions<M>>,
}

impl<M: Message + Send + 'static> LaneStream<M> {
    pub(super) fn new(lane: Lane<Sessions<M>>) -> Self {
        Self { reader: Reader::new(lane.clone()), writer: Writer::new(lane) }
    }

    /// Two halves, for two tasks.
    #[must_use]
    pub fn into_split(self) -> (LaneReadHalf<M>, LaneWriteHalf<M>) {
        (LaneReadHalf { reader: self.reader }, LaneWriteHalf { writer: self.writer })
    }

    /// How long a shutdown goes on while nothing more is acknowledged; 5 s unless set.
    pub const fn set_shutdown_timeout(&mut self, timeout: Duration) {
        self.writer.patience = timeout;
    }
}

async_read!(LaneStream<M: Message>, reader);
async_write!(LaneStream<M: Message>, writer);

/// The half of a [`LaneStream`] that reads.
#[derive(Debug)]
pub struct LaneReadHalf<M: Message + Send + 'static = Blob> {
    reader: Reader<Sessions<M>>,
}

async_read!(LaneReadHalf<M: Message>, reader);

/// The half of a [`LaneStream`] that writes.
#[derive(Debug)]
pub struct LaneWriteHalf<M: Message + Send + 'static = Blob> {
    writer: Writer<Sessions<M>>,
}

async_write!(LaneWriteHalf<M: Message>, writer);
