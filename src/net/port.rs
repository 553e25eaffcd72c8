//! One UDP socket as all drivers use it: reads and writes never block, waiting is a call of its own, and errors are sorted into loss
//! and failure. A machine's datagrams go through it both ways.

use super::batch::{Datagram, Fragments, Inbox, Offload, Outbox, Socket};
use super::buffers::SocketBuffers;
use super::os::{Bell, Waiter};
use super::shards::{Handed, Neighbours};
use super::tally::Tally;
use crate::machine::{Arrival, Ecn, Machine, Transmit};
use crate::time::Time;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

/// What a port is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purpose {
    /// Whether the socket is connected: then datagrams go to its peer only.
    pub(super) is_connected: bool,
    pub(super) fragments: Fragments,
    /// Most arrivals that one call gives: one takes 64 KiB of address space, and memory once it was used.
    pub(super) slots: usize,
    /// Whether what is answered leaves between datagrams that are read.
    pub(super) replies: bool,
}

impl Purpose {
    /// Of bare KCP. It has no way to find out what the path takes, and a usual mtu of 1400: what is too long goes in fragments.
    pub(super) const BARE: Self =
        Self { is_connected: false, fragments: Fragments::Allowed, slots: Self::ONE_PEER, replies: false };
    /// Of many bare peers.
    pub(super) const BARE_PEERS: Self = Self { slots: Self::MANY_PEERS, ..Self::BARE };
    /// Of many sessions.
    pub(super) const SESSIONS: Self =
        Self { fragments: Fragments::Forbidden, replies: true, ..Self::BARE_PEERS };
    /// Of one.
    pub(super) const SESSION: Self = Self { slots: Self::ONE_PEER, ..Self::SESSIONS };
    /// A socket of one peer: its datagrams arrive joined.
    const ONE_PEER: usize = 4;
    /// A socket of many: theirs do not.
    const MANY_PEERS: usize = 32;
}

/// A non-blocking socket, connected or not, with what came from it and what goes there.
#[derive(Debug)]
pub(super) struct Port<S = UdpSocket> {
    pub(super) socket: S,
    purpose: Purpose,
    offload: Offload,
    inbox: Inbox,
    pub(super) outbox: Outbox,
    /// Whether the socket had no room for what the outbox has.
    is_full: bool,
    is_v6: bool,
    /// Whether the socket is ours to replace by one of the other address family.
    pub(super) is_own: bool,
    waiter: Waiter,
    /// What ends a wait beside the socket.
    bell: Option<Arc<Bell>>,
    pub(super) tally: Tally,
}

