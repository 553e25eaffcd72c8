//! Conversations of bare KCP as streams or as messages: one or many per socket.

use super::super::clock::random;
use super::super::driver::{MANY_PEERS, ONE_PEER};
use super::super::error::Error;
use super::super::shards::sockets;
use super::super::tally::{SocketStats, SocketTraffic};
use super::driver::{Driver, clock};
use super::shared::{Acceptor, Handle, Shared};
use super::stream::{Reader, Way, Writer, stream};
use crate::kcp;
use crate::seq::Conv;
use crate::session::peers::{Peer, Peers, PeersConfig, PeersStats, RegisterError};
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use whitewater_udp::{Mode, Port, as_v4, bind, socket_for};

stream! {
    /// One conversation of bare KCP. Any KCP program with the same `conv` can be the peer.
    ///
    /// As a stream of bytes it is [`AsyncRead`](::tokio::io::AsyncRead) and
    /// [`AsyncWrite`](::tokio::io::AsyncWrite), best with [`Config::stream`](kcp::Config::stream), which
    /// packs small writes together. For messages use [`send`](Self::send) and [`recv`](Self::recv). Do not
    /// mix the two ways of reading: a stream buffers what did not fit.
    ///
    /// # The end
    ///
    /// Bare KCP has neither a handshake nor an end of stream nor a goodbye.
    ///
    /// - `shutdown` waits until the peer has acknowledged everything written. It fails with `TimedOut` if nothing more is
    ///   acknowledged for [this long](Self::set_shutdown_timeout). The peer does not notice. Reading continues.
    /// - When it is dropped, data is still delivered in the background, for at most 5 s and while the runtime lives. What
    ///   arrives then is not read.
    /// - A read never returns 0. When the peer is gone and everything that had arrived was read, it fails with `TimedOut`:
    ///   [`Error::PeerSilent`] after `idle_timeout` without a datagram, or [`Error::DeadLink`]. So send something now and then.
    ///
    /// A program that must know where a stream ends has to say so itself, or use [sessions](super::Session),
    /// which have an end.
    ///
    /// # Cancelling
    ///
    /// Everything happens within one poll: a future that is dropped before it is ready has done nothing, and
    /// nothing is lost or duplicated.
    KcpStream, KcpReadHalf, KcpWriteHalf of Peers
}

impl KcpStream {
    /// A conversation with `peer`, from a socket of its own. Nothing is sent yet, and the peer is not asked.
    ///
    /// # Errors
    ///
    /// If there is no socket, or `config` is out of range ([`Error::Config`]).
    pub fn connect(peer: SocketAddr, conv: Conv, config: &kcp::Config) -> io::Result<Self> {
        let socket = socket_for(peer)?;
        socket.connect(peer)?;
        Self::from_socket(socket, conv, &PeersConfig { kcp: *config, ..PeersConfig::registered() })
    }

    /// The same over a connected socket, with all settings. Of the limits, only `idle_timeout` applies.
    ///
    /// # Errors
    ///
    /// If the socket is not connected or fails, or `config` is out of range ([`Error::Config`]).
    pub fn from_socket(socket: UdpSocket, conv: Conv, config: &PeersConfig) -> io::Result<Self> {
        let peer = as_v4(socket.peer_addr()?);
        let config = config.for_one();
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
        Ok(Self::new(Way { handle, channel: 0 }))
    }

    /// Sends a message; waits for room in the send queue. Returns the number of bytes queued: all of them,
    /// except that a stream may accept fewer.
    ///
    /// # Errors
    ///
    /// If the message is too long ([`Error::Send`]), or the peer is gone.
    pub async fn send(&self, message: &[u8]) -> io::Result<usize> {
        poll_fn(|cx| self.writer.way.poll_send(cx, message)).await
    }

    /// Receives the next message and returns its length.
    ///
    /// # Errors
    ///
    /// If it does not fit, in which case it stays ([`Error::Recv`]), or the peer is gone and all its messages
    /// were read.
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        poll_fn(|cx| self.reader.way.poll_recv(cx, buf)).await
    }

    /// Gives direct access to the peer, for statistics or for many messages at a time. `None`: it is gone.
    pub fn with<T>(&self, call: impl FnOnce(&mut Peer) -> T) -> Option<T> {
        self.writer.way.handle.with(call)
    }

    /// The address of the peer; `None`: it is gone.
    #[must_use]
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.with(|peer| peer.peer_addr())
    }
}

impl KcpReadHalf {
    /// Receives the next message; see [`KcpStream::recv`], also for its errors.
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        poll_fn(|cx| self.reader.way.poll_recv(cx, buf)).await
    }
}

