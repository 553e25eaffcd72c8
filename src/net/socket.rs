//! One session on one UDP socket.

mod blocking;

use super::clock::{Clock, random};
use super::driver::{Driver, ONE_PEER};
use super::error::Error;
use super::tally::SocketStats;
use crate::kcp::{Config, Envelope, EnvelopeConfig, Kcp, Link, RecvError, SendError, Stats};
use crate::machine::Machine;
use crate::seq::Conv;
use crate::time::Time;
use crate::wire::DatagramQueue;
use bytes::Bytes;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::time::Duration;
use whitewater_udp::{Mode, Port, socket_for};

/// A bare KCP session over its own UDP socket. Any KCP program with the same `conv` can be the peer.
///
/// There are two ways to use it. A game loop calls [`pump`](Self::pump) once per frame, and other methods that never
/// touch the socket:
///
/// ```no_run
/// # use whitewater::kcp::{self, Config, Conv};
/// # fn frame() {}
/// # fn main() -> std::io::Result<()> {
/// let mut socket = kcp::Socket::connect("game.example:4000", Conv(7), &Config::default())?;
/// loop {
///     socket.pump()?;
///     while let Some(message) = socket.recv() {
///         println!("{} bytes", message.len());
///     }
///     frame();
///     socket.send(b"input")?;
///     socket.flush();
/// }
/// # }
/// ```
///
/// A program without a loop calls [`send_blocking`](Self::send_blocking), [`recv_blocking`](Self::recv_blocking) and
/// [`drain`](Self::drain), which pump while they wait. Nothing is pumped between calls: without one of these or `pump`,
/// nothing is resent or acknowledged.
#[derive(Debug)]
pub struct Socket {
    driver: Driver<Link>,
    read_timeout: Option<Duration>,
    write_timeout: Option<Duration>,
    silence: Silence,
    is_eager: bool,
    late_acks: bool,
    /// Whether the next call acknowledges what was received last.
    acks_wait: bool,
    /// Whether a message was sent since the last one was received.
    has_sent: bool,
    read_at: Time,
    /// When a blocking call pumps even if it finds what it wants.
    pump_due: Time,
}

impl Socket {
    /// A session with `peer`, from a port that the system chooses.
    ///
    /// This sends nothing: bare KCP has no handshake.
    ///
    /// # Errors
    ///
    /// `peer` does not resolve, there is no socket, or `config` is out of range ([`Error::Config`]).
    pub fn connect(peer: impl ToSocketAddrs, conv: Conv, config: &Config) -> io::Result<Self> {
        let nobody = Err(io::Error::new(io::ErrorKind::InvalidInput, "the peer's name has no address"));
        let connect =
            |address| socket_for(address).and_then(|socket| socket.connect(address).map(|()| socket));
        let found =
            peer.to_socket_addrs()?.fold(nobody, |found, address| found.or_else(|_| connect(address)));
        let socket = found?;
        let peer = socket.peer_addr()?;
        Self::from_socket(socket, peer, conv, config)
    }

    /// A session with `peer` over an existing socket, which becomes non-blocking. Datagrams from other addresses are
    /// dropped and counted.
    ///
    /// # Errors
    ///
    /// The socket fails, or `config` is out of range ([`Error::Config`]).
    pub fn from_socket(socket: UdpSocket, peer: SocketAddr, conv: Conv, config: &Config) -> io::Result<Self> {
        let port = Port::new(socket, Mode::Fragments, ONE_PEER)?;
        let machine = Link::new(peer, conv, config).map_err(Error::from)?;
        let mut driver = Driver::over(port, Clock::new(), machine);
        driver.set_datagrams_per_pump(DATAGRAMS_PER_PUMP);
        Ok(Self {
            driver,
            read_timeout: None,
            write_timeout: None,
            silence: Silence::new(),
            is_eager: false,
            late_acks: false,
            acks_wait: false,
            has_sent: false,
            read_at: Time::ZERO,
            pump_due: Time::ZERO,
        })
    }

    /// The same as [`connect`](Self::connect), with an envelope around KCP. `config.mtu` is then that of whole
    /// datagrams.
    ///
    /// # Errors
    ///
    /// The same as [`connect`](Self::connect).
    pub fn connect_with_envelope(
        peer: impl ToSocketAddrs,
        conv: Conv,
        config: &Config,
        envelope: &dyn EnvelopeConfig,
    ) -> io::Result<Self> {
        let mut socket = Self::connect(peer, conv, config)?;
        let machine = Link::with_envelope(socket.peer_addr(), conv, config, envelope, &mut random()?);
        socket.driver.machine = machine.map_err(Error::from)?;
        Ok(socket)
    }

    /// The envelope around KCP, if there is one.
    #[must_use]
    pub fn envelope(&self) -> Option<&dyn Envelope> {
        self.driver.machine.envelope()
    }

