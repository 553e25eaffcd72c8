//! Many conversations of bare KCP on one UDP socket.

use super::super::shards::sockets;
use super::super::tally::{SocketStats, SocketTraffic};
use super::kcp::{KcpStream, drive};
use super::lane::Lane;
use super::shared::Acceptor;
use crate::seq::Conv;
use crate::session::raw::{Config, Peers, RegisterError, Stats};
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

/// The server end of bare KCP: one UDP socket, one task, and a [`KcpStream`] for each address and conv, under the limits of a
/// [`raw::Config`](Config). What it means that anybody may come: [`net::KcpListener`](crate::net::KcpListener).
///
/// Those that nobody accepts count against `max_peers`. Dropped, it takes no others; those that were accepted go on.
#[derive(Debug)]
pub struct KcpListener {
    acceptor: Acceptor<Peers>,
}

impl KcpListener {
    /// A listener on `addr`.
    ///
    /// # Errors
    ///
    /// `addr` is in use, or `config` is out of range ([`Error::Config`](crate::net::Error::Config)).
    ///
    /// # Panics
    ///
    /// Outside of a runtime of tokio with I/O and time.
    pub fn bind(addr: SocketAddr, config: &Config) -> io::Result<Self> {
        Self::over(UdpSocket::bind(addr)?, config)
    }

    /// The same on a socket that is bound already, and not connected.
    ///
    /// # Errors
    ///
    /// The socket fails, or `config` is out of range ([`Error::Config`](crate::net::Error::Config)).
    ///
    /// # Panics
    ///
    /// Outside of a runtime of tokio with I/O and time.
    pub fn over(socket: UdpSocket, config: &Config) -> io::Result<Self> {
        let driver = drive(socket, config, true)?;
        let acceptor = Acceptor::new(Arc::clone(&driver.shared));
        ::tokio::spawn(driver);
        Ok(Self { acceptor })
    }

    /// So many listeners on one port, 1 to 64, each with a task of its own, which a runtime with several threads runs side by side. A bare KCP peer
    /// is its address, so whoever stays where it is stays with one of them. Every limit of `config` is of each.
    ///
    /// # Errors
    ///
    /// Those of [`net::Server::bind_shards`](crate::net::Server::bind_shards).
    ///
    /// # Panics
    ///
    /// Outside of a runtime of tokio with I/O and time.
    pub fn bind_shards(addr: SocketAddr, config: &Config, count: usize) -> io::Result<Vec<Self>> {
        sockets(addr, count)?.into_iter().map(|socket| Self::over(socket, config)).collect()
    }

    /// The next peer that has come, and its address. Cancelled, it has taken none.
    ///
    /// # Errors
    ///
    /// The socket has failed.
    pub async fn accept(&self) -> io::Result<(KcpStream, SocketAddr)> {
        loop {
            let handle = poll_fn(|cx| self.acceptor.poll_accept(cx)).await?;
            let stream = KcpStream::new(Lane { handle, lane: 0 });
            if let Some(address) = stream.peer_addr() {
                return Ok((stream, address));
            }
        }
    }

    /// Makes a peer of an address and a conv that were agreed on elsewhere.
    ///
    /// # Errors
    ///
    /// It is one already, or there is no room.
    pub fn register(&self, peer: SocketAddr, conv: Conv) -> Result<KcpStream, RegisterError> {
        KcpStream::register(&self.acceptor.shared, peer, conv)
    }

    /// What was accepted, ended and dropped.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.acceptor.shared.lock().core.stats()
    }

    /// What the socket reported.
    #[must_use]
    pub fn socket_stats(&self) -> SocketStats {
        self.acceptor.shared.lock().socket_stats
    }

    /// What went through the socket.
    #[must_use]
    pub fn socket_traffic(&self) -> SocketTraffic {
        self.acceptor.shared.lock().socket_traffic
    }

    /// The address it listens on.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.acceptor.shared.local_addr
    }
}
