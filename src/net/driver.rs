//! A machine on a UDP socket: datagrams in, time, datagrams out.

use super::buffers::SocketBuffers;
use super::clock::Clock;
use super::os::Bell;
use super::port::{Port, Purpose};
use super::shards::{Handed, Neighbours};
use super::tally::{SocketStats, SocketTraffic};
use crate::machine::{Arrival, Machine, Transmit};
use crate::session::SessionConfig;
use crate::time::Time;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

/// A [`Machine`] on a UDP socket, with a clock. [`Server`](super::Server), [`Client`](super::Client) and
/// [`KcpListener`](super::KcpListener) are one, each of its machine; a [`KcpSocket`](super::KcpSocket) has one inside. With
/// [`new`](Self::new) it drives a machine of your own.
///
/// On an IPv6 socket that takes IPv4 as well, IPv4 addresses are IPv4 addresses.
#[derive(Debug)]
pub struct Driver<M> {
    pub(super) machine: M,
    pub(super) port: Port,
    pub(super) is_v6: bool,
    /// Whether the socket is ours to replace by one of the other address family.
    is_own: bool,
    pub(super) clock: Clock,
    datagrams_per_pump: NonZeroUsize,
    /// The others on this port, if there are any.
    neighbours: Option<Neighbours>,
    /// Where an empty datagram comes from that only wakes whoever waits: this socket.
    called_from: Option<SocketAddr>,
}

/// What wakes a driver that waits: an empty datagram to its socket, or a bell where the datagram could get to another socket on the port.
#[derive(Debug)]
pub(super) enum Call {
    Datagram { socket: UdpSocket, to: SocketAddr },
    Bell(Arc<Bell>),
}

impl Call {
    pub(super) fn send(&self) {
        match self {
            Self::Datagram { socket, to } => {
                let _ = socket.send_to(&[], to); // who waits does not wait for ever
            }
            Self::Bell(bell) => bell.ring(),
        }
    }
}

impl<M: Machine> Driver<M> {
    /// Drives `machine` on a socket that is bound and not connected, or has one peer. It becomes non-blocking.
    ///
    /// # Errors
    ///
    /// The socket fails.
    pub fn new(socket: UdpSocket, machine: M) -> io::Result<Self> {
        let is_connected = socket.peer_addr().is_ok();
        Ok(Self::over(Port::new(socket, Purpose { is_connected, ..Purpose::BARE })?, Clock::new(), machine))
    }

    pub(super) fn over(port: Port, clock: Clock, machine: M) -> Self {
        let is_v6 = port.is_v6();
        let datagrams_per_pump = DATAGRAMS_PER_PUMP;
        Self {
            machine,
            port,
            is_v6,
            is_own: false,
            clock,
            datagrams_per_pump,
            neighbours: None,
            called_from: None,
        }
    }

    /// Reads the datagrams that wait, does what is due and sends what came out. Returns how long it may be until the next call; `None`
    /// when nothing but a datagram or a send makes work.
    ///
    /// The work of one call is bounded, whoever sends how much; when there is more, the answer is zero.
    ///
    /// # Errors
    ///
    /// The socket has failed to read; what was due was done and sent all the same. What a peer does, or does not, is an event and no error.
    pub fn pump(&mut self) -> io::Result<Option<Duration>> {
        let received = self.receive();
        self.machine.handle_timeout(self.clock.now());
        let is_all_sent = self.transmit();
        if received? || !is_all_sent {
            return Ok(Some(Duration::ZERO));
        }
        Ok(self.idle_for(self.clock.now()))
    }

    /// Sends what was sent since the last pump, without reading.
    pub fn flush(&mut self) {
        self.transmit();
    }

    /// Most datagrams that one pump reads; 512 unless set.
    pub const fn set_datagrams_per_pump(&mut self, most: NonZeroUsize) {
        self.datagrams_per_pump = most;
    }

    /// The machine without its socket.
    #[must_use]
    pub const fn machine(&self) -> &M {
        &self.machine
    }

    /// The same, for what is the machine's own; what takes the time takes [`now`](Self::now). Only its datagrams are this driver's to move.
    pub const fn machine_mut(&mut self) -> &mut M {
        &mut self.machine
    }

