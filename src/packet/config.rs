//! The knobs of an endpoint.

use super::acks::AckConfig;
use super::fragment::FRAGMENTS_MAX;
use super::header::HEADER_MAX;
use crate::config::{ConfigError, in_range, millis};
use crate::pace::PaceConfig;
use crate::ring::SequenceBuffer;
use std::time::Duration;

/// What an [`Endpoint`](super::Endpoint) is made from: plain fields, checked once. Nothing is clamped:
/// a value out of range is a [`ConfigError`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "made for `PacketConfig { .., ..PacketConfig::default() }`")]
pub struct PacketConfig {
    /// Both ends have the same; datagrams with another are refused. Draw it once for a game and a
    /// version of its protocol.
    pub protocol_id: u32,
    /// Longest payload of one datagram, bytes: 1 to 65,492. A longer one is sent in fragments of this
    /// many. The header adds 7 to 13 bytes, and 2 more to a fragment.
    pub fragment_above: u16,
    /// Longest payload sent and taken, bytes: `fragment_above` to 256 times that.
    pub payload_max: u32,
    /// Of so many packets, those with the newest numbers, fragments are kept while others are
    /// missing: 1 to 256. With `payload_max` it bounds the memory that a peer can fill.
    pub reassemblies: u16,
    /// Packets sent that can still be acknowledged, the newest ones: 64 to 32,768. They should last
    /// longer than `lost_after`.
    pub sent: u16,
    /// Packets received that are told apart from their copies, the newest ones: 64 to 32,768.
    pub received: u16,
    /// A packet not acknowledged for this long counts as lost: 1 ms to 60 s.
    pub lost_after: Duration,
    /// When nothing has been received for this long, what was is no longer acknowledged and any number
    /// is taken: 1 to 60 s. The peer must send fewer than 32,768 packets in that time.
    pub forget_after: Duration,
    /// When nothing has been sent for this long, an empty packet tells what has arrived: 1 ms to 60 s.
    /// `None`: never.
    pub keepalive: Option<Duration>,
    /// When to send less.
    pub pace: PaceConfig,
}

impl PacketConfig {
    /// Checks every field against its range.
    ///
    /// # Errors
    ///
    /// Names the first field out of range, its value and the range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let Self {
            protocol_id: _,
            fragment_above,
            payload_max,
            reassemblies,
            sent,
            received,
            lost_after,
            forget_after,
            keepalive,
            pace,
        } = *self; // a new field fails to compile until it is handled
        let one = u32::from(fragment_above);
        in_range("fragment_above", fragment_above, 1..=DATAGRAM_MAX - HEADER_MAX)?;
        in_range("payload_max", payload_max, one..=one * FRAGMENTS_MAX)?;
        in_range("reassemblies", reassemblies, 1..=256)?;
        in_range("sent", sent, REMEMBERED_MIN..=SequenceBuffer::<()>::SIZE_MAX)?;
        in_range("received", received, REMEMBERED_MIN..=SequenceBuffer::<()>::SIZE_MAX)?;
        in_range("lost_after", millis(lost_after), 1..=60_000)?;
        in_range("forget_after", millis(forget_after), 1000..=60_000)?;
        if let Some(keepalive) = keepalive {
            in_range("keepalive", millis(keepalive), 1..=60_000)?;
        }
        pace.check()
    }

    pub(super) const fn acks(&self) -> AckConfig {
        let Self { sent, received, lost_after, forget_after, .. } = *self;
        AckConfig { sent, received, lost_after, forget_after }
    }
}

impl Default for PacketConfig {
    /// Payloads of up to 16 KiB in datagrams of up to 1200 bytes; a keepalive after 100 ms. For 256
    /// packets a second at most: with more, raise `sent`.
    fn default() -> Self {
        let AckConfig { sent, received, lost_after, forget_after } = AckConfig::default();
        Self {
            protocol_id: 0,
            fragment_above: 1200 - HEADER_MAX,
            payload_max: 16 << 10,
            reassemblies: 16,
            sent,
            received,
            lost_after,
            forget_after,
            keepalive: Some(Duration::from_millis(100)),
            pace: PaceConfig::default(),
        }
    }
}

/// Largest UDP payload over IPv4, bytes.
const DATAGRAM_MAX: u16 = 65_507;
/// An ack tells of 33 packets: no fewer are remembered.
const REMEMBERED_MIN: u16 = 64;
