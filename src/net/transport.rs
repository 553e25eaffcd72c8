//! A way for datagrams beside the socket, for peers that UDP does not reach.

use crate::machine::{Arrival, Machine};
use crate::time::Time;
use std::fmt::{self, Debug};
use std::net::SocketAddr;
use std::sync::Arc;

/// Carries datagrams beside the socket of a [`Server`](crate::Server), which [attaches](crate::Server::attach) it: those of browsers, by
/// the crate `whitewater-web`, or those of a relay. The server's sessions do not see the difference.
///
/// Nothing here may block: the driver calls it between two datagrams.
pub trait Transport: Debug + Send + Sync {
    /// Whether this transport carries what goes to an address. Each of its peers has an address that UDP cannot have, such as an IPv6 address
    /// with a scope id above `i32::MAX`, so that nobody can pretend to be it. Limits and rates apply to the IP address in it: put that of
    /// the peer there.
    fn carries(&self, to: SocketAddr) -> bool;

    /// Takes the next datagram that has arrived: appends it to `datagram`, and returns where it came from. `None`: there is none.
    fn receive(&mut self, datagram: &mut Vec<u8>) -> Option<Arrival>;

    /// Sends a datagram to one of its peers. What cannot be sent now is lost, as on any network.
    fn send(&mut self, to: SocketAddr, datagram: &[u8]);

    /// The driver is there. It may sleep, so call `waker` after something has arrived.
    fn attached(&mut self, waker: Waker);
}

/// Ends the sleep of a driver, from any thread.
#[derive(Clone)]
pub struct Waker(Arc<dyn Fn() + Send + Sync>);

impl Waker {
    pub(super) fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(wake))
    }

    /// Wakes the driver. It looks for datagrams before it sleeps again. One that [you asked for](crate::Server::waker) also ends its wait.
    pub fn wake(&self) {
        (self.0)();
    }
}

impl Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waker").finish_non_exhaustive()
    }
}

/// A transport with a buffer.
#[derive(Debug)]
pub(super) struct Beside {
    pub(super) transport: Box<dyn Transport>,
    datagram: Vec<u8>,
}

impl Beside {
    pub(super) fn new(transport: impl Transport + 'static) -> Self {
        Self { transport: Box::new(transport), datagram: Vec::new() }
    }

    /// Hands in what has arrived, a bounded number of datagrams; returns whether there may be more.
    pub(super) fn hand_in(&mut self, now: Time, machine: &mut impl Machine) -> bool {
        for _ in 0..DATAGRAMS_PER_PUMP {
            self.datagram.clear();
            let Some(from) = self.transport.receive(&mut self.datagram) else { return false };
            machine.handle_datagram(now, from, &mut self.datagram);
        }
        true
    }
}

/// As many as are handed on between shards.
const DATAGRAMS_PER_PUMP: usize = 256;
