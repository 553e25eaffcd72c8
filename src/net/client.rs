//! One session, and its UDP socket.

use super::clock::{Clock, random};
use super::driver::{Driver, ONE_PEER, farewell, mode, within};
use super::error::Error;
use crate::session::{
    self, ClientConfig, ClientState, CloseTextError, ConnectError, Connection, Event, SecondNetwork,
};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::Duration;
use whitewater_udp::{Port, Socket, socket_for};
use zeroize::Zeroizing;

/// A client: one session on a UDP socket, driven by calls from your loop. It never blocks and has no thread.
///
/// It starts to connect when it is made. [`Event::Connected`] says that the session is up, and [`Event::Closed`] that it is over, or that
/// connecting failed. For another session, make another client.
///
/// A game calls [`pump`](Driver::pump) once a frame. A program without a loop of its own polls:
///
/// ```no_run
/// use whitewater::{Channel, Client, ClientConfig, Event, SessionConfig};
///
/// const CHAT: Channel = Channel::ordered(0);
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let config = ClientConfig::secret(SessionConfig::default(), [7; 32]);
/// let mut client = Client::connect("game.example.org:4000", &config)?;
/// client.poll(None)?;
/// if client.poll_event() == Some(Event::Connected) {
///     client.send(CHAT, b"all of this arrives")?;
/// }
/// client.shutdown(0)?; // waits until it has
/// # Ok(())
/// # }
/// ```
///
/// Data leaves with the next pump, or with [`flush`](Driver::flush). The socket is not connected, so an encrypted session survives when the
/// machine changes networks.
pub type Client = Driver<session::Client>;

impl Client {
    /// Starts to connect to `addr` from a port that the system chooses. Of all addresses that it resolves to, four are tried at a time, and
    /// the first that answers is taken; see [`session::Client::connect`]. Those of a family, IPv4 or IPv6, that this host lacks are
    /// skipped. An unspecified address, such as 0.0.0.0, means this machine.
    ///
    /// # Errors
    ///
    /// `addr` does not resolve, or to no address ([`Error::Connect`]), `config` is wrong ([`Error::Config`]), no socket, or the system has
    /// no random bytes.
    pub fn connect(addr: impl ToSocketAddrs, config: &ClientConfig) -> io::Result<Self> {
        let (socket, addresses) = opened(resolved(addr.to_socket_addrs()?))?;
        let mut client = Self::from_socket(socket, &*addresses, config)?;
        client.line.port.make_replaceable();
        Ok(client)
    }

    /// The same from a socket that is bound but not connected. The socket becomes non-blocking. An IPv4 socket cannot send to IPv6.
    ///
    /// # Errors
    ///
    /// Those of [`connect`](Self::connect), or the socket fails.
    pub fn from_socket(
        socket: UdpSocket,
        addr: impl ToSocketAddrs,
        config: &ClientConfig,
    ) -> io::Result<Self> {
        let clock = Clock::new();
        let (port, session) = client(clock, socket, &resolved(addr.to_socket_addrs()?), config)?;
        let mut client = Self::over(port, clock, session).of_sessions();
        client.line.watch();
        Ok(client)
    }

    /// Gives the session a second network: a phone has Wi-Fi and LTE. `socket` is bound to an address of that network, not connected, and becomes
    /// non-blocking; how to get one depends on the system. Call it at any time; a second call replaces the socket. See [`SecondNetwork`] for what it is for.
    /// A socket that fails is a network that is silent: the session goes on by the other.
    ///
    /// The session has to be encrypted: another one stays where it began, and the server would not follow.
    ///
    /// # Errors
    ///
    /// The session is not encrypted (`Unsupported`), or the socket fails.
    pub fn set_second_network(&mut self, socket: UdpSocket, purpose: SecondNetwork) -> io::Result<()> {
        let port = Port::new(socket, mode(self.machine.session_config()), ONE_PEER)?;
        let now = self.clock.now();
        if self.line.second.take().is_some() {
            self.machine.set_second_network(now, None); // the next one is another network
        }
        if !self.machine.set_second_network(now, Some(purpose)) {
            return Err(one_network());
        }
        self.line.second = Some(port);
        Ok(())
    }

    /// Takes the second network away. A session that uses it goes on by the first.
    pub fn remove_second_network(&mut self) {
        self.machine.set_second_network(self.clock.now(), None);
        self.line.second = None;
    }

    /// The network that the session uses: 0 for the first, 1 for the second.
    #[must_use]
    pub fn network(&self) -> u8 {
        self.machine.network()
    }

    /// Pumps until there is an event, for at most `timeout`; `None` waits forever. Returns whether there is one. Returns at once if the
    /// session is over and there will be none.
    ///
    /// # Errors
    ///
    /// The socket has failed.
    pub fn poll(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        self.run(timeout, |_, session| session.has_events() || session.state() == ClientState::Closed)?;
        Ok(self.machine.has_events())
    }

