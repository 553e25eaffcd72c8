//! The knobs of a channel, and of the packets that channels share.

use super::{AnyChannel, Channel, ChannelKind};
use crate::config::{ConfigError, in_range, time_in_range, unless};
use crate::kcp;
use crate::message::pack::Payload;
use std::time::Duration;

/// What brings the messages of a channel to the other end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "there are two")]
pub enum Carrier {
    /// KCP: a message leaves at once, and what gets lost is found by time. The fastest under loss, for ordered channels and streams.
    Kcp,
    /// Packets: many small messages share one, packed bit by bit. Smaller, for every kind but streams. Messages too long for a packet go by
    /// KCP beside them.
    Packets,
}

/// When a message in packets that is not known to have arrived is sent again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a time of one's own, or one by the path")]
pub enum Resend {
    /// So long after it was last sent, 0 to 60 s. Zero: in every packet.
    After(Duration),
    /// So many percent of the round trip after, 1 to 10,000; after 0.1 s as long as none is known.
    Rtt(u16),
}

/// How one channel works: plain fields, checked once. Nothing is clamped: a value out of range is a [`ConfigError`].
///
/// Both ends of a channel need the same `channel`, `carrier` and `max_message`, and in packets the same `receive_buffer` and
/// `messages_per_packet`. The handshake compares them.
///
/// ```
/// use whitewater::{Channel, ChannelConfig};
///
/// const WORLD: Channel = Channel::unordered(0);
/// let world = ChannelConfig { max_message: 64 << 20, ..WORLD.config() };
/// assert!(world.check().is_ok());
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "made with `..CHANNEL.config()`")]
pub struct ChannelConfig {
    /// Which channel it is, and what it carries.
    pub channel: AnyChannel,
    /// What carries it: KCP for ordered channels and streams, unless it is said, packets for all others.
    pub carrier: Carrier,
    /// Longest message, bytes: 1 to 2^26 (64 MiB), 1 MiB unless it is said. Unreliable and sequenced messages have to fit into a datagram
    /// whatever it is. Each end keeps one that is coming whole, so it bounds the memory that a peer can fill.
    pub max_message: u32,
    /// KCP, for what it carries of this channel. `mtu`, `rcv_mtu` and `stream` mean nothing here: the session sets them.
    pub kcp: kcp::Config,
    /// In packets: messages that may wait or be under way, 1 to 16,384; 256 unless it is said.
    pub send_buffer: u16,
    /// In packets: messages that the receiver keeps until they are read, 1 to 16,384; 256 unless it is said.
    pub receive_buffer: u16,
    /// Most messages in a packet: 1 to 256; 64 unless it is said.
    pub messages_per_packet: u16,
    /// Most bits of a packet for this channel: 64 to 2^19, which is no limit.
    pub bits_per_packet: u32,
    /// When a reliable message in packets is sent again: 0.1 s after, unless it is said.
    pub resend: Resend,
    /// Whether it is sent again at once when the packet that had it is lost: yes, unless it is said.
    pub resend_lost: bool,
    /// Reliable messages in packets that are not known to have arrived after so long are given up: 1 ms to 1 h. `None`, the default: never.
    pub expire_after: Option<Duration>,
    /// In packets: whether it is told which messages have arrived. No, unless it is said.
    pub receipts: bool,
}

impl ChannelConfig {
    pub(super) fn of<P: Payload + ?Sized>(channel: Channel<P>) -> Self {
        let carrier = match channel.kind() {
            ChannelKind::Ordered | ChannelKind::Stream => Carrier::Kcp,
            _ => Carrier::Packets,
        };
        Self {
            channel: channel.into(),
            carrier,
            max_message: 1 << 20,
            kcp: kcp::Config::default(),
            send_buffer: 256,
            receive_buffer: 256,
            messages_per_packet: 64,
            bits_per_packet: 1 << 19,
            resend: Resend::After(RESEND_AFTER),
            resend_lost: true,
            expire_after: None,
            receipts: false,
        }
    }

