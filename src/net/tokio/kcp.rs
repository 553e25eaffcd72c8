//! Conversations of bare KCP, as streams or as messages: one on a socket, or many.

use super::super::clock::random;
use super::super::driver::{MANY_PEERS, ONE_PEER};
use super::super::error::Error;
use super::super::shards::sockets;
use super::super::tally::{SocketStats, SocketTraffic};
use super::driver::Driver;
use super::lane::{Lane, Reader, Writer, stream};
use super::shared::{Acceptor, Handle, Shared};
use crate::kcp;
use crate::net::Clock;
use crate::seq::Conv;
use crate::session::peers::{Peer, Peers, PeersConfig, PeersStats, RegisterError, Strangers};
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use whitewater_udp::{Mode, Port, as_v4, socket_for};

stream! {
    /// One conversation of bare KCP: any KCP program with the same `conv` can be the peer.
    ///
    /// As a stream of bytes it is [`AsyncRead`](::tokio::io::AsyncRead) and [`AsyncWrite`](::tokio::io::AsyncWrite), at best with
    /// [`Config::stream`](kcp::Config::stream), which packs small writes together. As messages it has [`send`](Self::send) and
    /// [`recv`](Self::recv). Do not read both ways: a stream keeps what did not fit its buffer.
    ///
    /// # The end
    ///
    /// Bare KCP has none: no handshake, no end of stream, no goodbye.
    ///
    /// - `shutdown` waits until the peer has acknowledged all that was written, and fails with `TimedOut` if for
    ///   [so long](Self::set_shutdown_timeout) nothing more of it was. The peer does not notice. Reading goes on.
    /// - Dropped, it has in the background what was sent acknowledged, for at most 5 s and while the runtime lives. What comes then is not read.
    /// - A read never returns 0. When the peer is gone and what had arrived was read, it fails with `TimedOut`: [`Error::PeerSilent`] after
    ///   `idle_timeout` without a datagram, or [`Error::DeadLink`]. So say something now and then.
    ///
    /// A program that has to know where a stream ends says so itself, or uses [sessions](super::Session), which do.
    ///
    /// # Cancelling
    ///
    /// All that is done is done in one poll: a future that is dropped before it is ready has done nothing, and nothing is lost or doubled.
    KcpStream, KcpReadHalf, KcpWriteHalf of Peers
}

impl KcpStream {
    /// A conversation with `peer`, from a socket of its own. Nothing is sent yet and nobody is asked.
    ///
    /// # Errors
    ///
    /// No socket, or `config` is out of range ([`Error::Config`]).
    pub fn connect(peer: SocketAddr, conv: Conv, config: &kcp::Config) -> io::Result<Self> {
        let socket = socket_for(peer)?;
        socket.connect(peer)?;
        Self::over(socket, conv, &PeersConfig { kcp: *config, ..PeersConfig::registered() })
    }

    /// The same over a socket that is connected, with all knobs; of the limits, `idle_timeout` counts.
    ///
    /// # Errors
    ///
    /// The socket is not connected, it fails, or `config` is out of range ([`Error::Config`]).
    pub fn over(socket: UdpSocket, conv: Conv, config: &PeersConfig) -> io::Result<Self> {
        let peer = as_v4(socket.peer_addr()?);
        let config = PeersConfig { strangers: Strangers::Refused, max_peers: 1, ..config.clone() };
        let driver = drive(socket, &config, false)?;
        let stream = Self::register(&driver.shared, peer, conv).map_err(io::Error::other)?;
        ::tokio::spawn(driver);
        Ok(stream)
    }

    pub(super) fn register(
        shared: &Arc<Shared<Peers>>,
        peer: SocketAddr,
        conv: Conv,
    ) -> Result<Self, RegisterError> {
        let now = shared.clock.now();
        let mut state = shared.lock();
        let id = state.core.register(now, as_v4(peer), conv)?;
        let handle = Handle::of(shared, &mut state, id);
        drop(state);
        Ok(Self::new(Lane { handle, lane: 0 }))
    }

