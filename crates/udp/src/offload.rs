//! System calls that handle many datagrams at once.

use crate::inbox::Inbox;
use crate::one::Many;
use crate::{Socket, os};
use std::io;
use std::net::SocketAddr;

/// How one socket receives and sends: by the system's calls for many datagrams, or by std's calls for one.
/// The code above sees no difference.
#[derive(Debug)]
pub(crate) struct Offload {
    /// Whether the socket is connected. Then the peer's address is left out, since not every system accepts
    /// it.
    is_connected: bool,
    /// The only calls that can set IP header fields.
    pub(crate) many: Option<Many>,
    /// Whether to use std's calls until there is more than one datagram at a time.
    is_late: bool,
    /// Whether a datagram may be fragmented where std's calls send it.
    has_fragments: bool,
}

/// Which calls a socket uses, and whether a router or this host may fragment a datagram that is too long for
/// its path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "every driver of a port chooses one")]
pub enum Mode {
    /// std's calls, one per datagram, whatever the system offers. Only a socket on which batched calls were used before keeps
    /// them, in this and every mode.
    Plain,
    /// Fragmentation is allowed, as the system does by default. Uses std's calls if the system cannot
    /// preserve that, and also as long as datagrams come one at a time, for which the batched calls cost
    /// more. With std's calls, ECN marks on received datagrams are not reported.
    Fragments,
    /// No fragmentation: a datagram that is too long is lost, and a local interface too narrow for it reports
    /// that (`too_long`). This is what path MTU discovery needs.
    Whole,
    /// The same for those who need no ECN marks: with std's calls as long as datagrams come one at a time, if
    /// the system can forbid fragments for these.
    Unmarked,
}

impl Offload {
    /// Makes the socket non-blocking. If batched calls have been used on it before, the system may join datagrams that arrive, which
    /// only these calls take apart again: then they are used from the start, in every mode.
    pub(crate) fn new(socket: &impl Socket, is_connected: bool, mode: Mode) -> Self {
        let (is_late, needs_many) = match mode {
            Mode::Plain => (false, false),
            Mode::Fragments => (os::can_allow_fragments(socket), false),
            Mode::Whole => (false, true),
            Mode::Unmarked => {
                let is_late = os::forbid_fragments(socket);
                (is_late, !is_late)
            }
        };
        let has_fragments = mode != Mode::Unmarked || !is_late;
        let mut offload = Self { is_connected, many: None, is_late, has_fragments };
        if needs_many {
            offload.many = Many::new(socket);
        } else if os::was_batched(socket) {
            offload.start_batches(socket);
        }
        offload
    }

    /// Whether a datagram that is too long for its path may be fragmented.
    pub(crate) fn may_fragment(&self) -> bool {
        self.has_fragments && self.many.as_ref().is_none_or(Many::may_fragment)
    }

    /// Notes that `count` datagrams were moved at once, or are about to be.
    pub(crate) fn moves(&mut self, socket: &impl Socket, count: usize) {
        if self.is_late && count >= MANY {
            self.start_batches(socket);
        }
    }

    fn start_batches(&mut self, socket: &impl Socket) {
        (self.many, self.is_late) = (Many::new(socket), false);
        if self.has_fragments {
            os::allow_fragments(socket);
        }
    }

    /// Receives what one call returns into the inbox, which drops what it still holds. With calls for one
    /// datagram, makes at most `most` of them. `WouldBlock` if there is nothing.
    pub(crate) fn recv(&mut self, socket: &impl Socket, inbox: &mut Inbox, most: usize) -> io::Result<()> {
        if let Some(many) = &mut self.many {
            return inbox.fill(many, socket);
        }
        let most = if self.is_late { most.min(MANY) } else { 1 };
        let count = inbox.fill_each(most, |buf| socket.recv_from(buf))?;
        self.moves(socket, count);
        Ok(())
    }

    /// Arrivals that one call can return.
    pub(crate) const fn slots(&self, wanted: usize) -> usize {
        if self.many.is_some() || self.is_late { wanted } else { 1 }
    }

    /// Most datagrams that [`Self::send_joined`] can send. May drop to 1 when the driver of the network card
    /// turns out not to support it.
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

    /// Sends datagrams of `size` bytes that lie one after another; the last may be shorter. Sends all of them
    /// or none.
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

    /// Sends datagrams to several addresses and returns how many were sent: fewer if the next one fails.
    /// Fails if the first one does.
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

/// From this many datagrams on, batched calls pay off: more than an answer and its acknowledgement.
const MANY: usize = 4;
