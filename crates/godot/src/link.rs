//! What a server and a client have in common.

use crate::guest::Guest;
use crate::host::Host;
use crate::inbox::{Inbox, Packet};
use crate::lane::Lane;
use std::io;
use whitewater::CloseReason;
use whitewater::channel::SendError;
use whitewater::session::{CloseTextError, Connection};

/// One end of sessions.
#[derive(Debug)]
pub(crate) enum Link {
    Host(Box<Host>),
    Guest(Box<Guest>),
}

/// Something that has happened.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Change {
    /// A peer is connected.
    Joined(i32),
    /// A session is over: that of a peer that had joined, or that of a client that did not get as far.
    Left(i32, End),
    /// The server sends us to another one, with this connect token.
    Redirected(Vec<u8>),
}

/// Why a session is over.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct End {
    pub(crate) reason: CloseReason,
    /// What the peer said, or a server that rejects.
    pub(crate) text: String,
    /// Whether it was up.
    pub(crate) had_joined: bool,
}

/// Why a packet was not sent.
#[derive(Debug)]
pub(crate) enum Refused {
    NoPeer,
    Send(SendError),
}

/// Godot's number of every server.
pub(crate) const SERVER: i32 = 1;

/// The code that a peer is told that a script disconnects.
pub(crate) const GOODBYE: u16 = 0;

/// What a peer is told for whom more waits than [`BYTES_MAX`](crate::lane::BYTES_MAX).
pub(crate) const OVERRUN: u16 = 0xfeff;
pub(crate) const OVERRUN_TEXT: &str = "too much waits to be sent";

impl Link {
    /// Receives and sends.
    ///
    /// # Errors
    ///
    /// The socket has failed. What is due was done anyway.
    pub(crate) fn poll(&mut self, inbox: &mut Inbox, changes: &mut Vec<Change>) -> io::Result<()> {
        match self {
            Self::Host(host) => host.poll(inbox, changes),
            Self::Guest(guest) => guest.poll(inbox, changes),
        }
    }

    /// Sends what was queued since the last poll.
    pub(crate) fn flush(&mut self) {
        match self {
            Self::Host(host) => host.flush(),
            Self::Guest(guest) => guest.flush(),
        }
    }

    /// Queues a packet for Godot's targets: one peer, 0 for all, or the negative number of one who is left out. A peer for whom too much waits
    /// loses its session.
    pub(crate) fn send(&mut self, target: i32, lane: Lane, packet: &[u8]) -> Result<(), Refused> {
        match self {
            Self::Host(host) => host.send(target, lane, packet),
            Self::Guest(guest) => guest.send(target, lane, packet),
        }
    }

    /// Ends a session at once, and tells the peer why.
    pub(crate) fn kick(&mut self, peer: i32, code: u16, text: &str) -> Result<(), CloseTextError> {
        match self {
            Self::Host(host) => host.kick(peer, code, text),
            Self::Guest(guest) => guest.kick(code, text),
        }
    }

    /// Ends all sessions, and blocks until everything has arrived, for a limited time.
    pub(crate) fn shutdown(&mut self) -> io::Result<()> {
        match self {
            Self::Host(host) => host.shutdown(),
            Self::Guest(guest) => guest.shutdown(),
        }
    }

    /// The session of a peer.
    pub(crate) fn connection(&self, peer: i32) -> Option<&Connection> {
        match self {
            Self::Host(host) => host.connection(peer),
            Self::Guest(guest) => guest.connection().filter(|_| peer == SERVER),
        }
    }

    pub(crate) fn port(&self) -> io::Result<u16> {
        match self {
            Self::Host(host) => host.port(),
            Self::Guest(guest) => guest.port(),
        }
    }

    pub(crate) const fn is_host(&self) -> bool {
        matches!(self, Self::Host(_))
    }

    /// Godot's number of this end; `None`: a client that is not connected yet.
    pub(crate) const fn id(&self) -> Option<i32> {
        match self {
            Self::Host(_) => Some(SERVER),
            Self::Guest(guest) => guest.id(),
        }
    }
}

/// Sends a packet. One that is too long for a datagram goes on the reliable channel of the same number, as with ENet; one that finds no room and
/// need not arrive counts as lost.
pub(crate) fn send(connection: &mut Connection, lane: Lane, packet: &[u8]) -> Result<(), SendError> {
    let is_reliable = lane == lane.for_long();
    match connection.send(lane.handle(), packet) {
        Err(SendError::TooLong { .. }) if !is_reliable => send(connection, lane.for_long(), packet),
        Err(SendError::Full { .. }) if !is_reliable => Ok(()),
        Err(SendError::Closed) => Ok(()), // scripts are about to hear of it
        sent => sent,
    }
}

/// Takes what has arrived. Returns whether that was all.
pub(crate) fn receive(connection: &mut Connection, peer: i32, lanes: &[Lane], inbox: &mut Inbox) -> bool {
    for lane in lanes {
        while inbox.has_room() {
            let Some(bytes) = connection.recv(lane.handle()) else { break };
            inbox.push(Packet { peer, lane: *lane, bytes });
        }
    }
    inbox.has_room()
}
