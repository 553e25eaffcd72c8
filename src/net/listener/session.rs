//! One of the sessions of a listener.

use crate::arq::{Kcp, Stats};
use crate::net::error::Error;
use crate::seq::Conv;
use crate::time::Time;
use crate::wire::DatagramQueue;
use std::fmt;
use std::io;
use std::net::SocketAddr;

/// Names a session of a listener. No two sessions of one listener ever have the same.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SessionId(pub(super) u64);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What has happened to a session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A peer has opened a session.
    Accepted(SessionId),
    /// A message has come. Take all there are, until [`Session::recv`] says `WouldBlock`: the
    /// next event comes with the next datagram.
    Readable(SessionId),
    /// There is room again in a send queue that was full.
    Writable(SessionId),
    /// The session has ended and is gone.
    Closed {
        /// The session.
        id: SessionId,
        /// Why.
        reason: CloseReason,
    },
}

/// Why a session has ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CloseReason {
    /// No datagram from the peer for `idle_timeout`.
    Idle,
    /// The peer has not acknowledged a segment that was sent `dead_link` times.
    DeadLink,
}

/// One session of a [`KcpListener`](super::KcpListener). What is sent here leaves with the next
/// pump.
#[derive(Debug)]
pub struct Session {
    pub(super) kcp: Kcp<DatagramQueue>,
    peer: SocketAddr,
    /// When the last good datagram came.
    pub(super) heard: Time,
    /// When its timer goes off; the table of timers has it too.
    pub(super) wake: Option<Time>,
    /// On the list for the next pump.
    pub(super) touched: bool,
    /// Flush with the next pump.
    pub(super) flush: bool,
    /// On the list of those with datagrams to send.
    pub(super) sending: bool,
    /// An event that it is readable is on its way.
    pub(super) told_readable: bool,
    /// An event that it is writable is on its way.
    pub(super) told_writable: bool,
    /// A send found the queue full and waits for the event.
    pub(super) blocked: bool,
    /// Its memory has been given back since it was last heard.
    pub(super) shrunk: bool,
}

impl Session {
    pub(super) const fn new(kcp: Kcp<DatagramQueue>, peer: SocketAddr, now: Time) -> Self {
        Self {
            kcp,
            peer,
            heard: now,
            wake: None,
            touched: false,
            flush: false,
            sending: false,
            told_readable: false,
            told_writable: false,
            blocked: false,
            shrunk: false,
        }
    }

    /// Queues a message for the next flush.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when the send queue is full: [`Event::Writable`] says when to try again.
    /// `InvalidInput` when the message is longer than a message can be.
    pub fn send(&mut self, message: &[u8]) -> io::Result<usize> {
        let sent = self.kcp.send(message).map_err(|error| io::Error::from(Error::from(error)));
        self.blocked |= crate::net::error::would_block(&sent);
        sent
    }

    /// Takes the next message.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when there is none, `InvalidInput` when `buf` is too small (the message stays).
    pub fn recv(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        Ok(self.kcp.recv(buf).map_err(Error::from)?)
    }

    /// Has the next pump send everything that may be sent, instead of after the interval.
    pub const fn flush(&mut self) {
        self.flush = true;
    }

    /// The session's counters and measurements.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.kcp.stats()
    }

    /// The conversation.
    #[must_use]
    pub fn conv(&self) -> Conv {
        self.kcp.conv()
    }

    /// The address of the peer.
    #[must_use]
    pub const fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    /// The control block.
    #[must_use]
    pub const fn kcp(&self) -> &Kcp<DatagramQueue> {
        &self.kcp
    }

    /// The control block, to configure it, or to send and receive without a copy.
    pub const fn kcp_mut(&mut self) -> &mut Kcp<DatagramQueue> {
        &mut self.kcp
    }
}
