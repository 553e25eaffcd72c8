//! A UDP socket as all drivers use it: reads and writes never block, waiting is a separate call, and errors
//! are sorted into packet loss and failure.

use crate::counts::{Counts, Tally};
use crate::inbox::{Datagram, Inbox};
use crate::offload::{Mode, Offload};
use crate::os::{Bell, Until, Waiter};
use crate::outbox::Outbox;
use crate::{Socket, SocketBuffers, os};
use socket2::{Domain, Protocol, SockRef, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

/// A non-blocking socket, connected or not, with its incoming and outgoing datagrams.
#[derive(Debug)]
pub struct Port<S = UdpSocket> {
    socket: S,
    mode: Mode,
    slots: usize,
    offload: Offload,
    inbox: Inbox,
    outbox: Outbox,
    /// Whether the socket had no room for what is in the outbox.
    is_full: bool,
    local_addr: SocketAddr,
    is_replaceable: bool,
    waiter: Waiter,
    /// Ends a wait from another thread.
    bell: Option<Arc<Bell>>,
    tally: Tally,
}

impl<S: Socket> Port<S> {
    /// Takes over a socket and grows its buffers to [the default sizes](SocketBuffers). A connected socket
    /// only sends to its peer. `slots` is how many arrivals one call can return. Each takes 64 KiB of address
    /// space, and physical memory once used. An arrival may be several datagrams of one sender.
    ///
    /// # Errors
    ///
    /// If the socket fails.
    pub fn new(socket: UdpSocket, mode: Mode, slots: usize) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        SocketBuffers::default().grow(&socket);
        let offload = Offload::new(&socket, socket.peer_addr().is_ok(), mode);
        Ok(Self {
            inbox: Inbox::new(offload.slots(slots)),
            waiter: Waiter::new(&socket)?,
            local_addr: socket.local_addr()?,
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

    /// Lets the port replace its socket by one of the other address family, to send a datagram there.
    /// Datagrams that wait for room in the old socket are lost then.
    pub const fn make_replaceable(&mut self) {
        self.is_replaceable = true;
    }

    /// The network has changed. Drops what waits to be sent: also from the old socket, the system would send it by the new
    /// network, where it would show who has come. Replaces the socket, if it [may be](Self::make_replaceable), by one on
    /// another port that can send to `peer`.
    ///
    /// # Errors
    ///
    /// If the system has no other socket. The old one stays then.
    pub fn renew(&mut self, peer: SocketAddr) -> io::Result<()> {
        self.outbox.clear();
        self.is_full = false;
        if self.is_replaceable { self.replace(socket_for(peer)?) } else { Ok(()) }
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

    /// The address of the socket, which is another one once that has been replaced.
    pub const fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Traffic of the socket.
    pub const fn counts(&self) -> Counts {
        self.tally.counts
    }

    /// The sizes of its buffers, if the system reports them.
    pub fn buffers(&self) -> io::Result<SocketBuffers> {
        SocketBuffers::of(&self.socket)
    }

    /// Requests other buffer sizes and returns the actual ones. Fails if the system refuses any size.
    pub fn set_buffers(&self, wanted: SocketBuffers) -> io::Result<SocketBuffers> {
        wanted.set(&self.socket)?;
        self.buffers()
    }

    /// Whether a datagram that is too long for its path may be fragmented, so that the sender does not
    /// learn that it was too long.
    pub fn may_fragment(&self) -> bool {
        self.offload.may_fragment()
    }

    /// Whether there is a datagram to [pop](Self::pop), either read already or available from the system now.
    /// If each datagram costs a system call, at most `most` are fetched. If only a [bell](Self::bell) was
    /// read, there may be nothing to pop after all. Fails as [`read`](Self::read) does.
    pub fn has_next(&mut self, most: usize) -> io::Result<bool> {
        Ok(self.has_read() || (!self.inbox.take_last() && self.read(most)?))
    }

    /// Whether a datagram has been read already.
    pub const fn has_read(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// Whether a datagram waits in the system, which stays there.
    pub fn has_waiting(&self) -> bool {
        SockRef::from(self.socket.handle()).peek(&mut []).is_ok()
    }

    /// Asks the system for datagrams once all previous ones have been popped. Returns whether there was one.
    /// An error that means packet loss is counted, and a datagram may follow it.
    ///
    /// # Errors
    ///
    /// If the socket has failed.
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

    /// Returns the oldest datagram that was read.
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

    /// The buffer for the next datagram: append it, then call [`commit`](Self::commit) to queue it.
    pub fn stage(&mut self) -> &mut Vec<u8> {
        self.outbox.stage()
    }

    /// The datagram on the [stage](Self::stage).
    pub fn staged(&self) -> &[u8] {
        self.outbox.staged()
    }

    /// Queues the datagram on the [stage](Self::stage) for `to`, with these ECN bits if the system can set
    /// them.
    pub fn commit(&mut self, to: SocketAddr, ecn: u8) {
        if to.is_ipv6() != self.local_addr.is_ipv6() && self.is_replaceable {
            // Without such a socket, sending fails and is counted.
            if let Err(error) = socket_for(to).and_then(|socket| self.replace(socket)) {
                log::warn!("cannot open a socket to send to {to}: {error}");
            }
        }
        let to = match to {
            SocketAddr::V4(v4) if self.local_addr.is_ipv6() => {
                SocketAddr::from((v4.ip().to_ipv6_mapped(), v4.port()))
            }
            to => to,
        };
        self.outbox.commit(to, ecn);
    }

    /// Whether the batch is full: waiting for more would not make sending cheaper, so [flush](Self::flush)
    /// now.
    pub fn is_due(&self) -> bool {
        self.outbox.is_due()
    }

    /// Whether nothing waits to be sent.
    pub fn is_empty(&self) -> bool {
        self.outbox.is_empty()
    }

    /// Sends everything that waits, as far as there is room. If the send buffer fills up, the rest is kept.
    /// Then the port [is full](Self::is_full); do not queue more until there is room.
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

    /// Makes the next read report `fault`, to test drivers.
    #[doc(hidden)]
    pub fn fail(&mut self, fault: io::Error) {
        self.inbox.fail(fault);
    }
}

impl Port {
    /// Waits until a datagram arrives, the [bell](Self::bell) rings, a full send buffer has room again, or
    /// `wait` has passed. It may return earlier.
    ///
    /// # Errors
    ///
    /// If the socket has failed.
    pub fn wait(&mut self, wait: Option<Duration>) -> io::Result<()> {
        self.wait_for(true, wait, None)
    }

    /// The same, or until a datagram arrives at the other port. Without the feature `batch` of Linux, it looks at both each half ms.
    ///
    /// # Errors
    ///
    /// If the socket has failed.
    pub fn wait_with(&mut self, wait: Option<Duration>, other: &Self) -> io::Result<()> {
        if other.has_read() { Ok(()) } else { self.wait_for(true, wait, Some(&other.socket)) }
    }

    /// [`wait`](Self::wait) that leaves what arrives to another process that has this socket: datagrams do not end it. This needs Linux
    /// with the feature `batch`.
    ///
    /// # Errors
    ///
    /// If the socket has failed.
    pub fn wait_without_reading(&mut self, wait: Option<Duration>) -> io::Result<()> {
        self.wait_for(false, wait, None)
    }

    fn wait_for(
        &mut self,
        there_is_data: bool,
        wait: Option<Duration>,
        other: Option<&UdpSocket>,
    ) -> io::Result<()> {
        if self.has_read() || wait.is_some_and(|wait| wait.is_zero()) {
            return Ok(());
        }
        let (bell, scratch) = (self.bell.as_deref(), self.inbox.scratch());
        let is_for = Until { there_is_data, there_is_room: self.is_full };
        let waited = self.waiter.wait((&self.socket, other), wait, is_for, bell, scratch);
        match waited.or_else(|error| self.tally.receiving(error)) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns a bell that ends a wait from another thread.
    ///
    /// # Errors
    ///
    /// If the system has no file descriptor left for it, or does not know the socket's address.
    pub fn bell(&mut self) -> io::Result<Arc<Bell>> {
        let bell = match self.bell.take() {
            Some(bell) => bell,
            None => Arc::new(Bell::new(&self.socket)?),
        };
        Ok(Arc::clone(self.bell.insert(bell)))
    }
}

/// Opens a socket on the first of these addresses that works. On `[::]` it takes IPv4 as well, on every system that can: std's
/// does so on Linux and macOS, but neither on Windows nor on FreeBSD.
///
/// # Errors
///
/// If `addr` does not resolve or is in use.
pub fn bind(addr: impl ToSocketAddrs) -> io::Result<UdpSocket> {
    let nowhere = Err(io::ErrorKind::InvalidInput.into());
    addr.to_socket_addrs()?.fold(nowhere, |found, addr| found.or_else(|_| bind_one(addr)))
}

fn bind_one(addr: SocketAddr) -> io::Result<UdpSocket> {
    if addr.is_ipv4() || !addr.ip().is_unspecified() {
        return UdpSocket::bind(addr);
    }
    let socket = socket2::Socket::new(Domain::IPV6, Type::DGRAM, Some(Protocol::UDP))?;
    if let Err(error) = socket.set_only_v6(false) {
        log::debug!("the socket on {addr} takes no IPv4: {error}");
    }
    socket.bind(&addr.into())?;
    Ok(socket.into())
}

/// Opens a socket of the same family as `peer`, if the system supports it, on a port that the system chooses.
/// It is not connected, so it survives a change of the route to the peer.
pub fn socket_for(peer: SocketAddr) -> io::Result<UdpSocket> {
    match peer {
        SocketAddr::V4(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)),
    }
}

/// The address of this machine from which the system would send to `peer` now. Sends nothing.
///
/// # Errors
///
/// If there is no way to `peer`.
pub fn local_ip_for(peer: SocketAddr) -> io::Result<IpAddr> {
    let socket = socket_for(peer)?;
    socket.connect(peer)?;
    Ok(socket.local_addr()?.ip())
}

/// Opens `count` sockets on one port; if `addr` has no port, the first socket chooses it. Other programs of
/// the same user can join them. The system assigns each datagram to a socket by its addresses and ports.
///
/// # Errors
///
/// If `addr` is in use, or ([`Unsupported`](io::ErrorKind::Unsupported)) if the system cannot share a port.
/// Linux can, with the feature `batch`.
pub fn bind_shared(mut addr: SocketAddr, count: usize) -> io::Result<Vec<UdpSocket>> {
    let mut sockets = Vec::with_capacity(count);
    for _ in 0..count {
        let socket = os::shared(addr)?;
        addr = socket.local_addr()?;
        sockets.push(socket);
    }
    Ok(sockets)
}

/// Turns an IPv4-mapped IPv6 address into the IPv4 address.
#[must_use]
pub fn as_v4(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::from((ip, address.port())),
        IpAddr::V6(_) => address, // keeps its scope
    }
}

/// ECN's CE.
const CONGESTED: u8 = 0b11;
/// Errors in a row that are taken for packet loss before one call gives up.
const FAULTS_PER_DATAGRAM: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// Also from the old socket, the system would send it by the new network.
    #[test]
    fn what_waits_when_the_network_changes_is_dropped() {
        for is_replaceable in [true, false] {
            let [mut port, mut peer]: [Port; 2] =
                [(); 2].map(|()| Port::new(UdpSocket::bind("127.0.0.1:0").unwrap(), Mode::Whole, 4).unwrap());
            let to_peer = peer.socket.local_addr().unwrap();
            port.is_replaceable = is_replaceable;
            port.stage().extend_from_slice(b"before");
            port.commit(to_peer, 0);
            port.is_full = true;
            port.renew(to_peer).unwrap();
            assert!(!port.is_full() && port.is_empty());
            port.stage().extend_from_slice(b"after");
            port.commit(to_peer, 0);
            port.flush();
            peer.wait(Some(Duration::from_secs(5))).unwrap();
            assert!(peer.has_next(usize::MAX).unwrap());
            assert_eq!(peer.pop().unwrap().bytes, b"after");
            assert_eq!(port.counts().sent, 1);
        }
    }

    #[test]
    fn a_replaced_socket_sends_the_next_datagrams() {
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
