//! Channels over packets as a peer, whose bytes are counted.

use super::pair::Peer;
use super::stats::IP_AND_UDP;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use whitewater::machine::Machine;
use whitewater::message::Message;
use whitewater::message::channel::{ChannelPeer, Channels, ChannelsConfig};
use whitewater::packet::{Endpoint, PacketConfig};
use whitewater::{ConfigError, DatagramQueue, Time};

/// A [`ChannelPeer`] as one end of a [`Pair`](super::Pair), where there are no addresses.
#[derive(Debug)]
pub struct ChannelsEnd<M> {
    peer: ChannelPeer<M>,
    /// The datagram being handed in, which may be changed there.
    arrived: Vec<u8>,
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
        let peer = ChannelPeer::new(NOWHERE, channels, packets, spacing)?;
        Ok(Self { peer, arrived: Vec::new(), datagrams: 0, bytes: 0 })
    }

    /// The channels.
    #[must_use]
    pub const fn channels(&self) -> &Channels<M> {
        self.peer.channels()
    }

    /// The channels, to send and to receive.
    pub const fn channels_mut(&mut self) -> &mut Channels<M> {
        self.peer.channels_mut()
    }

    /// The endpoint.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint<DatagramQueue> {
        self.peer.endpoint()
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
}

impl<M: Message> Peer for ChannelsEnd<M> {
    fn input(&mut self, now: Time, datagram: &[u8]) {
        self.arrived.clear();
        self.arrived.extend_from_slice(datagram);
        self.peer.handle_datagram(now, NOWHERE.into(), &mut self.arrived);
    }

    fn poll(&mut self, now: Time) {
        self.peer.handle_timeout(now);
    }

    fn next_wake(&self, _: Time) -> Option<Time> {
        self.peer.poll_timeout()
    }

    fn pop_datagram(&mut self, datagram: &mut Vec<u8>) -> bool {
        datagram.clear();
        let has_left = self.peer.poll_transmit(Time::ZERO, datagram).is_some();
        self.datagrams += u64::from(has_left);
        self.bytes += datagram.len() as u64;
        has_left
    }
}

/// Where all datagrams go and come from.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
