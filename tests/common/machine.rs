//! Passes whole datagrams to and from machines.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::cell::Cell;
use std::net::SocketAddr;
use whitewater::Time;
use whitewater::machine::Machine;

/// Conveniences for tests that keep datagrams.
pub(crate) trait Whole: Machine {
    /// Passes a copy of a datagram from that address to the machine.
    fn give(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) {
        let mut copy = COPY.take(); // a test may count allocations
        copy.clear();
        copy.extend_from_slice(datagram);
        self.handle_datagram(now, from.into(), &mut copy);
        COPY.set(copy);
    }

    /// Replaces the content of `buf` by the next datagram and returns where it goes.
    fn emit_to(&mut self, now: Time, buf: &mut Vec<u8>) -> Option<SocketAddr> {
        buf.clear();
        Some(self.poll_transmit(now, buf)?.address)
    }

    /// The next datagram, and where it goes.
    fn emit(&mut self, now: Time) -> Option<(Vec<u8>, SocketAddr)> {
        let mut datagram = Vec::new();
        let to = self.emit_to(now, &mut datagram)?;
        Some((datagram, to))
    }
}

impl<M: Machine> Whole for M {}

thread_local! {
    static COPY: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}
