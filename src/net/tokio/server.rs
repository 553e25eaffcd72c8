//! Many sessions on one UDP socket, or on several that share a port.

use super::super::end::Id;
use super::super::server::server;
use super::super::shards::{Wake, meet, sockets};
use super::super::tally::{SocketStats, SocketTraffic};
use super::core::Sessions;
use super::driver::Driver;
use super::request::Request;
use super::session::Session;
use super::shared::{Acceptor, State};
use crate::machine::Machine;
use crate::session::{self, RedirectError, ServerConfig, ServerStats, SessionId};
use crate::time::Time;
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::ops::AddAssign;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

/// The server's end of sessions: one UDP socket, one task, and a [`Session`] for each connected client. Or
/// several sockets and tasks on one port: [`bind_shards`](Self::bind_shards).
///
/// Sessions that nobody accepts count against `max_sessions`. Dropping it stops it from admitting new
/// sessions; accepted ones continue.
#[derive(Debug)]
pub struct Server {
    /// By shard; one at least.
    shards: Vec<Acceptor<Sessions>>,
    /// Which of them is asked first for the next session.
    first: AtomicUsize,
}

impl Server {
    /// A server on `addr`. On an IPv6 address that takes IPv4 as well, IPv4 clients have IPv4 addresses.
    ///
    /// # Errors
    ///
    /// If `addr` is in use, `config` is out of range ([`Error::Config`](crate::net::Error::Config)), or the
    /// system has no random bytes.
    pub fn bind(addr: SocketAddr, config: &ServerConfig) -> io::Result<Self> {
        Self::over(UdpSocket::bind(addr)?, config)
    }

    /// Binds a server with 1 to 64 sockets and tasks to one port, which a multi-threaded runtime runs in
    /// parallel. Sessions of all of them are accepted here. Every limit in `config` applies to each: see
    /// [`net::Server::bind_shards`](crate::net::Server::bind_shards), which also explains what happens to a
    /// client that migrates, and where this works.
    ///
    /// # Errors
    ///
    /// As [`net::Server::bind_shards`](crate::net::Server::bind_shards).
    pub fn bind_shards(addr: SocketAddr, config: &ServerConfig, count: usize) -> io::Result<Self> {
        Self::drive(sockets(addr, count)?, config)
    }

    /// A server over a socket that is bound already, and not connected: for larger buffers.
    ///
    /// # Errors
    ///
    /// If the socket fails, `config` is out of range ([`Error::Config`](crate::net::Error::Config)), or the
    /// system has no random bytes.
    pub fn over(socket: UdpSocket, config: &ServerConfig) -> io::Result<Self> {
        Self::drive(vec![socket], config)
    }

    fn drive(sockets: Vec<UdpSocket>, config: &ServerConfig) -> io::Result<Self> {
        let is_one = sockets.len() == 1;
        let mut drivers = Vec::with_capacity(sockets.len());
        for (index, socket) in (0..).zip(sockets) {
            let shard = if is_one { config.shard } else { index };
            let (port, clock, sessions) = server(socket, &ServerConfig { shard, ..config.clone() })?;
            drivers.push(Driver::new(port, Sessions::Server(sessions), clock, true)?);
        }
        let shards = drivers.iter().map(|driver| Acceptor::new(Arc::clone(&driver.shared))).collect();
        let doorbells: Vec<_> =
            drivers.iter().map(|driver| Arc::clone(&driver.doorbell) as Arc<dyn Wake>).collect();
        let neighbours = meet(doorbells, |sessions: &mut Sessions, now, from, datagram, shards| {
            sessions.server()?.handle_own(now, from, datagram, shards)
        });
        for (mut driver, neighbours) in drivers.into_iter().zip(neighbours) {
            driver.line.neighbours = Some(neighbours).filter(|_| !is_one);
            ::tokio::spawn(driver);
        }
        Ok(Self { shards, first: AtomicUsize::new(0) })
    }