    /// What the socket reported.
    #[must_use]
    pub const fn socket_stats(&self) -> SocketStats {
        self.port.stats()
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

    /// The address that the socket is bound to.
    ///
    /// # Errors
    ///
    /// The system does not know it.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.port.local_addr()
    }

    /// The time by the clock that all calls go by.
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
            self.port.wait([wait, left].into_iter().flatten().min())?;
        }
    }

    /// Ends everything, and pumps until that is over, at most for `timeout`.
    pub(super) fn finish(&mut self, code: u16, timeout: Duration) -> io::Result<()> {
        self.machine.shutdown(self.clock.now(), code);
        self.run(Some(timeout), |now, machine| machine.shutdown(now, code)).map(drop)
    }

    /// Waits for a datagram, a [`Call`], or for so long.
    pub(super) fn wait(&mut self, wait: Duration) -> io::Result<()> {
        self.port.wait(Some(wait))
    }

    /// What wakes this driver from another thread; `None`: the one that was given before still does.
    pub(super) fn call(&mut self) -> io::Result<Option<Call>> {
        if self.called_from.is_some() {
            return Ok(None);
        }
        if let Some(bell) = self.neighbours.as_ref().and_then(Neighbours::bell) {
            self.called_from = Some(self.local_addr()?);
            return Ok(Some(Call::Bell(Arc::clone(bell))));
        }
        let mut to = self.local_addr()?;
        if to.ip().is_unspecified() {
            to.set_ip(if self.is_v6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() });
        }
        let socket = self.port.try_clone()?;
        self.called_from = Some(to);
        Ok(Some(Call::Datagram { socket, to }))
    }

    /// From now on it is one of several on its port.
    pub(super) fn set_neighbours(&mut self, neighbours: Neighbours) {
        if let Some(bell) = neighbours.bell() {
            self.port.set_bell(Arc::clone(bell));
        }
        self.neighbours = Some(neighbours);
    }

    /// From now on the socket is replaced by one of another family when there is something to send to such a peer.
    pub(super) const fn set_own(&mut self) {
        self.is_own = true;
    }

    /// How long nothing needs to be done, unless a datagram arrives.
    pub(super) fn idle_for(&self, now: Time) -> Option<Duration> {
        // What the socket does not take now is no reason to look before it may have room.
        let next = if self.port.is_full() { None } else { self.machine.poll_timeout() };
        self.port.limit(next.map(|at| at.since(now)))
    }

    /// Reads what waits, at most so much; returns whether there may be more.
    fn receive(&mut self) -> io::Result<bool> {
        self.receive_up_to(usize::MAX, |_| false)
    }

    /// The same, but when it is enough the system need not be asked for more than so many.
    pub(super) fn receive_up_to(&mut self, most: usize, is_enough: impl Fn(&M) -> bool) -> io::Result<bool> {
        let has_more = self.take_in_strays();
        let mut now = self.clock.now(); // of a few datagrams, which take less than a moment
        for count in 1..=self.datagrams_per_pump.get() {
            if count > most && !self.port.has_read() && is_enough(&self.machine) {
                break;
            }
            let Some(datagram) = self.port.recv(most)? else { return Ok(has_more) };
            if datagram.bytes.is_empty() && self.called_from == Some(datagram.from) {
                continue;
            }
            let from = Arrival { address: as_v4(datagram.from), ecn: datagram.ecn };
            let handed = self.neighbours.as_ref().map(|others| others.hand_on(from, datagram.bytes));
            match handed.unwrap_or(Handed::Mine) {
                Handed::Mine => self.machine.handle_datagram(now, from, datagram.bytes),
                Handed::On => self.port.traffic_mut().handed_on += 1,
                Handed::Lost => self.port.stats_mut().not_handed_on += 1,
            }
            if count.is_multiple_of(REPLY_EACH) {
                if self.port.replies() {
                    self.port.flush();
                    self.gather(REPLIES_PER_CALL);
                    self.port.flush();
                }
                now = self.clock.now();
            }
        }
        Ok(true)
    }

    /// Takes what the others have handed on, at most so much; returns whether there may be more.
    fn take_in_strays(&mut self) -> bool {
        let Some(neighbours) = &self.neighbours else { return false };
        for _ in 0..STRAYS_PER_PUMP {
            let Some(mut stray) = neighbours.pop() else { return false };
            self.machine.handle_datagram(self.clock.now(), stray.from, &mut stray.bytes);
        }
        true
    }

    /// Sends what is due, a bounded number of datagrams, as far as the socket takes it; returns whether that was all.
    pub(super) fn transmit(&mut self) -> bool {
        self.port.flush();
        let is_all = self.gather(SENDS_PER_CALL);
        self.port.flush();
        is_all
    }

    /// Gives what is due to the port, so many datagrams at most; returns whether that was all.
    fn gather(&mut self, most: usize) -> bool {
        let now = self.clock.now();
        for _ in 0..most {
            if self.port.is_full() {
                return true;
            }
            let Some(Transmit { address: to, ecn }) = self.machine.poll_transmit(now, self.port.stage())
            else {
                return true;
            };
            if to.is_ipv6() != self.is_v6 && self.is_own {
                self.change_family(to);
            }
            self.port.commit(way(to, self.is_v6), ecn);
        }
        false
    }

    /// Sends a datagram that is not the machine's any more, if there is room.
    pub(super) fn put_out(&mut self, datagram: &[u8], to: SocketAddr) {
        if !self.port.is_full() {
            self.port.send(datagram, way(to, self.is_v6));
        }
    }

    fn change_family(&mut self, to: SocketAddr) {
        let changed = socket_for(to).and_then(|socket| self.port.replace(socket));
        match changed {
            Ok(()) => (self.is_v6, self.called_from) = (to.is_ipv6(), None),
            Err(error) => log::warn!("no socket that can send to {to}: {error}"), // then sending fails, and is counted
        }
    }
}