impl KcpWriteHalf {
    /// Sends a message; see [`KcpStream::send`], also for its errors.
    pub async fn send(&self, message: &[u8]) -> io::Result<usize> {
        poll_fn(|cx| self.writer.way.poll_send(cx, message)).await
    }
}

/// The server end of bare KCP: one UDP socket, one task, and a [`KcpStream`] for each address and conv,
/// within the limits of a [`PeersConfig`]. For what it means that anybody can connect, see
/// [`kcp::Listener`](crate::kcp::Listener).
///
/// Peers that nobody accepts count against `max_peers`, and one that ends before it is accepted is forgotten. Dropping it stops it from admitting new peers;
/// accepted ones continue.
#[derive(Debug)]
pub struct KcpListener {
    acceptor: Acceptor<Peers>,
}

impl KcpListener {
    /// Binds a listener to `addr`. `[::]` also takes IPv4, where the system can do that.
    ///
    /// # Errors
    ///
    /// If `addr` is in use, or `config` is out of range ([`Error::Config`]).
    pub fn bind(addr: impl ToSocketAddrs, config: &PeersConfig) -> io::Result<Self> {
        Self::from_socket(bind(addr)?, config)
    }

    /// The same over a socket that is already bound and not connected.
    ///
    /// # Errors
    ///
    /// If the socket fails, or `config` is out of range ([`Error::Config`]).
    pub fn from_socket(socket: UdpSocket, config: &PeersConfig) -> io::Result<Self> {
        let driver = drive(socket, config, true)?;
        let acceptor = Acceptor::new(Arc::clone(&driver.shared));
        ::tokio::spawn(driver);
        Ok(Self { acceptor })
    }

    /// Binds 1 to 64 listeners to one port, each with a task of its own, which a multi-threaded runtime runs
    /// in parallel. The address of a peer selects its listener, so a peer that does not move stays with it.
    /// Every limit in `config` applies to each listener.
    ///
    /// # Errors
    ///
    /// As [`net::Server::bind_shards`](crate::Server::bind_shards).
    pub fn bind_shards(
        addr: impl ToSocketAddrs,
        config: &PeersConfig,
        count: usize,
    ) -> io::Result<Vec<Self>> {
        sockets(addr, count)?.into_iter().map(|socket| Self::from_socket(socket, config)).collect()
    }

    /// The next peer that has connected, and its address. If cancelled, it has taken none.
    ///
    /// # Errors
    ///
    /// If the socket has failed.
    pub async fn accept(&self) -> io::Result<(KcpStream, SocketAddr)> {
        loop {
            let handle = poll_fn(|cx| self.acceptor.poll_accept(cx)).await?;
            let stream = KcpStream::new(Way { handle, channel: 0 });
            if let Some(address) = stream.peer_addr() {
                return Ok((stream, address));
            }
        }
    }

    /// Registers a peer whose address and conv were agreed on elsewhere.
    ///
    /// # Errors
    ///
    /// If it is a peer already, or there is no room.
    pub fn register(&self, peer: SocketAddr, conv: Conv) -> Result<KcpStream, RegisterError> {
        KcpStream::register(&self.acceptor.shared, peer, conv)
    }

    /// Statistics of the peers.
    #[must_use]
    pub fn stats(&self) -> PeersStats {
        self.acceptor.shared.lock().core.stats()
    }
}

/// Methods of types that share a driver, about its socket.
macro_rules! figures {
    ($($type:ident: $($shared:ident).+;)*) => {
        $(impl $type {
            /// Errors that the socket reported.
            #[must_use]
            pub fn socket_stats(&self) -> SocketStats {
                self.$($shared).+.lock().socket_stats
            }

            /// Traffic of the socket.
            #[must_use]
            pub fn socket_traffic(&self) -> SocketTraffic {
                self.$($shared).+.lock().socket_traffic
            }

            /// The local address.
            #[must_use]
            pub fn local_addr(&self) -> SocketAddr {
                self.$($shared).+.lock().local_addr
            }
        })*
    };
}

figures! {
    KcpStream: writer.way.handle.shared;
    KcpListener: acceptor.shared;
}

pub(super) fn drive(
    socket: UdpSocket,
    config: &PeersConfig,
    is_accepting: bool,
) -> io::Result<Driver<Peers>> {
    let peers = Peers::new(config, &mut random()?).map_err(Error::from)?;
    let port = Port::new(socket, Mode::Fragments, if is_accepting { MANY_PEERS } else { ONE_PEER })?;
    Driver::new(port, peers, clock(), is_accepting)
}
