//! One session on one UDP socket.

mod blocking;

use super::batch::{Datagram, Fragments};
use super::buffers::SocketBuffers;
use super::clock::Clock;
use super::envelope::SocketEnvelope;
use super::error::Error;
use super::port::{Port, Purpose};
use super::silence::{LONGEST_STEP, Silence};
use super::tally::{SocketStats, SocketTraffic};
use crate::arq::{Config, Kcp, Stats};
use crate::seq::Conv;
use crate::time::Time;
use crate::wire::DatagramQueue;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::Duration;

/// A KCP session over a UDP socket of its own, in bare KCP: any KCP program with the same `conv`
/// can be the peer.
///
/// There are two ways to use it. A game loop calls [`pump`](Self::pump) once a frame and the
/// `try_` calls, which never touch the socket:
///
/// ```no_run
/// # use whitewater::{Config, Conv, net::KcpSocket};
/// # fn frame() {}
/// # fn main() -> std::io::Result<()> {
/// let mut socket = KcpSocket::connect("game.example:4000", Conv(7), &Config::fast())?;
/// let mut message = [0; 1200];
/// loop {
///     socket.pump()?;
///     while let Ok(len) = socket.try_recv(&mut message) {
///         println!("{} bytes", message[..len].len());
///     }
///     frame();
///     socket.try_send(b"input")?;
///     socket.flush();
/// }
/// # }
/// ```
///
/// A program without a loop calls [`send`](Self::send), [`recv`](Self::recv) and
/// [`drain`](Self::drain), which pump while they wait. Nothing pumps between calls: without one of
/// them, and without `pump`, nothing is sent again and nothing is acknowledged.
#[derive(Debug)]
pub struct KcpSocket {
    kcp: Kcp<DatagramQueue>,
    /// What is around it, if anything is.
    envelope: Option<Box<SocketEnvelope>>,
    port: Port,
    peer: SocketAddr,
    clock: Clock,
    read_timeout: Option<Duration>,
    write_timeout: Option<Duration>,
    silence: Silence,
    eager: bool,
    /// Something was sent or has come that is to be flushed by the next pump.
    flush_due: bool,
    late_acks: bool,
    /// Whether what was received last is acknowledged by the next call.
    acks_wait: bool,
    /// Whether a message was sent since the last one was received.
    has_sent: bool,
    /// When the socket was last read, and whether the peer was heard then and nobody was told.
    read_at: Time,
    heard: bool,
    /// When a blocking call that finds what it wants should pump all the same.
    pump_due: Time,
}

impl KcpSocket {
    /// A session with `peer`, from a socket bound to a port that the system chooses.
    ///
    /// Nothing is sent yet and nobody is asked: bare KCP has no handshake.
    ///
    /// # Errors
    ///
    /// `peer` does not resolve, no socket, or `config` is out of range ([`Error::Config`]).
    pub fn connect(peer: impl ToSocketAddrs, conv: Conv, config: &Config) -> io::Result<Self> {
        let mut error = io::Error::new(io::ErrorKind::InvalidInput, "the peer's name has no address");
        for address in peer.to_socket_addrs()? {
            match connected(address) {
                Ok(socket) => return Self::wrap(socket, conv, config),
                Err(failed) => error = failed,
            }
        }
        Err(error)
    }

    /// A session over a socket that is connected already. The socket becomes non-blocking.
    ///
    /// # Errors
    ///
    /// The socket is not connected, it fails, or `config` is out of range ([`Error::Config`]).
    pub fn wrap(socket: UdpSocket, conv: Conv, config: &Config) -> io::Result<Self> {
        let peer = socket.peer_addr()?;
        Self::over(Port::new(socket, purpose(true))?, peer, conv, config)
    }

    /// A session with `peer` over a socket that is not connected. What comes from another address
    /// is dropped and counted.
    ///
    /// # Errors
    ///
    /// The socket fails, or `config` is out of range ([`Error::Config`]).
    pub fn wrap_to(socket: UdpSocket, peer: SocketAddr, conv: Conv, config: &Config) -> io::Result<Self> {
        Self::over(Port::new(socket, purpose(false))?, peer, conv, config)
    }

