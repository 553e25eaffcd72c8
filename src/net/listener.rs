//! Many bare KCP peers on one UDP socket.

use super::batch::Fragments;
use super::buffers::SocketBuffers;
use super::clock::Clock;
use super::driver::{SENDS_PER_CALL, as_v4, way};
use super::error::Error;
use super::port::{Port, Purpose};
use super::random::random;
use super::tally::{SocketStats, SocketTraffic};
use crate::machine::{Arrival, Machine};
use crate::seq::Conv;
use crate::session::raw::{Config, Event, Peer, PeerId, Peers, RegisterError, Stats};
use crate::time::Time;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::num::NonZeroUsize;
use std::time::Duration;

/// The server end of bare KCP: one UDP socket, and a [`Peer`] for each address and conv that sends
/// to it, under the limits of a [`raw::Config`](Config).
///
/// A program polls, takes the events, and uses the peers that they name:
///
/// ```no_run
/// use whitewater::net::KcpListener;
/// use whitewater::session::raw::{Config, Event};
///
/// # fn main() -> std::io::Result<()> {
/// let mut listener = KcpListener::bind("0.0.0.0:4000", &Config::open())?;
/// let mut message = [0; 1 << 16];
/// loop {
///     listener.poll(None)?;
///     while let Some(event) = listener.next_event() {
///         let Event::Readable(id) = event else { continue };
///         while let Some(peer) = listener.peer(id)
///             && let Ok(len) = peer.recv(&mut message)
///         {
///             if peer.send(&message[..len]).is_err() {
///                 listener.close(id); // it sends and does not read
///             }
///         }
///     }
/// }
/// # }
/// ```
///
/// # Strangers
///
/// Bare KCP has no handshake: in an [open](Config::open) listener who sends a good first datagram is a peer. So limits bound what that
/// costs, everything that is not a good first datagram is dropped without an answer and counted, and a source address may be forged.
/// The answer to a forged one is no amplifier: a control block answers a datagram with
/// acknowledgements of 24 bytes for segments of 24 bytes or more. What the program sends to a peer
/// that has not yet acknowledged anything is the program's to bound, or [`Strangers::Proven`](crate::session::raw::Strangers)'s.
#[derive(Debug)]
pub struct KcpListener {
    port: Port,
    is_v6: bool,
    peers: Peers,
    clock: Clock,
    datagrams_per_pump: NonZeroUsize,
}

impl KcpListener {
    /// A listener on `addr`. On an IPv6 address that takes IPv4 as well, IPv4 peers have IPv4 addresses.
    ///
    /// # Errors
    ///
    /// `addr` does not resolve or is in use, or `config` is out of range ([`Error::Config`]).
    pub fn bind(addr: impl ToSocketAddrs, config: &Config) -> io::Result<Self> {
        Self::wrap(UdpSocket::bind(addr)?, config)
    }

    /// A listener on a socket that is bound already, and not connected. It becomes non-blocking.
    ///
    /// # Errors
    ///
    /// The socket fails, or `config` is out of range ([`Error::Config`]).
    pub fn wrap(socket: UdpSocket, config: &Config) -> io::Result<Self> {
        let peers = Peers::new(config, &mut random()?).map_err(Error::from)?;
        let is_v6 = socket.local_addr()?.is_ipv6();
        let slots = Purpose::MANY_PEERS; // fragments: as of a `KcpSocket`
        let port = Port::new(socket, Purpose { is_connected: false, fragments: Fragments::Allowed, slots })?;
        Ok(Self { port, is_v6, peers, clock: Clock::new(), datagrams_per_pump: DATAGRAMS_PER_PUMP })
    }

    /// Reads the datagrams that wait, updates the peers that have something to do and sends
    /// what came out. Returns how long it may be until the next call; `None` when nothing but a
    /// datagram makes work.
    ///
    /// The work of one call is bounded; when there is more, the answer is zero.
    ///
    /// # Errors
    ///
    /// The socket has failed to read; what was due was done and sent all the same. What one peer does, or does not, is an event and no
    /// error.
    pub fn pump(&mut self) -> io::Result<Option<Duration>> {
        let now = self.clock.now();
        let received = self.receive();
        self.peers.handle_timeout(now);
        self.port.flush();
        let is_all_sent = self.gather(now);
        self.port.flush();
        if received? || !is_all_sent {
            return Ok(Some(Duration::ZERO));
        }
        // What the socket does not take now is no reason to look before it may have room.
        let next = if self.port.is_full() { None } else { self.peers.poll_timeout() };
        Ok(self.port.limit(next.map(|at| at.since(now))))
    }

    /// Pumps until there is an event, at most for `timeout`; `None` waits for ever. Returns
    /// whether there is one.
    ///
    /// # Errors
    ///
    /// The socket has failed.
    pub fn poll(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        let deadline = timeout.map(|timeout| self.clock.now() + timeout);
        loop {
            let mut wait = self.pump()?;
            if self.peers.has_events() {
                return Ok(true);
            }
            if let Some(deadline) = deadline {
                let left = deadline.since(self.clock.now());
                if left.is_zero() {
                    return Ok(false);
                }
                wait = Some(wait.map_or(left, |wait| wait.min(left)));
            }
            self.port.wait(wait)?;
        }
    }

    /// The oldest event that was not taken yet: see [`Peers::poll_event`].
    pub fn next_event(&mut self) -> Option<Event> {
        self.peers.poll_event()
    }