    /// Checks every field against its range.
    ///
    /// # Errors
    ///
    /// Names the first field out of range, its value and the range.
    pub fn check(&self) -> Result<(), ConfigError> {
        in_range("max_message", self.max_message, 1..=MESSAGE_MAX)?;
        in_range("send_buffer", self.send_buffer, 1..=BUFFER_MAX)?;
        in_range("receive_buffer", self.receive_buffer, 1..=BUFFER_MAX)?;
        in_range("messages_per_packet", self.messages_per_packet, 1..=256)?;
        in_range("bits_per_packet", self.bits_per_packet, 64..=1 << 19)?;
        if let Some(time) = self.expire_after {
            time_in_range("expire_after", time, 1..=3_600_000)?;
        }
        match self.resend {
            Resend::After(time) => time_in_range("resend", time, 0..=60_000)?,
            Resend::Rtt(percent) => in_range("resend", percent, 1..=10_000)?,
        }
        let is_possible = match self.carrier {
            Carrier::Kcp => matches!(self.channel.kind, ChannelKind::Ordered | ChannelKind::Stream),
            Carrier::Packets => self.channel.kind != ChannelKind::Stream,
        };
        unless(
            !is_possible,
            "carrier",
            "cannot carry such a channel: KCP takes ordered channels and streams, packets all but streams",
        )?;
        self.kcp.check()
    }

    /// Whether it has to be known which messages in packets arrived.
    pub(super) const fn is_tracked(&self) -> bool {
        self.channel.kind.is_reliable() || self.receipts
    }

    /// How long after it was last sent a message in packets is sent again; `rtt` is zero when none is known.
    pub(super) fn resend_after(&self, rtt: Duration) -> Duration {
        match self.resend {
            Resend::After(time) => time,
            Resend::Rtt(_) if rtt.is_zero() => RESEND_AFTER,
            Resend::Rtt(percent) => rtt * percent.into() / 100,
        }
    }
}

impl<P: Payload + ?Sized> From<Channel<P>> for ChannelConfig {
    fn from(channel: Channel<P>) -> Self {
        channel.config()
    }
}

settings! {
    /// Channels in packets without a session, and the packets that they share. Both ends need the same channels.
    #[derive(Clone, Debug, Eq, PartialEq)]
    pub struct ChannelsConfig {
        /// Those whose carrier is [`Packets`](Carrier::Packets), by their numbers: 1 to 32.
        pub channels: Vec<ChannelConfig> = Vec::new(), 1..=super::CHANNELS_MAX as u64;
        /// Most bytes of channels in a packet: 16 to 65,535. Below the `fragment_above` of the packets, or one lost fragment loses all.
        pub payload_max: u16 = 1187, 16..=u16::MAX.into();
        /// Packets whose acknowledgement is waited for, the newest ones: 64 to 32,768 / `messages_per_packet` of the reliable channels,
        /// so that the ids in them do not come round. What is acknowledged later than that is sent again.
        pub packets: u16 = 256;
    }
}

impl ChannelsConfig {
    /// Checks every field against its range.
    ///
    /// # Errors
    ///
    /// Names the first field out of range, its value and the range.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_ranges()?;
        for (place, channel) in self.channels.iter().enumerate() {
            channel.check()?;
            let is_by_kcp = channel.carrier == Carrier::Kcp;
            unless(is_by_kcp, "channels", "are carried by packets here: set `carrier: Carrier::Packets`")?;
            let number = channel.channel.number;
            let mut before = self.channels.iter().take(place);
            let is_twice = before.any(|other| other.channel.number == number);
            unless(
                is_twice,
                "channels",
                "have a number each, and two have the same: give one of them another",
            )?;
            let per_packet = if channel.is_tracked() { channel.messages_per_packet } else { 1 };
            in_range("packets", self.packets, 64..=IDS_MAX / per_packet)?;
        }
        Ok(())
    }

    /// Bits that one message may take with its head, so that it fits into a packet of its own.
    pub(super) fn room_for_one(&self, channel: &ChannelConfig) -> usize {
        let presence = self.channels.len();
        (8 * usize::from(self.payload_max) - presence).min(channel.bits_per_packet as usize)
    }
}

/// Longest message, bytes.
const MESSAGE_MAX: u32 = 64 << 20;
/// The usual time until a message is sent again.
const RESEND_AFTER: Duration = Duration::from_millis(100);
/// Ids are compared over half of their range, of which the buffers of both ends take a half each.
const BUFFER_MAX: u16 = 1 << 14;
/// Most ids in the packets that are remembered: with the buffers of both ends, less than there are.
const IDS_MAX: u16 = 1 << 15;