impl<S: Socket> Port<S> {
    /// Takes over a socket.
    pub(super) fn new(socket: UdpSocket, purpose: Purpose) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        SocketBuffers::default().grow(&socket);
        let offload = Offload::suited(&socket, purpose.is_connected, purpose.fragments);
        Ok(Self {
            inbox: Inbox::new(offload.slots(purpose.slots)),
            waiter: Waiter::new(&socket)?,
            is_v6: socket.local_addr().is_ok_and(|address| address.is_ipv6()),
            socket: S::over(socket)?,
            purpose,
            offload,
            outbox: Outbox::default(),
            is_full: false,
            is_own: false,
            bell: None,
            tally: Tally::default(),
        })
    }

    /// Goes on with another socket, that is not connected. What waits for room in the old one is lost; what is on the stage of the
    /// outbox stays there.
    fn replace(&mut self, socket: UdpSocket) -> io::Result<()> {
        self.flush();
        if let Some(bell) = &self.bell {
            bell.moved(&socket);
        }
        let new = Self::new(socket, Purpose { is_connected: false, ..self.purpose })?;
        let old = std::mem::replace(self, new);
        (self.is_own, self.bell, self.outbox, self.tally) = (old.is_own, old.bell, old.outbox, old.tally);
        self.outbox.clear();
        Ok(())
    }

    /// Whether what is answered leaves between datagrams that are read.
    pub(super) const fn replies(&self) -> bool {
        self.purpose.replies
    }

    /// Whether a datagram that is too long for its way may be cut.
    pub(super) fn may_fragment(&self) -> bool {
        self.offload.may_fragment()
    }

    /// Whether there is a datagram to [hand in](Self::hand_in): one that was read, or that the system has now. It need not be asked for
    /// more than that many, if a call of the system for each is what is cheapest.
    pub(super) fn has_next(&mut self, most: usize) -> io::Result<bool> {
        Ok(!self.inbox.is_empty() || (!self.inbox.take_last() && self.read(most)?))
    }

    /// Whether there is a datagram that was read.
    pub(super) const fn has_read(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// Asks the system for datagrams; returns whether there was one. An error that is loss is counted, and there may be a datagram
    /// behind it.
    pub(super) fn read(&mut self, most: usize) -> io::Result<bool> {
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
                    tally.traffic.receive_calls += 1;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Hands the next datagram that was read to the machine, or on to the shard that owns it; `false`: there is none.
    pub(super) fn hand_in<M: Machine>(
        &mut self,
        now: Time,
        machine: &mut M,
        others: Option<&Neighbours<M>>,
    ) -> bool {
        let Some(Datagram { bytes, from, ecn }) = self.inbox.pop() else { return false };
        let Tally { traffic, stats, .. } = &mut self.tally;
        traffic.received += 1;
        traffic.congestion_marks += u64::from(ecn == Some(Ecn::Congested));
        if bytes.is_empty() && self.bell.as_ref().is_some_and(|bell| bell.is_at(from)) {
            return true;
        }
        let from = Arrival { address: as_v4(from), ecn };
        let Some(others) = others else {
            machine.handle_datagram(now, from, bytes);
            return true;
        };
        match others.hand_in(now, machine, from, bytes) {
            Handed::Mine => {}
            Handed::On => traffic.handed_on += 1,
            Handed::Lost => stats.not_handed_on += 1,
        }
        true
    }

    /// Gathers what is due, until it is time to [flush](Self::flush), and at most what is `left` to send; returns whether that was all.
    pub(super) fn gather(&mut self, now: Time, machine: &mut impl Machine, left: &mut usize) -> bool {
        while *left > 0 && !self.outbox.is_due() {
            let Some(Transmit { address, ecn }) = machine.poll_transmit(now, self.outbox.stage()) else {
                return true;
            };
            *left -= 1;
            if address.is_ipv6() != self.is_v6 && self.is_own {
                // Where there is none, sending fails and is counted.
                if let Err(error) = socket_for(address).and_then(|socket| self.replace(socket)) {
                    log::warn!("no socket that can send to {address}: {error}");
                }
            }
            self.outbox.commit(self.way(address), ecn);
        }
        false
    }

    /// Sends what is gathered, as far as there is room. When the send buffer is full the rest is kept: then the port
    /// [is full](Self::is_full) and should get no other until there is room.
    pub(super) fn flush(&mut self) {
        let Self { socket, offload, outbox, tally, .. } = self;
        if !outbox.is_empty() {
            self.is_full = socket.writing(|| outbox.flush(offload, socket, tally)).is_err();
        }
    }

    /// Whether datagrams wait for room in the send buffer.
    pub(super) const fn is_full(&self) -> bool {
        self.is_full
    }

    /// The next read of the socket reports this.
    #[cfg(test)]
    pub(super) fn fail(&mut self, fault: io::Error) {
        self.inbox.fail(fault);
    }

    /// The address as the socket wants it, of IPv6 or not.
    const fn way(&self, address: SocketAddr) -> SocketAddr {
        match address {
            SocketAddr::V4(v4) if self.is_v6 => {
                SocketAddr::new(IpAddr::V6(v4.ip().to_ipv6_mapped()), v4.port())
            }
            address => address,
        }
    }
}

impl Port {
    /// `wait`, but not longer than a full send buffer should be left alone by who does not [wait](Self::wait) here.
    pub(super) fn limit(&self, wait: Option<Duration>) -> Option<Duration> {
        if self.is_full { Some(wait.map_or(RETRY, |wait| wait.min(RETRY))) } else { wait }
    }

    /// Waits until a datagram has arrived, or for `wait`. It may return earlier.
    pub(super) fn wait(&mut self, wait: Option<Duration>) -> io::Result<()> {
        if !self.inbox.is_empty() || wait.is_some_and(|wait| wait.is_zero()) {
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
    pub(super) fn bell(&mut self) -> io::Result<Arc<Bell>> {
        let bell = match self.bell.take() {
            Some(bell) => bell,
            None => Arc::new(Bell::new(&self.socket)?),
        };
        Ok(Arc::clone(self.bell.insert(bell)))
    }
}

/// A socket of the family of `peer`, on a port that the system chooses. It is not connected: it survives a change of the way to the peer.
pub(super) fn socket_for(peer: SocketAddr) -> io::Result<UdpSocket> {
    match peer {
        SocketAddr::V4(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)),
    }
}

/// The address without what a socket of IPv6 makes of IPv4.
pub(super) fn as_v4(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::from((ip, address.port())),
        IpAddr::V6(_) => address, // with its scope
    }
}

/// Between two attempts to write to a full send buffer: a Gbit/s drains 128 KiB of it.
const RETRY: Duration = Duration::from_millis(1);
/// Errors in a row that are taken for loss before one call gives up looking for a datagram.
const FAULTS_PER_DATAGRAM: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn port() -> (Port, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        (Port::new(socket, Purpose::SESSION).unwrap(), to)
    }

    #[test]
    fn another_socket_sends_what_was_written_for_it() {
        let (mut port, to) = port();
        let (mut peer, to_peer) = self::port();
        port.outbox.push(b"by the old one", to_peer);
        port.outbox.stage().extend_from_slice(b"by the new one");
        port.replace(UdpSocket::bind("127.0.0.1:0").unwrap()).unwrap();
        port.outbox.commit(to_peer, None);
        port.flush();
        assert_ne!(port.socket.local_addr().unwrap(), to);
        for expected in [b"by the old one", b"by the new one"] {
            peer.wait(Some(Duration::from_secs(5))).unwrap();
            assert!(peer.has_next(usize::MAX).unwrap());
            assert_eq!(peer.inbox.pop().unwrap().bytes, expected);
        }
        assert_eq!(port.tally.traffic.sent, 2);
    }
}