    /// Sends a message: waits for room in the send queue. Returns the bytes queued: all of them, but for a stream, which may take less.
    ///
    /// # Errors
    ///
    /// The message is too long ([`Error::Send`]), or the peer is gone.
    pub async fn send(&self, message: &[u8]) -> io::Result<usize> {
        poll_fn(|cx| self.writer.lane.poll_send(cx, message)).await
    }

    /// Takes the next message and returns its length.
    ///
    /// # Errors
    ///
    /// It does not fit and stays ([`Error::Recv`]), or the peer is gone and every message it sent was taken.
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        poll_fn(|cx| self.reader.lane.poll_recv(cx, buf)).await
    }

    /// Uses the peer as it is: statistics, many messages at a time. `None`: it is gone.
    pub fn with<T>(&self, call: impl FnOnce(&mut Peer) -> T) -> Option<T> {
        self.writer.lane.handle.with(call)
    }

    /// Where the peer is; `None`: it is gone.
    #[must_use]
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.with(|peer| peer.address())
    }
}

impl KcpReadHalf {
    /// Takes the next message, see [`KcpStream::recv`], also for its errors.
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        poll_fn(|cx| self.reader.lane.poll_recv(cx, buf)).await
    }
}

impl KcpWriteHalf {
    /// Sends a message, see [`KcpStream::send`], also for its errors.
    pub async fn send(&self, message: &[u8]) -> io::Result<usize> {
        poll_fn(|cx| self.writer.lane.poll_send(cx, message)).await
    }
}

/// The server end of bare KCP: one UDP socket, one task, and a [`KcpStream`] for each address and conv, under the limits of a
/// [`PeersConfig`]. What it means that anybody may come: [`kcp::Listener`](crate::kcp::Listener).
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
    /// `addr` is in use, or `config` is out of range ([`Error::Config`]).
    pub fn bind(addr: SocketAddr, config: &PeersConfig) -> io::Result<Self> {
        Self::over(UdpSocket::bind(addr)?, config)
    }

    /// The same on a socket that is bound already, and not connected.
    ///
    /// # Errors
    ///
    /// The socket fails, or `config` is out of range ([`Error::Config`]).
    pub fn over(socket: UdpSocket, config: &PeersConfig) -> io::Result<Self> {
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
    pub fn bind_shards(addr: SocketAddr, config: &PeersConfig, count: usize) -> io::Result<Vec<Self>> {
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
    pub fn stats(&self) -> PeersStats {
        self.acceptor.shared.lock().core.stats()
    }
}

/// What is known of a socket, by what its driver shares.
macro_rules! figures {
    ($($type:ident: $($shared:ident).+;)*) => {
        $(impl $type {
            /// What the socket reported.
            #[must_use]
            pub fn socket_stats(&self) -> SocketStats {
                self.$($shared).+.lock().socket_stats
            }

            /// What went through the socket.
            #[must_use]
            pub fn socket_traffic(&self) -> SocketTraffic {
                self.$($shared).+.lock().socket_traffic
            }

            /// The address of this end.
            #[must_use]
            pub fn local_addr(&self) -> SocketAddr {
                self.$($shared).+.local_addr
            }
        })*
    };
}

figures! {
    KcpStream: writer.lane.handle.shared;
    KcpListener: acceptor.shared;
}

pub(super) fn drive(
    socket: UdpSocket,
    config: &PeersConfig,
    is_accepting: bool,
) -> io::Result<Driver<Peers>> {
    let peers = Peers::new(config, &mut random()?).map_err(Error::from)?;
    let port = Port::new(socket, Mode::Fragments, if is_accepting { MANY_PEERS } else { ONE_PEER })?;
    Driver::new(port, peers, Clock::new(), is_accepting)
}
