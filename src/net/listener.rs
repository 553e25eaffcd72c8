//! Many bare KCP peers on one UDP socket.

use super::clock::{Clock, random};
use super::driver::{Driver, MANY_PEERS};
use super::error::Error;
use super::shards::sockets;
use crate::seq::Conv;
use crate::session::peers::{Peer, PeerEvent, PeerId, Peers, PeersConfig, PeersStats, RegisterError};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::Duration;
use whitewater_udp::{Mode, Port, as_v4, bind};

/// The server end of bare KCP: one UDP socket, and a [`Peer`] for each address and conv that sends to it, within the
/// limits of a [`PeersConfig`].
///
/// A program polls, takes the events, and uses the peers that they name:
///
/// ```no_run
/// use whitewater::kcp::{self, PeerEvent, PeersConfig};
///
/// # fn main() -> std::io::Result<()> {
/// let mut listener = kcp::Listener::bind("0.0.0.0:4000", &PeersConfig::default())?;
/// loop {
///     listener.poll(None)?;
///     while let Some(event) = listener.poll_event() {
///         let PeerEvent::Readable(id) = event else { continue };
///         while let Some(peer) = listener.peer(id)
///             && let Some(message) = peer.recv()
///         {
///             if peer.send(&message).is_err() {
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
/// Bare KCP has no handshake, and source addresses may be forged. So a stranger first [proves their
/// address](crate::kcp::Strangers::Proven): a good first datagram is answered with one that is not longer, and nothing
/// is stored before the answer to that. Limits bound how many peers there are, and how many of one address. Everything else
/// that is not of a peer is counted and dropped without an answer.
pub type Listener = Driver<Peers>;

impl Listener {
    /// A listener on `addr`. `[::]` also takes IPv4, where the system can do that; IPv4 peers have IPv4 addresses.
    ///
    /// # Errors
    ///
    /// `addr` does not resolve or is in use, or `config` is out of range ([`Error::Config`]).
    pub fn bind(addr: impl ToSocketAddrs, config: &PeersConfig) -> io::Result<Self> {
        Self::from_socket(bind(addr)?, config)
    }

    /// A listener on an existing socket that is bound and not connected. The socket becomes non-blocking.
    ///
    /// # Errors
    ///
    /// The socket fails, or `config` is out of range ([`Error::Config`]).
    pub fn from_socket(socket: UdpSocket, config: &PeersConfig) -> io::Result<Self> {
        let peers = Peers::new(config, &mut random()?).map_err(Error::from)?;
        Ok(Self::over(Port::new(socket, Mode::Fragments, MANY_PEERS)?, Clock::new(), peers))
    }

    /// Several listeners that share one port, 1 to 64, one per thread. A bare KCP peer is its address, so a peer stays
    /// with one of them while its address stays the same, and they need not know each other. Each has all limits of
    /// `config` for itself.
    ///
    /// # Errors
    ///
    /// Those of [`Server::bind_shards`](super::Server::bind_shards).
    pub fn bind_shards(
        addr: impl ToSocketAddrs,
        config: &PeersConfig,
        count: usize,
    ) -> io::Result<Vec<Self>> {
        sockets(addr, count)?.into_iter().map(|socket| Self::from_socket(socket, config)).collect()
    }

    /// Pumps until there is an event, for at most `timeout`; `None` waits forever. Returns whether there is one.
    ///
    /// # Errors
    ///
    /// The socket has failed.
    pub fn poll(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        self.run(timeout, |_, peers| peers.has_events())
    }

    /// Takes the oldest event; see [`Peers::poll_event`].
    pub fn poll_event(&mut self) -> Option<PeerEvent> {
        self.machine.poll_event()
    }

    /// A peer to use. `None`: it is gone. The next pump sends what was sent to it.
    pub fn peer(&mut self, id: PeerId) -> Option<&mut Peer> {
        self.machine.peer(id)
    }

    /// The peers, to look at.
    #[must_use]
    pub const fn peers(&self) -> &Peers {
        &self.machine
    }

    /// Adds a peer with an address and a conv that were agreed elsewhere; see [`Peers::register`], also for errors.
    pub fn register(&mut self, address: SocketAddr, conv: Conv) -> Result<PeerId, RegisterError> {
        self.machine.register(self.clock.now(), as_v4(address), conv)
    }

    /// Removes a peer after a last flush, without an event. Bare KCP cannot tell the peer; what it sends from now on is
    /// dropped. Returns whether there was one.
    pub fn close(&mut self, id: PeerId) -> bool {
        let is_closed = self.machine.close(self.clock.now(), id);
        self.transmit();
        is_closed
    }

    /// What was accepted, ended and dropped.
    #[must_use]
    pub const fn stats(&self) -> PeersStats {
        self.machine.stats()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kcp::Socket;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[test]
    fn a_failed_read_is_told_after_what_was_due_is_sent() {
        let kcp = crate::kcp::Config::default();
        let config = PeersConfig { kcp, ..PeersConfig::registered() };
        let mut listener = Listener::bind("127.0.0.1:0", &config).unwrap();
        let to = listener.local_addr().unwrap();
        let mut socket = Socket::connect(to, Conv(7), &kcp).unwrap();
        let id = listener.register(socket.local_addr().unwrap(), Conv(7)).unwrap();
        listener.peer(id).unwrap().send(b"to the peer").unwrap();
        listener.peer(id).unwrap().flush();
        socket.send(b"to the listener").unwrap();
        listener.line.port.fail(io::Error::other("no listener"));
        socket.fail(io::Error::other("no socket"));
        assert_eq!(listener.pump().unwrap_err().to_string(), "no listener");
        assert_eq!(socket.pump().unwrap_err().to_string(), "no socket");
        assert_eq!((listener.socket_traffic().sent, socket.socket_traffic().sent), (1, 1));
        let mut buf = [0; 100];
        socket.set_read_timeout(Some(PATIENCE));
        assert_eq!(socket.recv_blocking(&mut buf).map(|len| buf[..len].to_vec()).unwrap(), b"to the peer");
        assert!(listener.poll(Some(PATIENCE)).unwrap());
        assert_eq!(listener.peer(id).unwrap().recv_into(&mut buf), Ok(15));
    }
}
