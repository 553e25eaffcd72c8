//! Many sessions on one UDP socket.

use super::clock::{Clock, random};
use super::driver::{Driver, MANY_PEERS, farewell, mode, within};
use super::error::Error;
use super::shards::{Wake, meet, sockets};
use super::takeover::{Claim, Generations};
use super::transport::{Beside, Transport, Waker};
use crate::channel::{Channel, SendError};
use crate::message::pack::Payload;
use crate::session::{
    self, CloseTextError, Connection, DecisionError, Event, RedirectError, Request, ServerConfig,
    ServerStats, SessionId,
};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use whitewater_udp::{Mode, Port, Socket, bind, local_ip_for};

/// A server: many sessions on one UDP socket, driven by calls from your loop. It never blocks and has no thread.
///
/// A game calls [`pump`](Driver::pump) once a frame. A program without a loop of its own polls:
///
/// ```no_run
/// use whitewater::{Channel, Event, Server, ServerConfig, SessionConfig};
///
/// const CHAT: Channel = Channel::ordered(0);
///
/// # fn main() -> std::io::Result<()> {
/// // Encrypted with 32 random bytes that every client knows. With `ServerConfig::tokens`, each client has its own key.
/// let config = ServerConfig::secret(SessionConfig::default(), [7; 32]);
/// let mut server = Server::bind("0.0.0.0:4000", &config)?;
/// while server.poll(None)? {
///     while let Some((id, event)) = server.poll_event() {
///         if event == Event::Readable {
///             while let Some(message) = server.recv(id, CHAT) {
///                 if server.send(id, CHAT, &message).is_err() {
///                     server.close(id, 1); // it sends but does not read
///                 }
///             }
///         }
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// Data leaves with the next pump, or with [`flush`](Driver::flush). Pumps also acknowledge, resend and detect lost peers: call one every
/// few milliseconds, or when the last one said so.
pub type Server = Driver<session::Server>;

impl Server {
    /// Binds a server to `addr`.
    ///
    /// `[::]` also takes IPv4, where the system can do that. IPv4 clients appear with IPv4 addresses.
    ///
    /// # Errors
    ///
    /// `addr` does not resolve or is in use, `config` is out of range ([`Error::Config`]), or the system has no random bytes.
    pub fn bind(addr: impl ToSocketAddrs, config: &ServerConfig) -> io::Result<Self> {
        Self::from_socket(bind(addr)?, config)
    }

    /// Makes a server from a socket that is bound but not connected. The socket becomes non-blocking. Where quinn-udp or a driver of this
    /// library had it before, the system may join datagrams (GRO), which is noticed. Turn it off if you have turned it on by yourself.
    ///
    /// # Errors
    ///
    /// The socket fails, `config` is out of range ([`Error::Config`]), or the system has no random bytes.
    pub fn from_socket(socket: UdpSocket, config: &ServerConfig) -> io::Result<Self> {
        let (port, sessions) = server(socket, mode(&config.session), config)?;
        Ok(Self::over(port, Clock::new(), sessions).of_sessions())
    }

