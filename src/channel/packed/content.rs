//! What is sent under an id, and its bits.

use crate::channel::{AnyChannel, ChannelConfig, ChannelKind};
use crate::message::BitsError;
use crate::message::pack::{BitReader, BitWriter};
use crate::seq::Seq16;

/// What is sent under an id.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Content {
    /// A message: bytes, or bits of a type, padded with zeros.
    Message(Packed),
    /// The place in the order of a message too long for a packet, which comes by another way.
    Elsewhere,
    /// A message that is no longer sent. Its id is, so that the receiver does not wait for it.
    Dropped,
}

/// The bytes of a message, and its length in bits.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Packed {
    pub(super) bytes: Kept,
    pub(super) bits: usize,
}

/// Bytes that wait. A packet may have a hundred short messages, and a buffer for each takes longer than all the rest.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Kept {
    /// So many bytes in place.
    Short(u8, [u8; SHORT_MAX]),
    Long(Vec<u8>),
}

impl Kept {
    /// A copy; long ones in the empty buffer of `spare`.
    pub(super) fn new(bytes: &[u8], spare: impl FnOnce() -> Vec<u8>) -> Self {
        let mut short = [0; SHORT_MAX];
        if let (Ok(len), Some(to)) = (u8::try_from(bytes.len()), short.get_mut(..bytes.len())) {
            to.copy_from_slice(bytes);
            return Self::Short(len, short);
        }
        let mut long = spare();
        long.extend_from_slice(bytes);
        Self::Long(long)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Short(len, bytes) => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Self::Long(bytes) => bytes,
        }
    }

    /// Bytes of its buffer, which may have held a longer message before.
    pub(super) const fn held(&self) -> usize {
        if let Self::Long(bytes) = self { bytes.capacity() } else { 0 }
    }

    /// Its buffer, emptied.
    pub(super) fn into_spare(self) -> Option<Vec<u8>> {
        let Self::Long(mut bytes) = self else { return None };
        bytes.clear();
        Some(bytes)
    }
}

impl Content {
    /// Bytes of its buffer.
    pub(super) const fn held(&self) -> usize {
        if let Self::Message(message) = self { message.bytes.held() } else { 0 }
    }

    /// Its buffer, emptied.
    pub(super) fn into_spare(self) -> Option<Vec<u8>> {
        if let Self::Message(message) = self { message.bytes.into_spare() } else { None }
    }

    /// Its length in a packet, bits.
    pub(super) fn bits(&self, channel: AnyChannel) -> usize {
        let head = usize::from(channel.kind.is_reliable());
        match self {
            Self::Message(message) => head + length_bits(channel) + message.bits,
            Self::Elsewhere | Self::Dropped => head + usize::from(channel.kind == ChannelKind::Ordered),
        }
    }

    /// Only reliable channels send anything but messages.
    pub(super) fn write(&self, to: &mut BitWriter, channel: AnyChannel) -> Result<(), BitsError> {
        if channel.kind.is_reliable() {
            to.bool(matches!(self, Self::Message(_)))?;
        }
        match self {
            Self::Message(message) => {
                let bytes = message.bytes.bytes();
                if channel.skip.is_none() {
                    to.int(bytes.len(), 0..=BYTES_MAX)?;
                }
                to.append(bytes, message.bits)
            }
            Self::Elsewhere | Self::Dropped if channel.kind == ChannelKind::Ordered => {
                to.bool(matches!(self, Self::Elsewhere))
            }
            Self::Elsewhere | Self::Dropped => Ok(()),
        }
    }

