//! What a flow runs over: a control block, or a channel of messages over packets.

use super::mode::{ChannelMode, EndMode};
use crate::pair::NOWHERE;
use crate::{IP_AND_UDP, KcpEnd, Peer};
use thiserror::Error;
use whitewater::kcp::{self, Conv};
use whitewater::message::channel::{ChannelPeer, ChannelsConfig, Received};
use whitewater::message::{self, BitsError, Message, Serialize, Stream};
use whitewater::packet::PacketConfig;
use whitewater::{ConfigError, Time};

/// One end of a flow, and what it has sent.
#[derive(Debug)]
pub(super) struct FlowEnd {
    kind: Kind,
    pub(super) datagrams: u64,
    /// Including [`IP_AND_UDP`] for each datagram.
    pub(super) wire_bytes: u64,
}

#[derive(Debug)]
enum Kind {
    Kcp(Box<KcpEnd>),
    Channel(Box<ChannelPeer<Payload>>),
}

impl Kind {
    fn new(conv: Conv, mode: &EndMode, beat: Time) -> Result<Self, ConfigError> {
        if let Some(ChannelMode { channel, spacing }) = mode.channel {
            let channels = ChannelsConfig { channels: vec![channel], ..ChannelsConfig::default() };
            // A group finds the end by the first four bytes, which are little-endian in packets as in
            // segments.
            let packets = PacketConfig { protocol_id: conv.0, keepalive: None, ..PacketConfig::default() };
            return Ok(Self::Channel(Box::new(ChannelPeer::new(NOWHERE, &channels, &packets, spacing)?)));
        }
        Ok(Self::Kcp(Box::new(KcpEnd::new(conv, &mode.config, mode.drive, beat)?)))
    }
}

/// Why an end refused a message.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum EndError {
    /// A control block refused it.
    #[error(transparent)]
    Kcp(#[from] kcp::SendError),
    /// A channel refused it.
    #[error(transparent)]
    Channel(#[from] message::ChannelSendError),
}

impl FlowEnd {
    /// One end of conversation `conv`, which first flushes at `beat` if it flushes at intervals.
    pub(super) fn new(conv: Conv, mode: &EndMode, beat: Time) -> Result<Self, ConfigError> {
        Ok(Self { kind: Kind::new(conv, mode, beat)?, datagrams: 0, wire_bytes: 0 })
    }

    pub(super) fn send(&mut self, now: Time, message: &[u8]) -> Result<(), EndError> {
        match &mut self.kind {
            Kind::Kcp(end) => end.send(now, message).map(drop)?,
            Kind::Channel(end) => end.channels_mut().send(0, now, Payload(message.to_vec())).map(drop)?,
        }
        Ok(())
    }

    /// Replaces the content of `message` by the next message. Returns `false` if there is none.
    pub(super) fn recv(&mut self, message: &mut Vec<u8>) -> bool {
        match &mut self.kind {
            Kind::Kcp(end) => end.recv(message),
            Kind::Channel(end) => match end.channels_mut().recv(0) {
                Some(Received::Message(Payload(bytes)) | Received::Block(bytes)) => {
                    *message = bytes;
                    true
                }
                None => false,
            },
        }
    }

    /// Segments or messages that were resent.
    pub(super) fn resends(&self) -> u64 {
        match &self.kind {
            Kind::Kcp(end) => end.resends(),
            Kind::Channel(end) => end.channels().stats(0).resends,
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

/// A message of a flow: bytes.
#[derive(Debug)]
pub(super) struct Payload(Vec<u8>);

impl Serialize for Payload {
    fn serialize<S: Stream>(&mut self, stream: &mut S) -> Result<(), BitsError> {
        stream.byte_vec(&mut self.0, PAYLOAD_MAX)
    }
}

impl Message for Payload {
    const KINDS: u32 = 1;

    fn kind(&self) -> u32 {
        0
    }

    fn blank(_: u32) -> Option<Self> {
        Some(Self(Vec::new()))
    }
}

/// Most bytes of a message: more than a packet carries.
const PAYLOAD_MAX: usize = 2047;
