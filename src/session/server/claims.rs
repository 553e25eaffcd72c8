//! Where an attempt to connect comes from. Whoever sees a CONNECT can copy it and be first, and a NAT may give a client
//! another port while it waits. So an attempt is what a CONNECT says, and what it is told goes to each proven address
//! from which it came. One that was let in [before that](super::unproven) is told so there, until another one is proven. Only the client can go on from there.

use super::seat::ACCEPT_EACH;
use crate::rate::{host, network};
use crate::time::Time;
use std::net::SocketAddr;

/// What identifies an attempt: a keyed hash of all that its CONNECT says but epoch and cookie.
pub(super) type Mark = u64;

/// The addresses from which an attempt came, the first one first, and when each may be answered again.
#[derive(Clone, Debug)]
pub(super) struct Claims(Vec<(SocketAddr, Time)>);

impl Claims {
    pub(super) fn new(address: SocketAddr, again_from: Time) -> Self {
        Self(vec![(address, again_from)])
    }

    pub(super) fn has(&self, address: SocketAddr) -> bool {
        self.addresses().any(|known| known == address)
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.0.iter().map(|(address, _)| *address)
    }

    /// Whether it came from several hosts: one of them may be that of a copy.
    pub(super) fn is_contested(&self) -> bool {
        let mut hosts = self.addresses().map(host);
        let first = hosts.next();
        hosts.any(|other| Some(other) != first)
    }

    /// The CONNECT came again. Returns whether that may be answered now.
    pub(super) fn claim(&mut self, now: Time, from: SocketAddr) -> bool {
        let again_from = now + ACCEPT_EACH;
        if let Some((_, wait)) = self.0.iter_mut().find(|(address, _)| *address == from) {
            let may_be = *wait <= now;
            *wait = if may_be { again_from } else { *wait };
            return may_be;
        }
        if self.0.len() >= CLAIMS_MAX
            && let Some(goes) = self.crowding(from)
        {
            self.0.remove(goes);
        }
        self.0.push((from, again_from));
        true
    }

    /// Which of them goes for `from`: of the network that has most, and there of the host that has most, the oldest.
    /// Whoever copies may have many addresses, but in few networks, and the client has one.
    fn crowding(&self, from: SocketAddr) -> Option<usize> {
        let of = |is_same: &dyn Fn(SocketAddr) -> bool| {
            self.addresses().chain([from]).filter(|address| is_same(*address)).count()
        };
        let crowd = |address| {
            (of(&|other| network(other) == network(address)), of(&|other| host(other) == host(address)))
        };
        let newest_first = self.0.iter().enumerate().rev();
        newest_first.max_by_key(|(_, (address, _))| crowd(*address)).map(|(index, _)| index)
    }

    /// All of them have been answered.
    pub(super) fn answered(&self, now: Time) -> Self {
        Self(self.addresses().map(|address| (address, now + ACCEPT_EACH)).collect())
    }
}

/// Addresses that are remembered for each attempt.
const CLAIMS_MAX: usize = 4;