    /// Reads one; a message goes into the empty buffer of `spare`, which is called once everything is checked.
    pub(super) fn read(
        from: &mut BitReader<'_>,
        config: &ChannelConfig,
        spare: impl FnOnce() -> Vec<u8>,
    ) -> Result<Self, BitsError> {
        let channel = config.channel;
        if channel.kind.is_reliable() && !from.bool()? {
            let is_elsewhere = channel.kind == ChannelKind::Ordered && from.bool()?;
            return Ok(if is_elsewhere { Self::Elsewhere } else { Self::Dropped });
        }
        let bits = match channel.skip {
            None => 8 * from.int(0..=BYTES_MAX)?,
            Some(skip) => {
                let mut ahead = from.at_message();
                skip(&mut ahead)?;
                ahead.position() - from.position()
            }
        };
        // An unreliable message may be as long as a packet, whatever `max_message` is here.
        let (len, max) = (bits.div_ceil(8) as u64, config.max_message.into());
        if len > max && channel.kind.is_reliable() {
            return Err(BitsError::OutOfRange { offset: len, span: max });
        }
        let bytes = match (u32::try_from(bits), u8::try_from(len)) {
            (Ok(count), Ok(len)) if usize::from(len) <= SHORT_MAX => {
                let low = from.raw(count.min(u64::BITS))?;
                let high = from.raw(count.saturating_sub(u64::BITS))?;
                let both = (u128::from(high) << u64::BITS | u128::from(low)).to_le_bytes();
                Kept::Short(len, both.first_chunk().copied().unwrap_or_default())
            }
            _ => {
                let start = from.position();
                from.skip(bits)?;
                let mut long = spare();
                from.copy(start..start + bits, &mut long)?;
                Kept::Long(long)
            }
        };
        Ok(Self::Message(Packed { bytes, bits }))
    }
}

/// Bits of the length before the bytes of a message.
const fn length_bits(channel: AnyChannel) -> usize {
    match channel.skip {
        None => usize::BITS as usize - BYTES_MAX.leading_zeros() as usize,
        Some(_) => 0,
    }
}

pub(super) fn write_count(to: &mut BitWriter, count: usize, config: &ChannelConfig) -> Result<(), BitsError> {
    to.int(count, 1..=config.messages_per_packet.into())
}

pub(super) fn read_count(from: &mut BitReader<'_>, config: &ChannelConfig) -> Result<u16, BitsError> {
    from.int(1..=config.messages_per_packet)
}

/// Writes an id; `previous` is the one before it in the same packet, if there is one.
pub(super) fn write_id(
    to: &mut BitWriter,
    id: Seq16,
    previous: Option<Seq16>,
    config: &ChannelConfig,
) -> Result<(), BitsError> {
    match previous {
        _ if !config.channel.kind.has_ids() => Ok(()),
        None => to.int(id.0, 0..=u16::MAX),
        Some(previous) => to.relative(id.0, previous.0),
    }
}

/// Reads an id, which is 0 where there are none.
pub(super) fn read_id(
    from: &mut BitReader<'_>,
    previous: Option<Seq16>,
    config: &ChannelConfig,
) -> Result<Seq16, BitsError> {
    match previous {
        _ if !config.channel.kind.has_ids() => Ok(Seq16(0)),
        None => from.int(0..=u16::MAX).map(Seq16),
        Some(previous) => from.relative(previous.0).map(Seq16),
    }
}

/// Bits of an id.
pub(super) fn id_bits(id: Seq16, previous: Option<Seq16>, config: &ChannelConfig) -> usize {
    match previous {
        _ if !config.channel.kind.has_ids() => 0,
        None => 16,
        Some(previous) => match id.0.wrapping_sub(previous.0) {
            1 => 1,
            2..=5 => 4,
            6..=21 => 7,
            22..=277 => 12,
            _ => 20,
        },
    }
}

/// Bits of a count of messages.
pub(super) const fn count_bits(config: &ChannelConfig) -> usize {
    (u16::BITS - (config.messages_per_packet - 1).leading_zeros()) as usize
}

/// Most bytes of a message in place: as many as fit where a buffer would be, beside its capacity. 15, or 7 where pointers have 32 bits.
const SHORT_MAX: usize = size_of::<Vec<u8>>() - size_of::<usize>() - 1;
const _: () = assert!(size_of::<Kept>() == size_of::<Vec<u8>>());
/// Most bytes of a message of bytes in a packet.
pub(super) const BYTES_MAX: usize = 2047;