    /// A peer to use; `None` when it is gone. The next pump sends what was sent to it.
    pub fn peer(&mut self, id: PeerId) -> Option<&mut Peer> {
        self.peers.peer(id)
    }

    /// The peers, to look at.
    #[must_use]
    pub const fn peers(&self) -> &Peers {
        &self.peers
    }

    /// Makes a peer of an address and a conv that were agreed on elsewhere: see [`Peers::register`].
    ///
    /// # Errors
    ///
    /// Those of [`Peers::register`].
    pub fn register(&mut self, address: SocketAddr, conv: Conv) -> Result<PeerId, RegisterError> {
        self.peers.register(self.clock.now(), as_v4(address), conv)
    }

    /// Ends a peer after a last flush, without an event. Bare KCP cannot tell it; what it
    /// sends from now on is dropped. Returns whether there was one.
    pub fn close(&mut self, id: PeerId) -> bool {
        let Some(mut peer) = self.peers.close(self.clock.now(), id) else { return false };
        let to = way(peer.address(), self.is_v6);
        while !self.port.is_full()
            && let Some(datagram) = peer.pop()
        {
            self.port.send(datagram, to);
        }
        self.port.flush();
        true
    }

    /// Most datagrams that one pump reads; 512 unless set.
    pub const fn set_datagrams_per_pump(&mut self, most: NonZeroUsize) {
        self.datagrams_per_pump = most;
    }

    /// What was accepted, ended and dropped.
    #[must_use]
    pub const fn stats(&self) -> Stats {
        self.peers.stats()
    }

    /// What was counted of what is around KCP; `None`: nothing is.
    #[cfg(feature = "kcp-go")]
    #[must_use]
    pub fn kcp_go_stats(&self) -> Option<crate::kcp_go::Stats> {
        self.peers.kcp_go_stats()
    }

    /// What the socket reported.
    #[must_use]
    pub const fn socket_stats(&self) -> SocketStats {
        self.port.stats()
    }

    /// What went through the socket.
    #[must_use]
    pub const fn socket_traffic(&self) -> SocketTraffic {
        self.port.traffic()
    }

    /// The sizes of the socket's buffers.
    ///
    /// # Errors
    ///
    /// The system does not tell.
    pub fn socket_buffers(&self) -> io::Result<SocketBuffers> {
        self.port.buffers()
    }

    /// Asks for other sizes of the socket's buffers, and returns those that it has now: see [`SocketBuffers`].
    ///
    /// # Errors
    ///
    /// The system refuses any.
    pub fn set_socket_buffers(&self, wanted: SocketBuffers) -> io::Result<SocketBuffers> {
        self.port.set_buffers(wanted)
    }

    /// The address it listens on.
    ///
    /// # Errors
    ///
    /// The system does not know it.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.port.local_addr()
    }

    /// Reads what waits, at most so much; returns whether there may be more.
    fn receive(&mut self) -> io::Result<bool> {
        for _ in 0..self.datagrams_per_pump.get() {
            let Some(datagram) = self.port.recv()? else { return Ok(false) };
            let from = Arrival { address: as_v4(datagram.from), ecn: datagram.ecn };
            self.peers.handle_datagram(self.clock.now(), from, datagram.bytes);
        }
        Ok(true)
    }

    /// Gives what is due to the port, a bounded number of datagrams, as far as it takes them; returns whether that was all.
    fn gather(&mut self, now: Time) -> bool {
        for _ in 0..SENDS_PER_CALL {
            if self.port.is_full() {
                return true;
            }
            let Some(transmit) = self.peers.poll_transmit(now, self.port.stage()) else { return true };
            self.port.commit(way(transmit.address, self.is_v6), transmit.ecn);
        }
        false
    }
}

/// Datagrams that one pump reads unless set otherwise.
const DATAGRAMS_PER_PUMP: NonZeroUsize = NonZeroUsize::new(512).unwrap();

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::KcpSocket;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[test]
    fn a_failed_read_is_told_after_what_was_due_is_sent() {
        let kcp = crate::Config::turbo();
        let config = Config { kcp, ..Config::registered() };
        let mut listener = KcpListener::bind("127.0.0.1:0", &config).unwrap();
        let to = listener.local_addr().unwrap();
        let mut socket = KcpSocket::connect(to, Conv(7), &kcp).unwrap();
        let id = listener.register(socket.local_addr().unwrap(), Conv(7)).unwrap();
        listener.peer(id).unwrap().send(b"to the peer").unwrap();
        listener.peer(id).unwrap().flush();
        socket.try_send(b"to the listener").unwrap();
        listener.port.fail(io::Error::other("no listener"));
        socket.fail(io::Error::other("no socket"));
        assert_eq!(listener.pump().unwrap_err().to_string(), "no listener");
        assert_eq!(socket.pump().unwrap_err().to_string(), "no socket");
        assert_eq!((listener.socket_traffic().sent, socket.socket_traffic().sent), (1, 1));
        let mut buf = [0; 100];
        socket.set_read_timeout(Some(PATIENCE));
        assert_eq!(socket.recv(&mut buf).map(|len| buf[..len].to_vec()).unwrap(), b"to the peer");
        assert!(listener.poll(Some(PATIENCE)).unwrap());
        assert_eq!(listener.peer(id).unwrap().recv(&mut buf), Ok(15));
    }
}
