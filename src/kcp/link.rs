//! A control block with the address of its peer: bare KCP between two ends, as a machine.

use super::{Config, ConfigError, Envelope, EnvelopeConfig, InputError, Kcp, SendError};
use crate::machine::{Arrival, Machine, Transmit};
use crate::seq::Conv;
use crate::time::Time;
use crate::wire::{DatagramQueue, Output};
use rand_core::CryptoRng;
use std::net::SocketAddr;

/// A [`Kcp`] that exchanges datagrams with one address. `kcp::Socket` adds a socket to it; with another transport, use
/// it as a [`Machine`]. For many peers on one socket, see [`Peers`](super::Peers).
#[derive(Debug)]
pub struct Link {
    kcp: Kcp<DatagramQueue>,
    /// What wraps the datagrams, if anything does.
    envelope: Option<Box<dyn Envelope>>,
    /// Wrapped datagrams that are ready to be sent.
    wrapped: DatagramQueue,
    address: SocketAddr,
    /// Something was sent or received that must be flushed.
    flush_due: bool,
    now: Time,
    taken: u64,
    strangers: u64,
    rejected: u64,
}

impl Link {
    /// A control block that exchanges datagrams with `address`.
    ///
    /// # Errors
    ///
    /// A field of `config` is out of range.
    pub fn new(address: SocketAddr, conv: Conv, config: &Config) -> Result<Self, ConfigError> {
        let kcp = Kcp::new(conv, config, config.datagram_queue())?;
        Ok(Self {
            kcp,
            envelope: None,
            wrapped: config.datagram_queue(),
            address,
            flush_due: false,
            now: Time::ZERO,
            taken: 0,
            strangers: 0,
            rejected: 0,
        })
    }

    /// The same with an envelope around KCP. `config.mtu` is that of whole datagrams. Nobody may be able to predict
    /// `rng`.
    ///
    /// # Errors
    ///
    /// A field of `config` or `envelope` is out of range.
    pub fn with_envelope(
        address: SocketAddr,
        conv: Conv,
        config: &Config,
        envelope: &dyn EnvelopeConfig,
        rng: &mut dyn CryptoRng,
    ) -> Result<Self, ConfigError> {
        let mut peer = Self::new(address, conv, &envelope.inside(config)?)?;
        peer.kcp.refuse_empty();
        peer.envelope = Some(envelope.envelope(rng));
        Ok(peer)
    }

    /// The envelope around KCP.
    #[must_use]
    pub fn envelope(&self) -> Option<&dyn Envelope> {
        self.envelope.as_deref()
    }

    /// Queues a message for the next flush, which is at once if the envelope asks for that.
    ///
    /// # Errors
    ///
    /// The same as [`Kcp::send`].
    pub fn send(&mut self, message: &[u8]) -> Result<usize, SendError> {
        self.flush_due |= self.envelope.as_ref().is_some_and(|envelope| envelope.flushes_sends());
        self.kcp.send(message)
    }

    fn ready(&mut self, now: Time) -> &mut DatagramQueue {
        let Some(envelope) = &mut self.envelope else { return self.kcp.output_mut() };
        while !self.wrapped.is_full()
            && let Some(datagram) = self.kcp.output_mut().pop()
        {
            envelope.wrap(now, ONLY, true, datagram, &mut self.wrapped);
        }
        &mut self.wrapped
    }

    /// The address of the peer.
    #[must_use]
    pub const fn peer_addr(&self) -> SocketAddr {
        self.address
    }

    /// The control block.
    #[must_use]
    pub const fn kcp(&self) -> &Kcp<DatagramQueue> {
        &self.kcp
    }

    /// The control block, to send, receive and configure.
    pub const fn kcp_mut(&mut self) -> &mut Kcp<DatagramQueue> {
        &mut self.kcp
    }

    /// Number of good datagrams from the peer.
    #[must_use]
    pub const fn taken(&self) -> u64 {
        self.taken
    }

    /// Number of datagrams dropped because they came from another address.
    #[must_use]
    pub const fn strangers(&self) -> u64 {
        self.strangers
    }

    /// Number of datagrams from the peer that the control block refused.
    #[must_use]
    pub const fn rejected(&self) -> u64 {
        self.rejected
    }

    /// Takes a datagram of the peer. `None`: it contains nothing for KCP.
    fn input(&mut self, now: Time, datagram: &mut [u8]) -> Option<Result<(), InputError>> {
        let Some(envelope) = &mut self.envelope else { return Some(self.kcp.input(now, datagram)) };
        let opened = envelope.open(datagram)?;
        let taken = opened.kcp.map(|datagram| self.kcp.input(now, datagram));
        if let Some(shard) = opened.shard
            && !matches!(taken, Some(Err(_)))
            && envelope.handle_shard(self.address, Some(ONLY), shard).is_some()
            && envelope.rebuild(now, ONLY, &mut self.kcp)
        {
            return Some(Ok(()));
        }
        taken
    }

    fn tick(&mut self, now: Time) -> Time {
        self.now = self.now.max(now);
        self.now
    }
}

impl Machine for Link {
    fn handle_datagram(&mut self, now: Time, from: Arrival, datagram: &mut [u8]) {
        let now = self.tick(now);
        if !is_same(from.address, self.address) {
            self.strangers += 1;
            log::trace!("dropped a datagram from {}, a stranger", from.address);
            return;
        }
        match self.input(now, datagram) {
            None => {}
            Some(Ok(())) => {
                self.taken += 1;
                self.flush_due |= self.envelope.as_ref().is_some_and(|envelope| envelope.flushes_acks());
            }
            Some(Err(error)) => {
                self.rejected += 1;
                log::trace!("rejected a datagram from {}: {error}", from.address);
            }
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        let now = self.tick(now);
        self.kcp.update(now);
        if std::mem::take(&mut self.flush_due) {
            self.kcp.flush(now);
        }
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        let now = self.tick(now);
        if self.ready(now).is_empty() {
            if !self.kcp.output_mut().clear_full() {
                return None;
            }
            self.kcp.flush(now); // the rest of a burst
        }
        out.extend_from_slice(self.ready(now).pop()?);
        Some(self.address.into())
    }

    fn poll_timeout(&self) -> Option<Time> {
        let is_due = self.flush_due || !self.kcp.output().is_empty();
        if is_due { Some(self.now) } else { self.kcp.check(self.now) }
    }

    /// Bare KCP has no goodbye. It is done when everything sent has been acknowledged.
    fn shutdown(&mut self, _: Time, _: u16) -> bool {
        self.kcp.wait_snd() == 0
    }
}

/// Whether both are the same end. The flow label of IPv6 may change, and the scope is not always known.
fn is_same(a: SocketAddr, b: SocketAddr) -> bool {
    a.port() == b.port() && a.ip().to_canonical() == b.ip().to_canonical()
}

/// The number of the only peer.
const ONLY: u64 = 0;
