//! What the system does for many datagrams at once.

use crate::inbox::Inbox;
use crate::one::Many;
use crate::{Socket, os};
use std::io;
use std::net::SocketAddr;

/// The calls by which one socket receives and sends: with what the system can do for many datagrams at once, or std's, one a
/// datagram. Above it both are the same.
#[derive(Debug)]
pub(crate) struct Offload {
    /// The peer of a connected socket gets no address: not every system takes one then.
    is_connected: bool,
    /// Which alone can write into IP headers.
    pub(crate) many: Option<Many>,
    /// std's calls until there is more to move than one datagram at a time.
    is_late: bool,
}

/// By which calls a socket sends and receives, and whether a router, or this host, may cut a datagram that is too long for its way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "whoever drives a port chooses one")]
pub enum Mode {
    /// std's, one a datagram, whatever the system offers.
    Plain,
    /// It may, as the system has it. Where it is not known how to keep that, the calls are std's; and as long as datagrams go one at a time,
    /// for which a call for many costs more. By those nobody is told of the marks (ECN) of what comes.
    Fragments,
    /// It may not: the datagram is lost, and an interface too narrow for it says so (`too_long`). What a search for the path's MTU needs.
    Whole,
}

impl Offload {
    /// The socket becomes non-blocking.
    pub(crate) fn new(socket: &impl Socket, is_connected: bool, mode: Mode) -> Self {
        Self {
            is_connected,
            many: if mode == Mode::Whole { Many::new(socket) } else { None },
            is_late: mode == Mode::Fragments && os::can_allow_fragments(socket),
        }
    }

    /// So many datagrams were moved at once, or are about to be.
    pub(crate) fn moves(&mut self, socket: &impl Socket, count: usize) {
        if self.is_late && count >= MANY {
            (self.many, self.is_late) = (Many::new(socket), false);
            os::allow_fragments(socket);
        }
    }

    /// Receives as much as one call gives into the inbox, whose last datagrams are forgotten; by calls for one, `most` datagrams and not
    /// many. `WouldBlock` when there is nothing.
    pub(crate) fn recv(&mut self, socket: &impl Socket, inbox: &mut Inbox, most: usize) -> io::Result<()> {
        if let Some(many) = &mut self.many {
            return inbox.fill(many, socket);
        }
        let most = if self.is_late { most.min(MANY) } else { 1 };
        let count = inbox.fill_each(most, |buf| socket.recv_from(buf))?;
        self.moves(socket, count);
        Ok(())
    }

    /// Arrivals that a call can give.
    pub(crate) const fn slots(&self, wanted: usize) -> usize {
        if self.many.is_some() || self.is_late { wanted } else { 1 }
    }

    /// Most datagrams that [`Self::send_joined`] sends; it may become 1 when a driver of the network card turns out not to do it.
    pub(crate) fn most_joined(&self) -> usize {
        self.many.as_ref().map_or(1, Many::most_joined)
    }

    /// Whether [`Self::send_each`] sends more than one.
    pub(crate) const fn sends_each(&self) -> bool {
        self.many.is_some() && os::SENDS_EACH
    }

    pub(crate) fn send(&self, socket: &impl Socket, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        let sent = if self.is_connected { socket.send(datagram) } else { socket.send_to(datagram, to) };
        sent.map(|_| ())
    }

    /// Sends datagrams of `size` bytes that lie one behind the other, the last may be shorter: all of them, or none.
    pub(crate) fn send_joined(
        &self,
        socket: &impl Socket,
        datagrams: &[u8],
        size: usize,
        to: SocketAddr,
        ecn: u8,
    ) -> io::Result<()> {
        let many = self.many.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        many.send_joined(socket, datagrams, size, to, ecn)
    }

    /// Sends datagrams to several addresses, and returns how many: fewer when the next one fails, and an error when the first one
    /// does.
    pub(crate) fn send_each(
        &self,
        socket: &impl Socket,
        datagrams: &[(SocketAddr, &[u8])],
    ) -> io::Result<usize> {
        if self.sends_each() && datagrams.len() > 1 {
            return os::send_each(socket, datagrams, self.is_connected);
        }
        let Some((to, datagram)) = datagrams.first() else { return Ok(0) };
        self.send(socket, datagram, *to).map(|()| 1)
    }
}

/// So many datagrams at once are worth calls for many: more than an answer and what acknowledges the question.
const MANY: usize = 4;
