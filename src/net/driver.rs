//! A machine on a UDP socket: datagrams in, time, datagrams out.

use super::clock::{Clock, WallClock};
use super::shards::Neighbours;
use super::takeover::Generations;
use super::tally::{SocketStats, SocketTraffic};
use super::transport::Beside;
use super::way::Way;
use crate::machine::{Arrival, Ecn, Machine, Transmit};
use crate::session::SessionConfig;
use crate::time::Time;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroUsize;
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd};
#[cfg(windows)]
use std::os::windows::io::{AsSocket, BorrowedSocket};
use std::time::Duration;
use whitewater_udp::{Datagram, Mode, Port, Socket, SocketBuffers};

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
        self.line.settle();
        self.machine.handle_timeout(self.clock.now());
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
            self.line.port.wait([wait, left].into_iter().flatten().min())?;
        }
    }

    /// Ends everything, and pumps until that is over, at most for `timeout`.
    pub(super) fn finish(&mut self, code: u16, timeout: Duration) -> io::Result<()> {
        self.machine.shutdown(self.clock.now(), code);
        self.run(Some(timeout), |now, machine| machine.shutdown(now, code)).map(drop)
    }

    /// How long nothing needs to be done, unless a datagram arrives.
    pub(super) fn idle_for(&self, now: Time) -> Option<Duration> {
        if self.line.port.is_full() || self.line.is_clogged() {
            return Some(RETRY); // what is due before there is room is no reason to look
        }
        self.machine.poll_timeout().map(|at| at.since(now))
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
            if !self.line.port.has_next(most)? {
                return Ok(has_more);
            }
            self.line.hand_in(now, &mut self.machine);
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
        self.line.port.flush();
        while left > 0 && !self.line.port.is_full() {
            let is_all = self.line.gather(now, &mut self.machine, &mut left);
            self.line.port.flush();
            if is_all {
                return true;
            }
        }
        left > 0
    }
}

/// The socket, for an event loop of your own: [`pump`](Driver::pump) when it is readable, and when the last pump said so. A
/// [`Client`](super::Client) that opened its own socket has another one once it has changed networks.
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

/// A port, and the others on it if there are any.
#[derive(Debug)]
pub(super) struct Line<M, S = UdpSocket> {
    pub(super) port: Port<S>,
    pub(super) neighbours: Option<Neighbours<M>>,
    pub(super) beside: Option<Beside>,
    /// The other processes that have this socket.
    pub(super) generations: Option<Generations<M>>,
    wall: WallClock,
    /// The way to the one peer that this end has.
    way: Option<Way>,
}

impl<M: Machine, S: Socket> Line<M, S> {
    pub(super) fn new(port: Port<S>) -> Self {
        Self {
            port,
            neighbours: None,
            beside: None,
            generations: None,
            wall: WallClock::default(),
            way: None,
        }
    }

    /// Starts to watch whether another network leads to the peer.
    pub(super) fn watch(&mut self) {
        self.way = Some(Way::default());
    }

    /// Whether another network leads to the peer than at the last look.
    pub(super) fn has_moved(&mut self, now: Time) -> bool {
        self.way.as_mut().is_some_and(|way| way.has_moved(now))
    }

    /// Handles that another network leads to the peer. Sends from another port, if the socket is our own: the
    /// old port would give away who has come.
    pub(super) fn path_changed(&mut self, now: Time, machine: &mut M) {
        let has_followers = machine.path_changed(now);
        let Some(to) = self.way.as_mut().and_then(|way| way.note(now)) else { return };
        if has_followers && let Err(error) = self.port.renew(to) {
            log::warn!("cannot open another socket: {error}");
        }
    }

    /// Tells the machine what time of day it is, if it has not heard for a while.
    pub(super) fn tell_time(&mut self, now: Time, machine: &mut M) {
        if let Some(unix) = self.wall.read(now) {
            machine.set_unix_time(now, unix);
        }
    }

    /// Hands the next datagram that was read to the machine, or on to the shard that owns it; `false`: there is none.
    pub(super) fn hand_in(&mut self, now: Time, machine: &mut M) -> bool {
        let Some(Datagram { bytes, from, ecn, .. }) = self.port.pop() else { return false };
        let from = Arrival { ecn: Ecn::from_bits(ecn), ..from.into() };
        match (&mut self.neighbours, &mut self.generations) {
            (Some(others), _) => others.hand_in(now, machine, from, bytes),
            (None, Some(others)) => others.hand_in(now, machine, from, bytes),
            (None, None) => machine.handle_datagram(now, from, bytes),
        }
        true
    }

    /// Whether datagrams come by other ways than the socket.
    #[cfg(feature = "tokio")]
    pub(super) const fn has_others(&self) -> bool {
        self.neighbours.is_some() || self.generations.is_some() || self.beside.is_some()
    }

    /// Hands in what the others on the port have handed on and what came beside the socket, a bounded number; returns whether there may be
    /// more.
    pub(super) fn hand_in_strays(&mut self, now: Time, machine: &mut M) -> bool {
        let has_more = self.neighbours.as_mut().is_some_and(|others| others.hand_in_strays(now, machine));
        let has_more = self.hand_in_from_successors(now, machine) || has_more;
        self.beside.as_mut().is_some_and(|beside| beside.hand_in(now, machine)) || has_more
    }

