//! The segments received last, or those sent last that have not arrived.

use super::encoder::{Encoder, Source, symbol_head};
use super::repair::SYMBOL_HEAD;
use crate::ring::ByteRing;
use crate::seq::Sn;

/// Remembers the segments that were pushed last, up to a number of segments and a number of bytes.
///
/// They lie in a log in that order, each as its sn and its symbol. A table, indexed by the sn modulo the
/// capacity, says where in the log a segment is. If two share a place in the table, the later one wins.
#[derive(Clone, Debug)]
pub(crate) struct History {
    log: ByteRing,
    /// Positions in the log. Empty, or a power of two of them.
    places: Box<[Option<u32>]>,
    /// Segments in the log.
    count: usize,
    /// Most segments and most bytes that may be remembered.
    limits: (u16, u32),
}

/// A remembered segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    position: u32,
    len: u16,
}

impl History {
    /// Creates an empty history. It allocates nothing yet.
    pub(crate) fn new(segments: u16, bytes: u32) -> Self {
        Self { log: ByteRing::default(), places: Box::default(), count: 0, limits: (segments, bytes) }
    }

    /// Forgets everything, and frees its memory.
    pub(crate) fn clear(&mut self) {
        let (segments, bytes) = self.limits;
        *self = Self::new(segments, bytes);
    }

    pub(crate) const fn memory(&self) -> usize {
        self.log.memory() + self.places.len() * size_of::<Option<u32>>()
    }

    /// Remembers a segment unless it is already remembered. Drops the oldest ones as needed to make room.
    #[inline]
    pub(crate) fn push(&mut self, sn: Sn, frg: u8, data: &[u8]) {
        let Ok(len) = u16::try_from(data.len()) else { return };
        let (need, (segments, bytes)) = (ENTRY_HEAD + usize::from(len), self.limits);
        if need > bytes as usize || segments == 0 || self.find(sn).is_some() {
            return;
        }
        while self.count >= segments.into() || self.log.len() as usize + need > bytes as usize {
            self.forget_oldest();
        }
        if self.places.is_empty() {
            self.places = vec![None; usize::from(segments).next_power_of_two()].into();
        }
        let Some(position) = self.log.push(&entry_head(sn, len, frg)) else { return };
        self.log.push(data);
        self.count += 1;
        if let Some(place) = self.place(sn) {
            *place = Some(position);
        }
    }

    /// Finds the segment `sn` if it is remembered.
    #[inline]
    pub(super) fn find(&self, sn: Sn) -> Option<Held> {
        let index = sn.0 as usize & self.places.len().wrapping_sub(1);
        let position = (*self.places.get(index)?)?;
        let entry = self.entry(position);
        (entry.sn == sn).then_some(Held { position, len: entry.len })
    }

    /// Copies the symbol of a segment to `to`, whose length must match.
    #[inline]
    pub(super) fn copy_symbol(&self, held: Held, to: &mut [u8]) {
        self.log.copy_to(held.position.wrapping_add(SN_LEN), to);
    }

    /// Drops the oldest segments as long as they are before `sn`.
    pub(crate) fn forget_before(&mut self, sn: Sn) {
        while self.count > 0 && self.entry(self.log.start()).sn.is_before(sn) {
            self.forget_oldest();
        }
    }

    /// Drops the segment `sn`. Returns whether it was remembered.
    #[inline(never)]
    pub(crate) fn forget(&mut self, sn: Sn) -> bool {
        let Some(held) = self.find(sn) else { return false };
        if held.position == self.log.start() {
            self.forget_oldest();
        } else if let Some(place) = self.place(sn) {
            *place = None;
        }
        while self.oldest().is_some_and(|oldest| self.find(oldest).is_none()) {
            self.forget_oldest();
        }
        true
    }

    /// The number of the entry that was pushed first, whether or not it is still remembered.
    pub(crate) fn oldest(&self) -> Option<Sn> {
        (self.count > 0).then(|| self.entry(self.log.start()).sn)
    }

    /// Drops the oldest entry, which must exist.
    #[inline]
    fn forget_oldest(&mut self) {
        let position = self.log.start();
        let entry = self.entry(position);
        if let Some(place) = self.place(entry.sn)
            && *place == Some(position)
        {
            *place = None;
        }
        self.log.release(ENTRY_HEAD + usize::from(entry.len));
        self.count -= 1;
    }

