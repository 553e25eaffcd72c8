//! Messages on their way in: checked with the whole packet, kept until it is their turn, handed out.

use super::config::{ChannelConfig, Delivery};
use super::content::{Content, serialize_count, serialize_id};
use super::{ChannelStats, Message, ReadError, Received};
use crate::message::bits::{Read, Stream};
use crate::ring::SequenceBuffer;
use crate::seq::Seq16;
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Receiver<M> {
    config: ChannelConfig,
    /// Reliable: the first id that has not come.
    next: Seq16,
    /// Reliable: what has come from there on; `None` where it is handed out already.
    slots: SequenceBuffer<Option<Taken<M>>>,
    /// Sequenced: the newest id delivered.
    newest: Option<Seq16>,
    /// Not read yet.
    pub(super) ready: VecDeque<(Received<M>, usize)>,
    /// Blocks among these.
    blocks_ready: usize,
    /// The block that slices are added to.
    block: Vec<u8>,
    /// What the packet that is being read has.
    pub(super) staged: Vec<(Seq16, Taken<M>)>,
    /// Bits of all that is kept.
    bits: usize,
}

#[derive(Debug)]
pub(super) struct Taken<M> {
    content: Content<M>,
    bits: usize,
}

impl<M: Message> Receiver<M> {
    pub(super) fn new(config: ChannelConfig) -> Self {
        Self {
            config,
            next: Seq16(0),
            slots: SequenceBuffer::new(config.receive_buffer),
            newest: None,
            ready: VecDeque::new(),
            blocks_ready: 0,
            block: Vec::new(),
            staged: Vec::new(),
            bits: 0,
        }
    }

    pub(super) fn pop(&mut self) -> Option<Received<M>> {
        let (received, bits) = self.ready.pop_front()?;
        self.bits -= bits;
        self.blocks_ready -= usize::from(matches!(received, Received::Block(_)));
        Some(received)
    }

    /// Bytes of the heap; contents by their bits.
    pub(super) fn memory(&self) -> usize {
        let kept = self.slots.memory() + self.ready.capacity() * size_of::<(Received<M>, usize)>();
        let staged = self.staged.capacity() * size_of::<(Seq16, Taken<M>)>();
        kept + staged + self.block.capacity() + self.bits.div_ceil(8)
    }

    pub(super) fn shrink(&mut self) {
        if self.slots.values().next().is_none() {
            self.slots.reset();
        }
        self.ready.shrink_to_fit();
        self.staged = Vec::new();
    }

    /// Reads what a packet has for this channel, and checks that there is room for it. Nothing else changes.
    pub(super) fn stage(&mut self, stream: &mut Read<'_>) -> Result<(), ReadError> {
        let (mut count, mut id, mut previous) = (0, Seq16(0), None);
        serialize_count(stream, &mut count, &self.config)?;
        for _ in 0..count {
            let mut content = Content::Dropped;
            serialize_id(stream, &mut id, previous, &self.config)?;
            let left = stream.left();
            content.serialize(stream, &self.config)?;
            self.check_room(id, &content)?;
            self.staged.push((id, Taken { content, bits: left - stream.left() }));
            previous = Some(id);
        }
        Ok(())
    }

    pub(super) fn apply(&mut self, stats: &mut ChannelStats) {
        let mut staged = std::mem::take(&mut self.staged);
        for (id, taken) in staged.drain(..) {
            match self.config.delivery {
                delivery if delivery.is_reliable() && self.has_come(id) => stats.duplicates += 1,
                Delivery::ReliableOrdered | Delivery::ReliableUnordered => {
                    self.deliver_once(id, taken, stats)
                }
                Delivery::UnreliableSequenced if self.newest.is_some_and(|newest| !newest.is_before(id)) => {
                    stats.old += 1;
                }
                Delivery::Unreliable | Delivery::UnreliableSequenced => {
                    self.newest = Some(id);
                    if self.ready.len() < self.config.receive_buffer.into() {
                        self.deliver(taken, stats);
                    } else {
                        stats.overflowed += 1;
                    }
                }
            }
        }
        self.staged = staged;
    }

    /// A reliable message beyond the buffer refuses its packet, and so does a slice while a block is not read: the packet must not be
    /// acknowledged.
    fn check_room(&self, id: Seq16, content: &Content<M>) -> Result<(), ReadError> {
        if !self.config.delivery.is_reliable() || self.has_come(id) {
            return Ok(());
        }
        let unread = u16::try_from(self.ready.len()).unwrap_or(u16::MAX);
        let window = self.config.receive_buffer.saturating_sub(unread);
        let is_in_window = id.offset_in(self.next, window).is_some();
        let is_second_block = self.blocks_ready > 0 && matches!(content, Content::Slice { .. });
        if is_in_window && !is_second_block { Ok(()) } else { Err(ReadError::NoRoom { id }) }
    }

    fn has_come(&self, id: Seq16) -> bool {
        id.is_before(self.next) || self.slots.get(id).is_some()
    }

    fn deliver_once(&mut self, id: Seq16, taken: Taken<M>, stats: &mut ChannelStats) {
        let mut waits = None;
        if self.config.delivery == Delivery::ReliableOrdered {
            self.bits += taken.bits;
            waits = Some(taken);
        } else {
            self.deliver(taken, stats);
        }
        self.slots.insert(id, waits);
        while let Some(slot) = self.slots.remove(self.next) {
            self.next = self.next.add(1);
            if let Some(taken) = slot {
                self.bits -= taken.bits;
                self.deliver(taken, stats);
            }
        }
    }

    fn deliver(&mut self, Taken { content, bits }: Taken<M>, stats: &mut ChannelStats) {
        match content {
            Content::Message(message) => {
                stats.received += 1;
                self.bits += bits;
                self.ready.push_back((Received::Message(message), bits));
            }
            Content::Slice { data, is_last } => self.add_slice(&data, is_last, stats),
            Content::Dropped => stats.skipped += 1,
        }
    }

    /// Appends to the block, up to one byte more than it may have: then it is dropped in the end.
    fn add_slice(&mut self, data: &[u8], is_last: bool, stats: &mut ChannelStats) {
        let max = self.config.block_max as usize;
        let room = (max + 1).saturating_sub(self.block.len());
        self.block.extend_from_slice(data.get(..room).unwrap_or(data));
        if !is_last {
            return;
        }
        let block = std::mem::take(&mut self.block);
        if block.len() > max {
            stats.overflowed += 1; // no honest peer sends that much
            return;
        }
        stats.blocks_received += 1;
        self.blocks_ready += 1;
        let bits = 8 * block.len();
        self.bits += bits;
        self.ready.push_back((Received::Block(block), bits));
    }
}
