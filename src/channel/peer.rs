//! Channels over packets to one peer, as a machine that decides when to send packets.

use super::{Channels, ChannelsConfig};
use crate::config::ConfigError;
use crate::machine::{Arrival, Machine, Transmit};
use crate::packet::{Endpoint, PacketConfig};
use crate::time::Time;
use crate::wire::DatagramQueue;
use std::net::SocketAddr;
use std::time::Duration;

/// [`Channels`] over an [`Endpoint`] that sends its datagrams to one address. A packet is sent when something is due or
/// the peer waits for an acknowledgement, at most one per `spacing`. The source address of datagrams is not checked:
/// whatever is not of this protocol, or not one of the peer's next packets, is refused.
#[derive(Debug)]
pub struct ChannelPeer {
    channels: Channels,
    endpoint: Endpoint<DatagramQueue>,
    address: SocketAddr,
    spacing: Duration,
    /// When the next packet may be sent.
    free_at: Time,
    owes_ack: bool,
    now: Time,
}

impl ChannelPeer {
    /// An end that sends to `address`.
    ///
    /// # Errors
    ///
    /// A field of a config is out of range.
    pub fn new(
        address: SocketAddr,
        channels: &ChannelsConfig,
        packets: &PacketConfig,
        spacing: Duration,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            channels: Channels::new(channels)?,
            endpoint: Endpoint::new(packets, DatagramQueue::new())?,
            address,
            spacing,
            free_at: Time::ZERO,
            owes_ack: false,
            now: Time::ZERO,
        })
    }

    /// The channels.
    #[must_use]
    pub const fn channels(&self) -> &Channels {
        &self.channels
    }

    /// The channels, to send and receive.
    pub const fn channels_mut(&mut self) -> &mut Channels {
        &mut self.channels
    }

    /// The packets.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint<DatagramQueue> {
        &self.endpoint
    }

    fn packet_at(&self, now: Time) -> Option<Time> {
        let due = if self.owes_ack { Some(now) } else { self.channels.check(now, self.endpoint.stats().rtt) };
        due.map(|at| at.max(self.free_at))
    }

    fn send_packet(&mut self, now: Time) {
        let rtt = self.endpoint.stats().rtt;
        let Ok(payload) = self.channels.write(now, rtt) else { return };
        if payload.is_empty() && !self.owes_ack {
            return; // what was due has expired or was acknowledged
        }
        if let Ok(sequence) = self.endpoint.send(now, payload) {
            self.channels.on_sent(now, sequence);
        }
        self.owes_ack = false;
        self.free_at = now + self.spacing;
    }
}

impl Machine for ChannelPeer {
    fn handle_datagram(&mut self, now: Time, _: Arrival, datagram: &mut [u8]) {
        self.now = self.now.max(now);
        let Self { channels, endpoint, owes_ack, .. } = self;
        // A refused packet has been counted, and is not acknowledged.
        let _ = endpoint.receive_if(self.now, datagram, |payload| {
            let is_taken = channels.read(payload).is_ok();
            *owes_ack |= is_taken;
            is_taken
        });
        while let Some(sequence) = endpoint.pop_acked() {
            channels.on_acked(sequence);
        }
        while let Some(sequence) = endpoint.pop_lost() {
            channels.on_lost(sequence);
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.now = self.now.max(now);
        self.endpoint.update(self.now);
        if self.packet_at(self.now).is_some_and(|at| at <= self.now) {
            self.send_packet(self.now);
        }
    }

    fn poll_transmit(&mut self, _: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        out.extend_from_slice(self.endpoint.output_mut().pop()?);
        Some(self.address.into())
    }

    fn poll_timeout(&self) -> Option<Time> {
        if !self.endpoint.output().is_empty() {
            return Some(self.now);
        }
        self.packet_at(self.now).into_iter().chain(self.endpoint.check(self.now)).min()
    }

    /// Packets have no goodbye. It is done when nothing waits or is in flight.
    fn shutdown(&mut self, _: Time, _: u16) -> bool {
        self.channels.unacked() == 0
    }
}
