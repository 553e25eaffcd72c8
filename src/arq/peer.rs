//! A control block and where its peer is: bare KCP of two ends, as a machine.

use super::{Config, ConfigError, Kcp};
use crate::machine::{Arrival, Machine, Transmit};
use crate::seq::Conv;
use crate::time::Time;
use crate::wire::DatagramQueue;
use std::net::SocketAddr;

/// A [`Kcp`] whose datagrams go to one address and come from there: what `net::KcpSocket` has a socket for, and a [`Machine`] for whoever
/// brings another transport. Many peers on one way are [`raw::Peers`](crate::session::raw::Peers).
#[derive(Debug)]
pub struct KcpPeer {
    kcp: Kcp<DatagramQueue>,
    address: SocketAddr,
    is_eager: bool,
    now: Time,
    counts: KcpPeerCounts,
}

/// What became of the datagrams that came.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct KcpPeerCounts {
    /// Taken.
    pub taken: u64,
    /// Dropped for the address that they came from.
    pub strangers: u64,
    /// Of the peer, and refused by the control block.
    pub rejected: u64,
}

impl KcpPeer {
    /// A control block for what is sent to `address` and comes from there.
    ///
    /// # Errors
    ///
    /// When a field of `config` is out of range.
    pub fn new(address: SocketAddr, conv: Conv, config: &Config) -> Result<Self, ConfigError> {
        let kcp = Kcp::new(conv, config, config.datagram_queue())?;
        Ok(Self { kcp, address, is_eager: false, now: Time::ZERO, counts: KcpPeerCounts::default() })
    }

    /// Whether each [`handle_timeout`](Machine::handle_timeout) flushes instead of only those after an interval. Off unless set.
    pub const fn set_eager(&mut self, is_eager: bool) {
        self.is_eager = is_eager;
    }

    /// Whether that is set.
    #[must_use]
    pub const fn is_eager(&self) -> bool {
        self.is_eager
    }

    /// Where the peer is.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The control block.
    #[must_use]
    pub const fn kcp(&self) -> &Kcp<DatagramQueue> {
        &self.kcp
    }

    /// The control block, to send and to receive, and to configure it.
    pub const fn kcp_mut(&mut self) -> &mut Kcp<DatagramQueue> {
        &mut self.kcp
    }

    /// What became of the datagrams that came.
    #[must_use]
    pub const fn counts(&self) -> KcpPeerCounts {
        self.counts
    }

    fn tick(&mut self, now: Time) -> Time {
        self.now = self.now.max(now);
        self.now
    }
}

impl Machine for KcpPeer {
    fn handle_datagram(&mut self, now: Time, from: Arrival, datagram: &mut [u8]) {
        let now = self.tick(now);
        if !is_same(from.address, self.address) {
            self.counts.strangers += 1;
            log::trace!("dropped a datagram from {}, a stranger", from.address);
        } else if let Err(error) = self.kcp.input(now, datagram) {
            self.counts.rejected += 1;
            log::trace!("rejected a datagram from {}: {error}", from.address);
        } else {
            self.counts.taken += 1;
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        let now = self.tick(now);
        self.kcp.update(now);
        if self.is_eager {
            self.kcp.flush(now);
        }
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        let now = self.tick(now);
        while self.kcp.output().is_empty() && self.kcp.output_mut().clear_full() {
            self.kcp.flush(now); // the rest of a burst
        }
        out.extend_from_slice(self.kcp.output_mut().pop()?);
        Some(self.address.into())
    }

    fn poll_timeout(&self) -> Option<Time> {
        if self.kcp.output().is_empty() { self.kcp.check(self.now) } else { Some(self.now) }
    }

    /// Bare KCP has no goodbye: it is over when all that was sent has arrived.
    fn shutdown(&mut self, _: Time, _: u16) -> bool {
        self.kcp.wait_snd() == 0
    }
}

/// Whether it is the same end: the flow label of IPv6 may change, and the scope is not always told.
fn is_same(a: SocketAddr, b: SocketAddr) -> bool {
    a.port() == b.port() && a.ip().to_canonical() == b.ip().to_canonical()
}
