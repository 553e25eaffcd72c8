//! Messages on their way out: stored until they have left, or until they are known to have arrived.

use super::ChannelStats;
use super::config::ChannelConfig;
use super::content::{Content, serialize_count, serialize_id};
use crate::message::bits::{Measure, Write};
use crate::message::{BitsError, ChannelSendError, Message};
use crate::ring::{SequenceBuffer, push_newest};
use crate::seq::Seq16;
use crate::time::Time;
use std::collections::VecDeque;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Sender<M> {
    config: ChannelConfig,
    /// Most bits of one message with its head.
    room: usize,
    store: SequenceBuffer<Entry<M>>,
    /// The oldest id in the store, or `next`.
    oldest: Seq16,
    /// The id of the next message.
    next: Seq16,
    /// No message expires before.
    expires: Option<Time>,
    /// Given up and not asked for yet.
    pub(super) expired: VecDeque<Seq16>,
    /// Known to have arrived and not asked for yet.
    pub(super) delivered: VecDeque<Seq16>,
    /// The id after the block under way.
    block_end: Option<Seq16>,
    /// What goes into the packet that is being made.
    pub(super) chosen: Vec<Seq16>,
    /// Bits of all contents in the store.
    bits: usize,
}

#[derive(Debug)]
struct Entry<M> {
    content: Content<M>,
    /// Bits of the content.
    bits: usize,
    state: State,
    expires: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    New,
    /// It was sent, last in this packet.
    UnderWay {
        sent: Time,
        packet: Seq16,
    },
    /// That packet is lost.
    Lost,
}

impl<M: Message> Sender<M> {
    pub(super) fn new(config: ChannelConfig, room: usize) -> Self {
        Self {
            config,
            room,
            store: SequenceBuffer::new(config.send_buffer),
            oldest: Seq16(0),
            next: Seq16(0),
            expires: None,
            expired: VecDeque::new(),
            delivered: VecDeque::new(),
            block_end: None,
            chosen: Vec::new(),
            bits: 0,
        }
    }

    /// Messages and slices stored, holes between them counted.
    pub(super) const fn waiting(&self) -> u16 {
        self.next.0.wrapping_sub(self.oldest.0)
    }

    pub(super) fn push(
        &mut self,
        now: Time,
        message: M,
        lifetime: Option<Duration>,
    ) -> Result<Seq16, ChannelSendError> {
        let id = self.next;
        let mut content = Content::Message(message);
        let bits = self.measure(&mut content)?;
        let need = bits + self.head_bits(id, None)?;
        if need > self.room {
            return Err(ChannelSendError::TooLarge { bits: need, max: self.room });
        }
        self.check_room(1)?;
        let expires = lifetime.filter(|_| self.config.delivery.is_reliable()).map(|lifetime| now + lifetime);
        self.expires = earlier(self.expires, expires);
        self.store(Entry { content, bits, state: State::New, expires });
        Ok(id)
    }

    pub(super) fn push_block(&mut self, block: &[u8]) -> Result<(), ChannelSendError> {
        let (len, max) = (block.len(), self.config.block_max);
        if !u32::try_from(len).is_ok_and(|len| (1..=max).contains(&len)) {
            return Err(ChannelSendError::BlockLength { len, max });
        }
        if self.block_end.is_some() {
            return Err(ChannelSendError::BlockUnderWay);
        }
        let slices = block.chunks(self.config.slice.into());
        self.check_room(slices.len())?;
        for (index, data) in (1..).zip(slices.clone()) {
            let mut content = Content::Slice { data: data.to_vec(), is_last: index == slices.len() };
            let bits = self.measure(&mut content)?;
            self.store(Entry { content, bits, state: State::New, expires: None });
        }
        self.block_end = Some(self.next);
        Ok(())
    }

    /// When something is due next, as things are; `now` if it is already.
    pub(super) fn check(&self, now: Time, resend: Duration) -> Option<Time> {
        let due =
            self.in_window().filter_map(|id| self.store.get(id)).map(|entry| entry.due(now, resend)).min();
        Some(earlier(due, self.expires)?.max(now))
    }

    pub(super) fn expire(&mut self, now: Time, stats: &mut ChannelStats) {
        if self.expires.is_none_or(|at| now < at) {
            return;
        }
        self.expires = None;
        for id in ids(self.oldest, self.waiting()) {
            let Some(entry) = self.store.get_mut(id) else { continue };
            match entry.expires {
                Some(at) if at <= now => {
                    self.bits = self.bits - entry.bits + DROPPED_BITS;
                    let (content, bits, state) = (Content::Dropped, DROPPED_BITS, State::New);
                    *entry = Entry { content, bits, state, expires: None };
                    stats.expired += 1;
                    push_newest(&mut self.expired, id, self.config.send_buffer.into());
                }
                expires => self.expires = earlier(self.expires, expires),
            }
        }
    }

    /// Chooses what is due and fits into `room` bits, the oldest first; `false`: nothing.
    pub(super) fn choose(&mut self, now: Time, resend: Duration, room: usize) -> Result<bool, BitsError> {
        self.chosen.clear();
        let room = room.min(self.config.bits_per_packet as usize);
        let mut bits = 0;
        for id in self.in_window() {
            if self.chosen.len() == usize::from(self.config.messages_per_packet) {
                break;
            }
            let Some(entry) = self.store.get(id).filter(|entry| entry.due(now, resend) <= now) else {
                continue;
            };
            let need = entry.bits + self.head_bits(id, self.chosen.last().copied())?;
            if bits + need <= room {
                bits += need;
                self.chosen.push(id);
            } else if !self.config.delivery.is_reliable() {
                break; // or the next one would overtake it
            }
        }
        Ok(!self.chosen.is_empty())
    }

