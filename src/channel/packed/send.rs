//! Outgoing messages: stored until they have left, or until they are known to have arrived.

use super::ChannelStats;
use super::content::{BYTES_MAX, Content, Packed, count_bits, id_bits, write_count, write_id};
use crate::channel::{ChannelConfig, SendError};
use crate::message::BitsError;
use crate::message::pack::BitWriter;
use crate::ring::{SequenceBuffer, push_newest};
use crate::seq::Seq16;
use crate::time::Time;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Sender {
    config: Arc<ChannelConfig>,
    /// Most bits of one message with its head.
    room: usize,
    store: SequenceBuffer<Entry>,
    /// The oldest id in the store, or `next`.
    oldest: Seq16,
    /// The id of the next message.
    next: Seq16,
    /// No message expires before this.
    expires: Option<Time>,
    /// What was not taken yet. Created for the first.
    pub(super) told: Option<Box<Told>>,
    /// What goes into the packet that is being made.
    pub(super) chosen: Vec<Seq16>,
    /// Bits of all contents in the store.
    bits: usize,
    /// How many of them are placeholders for messages sent by another way.
    pub(super) elsewhere: u16,
    /// Buffers of messages that have arrived, for the next ones.
    spare: Vec<Vec<u8>>,
}

/// What became of messages.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Given up.
    pub(super) expired: VecDeque<Seq16>,
    /// Known to have arrived.
    pub(super) delivered: VecDeque<Seq16>,
}

#[derive(Debug)]
struct Entry {
    content: Content,
    /// Bits of the content.
    bits: usize,
    state: State,
    expires: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    New,
    /// It was sent, most recently in this packet.
    UnderWay {
        sent: Time,
        packet: Seq16,
    },
    /// That packet is lost.
    Lost,
}

impl Sender {
    pub(super) fn new(config: Arc<ChannelConfig>, room: usize) -> Self {
        Self {
            store: SequenceBuffer::new(config.send_buffer),
            config,
            room,
            oldest: Seq16(0),
            next: Seq16(0),
            expires: None,
            told: None,
            chosen: Vec::new(),
            bits: 0,
            elsewhere: 0,
            spare: Vec::new(),
        }
    }

    /// Messages stored, including the gaps between them.
    pub(super) const fn waiting(&self) -> u16 {
        self.next.0.wrapping_sub(self.oldest.0)
    }

    /// Stores a message, given as bytes and its length in bits. Returns its id. `None`: no packet has room for it.
    pub(super) fn push(
        &mut self,
        now: Time,
        (bytes, bits): (&[u8], usize),
        lifetime: Option<Duration>,
    ) -> Result<Option<Seq16>, SendError> {
        let is_long = self.config.channel.skip.is_none() && bytes.len() > BYTES_MAX;
        if is_long || bits > self.room {
            return Ok(None);
        }
        let mut kept = self.spare.pop().unwrap_or_default();
        kept.extend_from_slice(bytes);
        let content = Content::Message(Packed { bytes: kept, bits });
        if content.bits(self.config.channel) + self.head_bits(self.next, None) > self.room {
            self.keep(content);
            return Ok(None);
        }
        self.store(now, content, lifetime).map(Some)
    }

    /// Stores a placeholder for a message sent by another way.
    pub(super) fn push_elsewhere(&mut self, now: Time) -> Result<Seq16, SendError> {
        let id = self.store(now, Content::Elsewhere, None)?;
        self.elsewhere += 1;
        Ok(id)
    }

