//! Channels over packets as a peer: when packets leave.

use super::pair::Peer;
use super::stats::IP_AND_UDP;
use std::time::Duration;
use whitewater::message::Message;
use whitewater::message::channel::{Channels, ChannelsConfig};
use whitewater::packet::{Endpoint, PacketConfig};
use whitewater::{ConfigError, DatagramQueue, Time};

/// [`Channels`] over an [`Endpoint`]: one end of a [`Pair`](super::Pair). A packet leaves when something is due or the peer waits for
/// an acknowledgement, at most one each `spacing`.
#[derive(Debug)]
pub struct ChannelsEnd<M> {
    channels: Channels<M>,
    endpoint: Endpoint<DatagramQueue>,
    spacing: Duration,
    /// When the last packet may be followed by the next.
    free_at: Time,
    owes_ack: bool,
    datagrams: u64,
    bytes: u64,
}

impl<M: Message> ChannelsEnd<M> {
    /// An end that has sent nothing.
    ///
    /// # Errors
    ///
    /// When a field of a config is out of range.
    pub fn new(
        channels: &ChannelsConfig,
        packets: &PacketConfig,
        spacing: Duration,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            channels: Channels::new(channels)?,
            endpoint: Endpoint::new(packets, DatagramQueue::with_limit(usize::MAX))?,
            spacing,
            free_at: Time::ZERO,
            owes_ack: false,
            datagrams: 0,
            bytes: 0,
        })
    }

    /// The channels.
    #[must_use]
    pub const fn channels(&self) -> &Channels<M> {
        &self.channels
    }

    /// The channels, to send and to receive.
    pub const fn channels_mut(&mut self) -> &mut Channels<M> {
        &mut self.channels
    }

    /// The endpoint.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint<DatagramQueue> {
        &self.endpoint
    }

    /// Bytes sent, with [`IP_AND_UDP`] for each datagram.
    #[must_use]
    pub const fn wire_bytes(&self) -> u64 {
        self.bytes + self.datagrams * IP_AND_UDP as u64
    }

    /// Datagrams sent.
    #[must_use]
    pub const fn datagrams(&self) -> u64 {
        self.datagrams
    }

    /// When a packet is due.
    fn packet_at(&self, now: Time) -> Option<Time> {
        let due = if self.owes_ack { Some(now) } else { self.channels.check(now, self.endpoint.stats().rtt) };
        due.map(|at| at.max(self.free_at))
    }

    fn send_packet(&mut self, now: Time) {
        let rtt = self.endpoint.stats().rtt;
        let Ok(payload) = self.channels.write(now, rtt) else { return };
        if payload.is_empty() && !self.owes_ack {
            return; // what was due has expired, or been acknowledged
        }
        if let Ok(sequence) = self.endpoint.send(now, payload) {
            self.channels.on_sent(now, sequence);
        }
        self.owes_ack = false;
        self.free_at = now + self.spacing;
    }
}

impl<M: Message> Peer for ChannelsEnd<M> {
    fn input(&mut self, now: Time, datagram: &[u8]) {
        let Self { channels, endpoint, owes_ack, .. } = self;
        // What is refused has been counted, and is not acknowledged.
        let _ = endpoint.receive_if(now, datagram, |payload| {
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

    fn poll(&mut self, now: Time) {
        self.endpoint.update(now);
        if self.packet_at(now).is_some_and(|at| at <= now) {
            self.send_packet(now);
        }
    }

    fn next_wake(&self, now: Time) -> Option<Time> {
        self.packet_at(now).into_iter().chain(self.endpoint.check(now)).min()
    }

    fn pop_datagram(&mut self, datagram: &mut Vec<u8>) -> bool {
        let Some(next) = self.endpoint.output_mut().pop() else {
            return false;
        };
        datagram.clear();
        datagram.extend_from_slice(next);
        self.datagrams += 1;
        self.bytes += next.len() as u64;
        true
    }
}
