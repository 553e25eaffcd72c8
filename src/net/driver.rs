//! What both ends of sessions do with a socket: datagrams in, time, datagrams out.

use super::batch::Fragments;
use super::buffers::SocketBuffers;
use super::clock::Clock;
use super::os::Bell;
use super::port::{Port, Purpose};
use super::shards::{Handed, Neighbours, Stray};
use super::tally::{SocketStats, SocketTraffic};
use crate::machine::{Arrival, Machine, Transmit};
use crate::session::SessionConfig;
use crate::time::Time;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

/// A socket and a clock. IPv4 addresses are IPv4 addresses, also on a socket that shows them as IPv6 ones.
#[derive(Debug)]
pub(super) struct Driver {
    port: Port,
    is_v6: bool,
    /// Whether the socket is ours to replace by one of the other address family.
    is_own: bool,
    pub(super) clock: Clock,
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

/// What all sessions of an end have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) lanes: usize,
    pub(super) channels: usize,
    pub(super) drain: Duration,
}

impl Shape {
    pub(super) const fn of(config: &SessionConfig) -> Self {
        Self { lanes: config.lanes.len(), channels: config.channels.len(), drain: config.drain }
    }

    /// What it takes at most to end all sessions.
    pub(super) fn farewell(&self) -> Duration {
        self.drain + GOODBYE
    }
}

impl Driver {
    /// Takes over a socket that is bound and not connected.
    pub(super) fn over(socket: UdpSocket, slots: usize) -> io::Result<Self> {
        let purpose = Purpose { is_connected: false, fragments: Fragments::Forbidden, slots };
        Ok(Self {
            is_v6: socket.local_addr()?.is_ipv6(),
            is_own: false,
            port: Port::new(socket, purpose)?,
            clock: Clock::new(),
            neighbours: None,
            called_from: None,
        })
    }

    /// Binds a socket that can send to `peer`, and others of another family when there is something to send to such a peer.
    pub(super) fn towards(peer: SocketAddr) -> io::Result<Self> {
        Ok(Self { is_own: true, ..Self::over(socket_for(peer)?, Purpose::ONE_PEER)? })
    }

    /// The knobs of a session on this socket, see [`within`].
    pub(super) fn within(&self, config: &SessionConfig) -> SessionConfig {
        within(config, self.port.may_fragment())
    }

    /// Reads what waits, does what is due, sends what comes out: a bounded number of datagrams each. Returns how long it may be until
    /// the next call; `None`: until a datagram arrives.
    pub(super) fn pump(&mut self, end: &mut impl Machine) -> io::Result<Option<Duration>> {
        let received = self.receive(end);
        end.handle_timeout(self.clock.now());
        let is_all_sent = self.transmit(end);
        if received? || !is_all_sent {
            return Ok(Some(Duration::ZERO));
        }
        // What the socket does not take now is no reason to look before it may have room.
        let next = if self.port.is_full() { None } else { end.poll_timeout() };
        Ok(self.port.limit(next.map(|at| at.since(self.clock.now()))))
    }

    /// Sends what is due, a bounded number of datagrams, as far as the socket takes it; returns whether that was all.
    pub(super) fn transmit(&mut self, end: &mut impl Machine) -> bool {
        self.port.flush();
        let is_all = self.gather(end, SENDS_PER_CALL);
        self.port.flush();
        is_all
    }

    /// Pumps until `is_done`, at most for `timeout`; returns whether it is.
    pub(super) fn run<E: Machine>(
        &mut self,
        end: &mut E,
        timeout: Option<Duration>,
        mut is_done: impl FnMut(Time, &mut E) -> bool,
    ) -> io::Result<bool> {
        let deadline = timeout.map(|timeout| self.clock.now() + timeout);
        loop {
            let wait = self.pump(end)?;
            let now = self.clock.now();
            if is_done(now, end) {
                return Ok(true);
            }
            let left = deadline.map(|deadline| deadline.since(now));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(false);
            }
            self.port.wait([wait, left].into_iter().flatten().min())?;
        }
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