    pub(super) fn write(&mut self, stream: &mut Write<'_>) -> Result<(), BitsError> {
        serialize_count(stream, &mut self.chosen.len(), &self.config)?;
        let mut previous = None;
        for &id in &self.chosen {
            serialize_id(stream, &mut { id }, previous, &self.config)?;
            if let Some(entry) = self.store.get_mut(id) {
                entry.content.serialize(stream, &self.config)?;
            }
            previous = Some(id);
        }
        Ok(())
    }

    /// What was chosen has left. `carried` gets the ids that wait for an acknowledgement.
    pub(super) fn commit(
        &mut self,
        now: Time,
        packet: Seq16,
        stats: &mut ChannelStats,
        mut carried: impl FnMut(Seq16),
    ) {
        let mut chosen = std::mem::take(&mut self.chosen);
        for id in chosen.drain(..) {
            let Some(entry) = self.store.get_mut(id) else { continue };
            match entry.state {
                State::New => stats.sent += 1,
                State::UnderWay { .. } | State::Lost => stats.resends += 1,
            }
            entry.state = State::UnderWay { sent: now, packet };
            if self.config.is_tracked() {
                carried(id);
            }
            if !self.config.delivery.is_reliable() {
                self.remove(id);
            }
        }
        self.chosen = chosen;
    }

    /// A packet that carried `id` is lost: it is due again, unless it has been sent in another one since.
    pub(super) fn lost(&mut self, id: Seq16, lost: Seq16) {
        if let Some(Entry { state, .. }) = self.store.get_mut(id).filter(|_| self.config.resend_lost)
            && matches!(state, State::UnderWay { packet, .. } if *packet == lost)
        {
            *state = State::Lost;
        }
    }

    pub(super) fn arrived(&mut self, id: Seq16) {
        let removed = self.remove(id);
        let is_message = match removed {
            Some(content) => matches!(content, Content::Message(_)),
            None => !self.config.delivery.is_reliable(),
        };
        if is_message && self.config.receipts {
            push_newest(&mut self.delivered, id, self.config.send_buffer.into());
        }
    }

    fn remove(&mut self, id: Seq16) -> Option<Content<M>> {
        let removed = self.store.remove(id).map(|entry| {
            self.bits -= entry.bits;
            entry.content
        });
        while self.oldest != self.next && self.store.get(self.oldest).is_none() {
            self.oldest = self.oldest.add(1);
            if self.block_end == Some(self.oldest) {
                self.block_end = None;
            }
        }
        if self.oldest == self.next {
            self.expires = None;
        }
        removed
    }

    pub(super) fn shrink(&mut self) {
        if self.waiting() == 0 {
            self.store.reset();
        }
        self.expired.shrink_to_fit();
        self.delivered.shrink_to_fit();
        self.chosen = Vec::new();
    }

    /// Bytes of the heap; contents by their bits.
    pub(super) fn memory(&self) -> usize {
        let ids = self.chosen.capacity() + self.expired.capacity() + self.delivered.capacity();
        let ids = ids * size_of::<Seq16>();
        self.store.memory() + ids + self.bits.div_ceil(8)
    }

    fn store(&mut self, entry: Entry<M>) {
        self.bits += entry.bits;
        self.store.insert(self.next, entry);
        self.next = self.next.add(1);
    }

    fn check_room(&self, count: usize) -> Result<(), ChannelSendError> {
        let (waiting, max) = (self.waiting(), self.config.send_buffer);
        if usize::from(waiting) + count > usize::from(max) {
            return Err(ChannelSendError::Full { waiting, max });
        }
        Ok(())
    }

    /// The ids that the peer has room for, whatever it has received of them.
    fn in_window(&self) -> impl Iterator<Item = Seq16> + use<M> {
        let window = if self.config.delivery.is_reliable() { self.config.receive_buffer } else { u16::MAX };
        ids(self.oldest, self.waiting().min(window))
    }

    fn measure(&self, content: &mut Content<M>) -> Result<usize, BitsError> {
        let mut measure = Measure::default();
        content.serialize(&mut measure, &self.config)?;
        Ok(measure.bits())
    }

    /// Bits before the content: the count of messages before the first, and the id.
    fn head_bits(&self, id: Seq16, previous: Option<Seq16>) -> Result<usize, BitsError> {
        let mut measure = Measure::default();
        if previous.is_none() {
            serialize_count(&mut measure, &mut 1, &self.config)?;
        }
        serialize_id(&mut measure, &mut { id }, previous, &self.config)?;
        Ok(measure.bits())
    }
}

impl<M> Entry<M> {
    fn due(&self, now: Time, resend: Duration) -> Time {
        match self.state {
            State::New | State::Lost => now,
            State::UnderWay { sent, .. } => sent + resend,
        }
    }
}

fn ids(first: Seq16, count: u16) -> impl Iterator<Item = Seq16> {
    (0..count).map(move |offset| first.add(offset))
}

fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    one.into_iter().chain(other).min()
}

/// Bits of [`Content::Dropped`] at most.
const DROPPED_BITS: usize = 2;
