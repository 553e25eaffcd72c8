//! A machine on a UDP socket: datagrams in, time, datagrams out.

use super::clock::Clock;
use super::line::Line;
use super::tally::{SocketStats, SocketTraffic};
use crate::machine::Machine;
use crate::session::SessionConfig;
use crate::time::Time;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroUsize;
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd};
#[cfg(windows)]
use std::os::windows::io::{AsSocket, BorrowedSocket};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use whitewater_udp::{Mode, Port, SocketBuffers};

/// A [`Machine`] on a UDP socket, with a clock. [`Server`](super::Server), [`Client`](super::Client) and
/// [`kcp::Listener`](crate::kcp::Listener) are one, each of its machine; a [`kcp::Socket`](crate::kcp::Socket) has one inside. With
/// [`new`](Self::new) it drives a machine of your own.
///
/// If an IPv6 socket also accepts IPv4, IPv4 peers appear with IPv4 addresses.
#[derive(Debug)]
pub struct Driver<M: Machine> {
    pub(super) machine: M,
    pub(super) line: Line<M>,
    pub(super) clock: Clock,
    datagrams_per_pump: NonZeroUsize,
    /// Whether the application has ended the wait from another thread.
    pub(super) is_woken: Arc<AtomicBool>,
    /// Whether it drives sessions: answers leave between datagrams that are read, and the peers hear when it is dropped.
    has_sessions: bool,
}

impl<M: Machine> Driver<M> {
    /// Drives `machine` on a socket that is bound and not connected, or has one peer. It becomes non-blocking.
    ///
    /// # Errors
    ///
    /// The socket fails.
    pub fn new(socket: UdpSocket, machine: M) -> io::Result<Self> {
        Ok(Self::over(Port::new(socket, Mode::Fragments, ONE_PEER)?, Clock::new(), machine))
    }

    pub(super) fn over(port: Port, clock: Clock, machine: M) -> Self {
        Self {
            machine,
            line: Line::new(port),
            clock,
            datagrams_per_pump: DATAGRAMS_PER_PUMP,
            is_woken: Arc::default(),
            has_sessions: false,
        }
    }

    /// The machine has sessions.
    pub(super) const fn of_sessions(mut self) -> Self {
        self.has_sessions = true;
        self
    }

    /// Reads the datagrams that have arrived, does what is due and sends the result. Returns how long the next call can wait; `None` means
    /// until a datagram arrives or you send something.
    ///
    /// The work of one call is bounded, however much the peers send. If there is more to do, it returns zero.
    ///
    /// # Errors
    ///
    /// Reading from the socket failed. What was due was done and sent anyway. What a peer does, or fails to do, is an event, not an error.
    pub fn pump(&mut self) -> io::Result<Option<Duration>> {
        let received = self.receive_up_to(usize::MAX, |_| false);
        let now = self.clock.now();
        self.line.settle(now);
        self.machine.handle_timeout(now);
        let is_all_sent = self.transmit();
        if received? || !is_all_sent {
            return Ok(Some(Duration::ZERO));
        }
        Ok(self.idle_for(self.clock.now()))
    }

    /// Sends what was queued since the last pump, without reading.
    pub fn flush(&mut self) {
        self.transmit();
    }

    /// Sets how many datagrams one pump reads at most. The default is 512.
    pub const fn set_datagrams_per_pump(&mut self, most: NonZeroUsize) {
        self.datagrams_per_pump = most;
    }

    /// The machine without its socket.
    #[must_use]
    pub const fn machine(&self) -> &M {
        &self.machine
    }

    /// The same, to call what has no method here. Pass [`now`](Self::now) where a time is needed, and leave its datagrams to this driver.
    pub const fn machine_mut(&mut self) -> &mut M {
        &mut self.machine
    }

    /// Errors that the socket reported.
    #[must_use]
    pub fn socket_stats(&self) -> SocketStats {
        self.line.stats()
    }

    /// Traffic of the socket.
    #[must_use]
    pub fn socket_traffic(&self) -> SocketTraffic {
        self.line.traffic()
    }

    /// The sizes of the socket's buffers.
    ///
    /// # Errors
    ///
    /// The system does not say.
    pub fn socket_buffers(&self) -> io::Result<SocketBuffers> {
        self.line.port.buffers()
    }

    /// Requests other sizes for the socket's buffers, and returns the actual ones: see [`SocketBuffers`].
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn set_socket_buffers(&self, wanted: SocketBuffers) -> io::Result<SocketBuffers> {
        self.line.port.set_buffers(wanted)
    }

