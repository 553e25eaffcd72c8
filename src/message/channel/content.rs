//! What travels under an id, and the bits of it.

use super::config::ChannelConfig;
use crate::message::bits::Stream;
use crate::message::{BitsError, Message};
use crate::seq::Seq16;

/// What travels under an id.
#[derive(Debug)]
pub(super) enum Content<M> {
    Message(M),
    /// A part of a block.
    Slice {
        data: Vec<u8>,
        is_last: bool,
    },
    /// A message that is no longer sent. The id is, so that the receiver does not wait for it.
    Dropped,
}

impl<M: Message> Content<M> {
    /// Passes all of it to `stream`. Only reliable channels know anything but messages, and only some of them blocks.
    pub(super) fn serialize<S: Stream>(
        &mut self,
        stream: &mut S,
        config: &ChannelConfig,
    ) -> Result<(), BitsError> {
        let mut is_message = matches!(self, Self::Message(_));
        if config.delivery.is_reliable() {
            stream.bool(&mut is_message)?;
        } else if S::READS {
            is_message = true;
        }
        if is_message {
            return self.serialize_message(stream);
        }
        let mut is_slice = matches!(self, Self::Slice { .. });
        if config.block_max > 0 {
            stream.bool(&mut is_slice)?;
        } else if S::READS {
            is_slice = false;
        }
        if is_slice {
            return self.serialize_slice(stream, config.slice);
        }
        *self = Self::Dropped;
        Ok(())
    }

    fn serialize_message<S: Stream>(&mut self, stream: &mut S) -> Result<(), BitsError> {
        let mut kind = if let Self::Message(message) = self { message.kind() } else { 0 };
        stream.int(&mut kind, 0..=M::KINDS.saturating_sub(1))?;
        if S::READS {
            *self = Self::Message(M::blank(kind).ok_or(BitsError::Kind { kind })?);
        }
        if let Self::Message(message) = self { message.serialize(stream) } else { Ok(()) }
    }

    fn serialize_slice<S: Stream>(&mut self, stream: &mut S, max: u16) -> Result<(), BitsError> {
        if S::READS {
            *self = Self::Slice { data: Vec::new(), is_last: false };
        }
        let Self::Slice { data, is_last } = self else { return Ok(()) };
        stream.bool(is_last)?;
        stream.byte_vec(data, max.into())?;
        if data.is_empty() {
            // One below the least length: no sender has such a slice, and a block of nothing is none.
            return Err(BitsError::OutOfRange { offset: u64::MAX, span: u64::from(max) - 1 });
        }
        Ok(())
    }
}

pub(super) fn serialize_count<S: Stream>(
    stream: &mut S,
    count: &mut usize,
    config: &ChannelConfig,
) -> Result<(), BitsError> {
    stream.int(count, 1..=config.messages_per_packet.into())
}

/// Passes an id; `previous` is the one before it in the same packet, if there is one.
pub(super) fn serialize_id<S: Stream>(
    stream: &mut S,
    id: &mut Seq16,
    previous: Option<Seq16>,
    config: &ChannelConfig,
) -> Result<(), BitsError> {
    match previous {
        _ if !config.delivery.has_ids() => Ok(()),
        None => stream.int(&mut id.0, 0..=u16::MAX),
        Some(previous) => stream.relative(&mut id.0, previous.0),
    }
}
