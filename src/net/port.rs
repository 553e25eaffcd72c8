//! One UDP socket as the blocking drivers use it: reads and writes never block, waiting is a call of its own, and errors are sorted
//! into loss and failure.

use super::batch::{Datagram, Fragments, Inbox, Offload, Outbox};
use super::buffers::SocketBuffers;
use super::os::{Bell, Waiter};
use super::tally::{SocketStats, SocketTraffic, Tally};
use crate::machine::Ecn;
use std::io;
use std::net::{SocketAddr, UdpSocket};
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
    /// Of sessions.
    pub(super) const SESSIONS: Self =
        Self { fragments: Fragments::Forbidden, slots: Self::MANY_PEERS, replies: true, ..Self::BARE };
    /// A socket of one peer: its datagrams arrive joined.
    pub(super) const ONE_PEER: usize = 4;
    /// A socket of many: theirs do not.
    pub(super) const MANY_PEERS: usize = 32;
}

/// A non-blocking socket, connected or not, with what came from it and what goes there.
#[derive(Debug)]
pub(super) struct Port {
    socket: UdpSocket,
    purpose: Purpose,
    offload: Offload,
    inbox: Inbox,
    outbox: Outbox,
    /// Whether the socket had no room for what the outbox has.
    is_full: bool,
    waiter: Waiter,
    /// What ends a wait beside the socket.
    bell: Option<Arc<Bell>>,
    tally: Tally,
}

