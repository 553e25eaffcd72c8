//! What a flow runs over: a control block, or a channel of messages over packets.

use super::mode::{ChannelMode, EndMode};
use crate::pair::NOWHERE;
use crate::{IP_AND_UDP, KcpEnd, Peer};
use thiserror::Error;
use whitewater::channel::{self, Carrier, ChannelPeer, ChannelsConfig};
use whitewater::kcp::{self, Conv};
use whitewater::packet::PacketConfig;
use whitewater::{Channel, ChannelConfig, ConfigError, Time};

/// One end of a flow, and what it has sent.
#[derive(Debug)]
pub(super) struct FlowEnd {
    kind: Kind,
    pub(super) datagrams: u64,
    /// With [`IP_AND_UDP`] for each datagram.
    pub(super) wire_bytes: u64,
}

#[derive(Debug)]
enum Kind {
    Kcp(Box<KcpEnd>),
    Channel(Box<ChannelPeer>),
}

impl Kind {
    fn new(conv: Conv, mode: &EndMode, beat: Time) -> Result<Self, ConfigError> {
        if let Some(ChannelMode { channel, spacing }) = mode.channel {
            let channel = ChannelConfig { carrier: Carrier::Packets, ..channel };
            let channels = ChannelsConfig { channels: vec![channel], ..ChannelsConfig::default() };
            // The first four bytes of a packet are little-endian as those of a segment: the group finds the end by them.
            let packets = PacketConfig { protocol_id: conv.0, keepalive: None, ..PacketConfig::default() };
            return Ok(Self::Channel(Box::new(ChannelPeer::new(NOWHERE, &channels, &packets, spacing)?)));
        }
        Ok(Self::Kcp(Box::new(KcpEnd::new(conv, &mode.config, mode.drive, beat)?)))
    }
}

/// Why an end took no message.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum EndError {
    /// A control block did not.
    #[error(transparent)]
    Kcp(#[from] kcp::SendError),
    /// A channel did not.
    #[error(transparent)]
    Channel(#[from] channel::SendError),
}

impl FlowEnd {
    /// An end of conversation `conv`, whose first beat, if it has one, is at `beat`.
    pub(super) fn new(conv: Conv, mode: &EndMode, beat: Time) -> Result<Self, ConfigError> {
        Ok(Self { kind: Kind::new(conv, mode, beat)?, datagrams: 0, wire_bytes: 0 })
    }

    pub(super) fn send(&mut self, now: Time, message: &[u8]) -> Result<(), EndError> {
        match &mut self.kind {
            Kind::Kcp(end) => end.send(now, message).map(drop)?,
            Kind::Channel(end) => end.channels_mut().send(now, MESSAGES, message).map(drop)?,
        }
        Ok(())
    }

    /// Writes the next message to `message`, in place of what is there; `false`: there is none.
    pub(super) fn recv(&mut self, message: &mut Vec<u8>) -> bool {
        match &mut self.kind {
            Kind::Kcp(end) => end.recv(message),
            Kind::Channel(end) => match end.channels_mut().recv(MESSAGES) {
                Some(bytes) => {
                    message.clear();
                    message.extend_from_slice(&bytes);
                    true
                }
                None => false,
            },
        }
    }

    /// Segments or messages sent again.
    pub(super) fn resends(&self) -> u64 {
        match &self.kind {
            Kind::Kcp(end) => end.resends(),
            Kind::Channel(end) => end.channels().stats(MESSAGES).resends,
        }
    }

    fn peer(&self) -> &dyn Peer {
        match &self.kind {
            Kind::Kcp(end) => &**end,
            Kind::Channel(end) => &**end,
        }
    }

    fn peer_mut(&mut self) -> &mut dyn Peer {
        match &mut self.kind {
            Kind::Kcp(end) => &mut **end,
            Kind::Channel(end) => &mut **end,
        }
    }
}

impl Peer for FlowEnd {
    fn input(&mut self, now: Time, datagram: &[u8]) {
        self.peer_mut().input(now, datagram);
    }

    fn poll(&mut self, now: Time) {
        self.peer_mut().poll(now);
    }

    fn next_wake(&self, now: Time) -> Option<Time> {
        self.peer().next_wake(now)
    }

    fn pop_datagram(&mut self, datagram: &mut Vec<u8>) -> bool {
        let has_left = self.peer_mut().pop_datagram(datagram);
        if has_left {
            self.datagrams += 1;
            self.wire_bytes += (datagram.len() + IP_AND_UDP) as u64;
        }
        has_left
    }
}

/// The channel of a flow.
const MESSAGES: Channel = Channel::ordered(0);