    fn over(port: Port, peer: SocketAddr, conv: Conv, config: &Config) -> io::Result<Self> {
        let kcp = Kcp::new(conv, config, config.datagram_queue()).map_err(Error::from)?;
        Ok(Self {
            kcp,
            envelope: None,
            port,
            peer,
            clock: Clock::new(),
            read_timeout: None,
            write_timeout: None,
            silence: Silence::new(),
            eager: false,
            flush_due: false,
            late_acks: false,
            acks_wait: false,
            has_sent: false,
            read_at: Time::ZERO,
            heard: false,
            pump_due: Time::ZERO,
        })
    }

    /// The same as [`connect`](Self::connect) with what kcp-go puts around KCP; `config.mtu` is of whole datagrams then.
    ///
    /// # Errors
    ///
    /// Those of [`connect`](Self::connect).
    #[cfg(feature = "kcp-go")]
    pub fn connect_kcp_go(
        peer: impl ToSocketAddrs,
        conv: Conv,
        config: &Config,
        wire: &crate::kcp_go::Config,
    ) -> io::Result<Self> {
        let (envelope, inside) =
            SocketEnvelope::new(wire, config, &mut super::random::random()?).map_err(Error::from)?;
        let mut socket = Self::connect(peer, conv, &inside)?;
        socket.kcp.refuse_empty();
        Ok(Self { envelope: Some(Box::new(envelope)), ..socket })
    }

    /// What was counted of what is around KCP; `None`: nothing is.
    #[cfg(feature = "kcp-go")]
    #[must_use]
    pub fn kcp_go_stats(&self) -> Option<crate::kcp_go::Stats> {
        self.envelope.as_ref().map(|envelope| envelope.stats())
    }

    /// Reads the datagrams that wait, feeds them in, updates and sends what is due. Returns how
    /// long it may be until the next call; `None` when nothing but a datagram, a send or a read makes
    /// work: a read of a full queue opens the window, which the peer is to be told.
    ///
    /// It reads a bounded number of datagrams; when more wait, the answer is zero.
    ///
    /// # Errors
    ///
    /// The peer is gone (`TimedOut`, see [`Error`]), or the socket cannot be read; what was due was sent. What had arrived can be taken.
    pub fn pump(&mut self) -> io::Result<Option<Duration>> {
        let now = self.clock.now();
        let received = self.receive(now);
        self.update(now);
        let more = received?;
        self.check_peer(now)?;
        let wait = if more { Some(Duration::ZERO) } else { self.idle_for(now) };
        self.pump_due = now + wait.unwrap_or(Duration::MAX).min(self.patience());
        Ok(wait)
    }

    /// Queues a message for the next flush. The socket is not touched.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when the send queue is full, `InvalidInput` when the message is longer than a
    /// message can be.
    pub fn try_send(&mut self, message: &[u8]) -> io::Result<usize> {
        if self.envelope.as_ref().is_some_and(|envelope| envelope.flushes().0) {
            (self.flush_due, self.pump_due) = (true, Time::ZERO);
        }
        Ok(self.kcp.send(message).map_err(Error::from)?)
    }

    /// Takes the next message that [`pump`](Self::pump) has brought in. The socket is not touched.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when there is none, `InvalidInput` when `buf` is too small (the message stays).
    pub fn try_recv(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        Ok(self.kcp.recv(buf).map_err(Error::from)?)
    }

    /// Sends everything that may be sent now instead of at the next interval.
    pub fn flush(&mut self) {
        let now = self.clock.now();
        self.kcp.flush(now);
        self.transmit(now);
    }

    /// Most time that [`recv`](Self::recv) waits; `None`, the default, is for ever.
    pub const fn set_read_timeout(&mut self, timeout: Option<Duration>) {
        self.read_timeout = timeout;
    }