    /// The address that the socket is bound to.
    ///
    /// # Errors
    ///
    /// The system does not know it.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.line.port.socket().local_addr()
    }

    /// The current time by this driver's clock.
    #[must_use]
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Pumps until `is_done`, at most for `timeout`; returns whether it is.
    pub(super) fn run(
        &mut self,
        timeout: Option<Duration>,
        mut is_done: impl FnMut(Time, &mut M) -> bool,
    ) -> io::Result<bool> {
        let deadline = timeout.map(|timeout| self.clock.now() + timeout);
        loop {
            let wait = self.pump()?;
            let now = self.clock.now();
            if is_done(now, &mut self.machine) {
                return Ok(true);
            }
            let left = deadline.map(|deadline| deadline.since(now));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(false);
            }
            self.line.wait([wait, left].into_iter().flatten().min())?;
        }
    }

    /// Ends everything, and pumps until that is over, at most for `timeout`.
    pub(super) fn finish(&mut self, code: u16, timeout: Duration) -> io::Result<()> {
        self.machine.shutdown(self.clock.now(), code);
        self.run(Some(timeout), |now, machine| machine.shutdown(now, code)).map(drop)
    }

    /// How long nothing needs to be done, unless a datagram arrives.
    pub(super) fn idle_for(&self, now: Time) -> Option<Duration> {
        if self.line.is_full() || self.line.is_clogged() {
            return Some(RETRY); // what is due before there is room is no reason to look
        }
        let wait = self.machine.poll_timeout().map(|at| at.since(now));
        wait.into_iter().chain(self.line.looks_within()).chain(self.line.retries_within()).min()
    }

    /// Reads what waits, a bounded number of datagrams; returns whether there may be more. When it is enough the system need not be
    /// asked for more than `most`.
    pub(super) fn receive_up_to(&mut self, most: usize, is_enough: impl Fn(&M) -> bool) -> io::Result<bool> {
        let mut now = self.clock.now(); // of a few datagrams, which take less than a moment
        if self.line.has_moved(now) {
            self.line.path_changed(now, &mut self.machine);
        }
        self.line.tell_time(now, &mut self.machine);
        let has_more = self.line.hand_in_strays(now, &mut self.machine);
        for count in 1..=self.datagrams_per_pump.get() {
            if count > most && !self.line.port.has_read() && is_enough(&self.machine) {
                break;
            }
            if !self.line.hand_in_next(now, &mut self.machine, most)? {
                return Ok(has_more);
            }
            if count.is_multiple_of(REPLY_EACH) {
                if self.has_sessions {
                    self.send_up_to(REPLIES_PER_CALL);
                }
                now = self.clock.now();
            }
        }
        Ok(true)
    }

    /// Sends what is due, a bounded number of datagrams, as far as the socket takes it; returns whether that was all.
    pub(super) fn transmit(&mut self) -> bool {
        self.send_up_to(SENDS_PER_CALL)
    }

    fn send_up_to(&mut self, most: usize) -> bool {
        let (now, mut left) = (self.clock.now(), most);
        self.line.flush();
        while left > 0 && !self.line.is_full() {
            let is_all = self.line.gather(now, &mut self.machine, &mut left);
            self.line.flush();
            if is_all {
                return true;
            }
        }
        left > 0
    }
}

/// The socket, for an event loop of your own: [`pump`](Driver::pump) when it is readable, and when the last pump said so. A
/// [`Client`](super::Client) that opened its own socket has another one once it has changed networks. The socket of a second network is not this
/// one: watch it as well.
#[cfg(unix)]
impl<M: Machine> AsFd for Driver<M> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.line.port.socket().as_fd()
    }
}

/// The same on Windows.
#[cfg(windows)]
impl<M: Machine> AsSocket for Driver<M> {
    fn as_socket(&self) -> BorrowedSocket<'_> {
        self.line.port.socket().as_socket()
    }
}

impl<M: Machine> Drop for Driver<M> {
    /// What was sent leaves, and the peers of sessions hear that it was the last. That is said as often as ever, but nobody waits in
    /// between.
    fn drop(&mut self) {
        if !self.has_sessions || std::thread::panicking() {
            return;
        }
        self.transmit();
        let now = self.clock.now();
        self.machine.abandon(now);
        for later in GOODBYES.map(|later| now + later) {
            for _ in 0..TURNS_AT_END {
                self.machine.handle_timeout(later);
                while !self.transmit() && !self.line.port.is_full() {}
                if self.machine.poll_timeout().is_none_or(|due| due > later) {
                    break;
                }
            }
        }
    }
}

/// How a socket of sessions calls the system: only the calls for many datagrams see ECN marks, and for one at a time they cost more.
pub(super) const fn mode(config: &SessionConfig) -> Mode {
    if config.ecn { Mode::Whole } else { Mode::Unmarked }
}

/// The knobs of a session on a socket. Where its datagrams may be cut on their way, a search for a path that carries longer ones would
/// find too long ones: there is none.
pub(super) fn within(config: &SessionConfig, may_fragment: bool) -> SessionConfig {
    let mut config = config.clone();
    if config.path_mtu.is_some() && may_fragment {
        log::debug!("the socket cannot forbid fragments: datagrams stay at {} bytes", config.max_datagram);
        config.path_mtu = None;
    }
    config
}

/// What it takes at most to end all sessions.
pub(super) fn farewell(config: &SessionConfig) -> Duration {
    config.drain + GOODBYE
}

/// Arrivals that one call gives at most on a socket of one peer: its datagrams arrive joined.
pub(super) const ONE_PEER: usize = 4;
/// On a socket of many: theirs do not.
pub(super) const MANY_PEERS: usize = 32;
/// Times that a machine is asked for more of what is due at one time when its driver is dropped.
const TURNS_AT_END: usize = 8;
/// When a goodbye that nobody waits for is said.
const GOODBYES: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(50), Duration::from_millis(150), Duration::from_millis(350)];
/// Between two attempts to write to a full send buffer: a Gbit/s drains 128 KiB of it.
pub(super) const RETRY: Duration = Duration::from_millis(1);
/// Datagrams that one pump reads: more than a receive buffer of the usual size holds, under a millisecond of work if they are small.
const DATAGRAMS_PER_PUMP: NonZeroUsize = NonZeroUsize::new(512).unwrap();
/// Datagrams that one pump sends: a window of each of many sessions.
const SENDS_PER_CALL: usize = 4096;
/// What closing takes when nothing is left to arrive and the goodbye is not answered, and a little more.
const GOODBYE: Duration = Duration::from_secs(2);
/// Datagrams read before what they are answered is sent: fewer than there is room for answers and than one acknowledgement reaches, and
/// enough that one answer can be for many.
const REPLY_EACH: usize = 16;
/// Datagrams sent in between: as many as what was read can have opened windows for, and so few that reading goes on.
const REPLIES_PER_CALL: usize = 256;
