//! Incoming messages: checked with the whole packet, kept until it is their turn, then delivered.

use super::content::{Content, Kept, Packed, read_id};
use super::{ChannelStats, ReadError, len32};
use crate::channel::{ChannelConfig, ChannelKind};
use crate::message::pack::BitReader;
use crate::ring::SequenceBuffer;
use crate::seq::Seq16;
use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Receiver {
    config: Arc<ChannelConfig>,
    /// Reliable: the first id that has not arrived.
    next: Seq16,
    /// Reliable: what has arrived from there on; `None` if it is already delivered.
    slots: SequenceBuffer<Option<Content>>,
    /// Sequenced: the newest id delivered.
    newest: Option<Seq16>,
    /// Messages that were not read yet.
    pub(super) ready: VecDeque<Ready>,
    /// What the packet being read has.
    pub(super) staged: Vec<(Seq16, Content)>,
    /// Bytes of the buffers of all messages that are kept.
    bytes: u32,
    /// Buffers of messages that were read, for the next ones, and their bytes.
    spare: Vec<Vec<u8>>,
    spare_bytes: u32,
}

/// What is next to be read.
#[derive(Debug)]
pub(super) enum Ready {
    Message(Kept),
    /// A message that comes by another way.
    Elsewhere,
}

impl Receiver {
    pub(super) fn new(config: Arc<ChannelConfig>) -> Self {
        Self {
            next: Seq16(0),
            slots: SequenceBuffer::new(config.receive_buffer),
            config,
            newest: None,
            ready: VecDeque::new(),
            staged: Vec::new(),
            bytes: 0,
            spare: Vec::new(),
            spare_bytes: 0,
        }
    }

    /// Takes the next message, whose buffer no longer counts.
    pub(super) fn pop(&mut self) -> Option<Ready> {
        let ready = self.ready.pop_front()?;
        if let Ready::Message(bytes) = &ready {
            self.bytes -= len32(bytes.held());
        }
        Some(ready)
    }

    /// Keeps the buffer of a message that was read, if it has one.
    pub(super) fn keep(&mut self, spare: Option<Vec<u8>>) {
        if let Some(spare) = spare
            && self.spare.len() < SPARE_MAX
        {
            self.spare_bytes += len32(spare.capacity());
            self.spare.push(spare);
        }
    }

    /// Bytes of messages that were not read yet, and of their places.
    pub(super) fn unread(&self) -> usize {
        let held = |ready: &Ready| match ready {
            Ready::Message(kept) => kept.held(),
            Ready::Elsewhere => 0,
        };
        self.ready.iter().map(|ready| size_of::<Ready>() + held(ready)).sum()
    }

    /// Bytes of the heap.
    pub(super) fn memory(&self) -> usize {
        let kept = self.slots.memory() + self.ready.capacity() * size_of::<Ready>();
        let staged = self.staged.capacity() * size_of::<(Seq16, Content)>();
        let spare = self.spare.capacity() * size_of::<Vec<u8>>();
        kept + staged + spare + self.spare_bytes as usize + self.bytes as usize
    }

    pub(super) fn shrink(&mut self) {
        if self.slots.values().next().is_none() {
            self.slots.reset();
        }
        self.ready.shrink_to_fit();
        self.staged = Vec::new();
        self.trim();
    }

    /// Frees empty buffers.
    pub(super) fn trim(&mut self) {
        (self.spare, self.spare_bytes) = (Vec::new(), 0);
    }

    /// Reads the `count` messages that a packet has for this channel, and checks that there is room for them, in
    /// `left` bytes of memory as well. Nothing else changes.
    pub(super) fn stage(
        &mut self,
        from: &mut BitReader<'_>,
        count: u16,
        left: &mut usize,
    ) -> Result<(), ReadError> {
        let is_reliable = self.config.channel.kind.is_reliable();
        let (mut previous, mut span) = (None, 0);
        for _ in 0..count {
            let id = read_id(from, previous, &self.config)?;
            if is_reliable && !self.has_come(id) {
                span = span.max(self.check_room(id)?);
            }
            let Self { spare, spare_bytes, .. } = self;
            let buffer = || {
                let buffer = spare.pop().unwrap_or_default();
                *spare_bytes -= len32(buffer.capacity());
                buffer
            };
            let content = Content::read(from, &self.config, buffer)?;
            let bytes = content.held() + size_of::<(Seq16, Content)>();
            *left = left.checked_sub(bytes).ok_or(ReadError::NoRoom { id })?;
            self.staged.push((id, content));
            previous = Some(id);
        }
        let mut places = if span > 0 { self.slots.growth(span) } else { 0 };
        let need = self.ready.len() + self.staged.len();
        if need > self.ready.capacity() {
            places += (need.max(2 * self.ready.capacity()) - self.ready.capacity()) * size_of::<Ready>();
        }
        let id = previous.unwrap_or(self.next);
        *left = left.checked_sub(places).ok_or(ReadError::NoRoom { id })?;
        Ok(())
    }

