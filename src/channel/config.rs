//! The settings of channels, and of the packets that channels share.

use super::{AnyChannel, Channel, ChannelKind};
use crate::config::{ConfigError, in_range, time_in_range, unless};
use crate::kcp;
use crate::message::pack::Payload;
use std::time::Duration;

/// How the messages of a channel travel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "there are two")]
pub enum Carrier {
    /// KCP: a message is sent at once, and loss is detected by timing. The fastest under loss. For ordered channels and
    /// streams.
    Kcp,
    /// Packets: many small messages share one, packed bit by bit. Takes fewer bytes. For every kind except streams.
    /// Messages too long for a packet travel by KCP.
    Packets,
}

/// When to resend a message in packets that is not known to have arrived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a time of one's own, or one by the path")]
pub enum Resend {
    /// This long after it was last sent, 0 to 60 s. Zero: in every packet with new messages, and after 0.1 s.
    After(Duration),
    /// After this percentage of the round trip, 1 to 10,000; after 0.1 s while no round trip is known.
    Rtt(u16),
}

/// The settings of a channel: plain fields, checked once. Nothing is clamped: a value out of range is a
/// [`ConfigError`].
///
/// Both ends must have the same `channel`, `carrier` and `max_message`, and in packets the same `receive_buffer` and
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
    /// The channel: its number, its kind and the type of its messages.
    pub channel: AnyChannel,
    /// How its messages travel. Default: KCP for ordered channels and streams, packets for all others.
    pub carrier: Carrier,
    /// Longest message, bytes: 1 to 2^26 (64 MiB); 1 MiB by default. Unreliable and sequenced messages must also fit
    /// into a datagram. Each end holds an incoming message until it is complete, so this limits the memory that a peer
    /// can fill.
    pub max_message: u32,
    /// The settings of KCP, for what it carries of this channel. The session sets `mtu`, `rcv_mtu` and `stream`; values
    /// given here are ignored.
    pub kcp: kcp::Config,
    /// In packets: most messages waiting or in flight, 1 to 16,384; 256 by default.
    pub send_buffer: u16,
    /// In packets: most messages that the receiver holds until they are read, 1 to 16,384; 256 by default.
    pub receive_buffer: u16,
    /// Most messages per packet: 1 to 96; 64 by default. All channels together put 96 into a packet at most.
    pub messages_per_packet: u16,
    /// Most bits of this channel per packet: 64 to 2^19. The maximum, which is the default, is no limit.
    pub bits_per_packet: u32,
    /// When to resend a reliable message in packets; after 0.1 s by default.
    pub resend: Resend,
    /// Whether to resend it at once when the packet that carried it is lost. On by default.
    pub resend_lost: bool,
    /// Give up reliable messages in packets that are not known to have arrived after this long: 1 ms to 1 h. `None`,
    /// the default: never.
    pub expire_after: Option<Duration>,
    /// In packets: whether to report which messages have arrived. Off by default.
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
    /// The first field out of range, with its value and its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        in_range("max_message", self.max_message, 1..=MESSAGE_MAX)?;
        in_range("send_buffer", self.send_buffer, 1..=BUFFER_MAX)?;
        in_range("receive_buffer", self.receive_buffer, 1..=BUFFER_MAX)?;
        in_range("messages_per_packet", self.messages_per_packet, 1..=MESSAGES_MAX)?;
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

    /// Whether the sender must know which messages in packets have arrived.
    pub(super) const fn is_tracked(&self) -> bool {
        self.channel.kind.is_reliable() || self.receipts
    }

    /// How long after it was last sent to resend a message in packets. `rtt` is zero if it is unknown.
    pub(super) fn resend_after(&self, rtt: Duration, is_lossless: bool) -> Duration {
        match self.resend {
            _ if is_lossless => RESEND_LOSSLESS.max(2 * rtt),
            Resend::After(time) => time,
            Resend::Rtt(_) if rtt.is_zero() => RESEND_AFTER,
            Resend::Rtt(percent) => (rtt.saturating_mul(percent.into()) / 100).max(RESEND_MIN),
        }
    }
}

impl<P: Payload + ?Sized> From<Channel<P>> for ChannelConfig {
    fn from(channel: Channel<P>) -> Self {
        channel.config()
    }
}

settings! {
    /// The settings of channels in packets without a session, and of their packets. Both ends need the same channels.
    #[derive(Clone, Debug, Eq, PartialEq)]
    pub struct ChannelsConfig {
        /// The channels with the carrier [`Packets`](Carrier::Packets), by number: 1 to 32.
        pub channels: Vec<ChannelConfig> = Vec::new(), 1..=super::CHANNELS_MAX as u64;
        /// Most bytes of channels per packet: 16 to 65,535. Keep it below the `fragment_above` of the packets;
        /// otherwise one lost fragment loses the whole packet.
        pub payload_max: u16 = 1187, 16..=u16::MAX.into();
        /// Most packets that wait for acknowledgement, the newest ones: 64 to 32,768 / `messages_per_packet` of the
        /// reliable channels, so that the ids in them stay unique. Messages in older packets are resent.
        pub packets: u16 = 256;
    }
}

impl ChannelsConfig {
    /// Checks every field against its range.
    ///
    /// # Errors
    ///
    /// The first field out of range, with its value and its range.
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

    /// Most bits of one message with its header, so that it fits into a packet by itself.
    pub(super) fn room_for_one(&self, channel: &ChannelConfig) -> usize {
        let presence = self.channels.len();
        (8 * usize::from(self.payload_max) - presence).min(channel.bits_per_packet as usize)
    }
}

/// Most messages of all channels in a packet, which limits what it makes the receiver do. With a dozen bytes each, fewer fit
/// into a datagram.
pub(super) const MESSAGES_MAX: u16 = 96;
/// Longest message, bytes.
const MESSAGE_MAX: u32 = 64 << 20;
/// Shortest time until a message is resent that follows from a round trip.
const RESEND_MIN: Duration = Duration::from_millis(1);
/// Default time until a message is resent.
pub(super) const RESEND_AFTER: Duration = Duration::from_millis(100);
/// Ids are compared over half of their range; the buffers of both ends take half of that each.
const BUFFER_MAX: u16 = 1 << 14;
/// Most ids in remembered packets. Together with the buffers of both ends, fewer than there are.
const IDS_MAX: u16 = 1 << 15;
/// The same if the path loses nothing: TCP may need a few of its own timeouts before it goes on.
const RESEND_LOSSLESS: Duration = Duration::from_secs(2);
