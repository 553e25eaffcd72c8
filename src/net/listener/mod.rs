//! Many sessions on one UDP socket.

mod admission;
mod config;
mod hub;
mod session;
#[cfg(test)]
mod tests;
mod timers;

pub use config::{ListenerConfig, ListenerStats};
pub use session::{CloseReason, Event, Session, SessionId};

use super::clock::Clock;
use super::error::Error;
use super::port::{Port, SocketStats};
use hub::Hub;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::Duration;

/// The server end of bare KCP: one UDP socket, and a session for each address and conv that sends
/// to it, under limits.
///
/// A program polls, takes the events, and uses the sessions that they name:
///
/// ```no_run
/// use whitewater::net::{Event, KcpListener, ListenerConfig};
///
/// # fn main() -> std::io::Result<()> {
/// let mut listener = KcpListener::bind("0.0.0.0:4000", ListenerConfig::default())?;
/// let mut message = [0; 1 << 16];
/// loop {
///     listener.poll(None)?;
///     while let Some(event) = listener.next_event() {
///         let Event::Readable(id) = event else { continue };
///         while let Some(session) = listener.session(id)
///             && let Ok(len) = session.recv(&mut message)
///         {
///             if session.send(&message[..len]).is_err() {
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
/// Bare KCP has no handshake: who sends a good first datagram has a session. So the limits of
/// [`ListenerConfig`] bound what that costs, everything that is not a good first datagram is
/// dropped without an answer and counted in [`ListenerStats`], and a source address may be forged.
/// The answer to a forged one is no amplifier: a control block answers a datagram with
/// acknowledgements of 24 bytes for segments of 24 bytes or more. What the program sends to a peer
/// that has not yet acknowledged anything is the program's to bound.
#[derive(Debug)]
pub struct KcpListener {
    port: Port,
    hub: Hub,
    clock: Clock,
    datagrams_per_pump: usize,
}

impl KcpListener {
    /// A listener on `addr`.
    ///
    /// # Errors
    ///
    /// `addr` does not resolve or is in use, or `config` is out of range ([`Error::Config`],
    /// [`Error::Zero`]).
    pub fn bind(addr: impl ToSocketAddrs, config: ListenerConfig) -> io::Result<Self> {
        Self::wrap(UdpSocket::bind(addr)?, config)
    }

    /// A listener on a socket that is bound already, and not connected. It becomes non-blocking.
    ///
    /// # Errors
    ///
    /// The socket fails, or `config` is out of range ([`Error::Config`], [`Error::Zero`]).
    pub fn wrap(socket: UdpSocket, config: ListenerConfig) -> io::Result<Self> {
        config.check()?;
        let datagrams_per_pump = config.datagrams_per_pump;
        let hub = Hub::new(config).map_err(Error::from)?;
        Ok(Self { port: Port::new(socket, false)?, hub, clock: Clock::new(), datagrams_per_pump })
    }

    /// Reads the datagrams that wait, updates the sessions that have something to do and sends
    /// what came out. Returns how long it may be until the next call; `None` when nothing but a
    /// datagram makes work.
    ///
    /// The work of one call is bounded; when there is more, the answer is zero.
    ///
    /// # Errors
    ///
    /// The socket has failed. What one peer does, or does not, is an event and no error.
    pub fn pump(&mut self) -> io::Result<Option<Duration>> {
        let now = self.clock.now();
        let unread = self.receive()?;
        let unserved = self.hub.handle_timeout(now);
        self.port.retry();
        self.hub.service(now);
        while !self.port.is_full()
            && let Some((datagram, to)) = self.hub.poll_transmit()
        {
            self.port.send(datagram, to);
        }
        if unread || unserved {
            return Ok(Some(Duration::ZERO));
        }
        Ok(self.port.limit(self.hub.next_timeout().map(|at| at.since(now))))
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
            if self.hub.has_events() {
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

    /// The oldest event that was not taken yet. Events of a session come in their order; when
    /// nobody takes them, no new sessions are accepted.
    pub fn next_event(&mut self) -> Option<Event> {
        self.hub.poll_event()
    }

    /// A session to use; `None` when it has ended. The next pump sends what was sent to it.
    pub fn session(&mut self, id: SessionId) -> Option<&mut Session> {
        self.hub.session(id)
    }

    /// The sessions there are, in no order.
    pub fn ids(&self) -> impl Iterator<Item = SessionId> {
        self.hub.ids()
    }

    /// Sessions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hub.len()
    }

    /// Whether there is no session.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends a session after a last flush, without an event. Bare KCP cannot tell the peer; what it
    /// sends from now on is dropped. Returns whether there was one.
    pub fn close(&mut self, id: SessionId) -> bool {
        let Some(mut session) = self.hub.close(self.clock.now(), id) else { return false };
        let peer = session.peer_addr();
        while !self.port.is_full()
            && let Some(datagram) = session.kcp.output_mut().pop()
        {
            self.port.send(datagram, peer);
        }
        true
    }

    /// What was accepted, ended and dropped.
    #[must_use]
    pub const fn stats(&self) -> ListenerStats {
        self.hub.stats
    }

    /// What the socket reported.
    #[must_use]
    pub const fn socket_stats(&self) -> SocketStats {
        self.port.stats
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
        for _ in 0..self.datagrams_per_pump {
            let Some((datagram, from)) = self.port.recv()? else { return Ok(false) };
            self.hub.handle_datagram(self.clock.now(), from, datagram);
        }
        Ok(true)
    }
}