    /// Binds `count` servers to one port, 1 to 64 ([`SHARDS_MAX`](session::SHARDS_MAX)), each for a thread of its own:
    /// [`thread::Server`](crate::thread::Server) has the threads. A session stays with the server that admitted it,
    /// which [`SessionId::shard`] names, wherever its client moves.
    ///
    /// Every limit in `config` applies to each of them. `config.shard` is ignored. Clients behind one address are usually spread over all
    /// servers, by their ports.
    ///
    /// A connect token that was used at one server is used at all of them. If a client has two sessions on one shard, the newer one stays; an
    /// older one on another shard times out.
    ///
    /// This needs Linux and the feature `batch` (`SO_REUSEPORT`). Any process of the same user can join the port.
    ///
    /// # Errors
    ///
    /// `addr` does not resolve or is in use, `count` or `config` is out of range ([`Error::Config`]), the system has no random bytes, or
    /// ([`Unsupported`](io::ErrorKind::Unsupported)) it cannot share a port and `count` is more than 1.
    pub fn bind_shards(
        addr: impl ToSocketAddrs,
        config: &ServerConfig,
        count: usize,
    ) -> io::Result<Vec<Self>> {
        let shard = |(shard, socket)| Self::from_socket(socket, &ServerConfig { shard, ..config.clone() });
        let mut servers = (0..).zip(sockets(addr, count)?).map(shard).collect::<io::Result<Vec<_>>>()?;
        if count > 1 {
            let bells = servers.iter_mut().map(|server| Ok(server.line.port.bell()? as Arc<dyn Wake>));
            let neighbours = meet(bells.collect::<io::Result<Vec<_>>>()?, session::Server::handle_own);
            for (server, neighbours) in servers.iter_mut().zip(neighbours) {
                server.line.neighbours = Some(neighbours);
            }
        }
        Ok(servers)
    }

    /// Takes a socket over from an older process, such as the last version of the program, without downtime: sessions stay with the process
    /// that has them until they end, and clients that come from now on join this one. If there is no older process, it is as
    /// [`from_socket`](Self::from_socket).
    ///
    /// All processes have the same socket, from whatever started them, and the same directory. It is made if it is missing. It has to belong to
    /// the user of the process, who alone may enter it (mode 0700), and to be for nothing else. Each process has a shard of its own there, so `config.shard` is ignored, and more than 64 cannot run at a time.
    /// This call is when the port is taken: call it when the rest of the program is ready. Until then the old process serves everybody. If this
    /// process ends, the one before it serves the port again. Processes that start at once take it over one after the other.
    ///
    /// A process that hangs for 2 s while datagrams wait, for instance in a debugger, is passed over: the one before it serves the port until
    /// the process runs again. Meanwhile clients of the process that hangs are not heard.
    ///
    /// The old process [is superseded](Self::is_superseded), and has to go on until its sessions have ended. Whatever a client sends to
    /// it comes through this process. Sessions of a process that has ended are unknown, as after a crash; see
    /// [`reset_key`](ServerConfig::reset_key). Transports that are [attached](Self::attach) stay where they are.
    ///
    /// Connect tokens made more than 5 s before the call are refused here, because the old process may have seen them.
    ///
    /// # Errors
    ///
    /// The directory cannot be used, or it is a link, another user's or open to others, or has other files in it (`PermissionDenied`). Another
    /// process has it locked for 5 s (`TimedOut`), 64 are running (`AddrInUse`), the old one is of an incompatible version, or the system cannot do this ([`Unsupported`](io::ErrorKind::Unsupported)): it needs Linux and the
    /// feature `batch`. Also the errors of [`from_socket`](Self::from_socket). The old process goes on then.
    pub fn take_over(socket: UdpSocket, dir: impl AsRef<Path>, config: &ServerConfig) -> io::Result<Self> {
        let claim = Claim::new(dir.as_ref())?;
        let config = ServerConfig { shard: claim.shard, ..config.clone() };
        // Each process lets the system join datagrams for all of them, now or later. So all read by the calls that take these apart.
        let (port, sessions) = server(socket, Mode::Whole, &config)?;
        let mut server = Self::over(port, Clock::new(), sessions).of_sessions();
        let owner = server.line.port.bell()?;
        server.line.generations = Some(Generations::take_over(claim, owner, session::Server::handle_own)?);
        Ok(server)
    }

    /// Whether a newer process has [taken the socket over](Self::take_over). Then no client joins here any more, and the program can end when
    /// the last session has.
    #[must_use]
    pub fn is_superseded(&self) -> bool {
        self.line.is_superseded()
    }