    pub(super) const fn stats(&self) -> SocketStats {
        self.port.stats()
    }

    pub(super) const fn traffic(&self) -> SocketTraffic {
        self.port.traffic()
    }

    pub(super) fn buffers(&self) -> io::Result<SocketBuffers> {
        self.port.buffers()
    }

    pub(super) fn set_buffers(&self, wanted: SocketBuffers) -> io::Result<SocketBuffers> {
        self.port.set_buffers(wanted)
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.port.local_addr()
    }

    /// From now on it is one of several on its port.
    pub(super) fn set_neighbours(&mut self, neighbours: Neighbours) {
        if let Some(bell) = neighbours.bell() {
            self.port.set_bell(Arc::clone(bell));
        }
        self.neighbours = Some(neighbours);
    }

    /// Takes what the others have handed on, at most so much; returns whether there may be more.
    fn take_strays(&self, end: &mut impl Machine) -> bool {
        let Some(neighbours) = &self.neighbours else { return false };
        for _ in 0..STRAYS_PER_PUMP {
            let Some(Stray { from, mut bytes }) = neighbours.pop() else { return false };
            end.handle_datagram(self.clock.now(), from, &mut bytes);
        }
        true
    }

    /// Reads what waits, at most so much; returns whether there may be more.
    fn receive(&mut self, end: &mut impl Machine) -> io::Result<bool> {
        let has_more = self.take_strays(end);
        let mut now = self.clock.now(); // of a few datagrams, which take less than a moment
        for count in 1..=DATAGRAMS_PER_PUMP {
            let Some(datagram) = self.port.recv()? else { return Ok(has_more) };
            if datagram.bytes.is_empty() && self.called_from == Some(datagram.from) {
                continue;
            }
            let from = Arrival { address: as_v4(datagram.from), ecn: datagram.ecn };
            let handed = self.neighbours.as_ref().map(|others| others.hand_on(from, datagram.bytes));
            match handed.unwrap_or(Handed::Mine) {
                Handed::Mine => end.handle_datagram(now, from, datagram.bytes),
                Handed::On => self.port.traffic_mut().handed_on += 1,
                Handed::Lost => self.port.stats_mut().not_handed_on += 1,
            }
            if count.is_multiple_of(REPLY_EACH) {
                self.port.flush();
                self.gather(end, REPLIES_PER_CALL);
                self.port.flush();
                now = self.clock.now();
            }
        }
        Ok(true)
    }

    /// Gives what is due to the port, so many datagrams at most; returns whether that was all.
    fn gather(&mut self, end: &mut impl Machine, most: usize) -> bool {
        let now = self.clock.now();
        for _ in 0..most {
            if self.port.is_full() {
                return true;
            }
            let Some(Transmit { address: to, ecn }) = end.poll_transmit(now, self.port.stage()) else {
                return true;
            };
            if to.is_ipv6() != self.is_v6 && self.is_own {
                self.change_family(to);
            }
            self.port.commit(way(to, self.is_v6), ecn);
        }
        false
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
const DATAGRAMS_PER_PUMP: usize = 512;
/// Datagrams that one pump takes from the other shards: fewer than it reads.
const STRAYS_PER_PUMP: usize = 256;
/// Datagrams that one pump sends: a window of each of many sessions.
pub(super) const SENDS_PER_CALL: usize = 4096;
/// What closing takes when nothing is left to arrive and the goodbye is not answered, and a little more.
const GOODBYE: Duration = Duration::from_secs(2);
/// Datagrams read before what they are answered is sent: fewer than there is room for answers and than one acknowledgement reaches, and
/// enough that one answer can be for many.
const REPLY_EACH: usize = 16;
/// Datagrams sent in between: as many as what was read can have opened windows for, and so few that reading goes on.
const REPLIES_PER_CALL: usize = 256;