/// The knobs of a session on a socket. Where its datagrams may be cut on their way, a search for a path that carries longer ones would
/// find too long ones: there is none.
pub(super) fn within(config: &SessionConfig, may_fragment: bool) -> SessionConfig {
    let mut config = config.clone();
    if config.path_mtu.is_some() && may_fragment {
        log::warn!("the socket cannot forbid fragments: datagrams stay at {} bytes", config.max_datagram);
        config.path_mtu = None;
    }
    config
}

/// What it takes at most to end all sessions.
pub(super) fn farewell(config: &SessionConfig) -> Duration {
    config.drain + GOODBYE
}

/// A socket of the family of `peer`, on a port that the system chooses. It is not connected: it survives a change of the way to the peer.
pub(super) fn socket_for(peer: SocketAddr) -> io::Result<UdpSocket> {
    match peer {
        SocketAddr::V4(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)),
    }
}

/// The address without what a socket of IPv6 makes of IPv4.
pub(super) fn as_v4(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::from((ip, address.port())),
        IpAddr::V6(_) => address, // with its scope
    }
}

/// The address as a socket wants it, of IPv6 or not.
pub(super) fn way(address: SocketAddr, is_v6: bool) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if is_v6 => SocketAddr::from((v4.ip().to_ipv6_mapped(), v4.port())),
        address => address,
    }
}

/// Datagrams that one pump reads: more than a receive buffer of the usual size holds, under a millisecond of work if they are small.
const DATAGRAMS_PER_PUMP: NonZeroUsize = NonZeroUsize::new(512).unwrap();
/// Datagrams that one pump takes from the other shards: fewer than it reads.
const STRAYS_PER_PUMP: usize = 256;
/// Datagrams that one pump sends: a window of each of many sessions.
const SENDS_PER_CALL: usize = 4096;
/// What closing takes when nothing is left to arrive and the goodbye is not answered, and a little more.
const GOODBYE: Duration = Duration::from_secs(2);
/// Datagrams read before what they are answered is sent: fewer than there is room for answers and than one acknowledgement reaches, and
/// enough that one answer can be for many.
const REPLY_EACH: usize = 16;
/// Datagrams sent in between: as many as what was read can have opened windows for, and so few that reading goes on.
const REPLIES_PER_CALL: usize = 256;