impl Port {
    /// Takes over a socket.
    pub(super) fn new(socket: UdpSocket, purpose: Purpose) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        SocketBuffers::default().grow(&socket);
        let offload = Offload::suited(&socket, purpose.is_connected, purpose.fragments);
        Ok(Self {
            inbox: Inbox::new(offload.slots(purpose.slots)),
            waiter: Waiter::new(&socket)?,
            bell: None,
            socket,
            purpose,
            offload,
            outbox: Outbox::default(),
            is_full: false,
            tally: Tally::default(),
        })
    }

    /// Goes on with another socket, that is not connected. What waits for room in the old one is lost; what is on the
    /// [stage](Self::stage) stays there.
    pub(super) fn replace(&mut self, socket: UdpSocket) -> io::Result<()> {
        self.flush();
        let mut new = Self::new(socket, Purpose { is_connected: false, ..self.purpose })?;
        self.outbox.clear();
        std::mem::swap(&mut self.outbox, &mut new.outbox);
        std::mem::swap(&mut self.tally, &mut new.tally);
        *self = new;
        Ok(())
    }

    /// Whether its addresses are of IPv6.
    pub(super) fn is_v6(&self) -> bool {
        self.local_addr().is_ok_and(|address| address.is_ipv6())
    }

    /// Whether what is answered leaves between datagrams that are read.
    pub(super) const fn replies(&self) -> bool {
        self.purpose.replies
    }

    /// From now on a wait ends when `bell` rings, as well.
    pub(super) fn set_bell(&mut self, bell: Arc<Bell>) {
        self.bell = Some(bell);
    }

    pub(super) const fn traffic_mut(&mut self) -> &mut SocketTraffic {
        &mut self.tally.traffic
    }

    /// The same socket once more.
    pub(super) fn try_clone(&self) -> io::Result<UdpSocket> {
        self.socket.try_clone()
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Whether a datagram that is too long for its way may be cut.
    pub(super) fn may_fragment(&self) -> bool {
        self.offload.may_fragment()
    }

    pub(super) const fn stats(&self) -> SocketStats {
        self.tally.stats
    }

    pub(super) const fn traffic(&self) -> SocketTraffic {
        self.tally.traffic
    }

    pub(super) const fn stats_mut(&mut self) -> &mut SocketStats {
        &mut self.tally.stats
    }

    /// The next datagram that has arrived; `None`: there was no other when the system was last asked. It need not be asked for more than
    /// that many, if a call of the system for each is what is cheapest.
    pub(super) fn recv(&mut self, most: usize) -> io::Result<Option<Datagram<'_>>> {
        if self.inbox.is_empty() && (self.inbox.take_last() || !self.fill(most)?) {
            return Ok(None);
        }
        let datagram = self.inbox.pop();
        let is_marked = datagram.as_ref().is_some_and(|datagram| datagram.ecn == Some(Ecn::Congested));
        self.tally.traffic.received += u64::from(datagram.is_some());
        self.tally.traffic.congestion_marks += u64::from(is_marked);
        Ok(datagram)
    }

    /// Whether there is a datagram that [`recv`](Self::recv) need not ask the system for.
    pub(super) const fn has_read(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// A buffer to write the next datagram behind what is in it, which [`commit`](Self::commit) sends.
    pub(super) fn stage(&mut self) -> &mut Vec<u8> {
        self.outbox.stage()
    }

    /// Sends the datagram that was written into the [stage](Self::stage), now or with the next [flush](Self::flush).
    pub(super) fn commit(&mut self, to: SocketAddr, ecn: Option<Ecn>) {
        self.outbox.commit(to, ecn);
        self.flush_if_due();
    }

    /// Sends one datagram, which may be lost, now or with the next [flush](Self::flush). When the send buffer is full what was to be
    /// sent is kept: then the port [is full](Self::is_full) and should get no other until there is room.
    pub(super) fn send(&mut self, datagram: &[u8], to: SocketAddr) {
        self.outbox.push(datagram, to);
        self.flush_if_due();
    }

    /// Sends one datagram behind which there is no other: now, and without a copy when none waits before it.
    pub(super) fn send_last(&mut self, datagram: &[u8], to: SocketAddr) {
        if self.outbox.is_empty() {
            let sent = self.outbox.send_now(datagram, to, &mut self.offload, &self.socket, &mut self.tally);
            self.is_full = sent.is_err();
        } else {
            self.outbox.push(datagram, to);
            self.flush();
        }
    }

    /// Sends what is kept, as far as there is room.
    pub(super) fn flush(&mut self) {
        if !self.outbox.is_empty() {
            self.is_full = self.outbox.flush(&mut self.offload, &self.socket, &mut self.tally).is_err();
        }
    }

    /// Whether datagrams wait for room in the send buffer.
    pub(super) const fn is_full(&self) -> bool {
        self.is_full
    }

    /// `wait`, but not longer than a full send buffer should be left alone by who does not [wait](Self::wait) here.
    pub(super) fn limit(&self, wait: Option<Duration>) -> Option<Duration> {
        if self.is_full() { Some(wait.map_or(RETRY, |wait| wait.min(RETRY))) } else { wait }
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

    pub(super) fn buffers(&self) -> io::Result<SocketBuffers> {
        SocketBuffers::of(&self.socket)
    }

    pub(super) fn set_buffers(&self, wanted: SocketBuffers) -> io::Result<SocketBuffers> {
        wanted.set(&self.socket)?;
        self.buffers()
    }

    /// The next read of the socket reports this.
    #[cfg(test)]
    pub(super) fn fail(&mut self, fault: io::Error) {
        self.inbox.fail(fault);
    }

    fn flush_if_due(&mut self) {
        if self.outbox.is_due() {
            self.flush();
        }
    }

    /// Asks the system for datagrams; returns whether there was one. An error that is loss is counted, and there may be a datagram
    /// behind it.
    fn fill(&mut self, most: usize) -> io::Result<bool> {
        for _ in 0..FAULTS_PER_DATAGRAM {
            match self.offload.recv(&self.socket, &mut self.inbox, most) {
                Ok(()) => {
                    self.tally.traffic.receive_calls += 1;
                    return Ok(true);
                }
                Err(error) => match self.tally.receiving(error) {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                    Err(error) => return Err(error),
                },
            }
        }
        Ok(false)
    }
}

/// Between two attempts to write to a full send buffer: a Gbit/s drains 128 KiB of it.
const RETRY: Duration = Duration::from_millis(1);

/// Errors in a row that are taken for loss before one call gives up looking for a datagram.
const FAULTS_PER_DATAGRAM: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    fn port() -> (Port, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        let purpose = Purpose { slots: 2, ..Purpose::SESSIONS };
        (Port::new(socket, purpose).unwrap(), to)
    }

    fn next(port: &mut Port) -> Vec<u8> {
        port.wait(Some(PATIENCE)).unwrap();
        port.recv(usize::MAX).unwrap().unwrap().bytes.to_vec()
    }

    #[test]
    fn a_datagram_longer_than_udp_carries_is_counted_and_not_fatal() {
        let (mut port, to) = port();
        port.send_last(&vec![0; 70_000], to);
        assert_eq!((port.stats().too_long, port.is_full()), (1, false));
        port.send_last(b"short", to);
        assert_eq!(next(&mut port), b"short");
    }

    #[test]
    fn all_ways_to_send_keep_the_order() {
        let (mut port, to) = port();
        port.send(b"1", to);
        port.stage().extend_from_slice(b"2");
        port.commit(to, None);
        port.send_last(b"3 and the last", to);
        port.send(b"4", to);
        assert!(port.limit(None).is_none());
        port.flush();
        for expected in [&b"1"[..], b"2", b"3 and the last", b"4"] {
            assert_eq!(next(&mut port), expected);
        }
        assert_eq!(port.recv(usize::MAX).unwrap(), None);
        assert_eq!((port.traffic().sent, port.traffic().received), (4, 4));
    }

    #[test]
    fn another_socket_sends_what_was_written_for_it() {
        let (mut port, to) = port();
        let (mut peer, to_peer) = self::port();
        port.send(b"by the old one", to_peer);
        port.stage().extend_from_slice(b"by the new one");
        port.replace(UdpSocket::bind("127.0.0.1:0").unwrap()).unwrap();
        port.commit(to_peer, None);
        port.flush();
        assert_ne!(port.local_addr().unwrap(), to);
        assert_eq!(next(&mut peer), b"by the old one");
        assert_eq!(next(&mut peer), b"by the new one");
        assert_eq!(port.traffic().sent, 2);
    }
}
