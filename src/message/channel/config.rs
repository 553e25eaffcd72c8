//! The knobs of a channel, and of the packets that channels share.

use crate::config::{ConfigError, in_range, time_in_range};
use std::time::Duration;

/// How the messages of a channel arrive.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "reliable or not, in order or not")]
pub enum Delivery {
    /// All of them, each once, in the order in which they were sent. Only these channels carry blocks.
    ReliableOrdered,
    /// All of them, each once, as they come.
    ReliableUnordered,
    /// Those that arrive, as they come.
    Unreliable,
    /// Those that arrive and are newer than all delivered before.
    UnreliableSequenced,
}

impl Delivery {
    pub(super) const fn is_reliable(self) -> bool {
        matches!(self, Self::ReliableOrdered | Self::ReliableUnordered)
    }

    pub(super) const fn has_ids(self) -> bool {
        !matches!(self, Self::Unreliable)
    }
}

/// When a message that is not known to have arrived is sent again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a time of one's own, or one by the path")]
pub enum Resend {
    /// So long after it was last sent, 0 to 60 s. Zero: in every packet.
    After(Duration),
    /// So many percent of the round trip after, 1 to 10,000; after 0.1 s as long as none is known.
    Rtt(u16),
}

settings! {
    /// How one channel works: plain fields, checked once. Nothing is clamped: a value out of range is a [`ConfigError`]. By default it is
    /// [reliable and ordered](Self::reliable_ordered).
    ///
    /// Both ends of a channel need the same `delivery`, `receive_buffer`, `messages_per_packet`, `block_max` and `slice`: the bytes
    /// depend on them.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct ChannelConfig {
        /// How messages arrive.
        pub delivery: Delivery = Delivery::ReliableOrdered;
        /// Messages and slices that may wait or be under way: 1 to 16,384.
        pub send_buffer: u16 = 256, 1..=BUFFER_MAX;
        /// Messages and slices that the receiver keeps until they are read: 1 to 16,384. With the size of a message and of a block it
        /// bounds the memory that a peer can fill.
        pub receive_buffer: u16 = 256, 1..=BUFFER_MAX;
        /// Most messages in a packet: 1 to 256.
        pub messages_per_packet: u16 = 64, 1..=256;
        /// Most bits of a packet for this channel: 64 to 2^19.
        pub bits_per_packet: u32 = 1 << 19, 64..=1 << 19;
        /// When a reliable message is sent again.
        pub resend: Resend = Resend::After(RESEND_AFTER);
        /// Whether it is sent again at once when the packet that had it is [lost](super::Channels::on_lost).
        pub resend_lost: bool = true;
        /// Reliable messages that are not known to have arrived after so long are given up: 1 ms to 1 h. `None`: never.
        pub expire_after: Option<Duration> = None, 1..=3_600_000;
        /// Whether [`pop_delivered`](super::Channels::pop_delivered) tells which messages have arrived.
        pub receipts: bool = false;
        /// Longest block, bytes: 0 (none) to 262,144, in no more slices than `send_buffer` and `receive_buffer` hold.
        pub block_max: u32 = 0;
        /// Bytes of a slice of a block: 1 to 16,384. It has to fit into a packet beside what the channels before this one send.
        pub slice: u16 = 512, 1..=1 << 14;
    }
}

impl ChannelConfig {
    /// All messages, in order: chat, purchases.
    #[must_use]
    pub fn reliable_ordered() -> Self {
        Self::default()
    }

    /// The same, and blocks of up to 256 KiB: a level.
    #[must_use]
    pub fn blocks() -> Self {
        Self { send_buffer: 1024, receive_buffer: 1024, block_max: BLOCK_MAX, ..Self::default() }
    }

    /// All messages, as they come: what no later message depends on.
    #[must_use]
    pub fn reliable_unordered() -> Self {
        Self { delivery: Delivery::ReliableUnordered, ..Self::default() }
    }

    /// What arrives, as it comes: effects.
    #[must_use]
    pub fn unreliable() -> Self {
        Self { delivery: Delivery::Unreliable, ..Self::default() }
    }

    /// The newest of what arrives: positions.
    #[must_use]
    pub fn unreliable_sequenced() -> Self {
        Self { delivery: Delivery::UnreliableSequenced, ..Self::default() }
    }

    /// Checks every field against its range.
    ///
    /// # Errors
    ///
    /// Names the first field out of range, its value and the range.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_ranges()?;
        match self.resend {
            Resend::After(time) => time_in_range("resend", time, 0..=60_000)?,
            Resend::Rtt(percent) => in_range("resend", percent, 1..=10_000)?,
        }
        let slices = u32::from(self.send_buffer.min(self.receive_buffer)).saturating_mul(self.slice.into());
        let blocks = if self.delivery == Delivery::ReliableOrdered { slices.min(BLOCK_MAX) } else { 0 };
        in_range("block_max", self.block_max, 0..=blocks)
    }

    /// Whether it has to be known which messages arrived.
    pub(super) const fn is_tracked(&self) -> bool {
        self.delivery.is_reliable() || self.receipts
    }

    /// How long after it was last sent a message is sent again; `rtt` is zero when none is known.
    pub(super) fn resend_after(&self, rtt: Duration) -> Duration {
        match self.resend {
            Resend::After(time) => time,
            Resend::Rtt(_) if rtt.is_zero() => RESEND_AFTER,
            Resend::Rtt(percent) => rtt * percent.into() / 100,
        }
    }
}

settings! {
    /// The channels of a connection, and the packets that they share. Both ends need the same number of channels. By default it is one
    /// reliable channel, in datagrams of up to 1200 bytes with the header of a packet.
    #[derive(Clone, Debug, Eq, PartialEq)]
    pub struct ChannelsConfig {
        /// One a channel, the most urgent first: 1 to 64. What a channel puts into a packet leaves less room for those after it.
        pub channels: Vec<ChannelConfig> = vec![ChannelConfig::reliable_ordered()], 1..=64;
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
        for channel in &self.channels {
            channel.check()?;
            let per_packet = if channel.is_tracked() { channel.messages_per_packet } else { 1 };
            in_range("packets", self.packets, 64..=IDS_MAX / per_packet)?;
            if channel.block_max > 0 {
                let room = (self.room_for_one(channel) / 8).saturating_sub(SLICE_HEAD);
                in_range("slice", u64::from(channel.slice), 1..=room as u64)?;
            }
        }
        Ok(())
    }

    /// Bits that one message may take with its head, so that it fits into a packet of its own.
    pub(super) fn room_for_one(&self, channel: &ChannelConfig) -> usize {
        let presence = self.channels.len();
        (8 * usize::from(self.payload_max) - presence).min(channel.bits_per_packet as usize)
    }
}

/// Most bytes of a block.
pub const BLOCK_MAX: u32 = 256 << 10;
/// The usual time until a message is sent again.
const RESEND_AFTER: Duration = Duration::from_millis(100);
/// Ids are compared over half of their range, of which the buffers of both ends take a half each.
const BUFFER_MAX: u64 = 1 << 14;
/// Most ids in the packets that are remembered: with the buffers of both ends, less than there are.
const IDS_MAX: u16 = 1 << 15;
/// Bytes that a slice takes beside its data, at most: the count of messages, its id, what it is, its length.
const SLICE_HEAD: usize = 8;