    /// When something is due next, at `now` at the earliest.
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
                    let given_up = std::mem::replace(entry, Entry { content, bits, state, expires: None });
                    self.keep(given_up.content);
                    stats.expired += 1;
                    push_newest(
                        &mut self.told.get_or_insert_default().expired,
                        id,
                        self.config.send_buffer.into(),
                    );
                }
                expires => self.expires = earlier(self.expires, expires),
            }
        }
    }

    /// Chooses what is due and fits into `room` bits, the oldest first; `false`: nothing.
    pub(super) fn choose(&mut self, now: Time, resend: Duration, room: usize) -> bool {
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
            let need = entry.bits + self.head_bits(id, self.chosen.last().copied());
            if bits + need <= room {
                bits += need;
                self.chosen.push(id);
            } else if !self.config.channel.kind.is_reliable() {
                break; // or the next one would overtake it
            }
        }
        !self.chosen.is_empty()
    }

    pub(super) fn write(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        write_count(to, self.chosen.len(), &self.config)?;
        let mut previous = None;
        for &id in &self.chosen {
            write_id(to, id, previous, &self.config)?;
            if let Some(entry) = self.store.get(id) {
                entry.content.write(to, self.config.channel)?;
            }
            previous = Some(id);
        }
        Ok(())
    }

    /// Notes that the chosen messages have left. `carried` gets the ids that wait for an acknowledgement.
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
            if !self.config.channel.kind.is_reliable() {
                self.remove(id);
            }
        }
        self.chosen = chosen;
    }

    /// Notes that a packet with the message `id` is lost. The message is due again, unless it was sent in another
    /// packet since.
    pub(super) fn lost(&mut self, id: Seq16, lost: Seq16) {
        if let Some(Entry { state, .. }) = self.store.get_mut(id).filter(|_| self.config.resend_lost)
            && matches!(state, State::UnderWay { packet, .. } if *packet == lost)
        {
            *state = State::Lost;
        }
    }

    pub(super) fn arrived(&mut self, id: Seq16) {
        let is_message = self.remove(id).unwrap_or(!self.config.channel.kind.is_reliable());
        if is_message && self.config.receipts {
            push_newest(&mut self.told.get_or_insert_default().delivered, id, self.config.send_buffer.into());
        }
    }

    /// Returns whether it was a message, if it was there.
    fn remove(&mut self, id: Seq16) -> Option<bool> {
        let removed = self.store.remove(id).map(|entry| {
            self.bits -= entry.bits;
            let is_message = matches!(entry.content, Content::Message(_));
            self.elsewhere -= u16::from(entry.content == Content::Elsewhere);
            self.keep(entry.content);
            is_message
        });
        while self.oldest != self.next && self.store.get(self.oldest).is_none() {
            self.oldest = self.oldest.add(1);
        }
        if self.oldest == self.next {
            self.expires = None;
        }
        removed
    }

    /// Keeps the buffer of a message that is not needed any more.
    fn keep(&mut self, content: Content) {
        if let Content::Message(Packed { mut bytes, .. }) = content
            && self.spare.len() < SPARE_MAX
        {
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    /// Frees empty buffers.
    pub(super) fn trim(&mut self) {
        self.spare = Vec::new();
    }

    pub(super) fn shrink(&mut self) {
        if self.waiting() == 0 {
            self.store.reset();
        }
        if let Some(told) = &mut self.told {
            told.expired.shrink_to_fit();
            told.delivered.shrink_to_fit();
        }
        self.chosen = Vec::new();
        self.spare = Vec::new();
    }

    /// Bytes of the heap; contents count by their bits.
    pub(super) fn memory(&self) -> usize {
        let told = |told: &Told| told.expired.capacity() + told.delivered.capacity();
        let ids = (self.chosen.capacity() + self.told.as_deref().map_or(0, told)) * size_of::<Seq16>();
        let ids = ids + self.told.as_ref().map_or(0, |_| size_of::<Told>());
        let spare = self.spare.capacity() * size_of::<Vec<u8>>();
        let spare = spare + self.spare.iter().map(Vec::capacity).sum::<usize>();
        self.store.memory() + ids + spare + self.bits.div_ceil(8)
    }

    fn store(&mut self, now: Time, content: Content, lifetime: Option<Duration>) -> Result<Seq16, SendError> {
        let channel = self.config.channel;
        if self.waiting() >= self.config.send_buffer {
            self.keep(content);
            return Err(SendError::Full { channel: channel.number });
        }
        let (id, bits) = (self.next, content.bits(channel));
        let expires = lifetime.filter(|_| channel.kind.is_reliable()).map(|lifetime| now + lifetime);
        self.expires = earlier(self.expires, expires);
        self.bits += bits;
        self.store.insert(id, Entry { content, bits, state: State::New, expires });
        self.next = id.add(1);
        Ok(id)
    }

    /// The ids that the peer has room for, whatever it has received of them.
    fn in_window(&self) -> impl Iterator<Item = Seq16> + use<> {
        let window =
            if self.config.channel.kind.is_reliable() { self.config.receive_buffer } else { u16::MAX };
        ids(self.oldest, self.waiting().min(window))
    }

    /// Bits before the content: the count of messages before the first, and the id.
    fn head_bits(&self, id: Seq16, previous: Option<Seq16>) -> usize {
        let count = if previous.is_none() { count_bits(&self.config) } else { 0 };
        count + id_bits(id, previous, &self.config)
    }
}

impl Entry {
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
/// Buffers that are kept for the next messages.
const SPARE_MAX: usize = 64;