    /// Reads waiting datagrams, updates the control block and sends what is due. Returns how long you may wait until
    /// the next call. `None`: until a datagram arrives or you send or read something; reading from a full queue opens
    /// the window, which the peer must be told.
    ///
    /// Reads a limited number of datagrams. If more wait, it returns zero.
    ///
    /// # Errors
    ///
    /// The peer is gone (`TimedOut`, see [`Error`]), or the socket cannot be read. What was due has been sent, and
    /// messages that have arrived can still be read.
    pub fn pump(&mut self) -> io::Result<Option<Duration>> {
        let received = self.receive_up_to(usize::MAX);
        let now = self.read_at;
        let is_all_sent = self.update(now);
        let more = received? || !is_all_sent;
        self.check_peer(now)?;
        let wait = if more { Some(Duration::ZERO) } else { self.idle_for(now) };
        self.pump_due = now + wait.unwrap_or(Duration::MAX).min(self.patience());
        Ok(wait)
    }

    /// Queues a message for the next flush and returns the bytes taken; see [`Kcp::send`]. Does not touch the socket.
    ///
    /// # Errors
    ///
    /// The same as [`Kcp::send`]. [`SendError::Full`]: no room now.
    pub fn send(&mut self, message: &[u8]) -> Result<usize, SendError> {
        let sent = self.driver.machine.send(message);
        if self.envelope().is_some_and(Envelope::flushes_sends) {
            self.pump_due = Time::ZERO;
        }
        sent
    }

    /// Returns the next message that [`pump`](Self::pump) has received. `None`: no whole one has arrived. Does not
    /// touch the socket.
    pub fn recv(&mut self) -> Option<Bytes> {
        self.kcp_mut().recv()
    }

    /// Reads the next message into `buf` and returns its length. Does not touch the socket.
    ///
    /// # Errors
    ///
    /// There is no message, or it does not fit and stays queued.
    pub fn recv_into(&mut self, buf: &mut [u8]) -> Result<usize, RecvError> {
        self.kcp_mut().recv_into(buf)
    }

    /// Sends everything that may be sent now, without waiting for the next interval.
    pub fn flush(&mut self) {
        let now = self.driver.now();
        self.kcp_mut().flush(now);
        self.driver.transmit();
    }

    /// Longest time that [`recv_blocking`](Self::recv_blocking) waits. `None`, the default: forever.
    pub const fn set_read_timeout(&mut self, timeout: Option<Duration>) {
        self.read_timeout = timeout;
    }

    /// Longest time that [`send_blocking`](Self::send_blocking) waits. `None`, the default: forever.
    pub const fn set_write_timeout(&mut self, timeout: Option<Duration>) {
        self.write_timeout = timeout;
    }

    /// How long the peer may be silent while data is in flight before it counts as gone; 30 s by default. `None`: only
    /// `dead_link` decides. Classic recovery counts sends for that, and with back-off 20 sends take minutes to hours.
    pub const fn set_peer_timeout(&mut self, timeout: Option<Duration>) {
        self.silence.timeout = timeout;
    }

    /// Whether every pump flushes, instead of only those after an interval: new messages and acknowledgements are sent
    /// at once, in more and smaller datagrams. Off by default.
    pub const fn set_eager(&mut self, eager: bool) {
        self.is_eager = eager;
    }

    /// Whether [`recv_blocking`](Self::recv_blocking) returns a message before it sends the acknowledgement. The next
    /// call then sends it, in one datagram with the answer if there is one. Set this if the program answers or calls
    /// again at once: in the meantime nothing is acknowledged, and the peer would take messages for lost. Off by
    /// default.
    pub const fn set_late_acks(&mut self, late_acks: bool) {
        self.late_acks = late_acks;
    }