    /// Serves the peers of a transport beside those of the socket, by the same sessions, limits and events. It replaces an earlier one, whose
    /// sessions fall silent then.
    ///
    /// # Errors
    ///
    /// The system has nothing left that could wake the server.
    pub fn attach(&mut self, mut transport: impl Transport + 'static) -> io::Result<()> {
        let bell = self.line.port.bell()?;
        transport.attached(Waker::new(move || bell.ring()));
        self.line.beside = Some(Beside::new(transport));
        Ok(())
    }

    /// Where guests may reach this server who have its [relay](ServerConfig::relay)'s ticket: its address as the relay sees it, its own in its network, and the
    /// relay's. They are for the guests' connect tokens, all of them, because whichever answers first is used. Empty: the relay does not know the server yet, or
    /// no longer.
    #[must_use]
    pub fn candidates(&self) -> Vec<SocketAddr> {
        let Some((public, relay)) = self.machine.public_addr(self.clock.now()).zip(self.machine.relay_addr())
        else {
            return Vec::new();
        };
        let own = self.local_addr().ok().and_then(|own| {
            let ip = if own.ip().is_unspecified() { local_ip_for(relay).ok()? } else { own.ip() };
            Some(SocketAddr::new(ip, own.port()))
        });
        let own = own.filter(|own| *own != public && own.is_ipv6() == public.is_ipv6());
        [Some(public), own, Some(relay)].into_iter().flatten().collect()
    }

    /// Pumps until there is an event, or a [waker](Self::waker) was used, at most for `timeout`; `None` waits for ever. Returns whether
    /// there was one of these.
    ///
    /// # Errors
    ///
    /// The socket has failed.
    pub fn poll(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        let is_woken = Arc::clone(&self.is_woken);
        self.run(timeout, |_, sessions| is_woken.swap(false, Ordering::AcqRel) || sessions.has_events())
    }

    /// Ends the current [`poll`](Self::poll), or the next one, from any thread: for what your loop waits for beside its clients.
    ///
    /// # Errors
    ///
    /// The system has nothing left that could wake the server.
    pub fn waker(&mut self) -> io::Result<Waker> {
        let (bell, is_woken) = (self.line.port.bell()?, Arc::clone(&self.is_woken));
        Ok(Waker::new(move || {
            is_woken.store(true, Ordering::Release);
            bell.ring();
        }))
    }

    /// Takes the next event and the session it belongs to.
    pub fn poll_event(&mut self) -> Option<(SessionId, Event)> {
        self.machine.poll_event()
    }

    /// Takes the session whose end the last event reported; see [`session::Server::pop_ended`].
    pub fn pop_ended(&mut self) -> Option<Connection> {
        self.machine.pop_ended()
    }

    /// A session that is up, or whose end was just reported.
    #[must_use]
    pub fn connection(&self, id: SessionId) -> Option<&Connection> {
        self.machine.connection(id)
    }

    /// The same, to send and to receive.
    pub fn connection_mut(&mut self, id: SessionId) -> Option<&mut Connection> {
        self.machine.connection_mut(id)
    }

    /// The clients that are connected, in no order. The iterator owns its list, so you can send to them while you go through it.
    /// Among them may be clients whose [`Connected`](crate::Event::Connected) you have not taken yet; [`broadcast`](Self::broadcast) reaches them
    /// as well.
    pub fn clients(&self) -> impl ExactSizeIterator<Item = SessionId> + use<> {
        self.machine.clients()
    }

    /// Whether a session is up and takes what is sent.
    #[must_use]
    pub fn is_connected(&self, id: SessionId) -> bool {
        self.machine.is_connected(id)
    }

    /// Where the client of a session is; `None`: there is no such session.
    #[must_use]
    pub fn peer_addr(&self, id: SessionId) -> Option<SocketAddr> {
        self.machine.peer_addr(id)
    }

    /// Queues a message for every client that is connected, see [`session::Server::broadcast`]. Returns the clients that it could not be
    /// queued for, and why.
    pub fn broadcast<P: Payload + ?Sized>(
        &mut self,
        channel: Channel<P>,
        message: &P::Sent,
    ) -> Vec<(SessionId, SendError)> {
        self.machine.broadcast(channel, message)
    }

