//! Outgoing messages: stored until they have left, or until they are known to have arrived.

mod choose;

use super::content::{BYTES_MAX, Content, Kept, Packed};
use super::due::Due;
use super::expiry::Expiry;
use crate::channel::config::RESEND_AFTER;
use crate::channel::{ChannelConfig, SendError};
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
    /// Created for the first message.
    order: Option<Box<Order>>,
    /// Created for the first message that can expire.
    expiry: Option<Box<Expiry>>,
    /// What was not taken yet. Created for the first.
    pub(super) told: Option<Box<Told>>,
    /// What goes into the packet that is being made.
    pub(super) chosen: Vec<Seq16>,
    /// Bytes of the buffers of all contents in the store.
    bytes: usize,
    /// How many of them are placeholders for messages sent by another way.
    pub(super) elsewhere: u16,
    /// Buffers of messages that have arrived, for the next ones.
    spare: Vec<Vec<u8>>,
}

/// When stored messages leave.
#[derive(Debug, Default)]
struct Order {
    /// Those that are new, or whose packet is lost or was sent too long ago.
    due: Due,
    /// Those under way that were sent first and last.
    under_way: Option<(Seq16, Seq16)>,
    /// When some were first seen under way since one was acknowledged. `None`: not yet.
    progress: Option<Time>,
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
    /// The messages under way that were sent before it and after it.
    neighbours: [Option<Seq16>; 2],
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
            order: None,
            expiry: None,
            told: None,
            chosen: Vec::new(),
            bytes: 0,
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
        let bytes = Kept::new(bytes, || self.spare.pop().unwrap_or_default());
        let content = Content::Message(Packed { bytes, bits });
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
        let resend = if resend.is_zero() { RESEND_AFTER } else { resend }; // they wait for a packet, but not for ever
        let due = if self.first_due(0).is_some() { Some(now) } else { self.times_out_at(now, resend) };
        let expires = self.expiry.as_ref().and_then(|expiry| expiry.first());
        Some(earlier(due, expires)?.max(now))
    }

    /// Notes that a packet with the message `id` is lost. The message is due again, unless it was sent in another
    /// packet since.
    pub(super) fn lost(&mut self, id: Seq16, lost: Seq16) {
        if let Some(Entry { state, .. }) = self.store.get(id).filter(|_| self.config.resend_lost)
            && matches!(state, State::UnderWay { packet, .. } if *packet == lost)
        {
            self.make_lost(id);
        }
    }

    /// Returns its bytes.
    pub(super) fn arrived(&mut self, id: Seq16) -> usize {
        let bits = self.store.get(id).map_or(0, |entry| entry.bits);
        if let Some(order) = &mut self.order {
            order.progress = None;
        }
        let is_message = self.remove(id).unwrap_or(!self.config.channel.kind.is_reliable());
        if is_message && self.config.receipts {
            push_newest(&mut self.told.get_or_insert_default().delivered, id, self.config.send_buffer.into());
        }
        bits.div_ceil(8)
    }

    /// Returns whether it was a message, if it was there.
    fn remove(&mut self, id: Seq16) -> Option<bool> {
        self.unlink(id);
        self.drop_due(id);
        let removed = self.store.remove(id).map(|entry| {
            self.bytes -= entry.content.held();
            let is_message = matches!(entry.content, Content::Message(_));
            self.elsewhere -= u16::from(entry.content == Content::Elsewhere);
            self.keep(entry.content);
            is_message
        });
        while self.oldest != self.next && self.store.get(self.oldest).is_none() {
            self.oldest = self.oldest.add(1);
        }
        self.tidy_expiry();
        removed
    }

    /// Keeps the buffer of a message that is not needed any more.
    fn keep(&mut self, content: Content) {
        if let Some(spare) = content.into_spare()
            && self.spare.len() < SPARE_MAX
        {
            self.spare.push(spare);
        }
    }

    /// Frees empty buffers.
    pub(super) fn trim(&mut self) {
        self.spare = Vec::new();
    }

    pub(super) fn shrink(&mut self) {
        if self.waiting() == 0 {
            self.store.reset();
            (self.order, self.expiry) = (None, None);
        }
        if let Some(told) = &mut self.told {
            told.expired.shrink_to_fit();
            told.delivered.shrink_to_fit();
        }
        self.chosen = Vec::new();
        self.spare = Vec::new();
    }

    /// Bytes of the heap.
    pub(super) fn memory(&self) -> usize {
        let told = |told: &Told| told.expired.capacity() + told.delivered.capacity();
        let ids = (self.chosen.capacity() + self.told.as_deref().map_or(0, told)) * size_of::<Seq16>();
        let ids = ids + self.told.as_ref().map_or(0, |_| size_of::<Told>());
        let spare = self.spare.capacity() * size_of::<Vec<u8>>();
        let spare = spare + self.spare.iter().map(Vec::capacity).sum::<usize>();
        let order = self.order.as_ref().map_or(0, |order| size_of::<Order>() + order.due.memory());
        let expiry = self.expiry.as_ref().map_or(0, |expiry| expiry.memory());
        self.store.memory() + order + ids + spare + expiry + self.bytes
    }

    fn store(&mut self, now: Time, content: Content, lifetime: Option<Duration>) -> Result<Seq16, SendError> {
        let channel = self.config.channel;
        if self.waiting() >= self.config.send_buffer {
            self.keep(content);
            return Err(SendError::Full { channel: channel.number });
        }
        let (id, bits) = (self.next, content.bits(channel));
        self.bytes += content.held();
        let expires = lifetime.filter(|_| channel.kind.is_reliable()).map(|lifetime| now + lifetime);
        if let Some(at) = expires {
            let Self { expiry, store, oldest, .. } = &mut *self;
            let stored = id.0.wrapping_sub(oldest.0);
            let is_there = |at, id| store.get(id).is_some_and(|entry| entry.expires == Some(at));
            expiry.get_or_insert_default().insert(at, id, stored, is_there);
        }
        self.store.insert(id, Entry::new(content, bits, State::New, expires));
        self.make_due(id);
        self.next = id.add(1);
        Ok(id)
    }

    fn sent_at(&self, id: Seq16) -> Option<Time> {
        match self.store.get(id)?.state {
            State::UnderWay { sent, .. } => Some(sent),
            State::New | State::Lost => None,
        }
    }

    /// Makes a message due that is under way.
    fn make_lost(&mut self, id: Seq16) {
        self.unlink(id);
        self.make_due(id);
        if let Some(entry) = self.store.get_mut(id) {
            entry.state = State::Lost;
        }
    }

    fn make_due(&mut self, id: Seq16) {
        self.order.get_or_insert_default().due.insert(id, self.config.send_buffer);
    }

    fn drop_due(&mut self, id: Seq16) {
        if let Some(order) = &mut self.order {
            order.due.remove(id);
        }
    }

    /// How long none of the messages that were sent has been acknowledged.
    pub(super) fn silence(&self, now: Time) -> Duration {
        let progress = self.order.as_ref().and_then(|order| order.progress);
        progress.map_or(Duration::ZERO, |progress| now.since(progress))
    }

    /// Puts a message that leaves now behind those under way.
    fn link(&mut self, id: Seq16) {
        let under_way = &mut self.order.get_or_insert_default().under_way;
        let last = under_way.map(|(_, last)| last);
        *under_way = Some((under_way.map_or(id, |(first, _)| first), id));
        if let Some(before) = last.and_then(|last| self.store.get_mut(last)) {
            before.neighbours[1] = Some(id);
        }
        if let Some(entry) = self.store.get_mut(id) {
            entry.neighbours = [last, None];
        }
    }

    /// Takes a message out of those under way, if it is one.
    fn unlink(&mut self, id: Seq16) {
        let Some(entry) = self.store.get_mut(id) else { return };
        if !matches!(entry.state, State::UnderWay { .. }) {
            return;
        }
        let [before, after] = std::mem::take(&mut entry.neighbours);
        if let Some(entry) = before.and_then(|before| self.store.get_mut(before)) {
            entry.neighbours[1] = after;
        }
        if let Some(entry) = after.and_then(|after| self.store.get_mut(after)) {
            entry.neighbours[0] = before;
        }
        if let Some(order) = &mut self.order {
            order.under_way = order.under_way.and_then(|(first, last)| {
                let first = if first == id { after? } else { first };
                Some((first, if last == id { before? } else { last }))
            });
        }
    }
}