    /// Most time that [`send`](Self::send) waits; `None`, the default, is for ever.
    pub const fn set_write_timeout(&mut self, timeout: Option<Duration>) {
        self.write_timeout = timeout;
    }

    /// How long the peer may be silent while data is in flight before it counts as gone; 30 s
    /// unless set, `None` leaves it to `dead_link` alone. That one counts sends, and with a
    /// back-off between them 20 sends take minutes to hours.
    pub const fn set_peer_timeout(&mut self, timeout: Option<Duration>) {
        self.silence.timeout = timeout;
    }

    /// Whether every pump flushes instead of only those after an interval: new messages and
    /// acknowledgements leave at once, for more and smaller datagrams. Off unless set.
    pub const fn set_eager(&mut self, eager: bool) {
        self.eager = eager;
    }

    /// Whether [`recv`](Self::recv) returns a message before it sends what acknowledges it. That leaves with the next call then: in one
    /// datagram with the answer, if there is one. Set it where the program answers at once, or calls again at once: while it does
    /// anything else, nothing is acknowledged, and the peer takes messages for lost. Off unless set.
    pub const fn set_late_acks(&mut self, late_acks: bool) {
        self.late_acks = late_acks;
    }

    /// The session's counters and measurements.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.kcp.stats()
    }

    /// Logs what happens from now on, see [`Kcp::log_events`]. Event by event it is taken from [`kcp_mut`](Self::kcp_mut).
    pub fn log_events(&mut self, most: usize) {
        self.kcp.log_events(self.clock.now(), most);
    }

    /// Takes all events of the log and writes a line of JSON each, see [`Kcp::write_log`].
    ///
    /// # Errors
    ///
    /// What `out` says. The event that it did not take is gone.
    pub fn write_log(&mut self, out: &mut impl io::Write) -> io::Result<usize> {
        self.kcp.write_log(out)
    }

    /// What the socket reported.
    #[must_use]
    pub const fn socket_stats(&self) -> SocketStats {
        self.port.stats()
    }

    /// The control block.
    #[must_use]
    pub const fn kcp(&self) -> &Kcp<DatagramQueue> {
        &self.kcp
    }

    /// The control block, to configure it, or to send and receive without a copy.
    pub const fn kcp_mut(&mut self) -> &mut Kcp<DatagramQueue> {
        &mut self.kcp
    }

    /// What went through the socket.
    #[must_use]
    pub const fn socket_traffic(&self) -> SocketTraffic {
        self.port.traffic()
    }

    /// The sizes of the socket's buffers.
    ///
    /// # Errors
    ///
    /// The system does not tell.
    pub fn socket_buffers(&self) -> io::Result<SocketBuffers> {
        self.port.buffers()
    }

    /// Asks for other sizes of the socket's buffers, and returns those that it has now: see [`SocketBuffers`].
    ///
    /// # Errors
    ///
    /// The system refuses any.
    pub fn set_socket_buffers(&self, wanted: SocketBuffers) -> io::Result<SocketBuffers> {
        self.port.set_buffers(wanted)
    }

    /// The address of this end.
    ///
    /// # Errors
    ///
    /// The system does not know it.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.port.local_addr()
    }

    /// The address of the other end.
    #[must_use]
    pub const fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    /// The next read of the socket reports this.
    #[cfg(test)]
    pub(super) fn fail(&mut self, fault: io::Error) {
        self.port.fail(fault);
    }

    /// Feeds in what has arrived; returns whether there may be more.
    fn receive(&mut self, now: Time) -> io::Result<bool> {
        self.receive_up_to(now, usize::MAX)
    }

    /// The same, but when it has brought a message the system need not be asked for more than so many.
    fn receive_up_to(&mut self, now: Time, most: usize) -> io::Result<bool> {
        self.read_at = now;
        for count in 0..DATAGRAMS_PER_PUMP {
            if count >= most && !self.port.has_read() && self.kcp.peek_size().is_some() {
                break;
            }
            let Some(Datagram { bytes, from, .. }) = self.port.recv_up_to(most)? else {
                return Ok(false);
            };
            if !same_address(from, self.peer) {
                self.port.stats_mut().strangers += 1;
                log::trace!("dropped a datagram from {from}, a stranger");
                continue;
            }
            let taken = match &mut self.envelope {
                None => Some(self.kcp.input(now, bytes)),
                Some(envelope) => {
                    let taken = envelope.input(now, &mut self.kcp, bytes);
                    self.flush_due |= envelope.flushes().1 && matches!(taken, Some(Ok(())));
                    taken
                }
            };
            let Some(taken) = taken else { continue };
            if let Err(error) = taken {
                self.port.stats_mut().rejected += 1;
                log::trace!("rejected a datagram from {from}: {error}");
            } else {
                self.heard = true;
            }
        }
        Ok(true)
    }

    /// Sends what is due.
    fn update(&mut self, now: Time) {
        self.acks_wait = false;
        self.kcp.update(now);
        if std::mem::take(&mut self.flush_due) || self.eager {
            self.kcp.flush(now);
        }
        self.transmit(now);
    }

    /// Hands what the control block has put out, in as many bursts as there are, to the socket, as far as it has room.
    fn transmit(&mut self, now: Time) {
        self.port.flush();
        while !self.port.is_full() {
            let queue = match &mut self.envelope {
                None => self.kcp.output_mut(),
                Some(envelope) => envelope.wrap(now, &mut self.kcp),
            };
            if queue.is_empty() {
                if self.kcp.output_mut().clear_full() {
                    self.kcp.flush(now);
                    continue;
                }
                break;
            }
            let is_last = queue.len() == 1;
            let Some(datagram) = queue.pop() else { break };
            if is_last {
                self.port.send_last(datagram, self.peer);
            } else {
                self.port.send(datagram, self.peer);
            }
        }
    }

    fn check_peer(&mut self, now: Time) -> io::Result<()> {
        let in_flight = self.kcp.wait_snd() > 0;
        let heard = std::mem::take(&mut self.heard);
        let silent = self.silence.pumped(now, heard, in_flight);
        if self.kcp.is_dead() {
            return Err(Error::DeadLink { sends: self.kcp.config().dead_link }.into());
        }
        if let Some(waited) = silent {
            return Err(Error::PeerSilent { waited }.into());
        }
        Ok(())
    }

    /// How long nothing needs to be done, unless a datagram arrives.
    fn idle_for(&self, now: Time) -> Option<Duration> {
        // What the socket does not take now is no reason to look before it may have room.
        let next = if self.port.is_full() { None } else { self.kcp.check(now) };
        let mut wait = next.map(|at| at.since(now));
        if self.kcp.wait_snd() > 0 {
            wait = Some(wait.map_or(LONGEST_STEP, |wait| wait.min(LONGEST_STEP))); // it counts as silence
        }
        self.port.limit(wait)
    }

    /// How long calls that need not wait may go on without a pump.
    fn patience(&self) -> Duration {
        let config = self.kcp.config();
        let interval = if self.eager || config.is_at_once() { 0 } else { config.interval };
        Duration::from_millis(interval.into())
    }
}

/// Bare KCP has no way to find out what the path takes, and a usual mtu of 1400: what is too long goes in fragments.
const fn purpose(is_connected: bool) -> Purpose {
    Purpose { is_connected, fragments: Fragments::Allowed, slots: Purpose::ONE_PEER }
}

/// A socket of the right family, connected to `peer`.
fn connected(peer: SocketAddr) -> io::Result<UdpSocket> {
    let any = match peer {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(peer)?;
    Ok(socket)
}

/// Whether two addresses are one: a dual-stack socket shows IPv4 peers as IPv6 ones.
fn same_address(a: SocketAddr, b: SocketAddr) -> bool {
    a.port() == b.port() && a.ip().to_canonical() == b.ip().to_canonical()
}

/// Datagrams that one pump reads: eight default windows, well under a millisecond of work.
const DATAGRAMS_PER_PUMP: usize = 256;
