//! A port, with the others on it and the ways beside it: how datagrams get to a machine and leave it.

use super::clock::WallClock;
use super::shards::Neighbours;
use super::takeover::{Generations, LOOK_EACH};
use super::tally::{SocketStats, SocketTraffic};
use super::transport::Beside;
use super::way::Way;
use crate::machine::{Arrival, Ecn, Machine, Transmit};
use crate::time::Time;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;
use whitewater_udp::{Datagram, Port, Socket};

/// A port, and the others on it if there are any.
#[derive(Debug)]
pub(super) struct Line<M, S = UdpSocket> {
    pub(super) port: Port<S>,
    /// The port on the second network of this end.
    pub(super) second: Option<Port<S>>,
    /// Whether that is read first next time: a flood of one does not keep the other waiting.
    is_turn_of_second: bool,
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
            second: None,
            is_turn_of_second: false,
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
        let Some(Datagram { bytes, from, ecn, .. }) = self.port.pop() else {
            return self.hand_in_second(now, machine);
        };
        let from = Arrival { ecn: Ecn::from_bits(ecn), ..from.into() };
        match (&mut self.neighbours, &mut self.generations) {
            (Some(others), _) => others.hand_in(now, machine, from, bytes),
            (None, Some(others)) => others.hand_in(now, machine, from, bytes),
            (None, None) => machine.handle_datagram(now, from, bytes),
        }
        true
    }

    /// The same for what was read from the second network.
    fn hand_in_second(&mut self, now: Time, machine: &mut M) -> bool {
        let Some(Datagram { bytes, from, ecn, .. }) = self.second.as_mut().and_then(Port::pop) else {
            return false;
        };
        let from = Arrival { ecn: Ecn::from_bits(ecn), network: 1, ..from.into() };
        machine.handle_datagram(now, from, bytes);
        true
    }

    /// Whether a datagram has been read that was not handed in.
    #[cfg(feature = "tokio")]
    pub(super) fn has_read(&self) -> bool {
        self.port.has_read() || self.second.as_ref().is_some_and(Port::has_read)
    }

    /// Whether the first network has a datagram. It may fail as silently as the second one, if there is one.
    fn has_first_next(&mut self, most: usize) -> io::Result<bool> {
        let has_next = self.port.has_next(most);
        self.forgive(has_next)
    }

    /// What the socket of the first network has returned, but no error while there is a second one: the session goes on there.
    pub(super) fn forgive(&self, result: io::Result<bool>) -> io::Result<bool> {
        result.or_else(|error| match self.second {
            Some(_) => {
                log::debug!("the first network fails: {error}");
                Ok(false)
            }
            None => Err(error),
        })
    }

    /// Whether datagrams have to wait for room. With a second network they get lost instead, since those for the other one may not wait.
    pub(super) const fn is_full(&self) -> bool {
        self.port.is_full() && self.second.is_none()
    }

    /// Whether the second network has a datagram. One that fails is silent, which the machine notices.
    fn has_second_next(&mut self, most: usize) -> bool {
        self.second.as_mut().is_some_and(|second| {
            second.has_next(most).unwrap_or_else(|error| {
                log::debug!("the second network fails: {error}");
                false
            })
        })
    }

    /// Whether datagrams come by other ways than the socket.
    #[cfg(feature = "tokio")]
    pub(super) const fn has_others(&self) -> bool {
        self.neighbours.is_some() || self.beside.is_some()
    }

    /// Hands in the next datagram: one that a newer process has handed on, or one that [`Port::has_next`] finds. `false`: there is none.
    pub(super) fn hand_in_next(&mut self, now: Time, machine: &mut M, most: usize) -> io::Result<bool> {
        if self.generations.as_mut().is_some_and(|others| others.hand_in_stray(now, machine)) {
            return Ok(true);
        }
        self.is_turn_of_second = !self.is_turn_of_second && self.second.is_some();
        if self.is_turn_of_second && self.has_second_next(most) && self.hand_in_second(now, machine) {
            return Ok(true);
        }
        let has_next = self.port.has_read() || (!self.is_superseded() && self.has_first_next(most)?);
        Ok((has_next || self.has_second_next(most)) && self.hand_in(now, machine))
    }

    /// Hands in what other shards have handed on and what came beside the socket, a bounded number; returns whether there may be more.
    pub(super) fn hand_in_strays(&mut self, now: Time, machine: &mut M) -> bool {
        let has_more = self.neighbours.as_mut().is_some_and(|others| others.hand_in_strays(now, machine));
        self.beside.as_mut().is_some_and(|beside| beside.hand_in(now, machine)) || has_more
    }

    /// Whether another process reads the socket.
    pub(super) fn is_superseded(&self) -> bool {
        self.generations.as_ref().is_some_and(Generations::is_superseded)
    }

    /// After reading: sends what was handed on to other processes. If this one has stopped reading, tells its successor, and looks whether
    /// that reads.
    pub(super) fn settle(&mut self, now: Time) {
        let Some(others) = &mut self.generations else { return };
        others.flush(now);
        if others.is_superseded() && !self.port.has_read() {
            others.answer();
            others.look(now, || self.port.has_waiting());
        }
    }

    /// How long what is kept for want of room can wait, if one of two networks keeps something.
    pub(super) fn retries_within(&self) -> Option<Duration> {
        let second = self.second.as_ref()?;
        Some(super::driver::RETRY).filter(|_| self.port.is_full() || second.is_full())
    }

    /// How long another look at the process that reads the socket can wait; `None`: there is no such process.
    pub(super) fn looks_within(&self) -> Option<Duration> {
        Some(LOOK_EACH).filter(|_| self.is_superseded())
    }

    /// Whether something waits for room on its way to another process.
    pub(super) fn is_clogged(&self) -> bool {
        self.generations.as_ref().is_some_and(Generations::is_clogged)
    }

    /// Gathers what is due, until it is time to flush, and at most what is `left` to send; returns whether that was all.
    pub(super) fn gather(&mut self, now: Time, machine: &mut M, left: &mut usize) -> bool {
        while *left > 0 {
            if self.port.is_due() {
                if self.second.is_none() {
                    return false;
                }
                self.port.flush();
            }
            let Some(Transmit { address, ecn, network }) = machine.poll_transmit(now, self.port.stage())
            else {
                return true;
            };
            *left -= 1;
            if let Some(Beside { transport, .. }) = &mut self.beside
                && transport.carries(address)
            {
                transport.send(address, self.port.staged());
                continue; // the next datagram replaces it on the stage
            }
            if network != 0 {
                self.send_by_second(address, ecn);
                continue;
            }
            if let Some(way) = &mut self.way {
                way.lead_to(address);
            }
            if self.second.is_none() || !self.port.is_full() {
                self.port.commit(address, ecn.map_or(0, Ecn::bits));
            }
        }
        false
    }

    /// Queues what is on the stage at the port of the second network. If that is full, it is lost.
    fn send_by_second(&mut self, address: SocketAddr, ecn: Option<Ecn>) {
        let Some(second) = &mut self.second else { return };
        if second.is_due() || second.is_full() {
            second.flush();
        }
        if !second.is_full() {
            second.stage().extend_from_slice(self.port.staged());
            second.commit(address, ecn.map_or(0, Ecn::bits));
        }
    }

    /// Sends what waits, as far as there is room.
    pub(super) fn flush(&mut self) {
        self.port.flush();
        self.second.iter_mut().for_each(Port::flush);
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

impl<M: Machine> Line<M> {
    /// Waits as [`Port::wait`] does, for datagrams only if this process reads the socket.
    pub(super) fn wait(&mut self, wait: Option<Duration>) -> io::Result<()> {
        match &self.second {
            _ if self.is_superseded() => self.port.wait_without_reading(wait),
            Some(second) => self.port.wait_with(wait, second).or_else(|error| {
                log::debug!("one of two networks fails: {error}");
                Ok(())
            }),
            None => self.port.wait(wait),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::driver::ONE_PEER;
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};
    use whitewater_udp::Mode;

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
            Some(address.into())
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
    fn a_first_network_that_fails_ends_nothing_while_there_is_a_second() {
        let (mut line, mut program) = line();
        let fail = |line: &mut Line<Program>| line.port.fail(io::Error::other("gone"));
        fail(&mut line);
        assert!(line.hand_in_next(Time::ZERO, &mut program, 1).is_err());
        let second = UdpSocket::bind(loopback(0)).unwrap();
        let to = second.local_addr().unwrap();
        line.second = Some(Port::new(second, Mode::Fragments, ONE_PEER).unwrap());
        fail(&mut line);
        assert!(!line.hand_in_next(Time::ZERO, &mut program, 1).unwrap());
        UdpSocket::bind(loopback(0)).unwrap().send_to(&[1], to).unwrap();
        line.wait(Some(Duration::from_secs(60))).unwrap();
        fail(&mut line);
        assert!(line.hand_in_next(Time::ZERO, &mut program, 1).unwrap(), "what came by the second");
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
