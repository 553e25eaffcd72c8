//! Many sessions on one UDP socket, or on several that share a port.

use super::super::driver::mode;
use super::super::end::Id;
use super::super::server::server;
use super::super::shards::{Wake, meet, sockets};
use super::super::tally::{SocketStats, SocketTraffic};
use super::super::transport::Transport;
use super::core::Sessions;
use super::driver::{Driver, clock};
use super::request::Request;
use super::session::Session;
use super::shared::{Acceptor, State};
use crate::channel::{Channel, SendError};
use crate::machine::Machine;
use crate::message::pack::Payload;
use crate::session::{self, CloseTextError, ServerConfig, ServerStats, SessionId, check_close};
use crate::time::Time;
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::ops::AddAssign;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};
use whitewater_udp::bind;

/// The server's end of sessions: one UDP socket, one task, and a [`Session`] for each connected client. Or
/// several sockets and tasks on one port: [`bind_shards`](Self::bind_shards).
///
/// Sessions that nobody accepts count against `max_sessions`. Dropping it stops it from admitting new
/// sessions; accepted ones continue.
#[derive(Debug)]
pub struct Server {
    /// By shard; at least one.
    shards: Vec<Acceptor<Sessions>>,
    /// Which of them is asked first for the next session.
    first: AtomicUsize,
}

impl Server {
    /// Binds a server to `addr`, an address of this host. A host name would block the task while it is looked up.
    /// `[::]` also takes IPv4, where the system can do that. IPv4 clients have IPv4 addresses.
    ///
    /// # Errors
    ///
    /// If `addr` does not resolve or is in use, `config` is out of range ([`Error::Config`](crate::net::Error::Config)), or the
    /// system has no random bytes.
    pub fn bind(addr: impl ToSocketAddrs, config: &ServerConfig) -> io::Result<Self> {
        Self::from_socket(bind(addr)?, config)
    }

    /// Binds a server with 1 to 64 sockets and tasks to one port, which a multi-threaded runtime runs in
    /// parallel. Sessions of all of them are accepted here. Every limit in `config` applies to each: see
    /// [`Server::bind_shards`](crate::Server::bind_shards), which also explains what happens to a
    /// client that migrates, and where this works.
    ///
    /// # Errors
    ///
    /// As [`Server::bind_shards`](crate::Server::bind_shards).
    pub fn bind_shards(addr: impl ToSocketAddrs, config: &ServerConfig, count: usize) -> io::Result<Self> {
        Self::drive(sockets(addr, count)?, config)
    }

    /// A server over a socket that is already bound and not connected: for larger buffers.
    ///
    /// # Errors
    ///
    /// If the socket fails, `config` is out of range ([`Error::Config`](crate::net::Error::Config)), or the
    /// system has no random bytes.
    pub fn from_socket(socket: UdpSocket, config: &ServerConfig) -> io::Result<Self> {
        Self::drive(vec![socket], config)
    }

    fn drive(sockets: Vec<UdpSocket>, config: &ServerConfig) -> io::Result<Self> {
        let is_one = sockets.len() == 1;
        let mut drivers = Vec::with_capacity(sockets.len());
        for (index, socket) in (0..).zip(sockets) {
            let shard = if is_one { config.shard } else { index };
            let (port, sessions) =
                server(socket, mode(&config.session), &ServerConfig { shard, ..config.clone() })?;
            drivers.push(Driver::new(port, Sessions::Server(sessions), clock(), true)?);
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

    /// Serves the peers of a transport as well; see [`Server::attach`](crate::Server::attach). With several shards, they are those of the
    /// first.
    pub fn attach(&self, transport: impl Transport + 'static) {
        if let Some(shard) = self.shards.first() {
            shard.shared.attach(transport);
        }
    }

    /// The next connected session. If cancelled, it has taken none.
    ///
    /// # Errors
    ///
    /// After a [`shutdown`](Self::shutdown), `NotConnected` with [`Error::Closed`](crate::net::Error::Closed) inside; or if the
    /// socket has failed.
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

    /// The next client that asks to join, if the config has `ask`. [`Request::admit`] then returns its session;
    /// [`accept`](Self::accept) does not. If cancelled, it has taken none.
    ///
    /// # Errors
    ///
    /// As [`accept`](Self::accept).
    pub async fn next_request(&self) -> io::Result<Request> {
        poll_fn(|cx| {
            for shard in &self.shards {
                let take = |state: &mut State<_>, id: Id| Request::of(&shard.shared, state, id?);
                if let Poll::Ready(request) = shard.poll_request(cx, take) {
                    return Poll::Ready(request);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// The connected clients, accepted or not, in no order. The iterator owns its list.
    pub fn clients(&self) -> impl ExactSizeIterator<Item = SessionId> + use<> {
        self.everywhere(|server| server.clients().collect()).into_iter()
    }

    /// Whether a session is up and accepts messages.
    #[must_use]
    pub fn is_connected(&self, id: SessionId) -> bool {
        self.with(id, |server, _| server.is_connected(id)).unwrap_or(false)
    }

    /// Queues a message for every connected client, accepted or not, without waiting. Returns the clients for which
    /// this failed, and why: see [`session::Server::broadcast`].
    pub fn broadcast<P: Payload + ?Sized>(
        &self,
        channel: Channel<P>,
        message: &P::Sent,
    ) -> Vec<(SessionId, SendError)> {
        self.everywhere(|server| server.broadcast(channel, message))
    }

    /// Like [`broadcast`](Self::broadcast), to all clients but one, such as the sender of a message.
    pub fn broadcast_except<P: Payload + ?Sized>(
        &self,
        except: SessionId,
        channel: Channel<P>,
        message: &P::Sent,
    ) -> Vec<(SessionId, SendError)> {
        self.everywhere(|server| server.broadcast_except(except, channel, message))
    }

    /// Ends a session at once, and tells the client `code` and `text`: see [`session::Server::kick`], also for its errors.
    pub fn kick(&self, id: SessionId, code: u16, text: &str) -> Result<(), CloseTextError> {
        check_close(code, text)?;
        self.with(id, |server, now| server.kick(now, id, code, text)).unwrap_or(Ok(()))
    }

    /// Closes all sessions and waits until they are over: until everything sent has arrived and they have
    /// said goodbye, for at most `drain` of the config plus two seconds. Clients that connect meanwhile are
    /// turned away, and [`accept`](Self::accept) ends with an error.
    ///
    /// # Errors
    ///
    /// If the socket has failed.
    pub async fn shutdown(&self, code: u16) -> io::Result<()> {
        for shard in &self.shards {
            let now = shard.shared.clock.now();
            let woken = shard.shared.change(|state: &mut State<_>| {
                let woken = state.end(now, code);
                state.core.shutdown(now, code);
                woken
            });
            woken.into_iter().for_each(Waker::wake);
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
        self.shards.first().map_or(unspecified, |shard| shard.shared.lock().local_addr) // there is at least one
    }

    /// Calls the server that a session belongs to.
    fn with<T>(&self, id: SessionId, call: impl FnOnce(&mut session::Server, Time) -> T) -> Option<T> {
        let owner = if self.shards.len() == 1 { 0 } else { id.shard().into() };
        with(self.shards.get(owner)?, call)
    }

    /// What a call returns for all shards together.
    fn everywhere<T>(&self, call: impl Fn(&mut session::Server) -> Vec<T>) -> Vec<T> {
        self.shards.iter().filter_map(|shard| with(shard, |server, _| call(server))).flatten().collect()
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