    /// Counters and measurements of the session.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.kcp().stats()
    }

    /// Logs events from now on; see [`Kcp::log_events`]. To take them one by one, use [`kcp_mut`](Self::kcp_mut).
    pub fn log_events(&mut self, most: usize) {
        let now = self.driver.now();
        self.kcp_mut().log_events(now, most);
    }

    /// Takes all events of the log and writes each as a line of JSON; see [`Kcp::write_log`].
    ///
    /// # Errors
    ///
    /// Errors of `out`. The event that could not be written is lost.
    pub fn write_log(&mut self, out: &mut impl io::Write) -> io::Result<usize> {
        self.kcp_mut().write_log(out)
    }

    /// What the socket reported, and datagrams that were not from the peer or not good.
    #[must_use]
    pub fn socket_stats(&self) -> SocketStats {
        let peer = &self.driver.machine;
        SocketStats { strangers: peer.strangers(), rejected: peer.rejected(), ..self.driver.socket_stats() }
    }

    /// The control block.
    #[must_use]
    pub const fn kcp(&self) -> &Kcp<DatagramQueue> {
        self.driver.machine.kcp()
    }

    /// The control block, to configure it, or to send and receive without copies.
    pub const fn kcp_mut(&mut self) -> &mut Kcp<DatagramQueue> {
        self.driver.machine.kcp_mut()
    }

    /// The address of the other end.
    #[must_use]
    pub const fn peer_addr(&self) -> SocketAddr {
        self.driver.machine.peer_addr()
    }

    #[cfg(test)]
    pub(super) fn fail(&mut self, fault: io::Error) {
        self.driver.line.port.fail(fault);
    }

    /// Takes what has arrived. Returns whether there may be more. Once a message has arrived, it stops after
    /// `most` datagrams.
    fn receive_up_to(&mut self, most: usize) -> io::Result<bool> {
        self.read_at = self.driver.now();
        self.driver.receive_up_to(most, |peer| peer.kcp().peek_size().is_some())
    }

    fn update(&mut self, now: Time) -> bool {
        self.acks_wait = false;
        self.driver.machine.handle_timeout(now);
        if self.is_eager {
            self.kcp_mut().flush(now);
        }
        self.driver.transmit()
    }

    fn check_peer(&mut self, now: Time) -> io::Result<()> {
        let in_flight = self.kcp().wait_snd() > 0;
        let silent = self.silence.pumped(now, self.driver.machine.taken(), in_flight);
        if self.kcp().is_dead() {
            return Err(Error::DeadLink { sends: self.kcp().config().dead_link }.into());
        }
        if let Some(waited) = silent {
            return Err(Error::PeerSilent { waited }.into());
        }
        Ok(())
    }

    fn idle_for(&self, now: Time) -> Option<Duration> {
        let mut wait = self.driver.idle_for(now);
        if self.kcp().wait_snd() > 0 {
            wait = Some(wait.map_or(LONGEST_STEP, |wait| wait.min(LONGEST_STEP))); // this time counts as silence
        }
        wait
    }

    /// How long calls that do not have to wait may go on without pumping.
    fn patience(&self) -> Duration {
        let config = self.kcp().config();
        let interval = if self.is_eager || config.is_at_once() { 0 } else { config.interval };
        Duration::from_millis(interval.into())
    }
}

/// What all sockets share: their figures, buffers and address.
impl Deref for Socket {
    type Target = Driver<Link>;

    fn deref(&self) -> &Driver<Link> {
        &self.driver
    }
}

/// How long the peer has been silent while data was in flight.
///
/// Only counts time in which the program pumped: a program that was stopped does not blame its peer.
#[derive(Debug)]
struct Silence {
    /// Silence after which the peer counts as gone.
    timeout: Option<Duration>,
    so_far: Duration,
    looked: Time,
    heard: u64,
}

impl Silence {
    const fn new() -> Self {
        Self { timeout: Some(TIMEOUT), so_far: Duration::ZERO, looked: Time::ZERO, heard: 0 }
    }

    /// Called after each pump; `heard`: how often the peer was heard so far. Returns the silence if it is too long.
    fn pumped(&mut self, now: Time, heard: u64, in_flight: bool) -> Option<Duration> {
        let heard = std::mem::replace(&mut self.heard, heard) != heard;
        let step = now.since(self.looked).min(LONGEST_STEP);
        self.looked = now;
        self.so_far = if heard || !in_flight { Duration::ZERO } else { self.so_far + step };
        Some(self.so_far).filter(|so_far| self.timeout.is_some_and(|timeout| *so_far >= timeout))
    }
}

/// Most datagrams that one pump reads: eight default windows, well under a millisecond of work.
const DATAGRAMS_PER_PUMP: NonZeroUsize = NonZeroUsize::new(256).unwrap();
/// Silence that ends a session by default. A mobile handover takes seconds; no game waits for half a minute.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Longest time between two pumps that counts as silence, and longest wait that a pump returns while data is in flight.
const LONGEST_STEP: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_counts_while_data_is_in_flight_and_ends_with_a_datagram() {
        let mut silence = Silence::new();
        let mut count = 0;
        let mut at = |ms, heard, in_flight| {
            count += u64::from(heard);
            silence.pumped(Time::from_millis(ms), count, in_flight)
        };
        for ms in (0..100_000).step_by(500) {
            assert_eq!(at(ms, false, false), None, "nothing in flight");
        }
        assert_eq!(at(99_600, false, true), None);
        for ms in (100_000..129_500).step_by(500) {
            assert_eq!(at(ms, false, true), None, "{ms}");
        }
        assert_eq!(at(130_000, false, true), Some(Duration::from_millis(30_500)));
        assert_eq!(at(130_500, true, true), None);
        assert_eq!(at(131_000, false, true), None);
    }

    #[test]
    fn a_program_that_stood_still_does_not_blame_its_peer() {
        let mut silence = Silence::new();
        assert_eq!(silence.pumped(Time::from_millis(60_000), 0, true), None);
        assert_eq!(silence.pumped(Time::from_millis(600_000), 0, true), None);
    }
}