    /// The next connected session. If cancelled, it has taken none.
    ///
    /// # Errors
    ///
    /// If the socket has failed.
    pub async fn accept(&self) -> io::Result<Session> {
        poll_fn(|cx| {
            let first = self.first.fetch_add(1, Ordering::Relaxed);
            for index in 0..self.shards.len() {
                let Some(shard) = self.shards.get((first + index) % self.shards.len()) else { continue };
                if let Poll::Ready(accepted) = shard.poll_accept(cx) {
                    return Poll::Ready(accepted);
                }
            }
            Poll::Pending
        })
        .await
        .map(Session::new)
    }

    /// The next client that asks to join, if the config has `ask`; [`accept`](Self::accept) then returns only sessions whose request was
    /// admitted. If cancelled, it has taken none.
    ///
    /// # Errors
    ///
    /// If the socket has failed.
    pub async fn next_request(&self) -> io::Result<Request> {
        poll_fn(|cx| {
            for shard in &self.shards {
                let take =
                    |sessions: &mut Sessions, id: Id| Request::of(&shard.shared, sessions.server()?, id?);
                if let Poll::Ready(request) = shard.poll_request(cx, take) {
                    return Poll::Ready(request);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Redirects the client of a session to another server; see [`session::Server::redirect`], also for its
    /// errors.
    pub fn redirect(&self, session: &Session, token: &[u8]) -> Result<(), RedirectError> {
        let id = session.id().ok_or(RedirectError::Closed)?;
        self.with(id, |server, now| server.redirect(now, id, token)).ok_or(RedirectError::Closed)?
    }

    /// The claims of the connect token with which a session was admitted, if there was one.
    #[must_use]
    pub fn pass(&self, session: &Session) -> Option<session::Pass> {
        let id = session.id()?;
        self.with(id, |server, _| server.pass(id).cloned())?
    }

    /// Closes all sessions and waits until they are over: until everything sent has arrived and they have
    /// said goodbye, for at most `drain` of the config plus two seconds. Clients that connect meanwhile are
    /// turned away.
    ///
    /// # Errors
    ///
    /// If the socket has failed.
    pub async fn shutdown(&self, code: u16) -> io::Result<()> {
        for shard in &self.shards {
            let now = shard.shared.clock.now();
            shard.shared.change(|state: &mut State<_>| {
                state.refuse(now);
                state.core.shutdown(now, code);
            });
        }
        for shard in &self.shards {
            poll_fn(|cx| shard.poll_idle(cx)).await?;
        }
        Ok(())
    }

    /// Statistics of the sessions.
    #[must_use]
    pub fn stats(&self) -> ServerStats {
        self.sum(|shard| with(shard, |server, _| server.stats()).unwrap_or_default())
    }

    /// Errors that the socket reported.
    #[must_use]
    pub fn socket_stats(&self) -> SocketStats {
        self.sum(|shard| shard.shared.lock().socket_stats)
    }

    /// Traffic of the socket.
    #[must_use]
    pub fn socket_traffic(&self) -> SocketTraffic {
        self.sum(|shard| shard.shared.lock().socket_traffic)
    }

    /// The local address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        let unspecified = SocketAddr::from(([0; 4], 0));
        self.shards.first().map_or(unspecified, |shard| shard.shared.local_addr) // there is at least one
    }

    /// Calls the server that a session belongs to.
    fn with<T>(&self, id: SessionId, call: impl FnOnce(&mut session::Server, Time) -> T) -> Option<T> {
        let owner = if self.shards.len() == 1 { 0 } else { id.shard().into() };
        with(self.shards.get(owner)?, call)
    }

    fn sum<T: AddAssign + Default>(&self, of: impl Fn(&Acceptor<Sessions>) -> T) -> T {
        self.shards.iter().map(of).fold(T::default(), |mut sum, each| {
            sum += each;
            sum
        })
    }
}

fn with<T>(shard: &Acceptor<Sessions>, call: impl FnOnce(&mut session::Server, Time) -> T) -> Option<T> {
    let now = shard.shared.clock.now();
    shard.shared.change(|state| state.core.server().map(|server| call(server, now)))
}
