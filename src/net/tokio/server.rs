//! Many sessions on one UDP socket.

use super::super::error::Error;
use super::super::random::random;
use super::super::tally::{SocketStats, SocketTraffic};
use super::driver::Driver;
use super::session::Session;
use super::sessions::{Sessions, within};
use super::shared::{Acceptor, State};
use crate::message::Message;
use crate::net::Clock;
use crate::session::{self, Blob, RedirectError, ServerConfig, ServerStats};
use crate::time::Time;
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

/// The server's end of sessions: one UDP socket, one task, and a [`Session`] for each client that is in.
///
/// Sessions that nobody accepts count against `max_sessions`. Dropped, it takes no others; those that were accepted go on.
#[derive(Debug)]
pub struct Server<M: Message + Send + 'static = Blob> {
    acceptor: Acceptor<Sessions<M>>,
}

impl<M: Message + Send + 'static> Server<M> {
    /// A server on `addr`. On an IPv6 address that takes IPv4 as well, IPv4 clients have IPv4 addresses.
    ///
    /// # Errors
    ///
    /// `addr` is in use, `config` is out of range ([`Error::Config`]), or the system has no random bytes.
    ///
    /// # Panics
    ///
    /// Outside of a runtime of tokio with I/O and time.
    pub fn bind(addr: SocketAddr, config: &ServerConfig) -> io::Result<Self> {
        Self::over(UdpSocket::bind(addr)?, config)
    }

    /// The same on a socket that is bound already, and not connected: for larger buffers, or for shards, which are as many servers on sockets
    /// that share a port.
    ///
    /// # Errors
    ///
    /// The socket fails, `config` is out of range ([`Error::Config`]), or the system has no random bytes.
    ///
    /// # Panics
    ///
    /// Outside of a runtime of tokio with I/O and time.
    pub fn over(socket: UdpSocket, config: &ServerConfig) -> io::Result<Self> {
        let config = &ServerConfig { session: within(&socket, &config.session), ..config.clone() };
        let server = session::Server::new(config, random()?).map_err(Error::from)?;
        let driver = Driver::new(socket, Sessions::Server(server), Clock::new(), true)?;
        let acceptor = Acceptor::new(Arc::clone(&driver.shared));
        ::tokio::spawn(driver);
        Ok(Self { acceptor })
    }

    /// From now on only who brings a connect token that `verifier` takes comes in, by the system's clock: see
    /// [`session::Server::require_tokens`].
    ///
    /// # Errors
    ///
    /// The system's clock is before 1970.
    #[cfg(feature = "crypto")]
    pub fn require_tokens(&self, verifier: session::token::Verifier) -> io::Result<()> {
        let unix = std::time::UNIX_EPOCH.elapsed().map_err(io::Error::other)?.as_secs();
        let require = |server: &mut session::Server<M>, now| server.require_tokens(now, unix, verifier);
        self.with(require).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// The next session that is up. Cancelled, it has taken none.
    ///
    /// # Errors
    ///
    /// The socket has failed.
    pub async fn accept(&self) -> io::Result<Session<M>> {
        poll_fn(|cx| self.acceptor.poll_accept(cx)).await.map(Session::new)
    }

    /// Sends the client of a session to another server, see [`session::Server::redirect`].
    ///
    /// # Errors
    ///
    /// `token` does not fit, or is none, or the session is over. Then nothing has changed.
    pub fn redirect(&self, session: &Session<M>, token: &[u8]) -> Result<(), RedirectError> {
        let id = session.id().ok_or(RedirectError::Closed)?;
        self.with(|server, now| server.redirect(now, id, token)).ok_or(RedirectError::Closed)?
    }

    /// What the connect token of a session said, if it takes one.
    #[cfg(feature = "crypto")]
    #[must_use]
    pub fn pass(&self, session: &Session<M>) -> Option<session::Pass> {
        let id = session.id()?;
        self.with(|server, _| server.pass(id).cloned())?
    }

    /// Ends all sessions, and waits until they are over: until all that was sent has arrived and they have said goodbye, at most `drain` of
    /// the config and two seconds. Who comes in meanwhile is sent away.
    ///
    /// # Errors
    ///
    /// The socket has failed.
    pub async fn shutdown(&self, code: u16) -> io::Result<()> {
        let now = self.acceptor.shared.clock.now();
        self.acceptor.shared.change(|state: &mut State<_>| {
            state.refuse(now);
            state.core.close_all(now, code);
        });
        poll_fn(|cx| self.acceptor.poll_idle(cx)).await
    }

    /// What was accepted, ended and dropped.
    #[must_use]
    pub fn stats(&self) -> ServerStats {
        self.with(|server, _| server.stats()).unwrap_or_default()
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

    /// The address it is bound to.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.acceptor.shared.local_addr
    }

    fn with<T>(&self, call: impl FnOnce(&mut session::Server<M>, Time) -> T) -> Option<T> {
        let now = self.acceptor.shared.clock.now();
        self.acceptor.shared.change(|state| state.core.server().map(|server| call(server, now)))
    }
}