    /// Whether the packet has the message that all later ones of the channel wait for.
    pub(super) fn has_staged_next(&self) -> bool {
        self.config.channel.kind.is_reliable() && self.staged.iter().any(|(id, _)| *id == self.next)
    }

    /// Takes everything the packet has.
    pub(super) fn apply(&mut self, stats: &mut ChannelStats) {
        if self.staged.is_empty() {
            return;
        }
        let mut staged = std::mem::take(&mut self.staged);
        for (id, content) in staged.drain(..) {
            self.take(id, content, stats);
        }
        self.staged = staged;
    }

    /// Drops everything the packet has, and frees its memory.
    #[cold]
    pub(super) fn refuse(&mut self) {
        self.staged = Vec::new();
    }

    fn take(&mut self, id: Seq16, content: Content, stats: &mut ChannelStats) {
        let kind = self.config.channel.kind;
        if kind.is_reliable() && self.has_come(id) {
            stats.duplicates += 1;
            self.keep(content.into_spare());
        } else if kind.is_reliable() {
            self.deliver_once(id, content, stats);
        } else if kind == ChannelKind::Sequenced
            && self.newest.is_some_and(|newest| newest.0.wrapping_sub(id.0) < OLD_MAX)
        {
            stats.old += 1;
            self.keep(content.into_spare());
        } else {
            self.newest = Some(id);
            if self.ready.len() < self.config.receive_buffer.into() {
                self.bytes += len32(content.held());
                self.deliver(content, stats);
            } else {
                stats.overflowed += 1;
                self.keep(content.into_spare());
            }
        }
    }

    /// Refuses a packet with a new reliable message beyond the buffer. It must not be acknowledged. Returns how many
    /// places it takes up to this message.
    fn check_room(&self, id: Seq16) -> Result<u16, ReadError> {
        let unread = u16::try_from(self.ready.len()).unwrap_or(u16::MAX);
        let window = self.config.receive_buffer.saturating_sub(unread);
        let offset = id.offset_in(self.next, window).ok_or(ReadError::NoRoom { id })?;
        Ok(offset + 1)
    }

    fn has_come(&self, id: Seq16) -> bool {
        id.is_before(self.next) || self.slots.get(id).is_some()
    }

    fn deliver_once(&mut self, id: Seq16, content: Content, stats: &mut ChannelStats) {
        self.bytes += len32(content.held());
        if id != self.next {
            let mut waits = None;
            if self.config.channel.kind == ChannelKind::Ordered {
                waits = Some(content);
            } else {
                self.deliver(content, stats);
            }
            self.slots.insert(id, waits);
            return;
        }
        self.deliver(content, stats);
        self.slots.advance(id, drop);
        self.next = id.add(1);
        while let Some(slot) = self.slots.remove(self.next) {
            self.next = self.next.add(1);
            if let Some(content) = slot {
                self.deliver(content, stats);
            }
        }
    }

    fn deliver(&mut self, content: Content, stats: &mut ChannelStats) {
        match content {
            Content::Message(Packed { bytes, .. }) => {
                stats.received += 1;
                self.ready.push_back(Ready::Message(bytes));
            }
            Content::Elsewhere => self.ready.push_back(Ready::Elsewhere),
            Content::Dropped => stats.skipped += 1,
        }
    }
}

/// A sequenced message is old if fewer than this many newer ones were sent before the newest that has arrived, and that one itself. If it were
/// half of all ids, as many messages would be dropped after an outage in which that many were sent.
const OLD_MAX: u16 = 4096;
/// Buffers that are kept for the next messages.
const SPARE_MAX: usize = 64;