    /// Takes the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.machine.poll_event()
    }

    /// The session, once it has been up.
    #[must_use]
    pub fn connection(&self) -> Option<&Connection> {
        self.machine.connection()
    }

    /// The same, to send and to receive.
    pub fn connection_mut(&mut self) -> Option<&mut Connection> {
        self.machine.connection_mut()
    }

    /// Whether the session is up and takes what is sent.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.machine.is_connected()
    }

    /// Where the server is, once the session has been up.
    #[must_use]
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.machine.peer_addr()
    }

    /// What [`ClientConfig::ticket`] takes for the next session with this server; see [`Connection::ticket`]. Empty
    /// until the session has been up.
    #[must_use]
    pub fn ticket(&self) -> &[u8] {
        self.connection().map_or(&[], Connection::ticket)
    }

    /// What the server's application said when it rejected this client, see [`session::Client::rejection`].
    #[must_use]
    pub const fn rejection(&self) -> &[u8] {
        self.machine.rejection()
    }

    /// How far the session has got.
    #[must_use]
    pub fn state(&self) -> ClientState {
        self.machine.state()
    }

    /// Call this when the machine has changed networks; see
    /// [`session::Client::path_changed`](crate::session::Client#method.path_changed). The client also notices
    /// by itself, within 250 ms while it is pumped. If the system tells you sooner, call this at once, so
    /// that nothing leaves by the new network under the old number. A client that opened its own socket then
    /// sends from another port.
    pub fn path_changed(&mut self) {
        let now = self.clock.now();
        self.line.path_changed(now, &mut self.machine);
    }

    /// Closes the session once everything sent has arrived; see [`Connection::close`]. The pumps do it, and [`Event::Closed`] says when it is
    /// done.
    pub fn close(&mut self, code: u16) {
        self.machine.close(self.clock.now(), code);
    }

    /// The same with a text for the server, see [`session::Client::close_with`], also for its errors.
    pub fn close_with(&mut self, code: u16, text: &str) -> Result<(), CloseTextError> {
        self.machine.close_with(self.clock.now(), code, text)
    }

    /// Ends the session, or the attempt to connect, at once; see [`session::Client::kick`], also for its errors.
    pub fn kick(&mut self, code: u16, text: &str) -> Result<(), CloseTextError> {
        self.machine.kick(self.clock.now(), code, text)
    }

    /// Takes the token of another server, after [`Event::Redirected`], see [`session::Client::take_redirect`].
    pub fn take_redirect(&mut self) -> Option<Zeroizing<Vec<u8>>> {
        self.machine.take_redirect()
    }

    /// Closes the session and blocks until it is over: until everything has arrived and the goodbye is said, for at most `drain` plus
    /// two seconds. If your loop must go on, or drives the other end as well, call [`close`](Self::close) and pump until
    /// [`Event::Closed`]. A client that is dropped says goodbye without waiting: what has not arrived is lost.
    ///
    /// # Errors
    ///
    /// The socket has failed.
    pub fn shutdown(&mut self, code: u16) -> io::Result<()> {
        self.finish(code, farewell(self.machine.session_config()))
    }
}

/// Where a client is to connect to: an unspecified address means this machine.
pub(super) fn resolved(addresses: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let here = |ip: IpAddr| match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    addresses
        .map(|mut address| {
            address.set_ip(here(address.ip()));
            address
        })
        .collect()
}

/// Only a client's session that is encrypted has two.
pub(super) fn one_network() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "only a client with an encrypted session has two networks")
}

/// A socket for the first of these addresses of whose family this host has one, and all addresses of such families.
pub(super) fn opened(mut addresses: Vec<SocketAddr>) -> io::Result<(UdpSocket, Vec<SocketAddr>)> {
    let mut socket = Err(Error::from(ConnectError::NoAddress).into());
    let (mut v4, mut v6) = (None, None);
    addresses.retain(|address| {
        let family = if address.is_ipv6() { &mut v6 } else { &mut v4 };
        *family.get_or_insert_with(|| {
            let opened = socket_for(*address);
            let is_there = opened.is_ok();
            if socket.is_err() {
                socket = opened;
            }
            is_there
        })
    });
    Ok((socket?, addresses))
}

/// A session that begins to connect, on a socket of any kind.
pub(super) fn client<S: Socket>(
    clock: Clock,
    socket: UdpSocket,
    addresses: &[SocketAddr],
    config: &ClientConfig,
) -> io::Result<(Port<S>, session::Client)> {
    let port = Port::new(socket, mode(&config.session), ONE_PEER)?;
    let session = within(&config.session, port.may_fragment());
    let config = &ClientConfig { session, ..config.clone() };
    let mut client = session::Client::new(config, random()?).map_err(Error::from)?;
    client.connect(clock.now(), addresses).map_err(Error::from)?;
    Ok((port, client))
}