impl Entry {
    const fn new(content: Content, bits: usize, state: State, expires: Option<Time>) -> Self {
        Self { content, bits, state, expires, neighbours: [None; 2] }
    }
}

fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    one.into_iter().chain(other).min()
}

/// Buffers that are kept for the next messages.
const SPARE_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::super::ChannelStats;
    use super::choose::TIMED_OUT_MAX;
    use super::*;
    use crate::channel::Channel;
    use crate::ring::LOOKS;

    fn looks(of: impl FnOnce()) -> u32 {
        LOOKS.set(0);
        of();
        LOOKS.get()
    }

    /// As many messages as may wait, of which each packet carries one.
    #[test]
    fn a_datagram_costs_the_same_however_many_messages_are_under_way() {
        for count in [16, 1 << 14] {
            let config = ChannelConfig {
                send_buffer: count,
                receive_buffer: count,
                messages_per_packet: 1,
                ..Channel::<[u8]>::unordered(0).config()
            };
            let mut sender = Sender::new(Arc::new(config), 8000);
            let (resend, mut stats) = (Duration::from_millis(100), ChannelStats::default());
            let at = |packet: u16| Time::from_micros(u64::from(packet));
            for _ in 0..count {
                sender.push(Time::ZERO, (&[7; 4], 32), None).unwrap();
            }
            for packet in 0..count {
                let chosen = looks(|| assert!(sender.choose(at(packet), resend, (8000, 128))));
                let left = looks(|| sender.commit(at(packet), Seq16(packet), &mut stats, drop));
                let next = if packet + 1 < count { at(packet) } else { at(0) + resend };
                let asked = looks(|| assert_eq!(sender.check(at(packet), resend), Some(next)));
                assert!(chosen <= 2 && left <= 3 && asked <= 1, "{chosen} {left} {asked}");
            }
            assert!(looks(|| sender.lost(Seq16(1), Seq16(1))) <= 6);
            assert!(looks(|| _ = sender.arrived(Seq16(count / 2))) <= 8);
            assert_eq!(sender.check(at(count), resend), Some(at(count)), "the lost one");
            assert!(looks(|| assert!(sender.choose(at(count), resend, (8000, 128)))) <= 2);
            assert_eq!(sender.chosen, [Seq16(1)]);
            sender.commit(at(count), Seq16(count), &mut stats, drop);
            assert!(
                looks(|| assert!(sender.choose(at(2) + resend, resend, (8000, 128)))) <= 20,
                "0 and 2 are too old"
            );
            assert_eq!(
                (sender.check(at(2) + resend, resend), &sender.chosen[..]),
                (Some(at(2) + resend), &[Seq16(0)][..])
            );
            assert!(
                looks(|| assert!(sender.choose(at(count - 1) + resend, resend, (8000, 128))))
                    <= 6 * u32::from(TIMED_OUT_MAX)
            );
        }
    }

    #[test]
    fn a_message_expires_at_the_same_cost_however_many_are_stored() {
        for count in [16, 1 << 14] {
            let config = ChannelConfig { send_buffer: count, ..Channel::<[u8]>::unordered(0).config() };
            let (mut sender, mut stats) = (Sender::new(Arc::new(config), 8000), ChannelStats::default());
            let at = |number: u16| Time::from_micros(u64::from(number));
            for number in 0..count {
                // The later half expires first.
                let lifetime = Duration::from_micros(u64::from(count - 1 - number));
                let pushed = looks(|| _ = sender.push(Time::ZERO, (&[7; 4], 32), Some(lifetime)).unwrap());
                assert!(pushed <= 1, "{pushed}");
            }
            for number in 0..count {
                assert_eq!(sender.check(at(0), Duration::ZERO), Some(at(0)));
                let looked = looks(|| sender.expire(at(number), &mut stats));
                assert!(looked <= 6, "{looked} for {number} of {count}");
                assert_eq!(stats.expired, u64::from(number) + 1);
            }
        }
    }

    #[test]
    fn times_of_messages_that_have_arrived_are_dropped() {
        let config = ChannelConfig { send_buffer: 64, ..Channel::<[u8]>::unordered(0).config() };
        let mut sender = Sender::new(Arc::new(config), 8000);
        let push = |sender: &mut Sender, secs| {
            let lifetime = Some(Duration::from_secs(secs));
            sender.push(Time::ZERO, (&[7; 4], 32), lifetime).unwrap().unwrap()
        };
        let mut first = push(&mut sender, 1);
        for _ in 0..1000 {
            for _ in 0..20 {
                let id = push(&mut sender, 3600);
                sender.arrived(id);
            }
            sender.arrived(first);
            assert_eq!(sender.expiry.as_ref().unwrap().first(), None);
            first = push(&mut sender, 1);
        }
        let expiry = sender.expiry.as_ref().unwrap();
        assert!(expiry.memory() < 10_000, "{}", expiry.memory());
        assert_eq!(expiry.first(), Some(Time::from_millis(1000)));
    }
}