    fn hand_in_from_successors(&mut self, now: Time, machine: &mut M) -> bool {
        let Some(others) = &mut self.generations else { return false };
        let has_more = others.hand_in_strays(now, machine);
        let (was_deaf, is_deaf) = (self.port.is_deaf(), others.is_superseded());
        self.port.set_deaf(is_deaf);
        has_more || was_deaf != is_deaf
    }

    /// After reading: sends what was handed on to other processes. If this one has stopped reading, tells its successor.
    pub(super) fn settle(&mut self) {
        let Some(others) = &mut self.generations else { return };
        others.flush();
        if self.port.is_deaf() && !self.port.has_read() {
            others.answer();
        }
    }

    /// Whether something waits for room on its way to another process.
    fn is_clogged(&self) -> bool {
        self.generations.as_ref().is_some_and(Generations::is_clogged)
    }

    /// Gathers what is due, until it is time to flush, and at most what is `left` to send; returns whether that was all.
    pub(super) fn gather(&mut self, now: Time, machine: &mut M, left: &mut usize) -> bool {
        while *left > 0 && !self.port.is_due() {
            let Some(Transmit { address, ecn }) = machine.poll_transmit(now, self.port.stage()) else {
                return true;
            };
            *left -= 1;
            if let Some(Beside { transport, .. }) = &mut self.beside
                && transport.carries(address)
            {
                transport.send(address, self.port.staged());
                continue; // the next datagram replaces it on the stage
            }
            if let Some(way) = &mut self.way {
                way.lead_to(address);
            }
            self.port.commit(address, ecn.map_or(0, Ecn::bits));
        }
        false
    }

    pub(super) fn stats(&self) -> SocketStats {
        let of_shards = self.neighbours.as_ref().map_or(0, |others| others.not_handed_on);
        let not_handed_on = of_shards + self.generations.as_ref().map_or(0, |others| others.not_handed_on);
        SocketStats { not_handed_on, ..self.port.counts().into() }
    }

    pub(super) fn traffic(&self) -> SocketTraffic {
        let of_shards = self.neighbours.as_ref().map_or(0, |others| others.handed_on);
        let handed_on = of_shards + self.generations.as_ref().map_or(0, |others| others.handed_on);
        SocketTraffic { handed_on, ..self.port.counts().into() }
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
const RETRY: Duration = Duration::from_millis(1);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    /// Counts changes of networks, and sends a datagram to each of its addresses.
    #[derive(Default)]
    struct Program {
        addresses: Vec<SocketAddr>,
        changes: u32,
    }

    impl Machine for Program {
        fn handle_datagram(&mut self, _: Time, _: Arrival, _: &mut [u8]) {}

        fn handle_timeout(&mut self, _: Time) {}

        fn poll_transmit(&mut self, _: Time, out: &mut Vec<u8>) -> Option<Transmit> {
            let address = self.addresses.pop()?;
            out.push(1);
            Some(Transmit { address, ecn: None })
        }

        fn path_changed(&mut self, _: Time) -> bool {
            self.changes += 1;
            true
        }

        fn poll_timeout(&self) -> Option<Time> {
            None
        }

        fn shutdown(&mut self, _: Time, _: u16) -> bool {
            true
        }
    }

    /// From where nothing is sent to loopback.
    const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    fn loopback(port: u16) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, port).into()
    }

    /// A line of one peer, after its machine has sent to an address on loopback.
    fn line() -> (Line<Program>, Program) {
        let socket = UdpSocket::bind(loopback(0)).unwrap();
        let mut line = Line::new(Port::new(socket, Mode::Fragments, ONE_PEER).unwrap());
        line.watch();
        let mut program = Program::default();
        sends(&mut line, &mut program, 1);
        (line, program)
    }

    fn sends(line: &mut Line<Program>, program: &mut Program, port: u16) {
        program.addresses.push(loopback(port));
        assert!(line.gather(Time::ZERO, program, &mut 8));
    }

    /// Looks at this time as a driver does.
    fn look(line: &mut Line<Program>, program: &mut Program, ms: u64) -> u32 {
        let now = Time::from_millis(ms);
        if line.has_moved(now) {
            line.path_changed(now, program);
        }
        program.changes
    }

    #[test]
    fn a_change_of_networks_counts_once_whoever_notices_it_first() {
        let (mut line, mut program) = line();
        assert_eq!(look(&mut line, &mut program, 0), 0);
        line.way.as_mut().unwrap().comes_from(ELSEWHERE);
        line.path_changed(Time::from_millis(100), &mut program); // the program says so
        (1..9).for_each(|look_at| assert_eq!(look(&mut line, &mut program, 250 * look_at), 1));
        line.way.as_mut().unwrap().comes_from(ELSEWHERE);
        (9..20).for_each(|look_at| assert_eq!(look(&mut line, &mut program, 250 * look_at), 2));
    }

    #[test]
    fn the_next_address_of_a_name_is_no_change_of_networks() {
        let (mut line, mut program) = line();
        assert_eq!(look(&mut line, &mut program, 0), 0);
        line.way.as_mut().unwrap().comes_from(ELSEWHERE); // that leads to the first address
        sends(&mut line, &mut program, 2);
        assert_eq!(look(&mut line, &mut program, 300), 0);
        line.way.as_mut().unwrap().comes_from(ELSEWHERE);
        sends(&mut line, &mut program, 2);
        assert_eq!(look(&mut line, &mut program, 600), 1, "the same address by another network");
    }
}
