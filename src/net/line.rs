//! The way of a machine's datagrams through a socket.

use super::shards::Neighbours;
use super::tally::{SocketStats, SocketTraffic};
use crate::machine::{Arrival, Ecn, Machine, Transmit};
use crate::time::Time;
use std::net::UdpSocket;
use whitewater_udp::{Datagram, Port, Socket};

/// A port, and the others on it if there are any.
#[derive(Debug)]
pub(super) struct Line<M, S = UdpSocket> {
    pub(super) port: Port<S>,
    pub(super) neighbours: Option<Neighbours<M>>,
}

impl<M: Machine, S: Socket> Line<M, S> {
    /// Hands the next datagram that was read to the machine, or on to the shard that owns it; `false`: there is none.
    pub(super) fn hand_in(&mut self, now: Time, machine: &mut M) -> bool {
        let Some(Datagram { bytes, from, ecn, .. }) = self.port.pop() else { return false };
        let from = Arrival { address: from, ecn: Ecn::from_bits(ecn) };
        match &mut self.neighbours {
            None => machine.handle_datagram(now, from, bytes),
            Some(others) => others.hand_in(now, machine, from, bytes),
        }
        true
    }

    /// Hands in what the others on the port have handed on, a bounded number; returns whether there may be more.
    pub(super) fn hand_in_strays(&self, now: Time, machine: &mut M) -> bool {
        self.neighbours.as_ref().is_some_and(|others| others.hand_in_strays(now, machine))
    }

    /// Gathers what is due, until it is time to flush, and at most what is `left` to send; returns whether that was all.
    pub(super) fn gather(&mut self, now: Time, machine: &mut M, left: &mut usize) -> bool {
        while *left > 0 && !self.port.is_due() {
            let Some(Transmit { address, ecn }) = machine.poll_transmit(now, self.port.stage()) else {
                return true;
            };
            *left -= 1;
            self.port.commit(address, ecn.map_or(0, Ecn::bits));
        }
        false
    }

    pub(super) fn stats(&self) -> SocketStats {
        let not_handed_on = self.neighbours.as_ref().map_or(0, |others| others.not_handed_on);
        SocketStats { not_handed_on, ..self.port.counts().into() }
    }

    pub(super) fn traffic(&self) -> SocketTraffic {
        let handed_on = self.neighbours.as_ref().map_or(0, |others| others.handed_on);
        SocketTraffic { handed_on, ..self.port.counts().into() }
    }
}

/// Arrivals that one call gives at most on a socket of one peer: its datagrams arrive joined.
pub(super) const ONE_PEER: usize = 4;
/// On a socket of many: theirs do not.
pub(super) const MANY_PEERS: usize = 32;
