//! One UDP socket as all drivers use it: reads and writes never block, waiting is a call of its own, and errors are sorted into loss
//! and failure.

use crate::counts::{Counts, Tally};
use crate::inbox::{Datagram, Inbox};
use crate::offload::{Mode, Offload};
use crate::one::Many;
use crate::os::{Bell, Waiter};
use crate::outbox::Outbox;
use crate::{Socket, SocketBuffers, os};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

/// A non-blocking socket, connected or not, with what came from it and what goes there.
#[derive(Debug)]
pub struct Port<S = UdpSocket> {
    socket: S,
    mode: Mode,
    slots: usize,
    offload: Offload,
    inbox: Inbox,
    outbox: Outbox,
    /// Whether the socket had no room for what the outbox has.
    is_full: bool,
    is_v6: bool,
    is_replaceable: bool,
    waiter: Waiter,
    /// What ends a wait beside the socket.
    bell: Option<Arc<Bell>>,
    tally: Tally,
}

impl<S: Socket> Port<S> {
    /// Takes over a socket, whose buffers grow to [those of default](SocketBuffers). If it is connected, it sends to its peer only. `slots` are the most arrivals
    /// that one call gives: one takes 64 KiB of address space, and memory once it was used. Datagrams of one sender may arrive joined, as one.
    ///
    /// # Errors
    ///
    /// The socket fails.
    pub fn new(socket: UdpSocket, mode: Mode, slots: usize) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        SocketBuffers::default().grow(&socket);
        let offload = Offload::new(&socket, socket.peer_addr().is_ok(), mode);
        Ok(Self {
            inbox: Inbox::new(offload.slots(slots)),
            waiter: Waiter::new(&socket)?,
            is_v6: socket.local_addr().is_ok_and(|address| address.is_ipv6()),
            socket: S::over(socket)?,
            mode,
            slots,
            offload,
            outbox: Outbox::default(),
            is_full: false,
            is_replaceable: false,
            bell: None,
            tally: Tally::default(),
        })
    }

    /// The socket is the port's to replace by one of the other address family, for a datagram that goes there. What waits for room in the old
    /// one is lost then.
    pub const fn make_replaceable(&mut self) {
        self.is_replaceable = true;
    }

    fn replace(&mut self, socket: UdpSocket) -> io::Result<()> {
        self.flush();
        if let Some(bell) = &self.bell {
            bell.moved(&socket);
        }
        let old = std::mem::replace(self, Self::new(socket, self.mode, self.slots)?);
        self.is_replaceable = old.is_replaceable;
        (self.bell, self.outbox, self.tally) = (old.bell, old.outbox, old.tally);
        self.outbox.clear();
        Ok(())
    }

    /// The socket.
    pub const fn socket(&self) -> &S {
        &self.socket
    }

    /// What went through it.
    pub const fn counts(&self) -> Counts {
        self.tally.counts
    }

    /// The sizes of its buffers, if the system tells.
    pub fn buffers(&self) -> io::Result<SocketBuffers> {
        SocketBuffers::of(&self.socket)
    }

    /// Asks for other sizes of its buffers, and returns those that it has now. An error: the system refuses any.
    pub fn set_buffers(&self, wanted: SocketBuffers) -> io::Result<SocketBuffers> {
        wanted.set(&self.socket)?;
        self.buffers()
    }

    /// Whether a datagram that is too long for its way may be cut, so that nobody hears that it was.
    pub fn may_fragment(&self) -> bool {
        self.offload.many.as_ref().is_none_or(Many::may_fragment)
    }

    /// Whether there is a datagram to [pop](Self::pop): one that was read, or that the system has now. It need not be asked for
    /// more than that many, if a call of the system for each is what is cheapest. What was read may only have been a bell; then there is
    /// nothing to pop after all. Errors are those of [`read`](Self::read).
    pub fn has_next(&mut self, most: usize) -> io::Result<bool> {
        Ok(self.has_read() || (!self.inbox.take_last() && self.read(most)?))
    }

    /// Whether there is a datagram that was read.
    pub const fn has_read(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// Asks the system for datagrams, when all that were read have been popped; returns whether there was one. An error that is loss is
    /// counted, and there may be a datagram behind it.
    ///
    /// # Errors
    ///
    /// The socket has failed.
    pub fn read(&mut self, most: usize) -> io::Result<bool> {
        let Self { socket, offload, inbox, tally, .. } = self;
        for _ in 0..FAULTS_PER_DATAGRAM {
            let read = socket.reading(|| {
                offload.recv(socket, inbox, most)?;
                if inbox.is_last() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
            });
            match read {
                Err(error) if inbox.is_empty() => match tally.receiving(error) {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                    Err(error) => return Err(error),
                },
                _ => {
                    tally.counts.receive_calls += 1;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Takes the oldest datagram that was read.
    pub fn pop(&mut self) -> Option<Datagram<'_>> {
        if let Some(bell) = &self.bell {
            while self.inbox.next_if_empty().is_some_and(|from| bell.is_at(from)) {
                self.inbox.pop();
            }
        }
        let mut datagram = self.inbox.pop()?;
        self.tally.counts.received += 1;
        self.tally.counts.congestion_marks += u64::from(datagram.ecn == CONGESTED);
        datagram.from = as_v4(datagram.from);
        Some(datagram)
    }

    /// A buffer to write a datagram behind what is in it, which [`commit`](Self::commit) puts behind those that wait.
    pub fn stage(&mut self) -> &mut Vec<u8> {
        self.outbox.stage()
    }

    /// The datagram that was written on the [stage](Self::stage) goes to `to`, with these two bits of ECN where the system can write them.
    pub fn commit(&mut self, to: SocketAddr, ecn: u8) {
        if to.is_ipv6() != self.is_v6 && self.is_replaceable {
            // Where there is none, sending fails and is counted.
            if let Err(error) = socket_for(to).and_then(|socket| self.replace(socket)) {
                log::warn!("no socket that can send to {to}: {error}");
            }
        }
        let to = match to {
            SocketAddr::V4(v4) if self.is_v6 => SocketAddr::from((v4.ip().to_ipv6_mapped(), v4.port())),
            to => to,
        };
        self.outbox.commit(to, ecn);
    }

    /// Whether enough waits for more not to make sending cheaper: time to [flush](Self::flush).
    pub fn is_due(&self) -> bool {
        self.outbox.is_due()
    }

    /// Whether nothing waits to be sent.
    pub fn is_empty(&self) -> bool {
        self.outbox.is_empty()
    }

    /// Sends what waits, as far as there is room. When the send buffer is full the rest is kept: then the port
    /// [is full](Self::is_full) and should get no other until there is room.
    pub fn flush(&mut self) {
        let Self { socket, offload, outbox, tally, .. } = self;
        if !outbox.is_empty() {
            self.is_full = socket.writing(|| outbox.flush(offload, socket, tally)).is_err();
        }
    }

    /// Whether datagrams wait for room in the send buffer.
    pub const fn is_full(&self) -> bool {
        self.is_full
    }

    /// The next read reports this: for tests of who drives the port.
    #[doc(hidden)]
    pub fn fail(&mut self, fault: io::Error) {
        self.inbox.fail(fault);
    }
}

impl Port {
    /// Waits until a datagram has arrived, the [bell](Self::bell) rings or a full send buffer has room, or for `wait`. It may return earlier.
    ///
    /// # Errors
    ///
    /// The socket has failed.
    pub fn wait(&mut self, wait: Option<Duration>) -> io::Result<()> {
        if self.has_read() || wait.is_some_and(|wait| wait.is_zero()) {
            return Ok(());
        }
        let (bell, scratch) = (self.bell.as_deref(), self.inbox.scratch());
        let waited = self.waiter.wait(&self.socket, wait, self.is_full, bell, scratch);
        match waited.or_else(|error| self.tally.receiving(error)) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }

    /// What ends a wait, from another thread.
    ///
    /// # Errors
    ///
    /// The system has no descriptor for it, or does not know the socket's address.
    pub fn bell(&mut self) -> io::Result<Arc<Bell>> {
        let bell = match self.bell.take() {
            Some(bell) => bell,
            None => Arc::new(Bell::new(&self.socket)?),
        };
        Ok(Arc::clone(self.bell.insert(bell)))
    }
}

/// A socket of the family of `peer`, if the system has that, on a port that it chooses. It is not connected: it survives a change of the way to
/// the peer.
pub fn socket_for(peer: SocketAddr) -> io::Result<UdpSocket> {
    match peer {
        SocketAddr::V4(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)),
    }
}

/// So many sockets on one port, that of the first if `addr` has none. Who runs as the same user can join them. The system chooses the socket
/// of a datagram by its addresses and ports.
///
/// # Errors
///
/// `addr` is in use, or ([`Unsupported`](io::ErrorKind::Unsupported)) the system does not share out ports: Linux does, with the feature `batch`.
pub fn bind_shared(mut addr: SocketAddr, count: usize) -> io::Result<Vec<UdpSocket>> {
    let mut sockets = Vec::with_capacity(count);
    for _ in 0..count {
        let socket = os::shared(addr)?;
        addr = socket.local_addr()?;
        sockets.push(socket);
    }
    Ok(sockets)
}

/// The address without what a socket of IPv6 makes of IPv4.
#[must_use]
pub fn as_v4(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::from((ip, address.port())),
        IpAddr::V6(_) => address, // with its scope
    }
}

/// ECN's CE.
const CONGESTED: u8 = 0b11;
/// Errors in a row that are taken for loss before one call gives up looking for a datagram.
const FAULTS_PER_DATAGRAM: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_socket_sends_what_was_written_for_it() {
        let [mut port, mut peer]: [Port; 2] =
            [(); 2].map(|()| Port::new(UdpSocket::bind("127.0.0.1:0").unwrap(), Mode::Whole, 4).unwrap());
        let [before, to_peer] = [&port, &peer].map(|port| port.socket.local_addr().unwrap());
        port.stage().extend_from_slice(b"by the old one");
        port.commit(to_peer, 0);
        port.stage().extend_from_slice(b"by the new one");
        port.replace(UdpSocket::bind("127.0.0.1:0").unwrap()).unwrap();
        port.commit(to_peer, 0);
        port.flush();
        assert_ne!(port.socket.local_addr().unwrap(), before);
        for expected in [b"by the old one", b"by the new one"] {
            peer.wait(Some(Duration::from_secs(5))).unwrap();
            assert!(peer.has_next(usize::MAX).unwrap());
            assert_eq!(peer.pop().unwrap().bytes, expected);
        }
        assert_eq!(port.counts().sent, 2);
    }
}
