//! Which messages went in which packet.

use crate::ring::SequenceBuffer;
use crate::seq::Seq16;

/// The ids of the messages in each of the newest packets, in a ring. Messages whose entries are overwritten there are
/// never acknowledged, so they are sent again.
#[derive(Debug)]
pub(super) struct Carried {
    packets: SequenceBuffer<Entries>,
    /// Channel and id. Empty, or a power of two in length, which grows up to `size`.
    log: Box<[(u8, Seq16)]>,
    size: u32,
    /// Where in the log the next entry goes, modulo its length.
    pub(super) end: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entries {
    start: u32,
    count: u32,
}

impl Carried {
    /// For the newest `packets`, each with at most `per_packet` messages.
    pub(super) fn new(packets: u16, per_packet: u32) -> Self {
        let messages = per_packet.max(MESSAGES * u32::from(packets));
        Self {
            packets: SequenceBuffer::new(packets),
            log: Box::default(),
            size: messages.next_power_of_two(),
            end: 0,
        }
    }

    /// Notes that the next packet carries a message; `start` is the `end` before the first of its messages.
    pub(super) fn push(&mut self, start: u32, channel: u8, id: Seq16) {
        let held = self.end.wrapping_sub(self.packets.oldest().map_or(start, |oldest| oldest.start));
        if held as usize >= self.log.len() && self.log.len() < self.size as usize {
            self.grow();
        }
        let index = self.index(self.end);
        if let Some(entry) = self.log.get_mut(index) {
            *entry = (channel, id);
        }
        self.end = self.end.wrapping_add(1);
    }

    /// Gives the packet its number; `start` as for [`push`](Self::push).
    pub(super) fn finish(&mut self, sequence: Seq16, start: u32) {
        match self.end.wrapping_sub(start) {
            0 => self.packets.advance(sequence, drop),
            count => _ = self.packets.insert(sequence, Entries { start, count }),
        }
    }

    /// Doubles the log. What is in it keeps its position.
    #[cold]
    fn grow(&mut self) {
        let old = std::mem::take(&mut self.log);
        let len = (2 * old.len()).clamp(LOG_MIN, self.size as usize);
        self.log = vec![(0, Seq16(0)); len].into();
        let mut position = self.end;
        for _ in 0..old.len() {
            position = position.wrapping_sub(1);
            let index = self.index(position);
            if let (Some(from), Some(to)) =
                (old.get(position as usize & (old.len() - 1)), self.log.get_mut(index))
            {
                *to = *from;
            }
        }
    }

    pub(super) fn reset(&mut self) {
        self.packets.reset();
        (self.log, self.end) = (Box::default(), 0);
    }

    pub(super) const fn memory(&self) -> usize {
        self.packets.memory() + self.log.len() * size_of::<(u8, Seq16)>()
    }

    /// Takes the messages of a packet.
    pub(super) fn remove(&mut self, sequence: Seq16) -> impl Iterator<Item = (u8, Seq16)> {
        let entries = self.packets.remove(sequence);
        self.entries(entries)
    }

    pub(super) fn forget_before(&mut self, sequence: Seq16) {
        self.packets.forget_before(sequence);
    }

    /// The messages of a packet, which stay.
    pub(super) fn of(&self, sequence: Seq16) -> impl Iterator<Item = (u8, Seq16)> {
        self.entries(self.packets.get(sequence).copied())
    }

    fn entries(&self, entries: Option<Entries>) -> impl Iterator<Item = (u8, Seq16)> {
        let Entries { start, count } = entries.unwrap_or(Entries { start: 0, count: 0 });
        let is_kept = self.end.wrapping_sub(start) as usize <= self.log.len();
        let count = if is_kept { count } else { 0 };
        (0..count).filter_map(move |offset| self.log.get(self.index(start.wrapping_add(offset))).copied())
    }

    const fn index(&self, position: u32) -> usize {
        position as usize & self.log.len().wrapping_sub(1)
    }
}

/// Messages per packet that there is room for, on average.
const MESSAGES: u32 = 8;
/// Entries of the shortest log.
const LOG_MIN: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn send(carried: &mut Carried, sequence: u16, ids: u16) {
        let start = carried.end;
        (0..ids).for_each(|id| carried.push(start, 3, Seq16(id)));
        carried.finish(Seq16(sequence), start);
    }

    #[test]
    fn a_packet_whose_messages_are_overwritten_has_none() {
        let mut carried = Carried::new(64, 10);
        carried.end = u32::MAX - 100;
        send(&mut carried, 0, 12);
        (1..51).for_each(|sequence| send(&mut carried, sequence, 10));
        assert_eq!(carried.remove(Seq16(0)).count(), 12, "512 of 512");
        send(&mut carried, 51, 20);
        assert_eq!((carried.remove(Seq16(1)).count(), carried.remove(Seq16(2)).count()), (0, 10));
    }
}
