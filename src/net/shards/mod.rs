//! One port, several sockets: each with its own thread and its own sessions.
//!
//! The system chooses the socket by the addresses and ports of a datagram, so a client stays with one shard while it stays where it is. When
//! it moves, its datagrams arrive at any: the id of its session, which they begin with, names the shard that owns it, and who got them hands
//! them on. What is sent leaves from the owner's socket, which has the same port.

pub(super) mod strays;

pub(super) use strays::{Handed, Neighbours, meet};

use super::error::Error;
use super::os::shared;
use super::server::Server;
use crate::message::Message;
use crate::net::KcpListener;
use crate::session::raw;
use crate::session::{SHARDS_MAX, ServerConfig};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};

impl<M: Message> Server<M> {
    /// So many servers on one port, 1 to 64 ([`SHARDS_MAX`]), each for a thread of its own: [`ServerThreads`](super::ServerThreads) has
    /// them. Sessions stay with the one that let them in, which [`SessionId::shard`](crate::session::SessionId::shard) names, wherever their
    /// clients move.
    ///
    /// Every limit of `config` is of each of them: together they have so many times as much. Its `shard` does not count. One
    /// address is usually spread over all of them, by its ports.
    ///
    /// Connect tokens: give `require_tokens` of each server a `Verifier::share` of one verifier, or one could be used once at each. Of two sessions of
    /// one client the newer one stays, if both are of one shard; an older one of another shard ends by silence.
    ///
    /// Linux, with the feature `batch`, which shares a port out among sockets (`SO_REUSEPORT`). Who runs as the same user can join them.
    ///
    /// # Errors
    ///
    /// `addr` does not resolve or is in use, `count` or `config` is out of range ([`Error::Config`]), the system has no random bytes, or
    /// ([`Unsupported`](io::ErrorKind::Unsupported)) does not share out ports and `count` is more than 1.
    pub fn bind_shards(
        addr: impl ToSocketAddrs,
        config: &ServerConfig,
        count: usize,
    ) -> io::Result<Vec<Self>> {
        let sockets = sockets(addr, count)?;
        let mut servers = Vec::with_capacity(sockets.len());
        for ((shard, socket), neighbours) in (0..).zip(sockets).zip(meet(count)?) {
            let mut server = Self::from_socket(socket, &ServerConfig { shard, ..config.clone() })?;
            if count > 1 {
                server.set_neighbours(neighbours);
            }
            servers.push(server);
        }
        Ok(servers)
    }
}

impl KcpListener {
    /// So many listeners on one port, 1 to 64, each for a thread of its own. A bare KCP peer is its address, so whoever stays where it is stays
    /// with one of them, and none has to know the others. Every limit of `config` is of each.
    ///
    /// # Errors
    ///
    /// Those of [`Server::bind_shards`].
    pub fn bind_shards(
        addr: impl ToSocketAddrs,
        config: &raw::Config,
        count: usize,
    ) -> io::Result<Vec<Self>> {
        sockets(addr, count)?.into_iter().map(|socket| Self::wrap(socket, config)).collect()
    }
}

/// So many sockets on one port.
pub(super) fn sockets(addr: impl ToSocketAddrs, count: usize) -> io::Result<Vec<UdpSocket>> {
    crate::config::in_range("shards", count as u64, 1..=SHARDS_MAX as u64).map_err(Error::from)?;
    if count == 1 {
        return Ok(vec![UdpSocket::bind(addr)?]);
    }
    let mut failed = io::Error::from(io::ErrorKind::InvalidInput);
    for addr in addr.to_socket_addrs()? {
        match all_on(addr, count) {
            Ok(sockets) => return Ok(sockets),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Of port 0, on whichever the first one got.
fn all_on(mut addr: SocketAddr, count: usize) -> io::Result<Vec<UdpSocket>> {
    let mut sockets = Vec::with_capacity(count);
    for _ in 0..count {
        let socket = shared(addr)?;
        addr = socket.local_addr()?;
        sockets.push(socket);
    }
    Ok(sockets)
}
