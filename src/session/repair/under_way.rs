//! The packets that a repair may cover.

use crate::code::{COVER_MAX, Encoder, REPAIR_HEAD, SYMBOL_HEAD, head_len};
use crate::ring::ByteRing;
use crate::seq::Sn;
use crate::time::Time;
use std::collections::VecDeque;

/// Packets that left lately and are not known to have arrived, with their bytes: the newest [`COVER_MAX`] numbers at most.
#[derive(Debug)]
pub(super) struct UnderWay {
    packets: VecDeque<Packet>,
    log: ByteRing,
    /// Most bytes of them.
    most: usize,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    pn: u64,
    at: Time,
    position: u32,
    len: u16,
    has_arrived: bool,
}

/// What a repair covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cover {
    /// The first packet.
    pub(super) first: u64,
    /// Bit i for the i-th after the first.
    set: u64,
    /// Packets covered.
    pub(super) count: u32,
    /// Bytes of the payload of the repair.
    pub(super) len: usize,
}

impl UnderWay {
    pub(super) fn new(most: usize) -> Self {
        Self { packets: VecDeque::new(), log: ByteRing::default(), most }
    }

    /// Remembers a packet that leaves now.
    pub(super) fn push(&mut self, now: Time, pn: u64, body: &[u8]) {
        let Ok(len) = u16::try_from(body.len()) else { return };
        if body.len() > self.most {
            return;
        }
        while let Some(oldest) = self.packets.front()
            && (pn - oldest.pn >= COVER_MAX.into() || self.log.len() as usize + body.len() > self.most)
        {
            self.pop();
        }
        let Some(position) = self.log.push(body) else { return };
        self.packets.push_back(Packet { pn, at: now, position, len, has_arrived: false });
    }

    /// The packet `pn` has arrived, or was rebuilt; whether that is news.
    pub(super) fn arrived(&mut self, pn: u64) -> bool {
        if self.packets.front().is_none_or(|oldest| pn < oldest.pn) {
            return false; // as most that an acknowledgement tells of
        }
        let found = self.packets.binary_search_by_key(&pn, |packet| packet.pn).ok();
        let Some(packet) = found.and_then(|index| self.packets.get_mut(index)) else { return false };
        let is_news = !std::mem::replace(&mut packet.has_arrived, true);
        while self.packets.front().is_some_and(|oldest| oldest.has_arrived) {
            self.pop();
        }
        is_news
    }

    /// Forgets what left before `since`: by now it was sent again, or is of no use.
    pub(super) fn forget_before(&mut self, since: Time) {
        while self.packets.front().is_some_and(|oldest| oldest.at < since) {
            self.pop();
        }
    }

    /// What a repair in the packet `carrier` may cover; `None`: nothing.
    pub(super) fn cover(&self, carrier: u64) -> Option<Cover> {
        let (mut first, mut set, mut count, mut longest) = (0, 0_u64, 0, 0);
        let before = |packet: &&Packet| packet.pn < carrier && !packet.has_arrived;
        for packet in self.packets.iter().rev().filter(before).take(COVER) {
            set = if set == 0 { 1 } else { set << (first - packet.pn) | 1 };
            (first, count, longest) = (packet.pn, count + 1, longest.max(packet.len));
        }
        let head = REPAIR_FIRST_HEAD + head_len(set) - REPAIR_HEAD;
        (set != 0).then_some(Cover { first, set, count, len: head + usize::from(longest) })
    }

    /// Gives the encoder what is covered.
    pub(super) fn add_to(&self, encoder: &mut Encoder, cover: &Cover) {
        for packet in &self.packets {
            let offset = packet.pn.checked_sub(cover.first).and_then(|offset| u32::try_from(offset).ok());
            let is_covered = offset.and_then(|offset| cover.set.checked_shr(offset)).unwrap_or(0) & 1 == 1;
            if is_covered {
                encoder.add(low(packet.pn), 0, packet.len, |to| self.log.copy_to(packet.position, to));
            }
        }
    }

    /// Bytes of the heap.
    pub(super) fn memory(&self) -> usize {
        self.packets.capacity() * size_of::<Packet>() + self.log.memory()
    }

    fn pop(&mut self) {
        if let Some(packet) = self.packets.pop_front() {
            self.log.release(packet.len.into());
        }
    }
}

/// The number of a packet as one of a segment: its low half.
#[expect(clippy::cast_possible_truncation, reason = "the low half")]
pub(super) const fn low(pn: u64) -> Sn {
    Sn(pn as u32)
}

/// Packets that a repair covers at most.
const COVER: usize = COVER_MAX as usize / 2;
/// Bytes of the payload of a repair before the longest packet, without a set.
const REPAIR_FIRST_HEAD: usize = REPAIR_HEAD + SYMBOL_HEAD;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_arrived_is_covered_no_more_and_what_is_old_neither() {
        let mut under_way = UnderWay::new(1000);
        assert!(under_way.cover(10).is_none());
        for pn in [3, 4, 6, 9] {
            under_way.push(Time::from_millis(pn), pn, &[7; 10]);
        }
        let covered = |under_way: &UnderWay| under_way.cover(9).map(|cover| (cover.first, cover.set));
        assert_eq!(covered(&under_way), Some((3, 0b1011)));
        assert!(under_way.arrived(4) && !under_way.arrived(4) && !under_way.arrived(5));
        assert_eq!(covered(&under_way), Some((3, 0b1001)));
        under_way.forget_before(Time::from_millis(4));
        assert_eq!(covered(&under_way), Some((6, 1)));
        assert!(under_way.arrived(6));
        assert_eq!((covered(&under_way), under_way.log.len()), (None, 10));
        for pn in 10..200 {
            under_way.push(Time::ZERO, pn, &[7; 10]);
            assert!(under_way.packets.len() <= COVER_MAX.into() && under_way.log.len() <= 1000);
        }
        assert_eq!(under_way.cover(200).unwrap().count, 32);
    }
}