    /// [`broadcast`](Self::broadcast) to all clients but one, such as the one that a message came from.
    pub fn broadcast_except<P: Payload + ?Sized>(
        &mut self,
        except: SessionId,
        channel: Channel<P>,
        message: &P::Sent,
    ) -> Vec<(SessionId, SendError)> {
        self.machine.broadcast_except(except, channel, message)
    }

    /// A client that [asks](Event::Requested) to join; see [`session::Server::request`].
    #[must_use]
    pub fn request(&self, id: SessionId) -> Option<Request<'_>> {
        self.machine.request(id)
    }

    /// The claims of a session's connect token, if it has one.
    #[must_use]
    pub fn pass(&self, id: SessionId) -> Option<&session::Pass> {
        self.machine.pass(id)
    }

    /// Admits a client that asks to join, and tells it `user`; see [`session::Server::admit`], also for its errors.
    pub fn admit(&mut self, id: SessionId, user: &[u8]) -> Result<(), DecisionError> {
        self.machine.admit(self.clock.now(), id, user)
    }

    /// Rejects a client that asks to join, and tells it why; see [`session::Server::reject`], also for its errors.
    pub fn reject(&mut self, id: SessionId, code: u16, user: &[u8]) -> Result<(), DecisionError> {
        self.machine.reject(self.clock.now(), id, code, user)
    }

    /// Sends the client of a session to another server; see [`session::Server::redirect`], also for its errors.
    pub fn redirect(&mut self, id: SessionId, token: &[u8]) -> Result<(), RedirectError> {
        self.machine.redirect(self.clock.now(), id, token)
    }

    /// Ends a session at once, and tells the client `code` and `text`, see [`session::Server::kick`], also for its errors.
    pub fn kick(&mut self, id: SessionId, code: u16, text: &str) -> Result<(), CloseTextError> {
        self.machine.kick(self.clock.now(), id, code, text)
    }

    /// [`close`](Self::close) with a text for the client, see [`session::Server::close_with`], also for its errors.
    pub fn close_with(&mut self, id: SessionId, code: u16, text: &str) -> Result<(), CloseTextError> {
        self.machine.close_with(self.clock.now(), id, code, text)
    }

    /// Closes a session once everything sent has arrived; see [`Connection::close`]. The pumps do it, and [`Event::Closed`] says when it is done.
    pub fn close(&mut self, id: SessionId, code: u16) {
        self.machine.close(self.clock.now(), id, code);
    }

    /// Closes all sessions and blocks until they are over: until everything has arrived and the goodbyes are said, for at most `drain`
    /// plus two seconds. If your loop must go on, or drives the other ends as well, [`close`](Self::close) each and pump. A server
    /// that is dropped says goodbye without waiting: what has not arrived is lost.
    ///
    /// You can take their events afterwards. Clients that connect meanwhile are turned away.
    ///
    /// # Errors
    ///
    /// The socket has failed.
    pub fn shutdown(&mut self, code: u16) -> io::Result<()> {
        self.finish(code, farewell(self.machine.session_config()))
    }

    /// Statistics: what was accepted, ended and dropped.
    #[must_use]
    pub fn stats(&self) -> ServerStats {
        self.machine.stats()
    }
}

/// Sessions of a server, on a socket of any kind.
pub(super) fn server<S: Socket>(
    socket: UdpSocket,
    mode: Mode,
    config: &ServerConfig,
) -> io::Result<(Port<S>, session::Server)> {
    let port = Port::new(socket, mode, MANY_PEERS)?;
    let session = within(&config.session, port.may_fragment());
    let config = ServerConfig { session, ..config.clone() };
    Ok((port, session::Server::new(&config, random()?).map_err(Error::from)?))
}