    #[inline]
    fn entry(&self, position: u32) -> Entry {
        let [a, b, c, d, low, high, _] = self.log.reader(position).next_chunk();
        Entry { sn: Sn(u32::from_le_bytes([a, b, c, d])), len: u16::from_le_bytes([low, high]) }
    }

    #[inline]
    fn place(&mut self, sn: Sn) -> Option<&mut Option<u32>> {
        let index = sn.0 as usize & self.places.len().wrapping_sub(1);
        self.places.get_mut(index)
    }
}

impl Source for History {
    fn len_of(&self, sn: Sn) -> Option<u16> {
        self.find(sn).map(|held| held.len)
    }

    fn add_to(&self, encoder: &mut Encoder, sn: Sn) {
        if let Some(held) = self.find(sn) {
            encoder.add_symbol(sn, held.symbol_len(), |to| self.copy_symbol(held, to));
        }
    }
}

impl Held {
    /// Length of its symbol, bytes.
    #[inline]
    pub(super) fn symbol_len(self) -> usize {
        SYMBOL_HEAD + usize::from(self.len)
    }
}

/// The head of a log entry, without `frg`.
struct Entry {
    sn: Sn,
    len: u16,
}

#[inline]
fn entry_head(sn: Sn, len: u16, frg: u8) -> [u8; ENTRY_HEAD] {
    let ([a, b, c, d], [low, high, frg]) = (sn.0.to_le_bytes(), symbol_head(len, frg));
    [a, b, c, d, low, high, frg]
}

/// Bytes of an entry that precede its symbol.
const SN_LEN: u32 = 4;
/// Bytes of an entry that precede its data.
const ENTRY_HEAD: usize = 4 + SYMBOL_HEAD;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn it_keeps_the_latest_segments(
            start: u32,
            arrivals in prop::collection::vec((0..40u32, 0..200usize, any::<u8>()), 0..if cfg!(miri) { 15 } else { 300 }),
        ) {
            let (segments, bytes) = (16, 1500);
            let mut history = History::new(16, 1500);
            let mut model: VecDeque<(Sn, Vec<u8>)> = VecDeque::new();
            for (step, (offset, len, frg)) in arrivals.into_iter().enumerate() {
                let sn = Sn(start).add(offset + u32::try_from(step / 4).unwrap());
                let data = vec![frg ^ 0x55; len];
                let symbol = [&symbol_head(u16::try_from(len).unwrap(), frg)[..], &data].concat();
                history.push(sn, frg, &data);
                let seen = model.iter().rev().find(|(old, _)| old.0 % 16 == sn.0 % 16);
                if seen.is_none_or(|(old, _)| *old != sn) {
                    model.push_back((sn, symbol));
                }
                let held = |model: &VecDeque<(Sn, Vec<u8>)>| model.iter().map(|(_, symbol)| symbol.len() + 4).sum::<usize>();
                while model.len() > segments || held(&model) > bytes {
                    model.pop_front();
                }
                prop_assert_eq!(history.count, model.len());
                for (index, (sn, symbol)) in model.iter().enumerate() {
                    let shadowed = model.iter().skip(index + 1).any(|(later, _)| later.0 % 16 == sn.0 % 16);
                    let found = history.find(*sn).map(|held| {
                        let mut copy = vec![0; held.symbol_len()];
                        history.copy_symbol(held, &mut copy);
                        copy
                    });
                    if !shadowed {
                        prop_assert_eq!(found.as_ref(), Some(symbol));
                    }
                }
            }
        }
    }

    #[test]
    fn without_room_nothing_is_remembered() {
        for (segments, bytes) in [(0, 1000), (8, 10)] {
            let mut history = History::new(segments, bytes);
            history.push(Sn(1), 0, b"data");
            assert!(history.find(Sn(1)).is_none());
        }
    }

    #[test]
    fn forgetting_ends_at_the_first_that_is_not_before() {
        let mut history = History::new(8, 1000);
        for sn in [1, 3, 2, 0] {
            history.push(Sn(sn), 0, b"data");
        }
        history.forget_before(Sn(3));
        assert_eq!([0, 1, 2, 3].map(|sn| history.find(Sn(sn)).is_some()), [true, false, true, true]);
        history.forget_before(Sn(4));
        assert_eq!(history.count, 0);
    }
}
