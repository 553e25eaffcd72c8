//! Storage without searches: [`Ring`] keeps what is keyed by a segment number, [`SequenceBuffer`] what
//! is by a packet number, [`ByteRing`] the bytes that come and go in order. All grow to what is asked
//! of them and allocate nothing after.

mod bytes;
mod sequence;

pub(crate) use bytes::{BYTES_MAX, ByteRing, Reader};
pub use sequence::SequenceBuffer;

use crate::seq::{Seq16, Sn};
use std::collections::VecDeque;

/// Values keyed by segment number, some missing. The numbers lie in one span `[start, end)`; a value
/// is found by its number modulo the capacity, never by a search.
///
/// Source of the idea: quinn-proto `connection/sent_packets.rs`.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    /// None, or a power of two of them.
    slots: Box<[Option<T>]>,
    start: Sn,
    span: u32,
}

impl<T> Ring<T> {
    /// An empty ring whose first number is `start`. It owns no memory yet.
    pub(crate) fn new(start: Sn) -> Self {
        Self { slots: Box::default(), start, span: 0 }
    }

    /// The oldest number of the span.
    #[inline]
    pub(crate) const fn start(&self) -> Sn {
        self.start
    }

    /// The number after the newest of the span.
    #[inline]
    pub(crate) const fn end(&self) -> Sn {
        self.start.add(self.span)
    }

    /// Numbers in the span, held or not.
    #[inline]
    pub(crate) const fn span(&self) -> u32 {
        self.span
    }

    pub(crate) const fn memory(&self) -> usize {
        self.slots.len() * size_of::<Option<T>>()
    }

    /// Whether another number takes more memory.
    #[inline]
    pub(crate) const fn is_full(&self) -> bool {
        self.span as usize == self.slots.len()
    }

    /// The value held at `sn`.
    #[inline]
    pub(crate) fn get(&self, sn: Sn) -> Option<&T> {
        sn.offset_in(self.start, self.span)?;
        self.slots.get(self.index(sn))?.as_ref()
    }

    /// The value held at `sn`, to change.
    #[inline]
    pub(crate) fn get_mut(&mut self, sn: Sn) -> Option<&mut T> {
        sn.offset_in(self.start, self.span)?;
        let index = self.index(sn);
        self.slots.get_mut(index)?.as_mut()
    }

    /// Holds `value` at `sn`, which must not lie before the start nor 2^31 or more after it; the
    /// span and the memory grow up to it. Returns what was held there, or the refused value.
    #[inline]
    pub(crate) fn insert(&mut self, sn: Sn, value: T) -> Option<T> {
        match self.slot(sn) {
            Some(slot) => slot.replace(value),
            None => Some(value),
        }
    }

    /// Holds `value` at `sn`, as [`insert`](Self::insert) does, if nothing is held there. `false`: it
    /// was refused.
    #[inline]
    pub(crate) fn insert_new(&mut self, sn: Sn, value: T) -> bool {
        match self.slot(sn) {
            Some(slot @ None) => *slot = Some(value),
            _ => return false,
        }
        true
    }

    /// The slot of `sn`, up to which span and memory grow; `None`: it lies before the start, or 2^31 or
    /// more after it.
    #[inline]
    fn slot(&mut self, sn: Sn) -> Option<&mut Option<T>> {
        let offset = sn.offset_in(self.start, 1 << 31)?;
        if offset >= self.span {
            if offset as usize >= self.slots.len() {
                self.grow(offset as usize + 1);
            }
            self.span = offset + 1;
        }
        let index = self.index(sn);
        self.slots.get_mut(index)
    }

    /// Holds `value` at the end of the span.
    #[inline]
    pub(crate) fn push_back(&mut self, value: T) {
        if self.is_full() {
            self.grow(self.slots.len() + 1);
        }
        let index = self.index(self.end());
        if let Some(slot) = self.slots.get_mut(index) {
            *slot = Some(value);
            self.span += 1;
        }
    }

    /// Takes the first number out of the span, and the value if one is held there.
    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let index = self.index(self.start);
        self.span = self.span.checked_sub(1)?;
        self.start = self.start.add(1);
        self.slots.get_mut(index)?.take()
    }

    /// Moves the start past its number, whether or not there is a span; takes the value.
    #[inline]
    pub(crate) fn step(&mut self) -> Option<T> {
        if self.span > 0 {
            return self.pop_front();
        }
        self.start = self.start.add(1);
        None
    }

    /// The values held, in no order; looks at every slot.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().flatten()
    }

    /// Takes every number before `end`, which lies within the span, out of it; `each` gets the
    /// values that were held.
    #[inline]
    pub(crate) fn pop_until(&mut self, end: Sn, mut each: impl FnMut(Sn, &T)) {
        let mut sn = self.start;
        for slots in self.slots_mut(sn, end.0.wrapping_sub(sn.0)) {
            for slot in slots {
                if let Some(value) = slot {
                    each(sn, value);
                }
                *slot = None;
                sn = sn.add(1);
            }
        }
        self.span -= sn.0.wrapping_sub(self.start.0);
        self.start = sn;
    }

    /// The slots of the `count` numbers from `first` on, fewer at the end of the span, in two parts.
    #[inline]
    pub(crate) fn slots_mut(&mut self, first: Sn, count: u32) -> [&mut [Option<T>]; 2] {
        let left = self.span.saturating_sub(first.0.wrapping_sub(self.start.0));
        let count = count.min(left) as usize;
        let (after, from) = self.slots.split_at_mut_checked(self.index(first)).unwrap_or_default();
        let in_first = count.min(from.len());
        [from.get_mut(..in_first).unwrap_or_default(), after.get_mut(..count - in_first).unwrap_or_default()]
    }

    /// The first number from `from` on and before `end`, both of the span or its end, whose value is
    /// `wanted`.
    #[inline]
    pub(crate) fn find(&self, from: Sn, end: Sn, wanted: impl Fn(&T) -> bool) -> Option<Sn> {
        let mut sn = from;
        while sn.is_before(end) {
            if self.slots.get(self.index(sn))?.as_ref().is_some_and(&wanted) {
                return Some(sn);
            }
            sn = sn.add(1);
        }
        None
    }

    /// Lets go of the value at `sn`; its number stays in the span.
    #[inline]
    pub(crate) fn remove(&mut self, sn: Sn) -> Option<T> {
        sn.offset_in(self.start, self.span)?;
        let index = self.index(sn);
        self.slots.get_mut(index)?.take()
    }

    /// Starts an empty span at `start`.
    pub(crate) fn restart(&mut self, start: Sn) {
        self.start = start;
        self.span = 0;
    }

    /// Gives the memory back when the span is empty.
    pub(crate) fn shrink(&mut self) {
        if self.span == 0 {
            self.slots = Box::default();
        }
    }

    /// Makes room for a span of `need`.
    #[cold]
    fn grow(&mut self, need: usize) {
        let count = need.next_power_of_two().max(SLOTS_MIN);
        let fresh = std::iter::repeat_with(|| None).take(count).collect();
        let mut old = std::mem::replace(&mut self.slots, fresh);
        let first = self.start.0 as usize & old.len().wrapping_sub(1);
        old.rotate_left(first.min(old.len()));
        let mut sn = self.start;
        for value in old {
            let index = self.index(sn);
            if let Some(slot) = self.slots.get_mut(index) {
                *slot = value;
            }
            sn = sn.add(1);
        }
    }

    #[inline]
    const fn index(&self, sn: Sn) -> usize {
        sn.0 as usize & self.slots.len().wrapping_sub(1)
    }
}

/// Appends a number to at most `most`; `true`: the oldest is gone for it.
pub(crate) fn push_newest(numbers: &mut VecDeque<Seq16>, sequence: Seq16, most: usize) -> bool {
    let is_full = numbers.len() >= most;
    if is_full {
        numbers.pop_front();
    }
    numbers.push_back(sequence);
    is_full
}

/// Slots of the smallest ring that owns memory.
const SLOTS_MIN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unused_ring_owns_no_memory() {
        assert_eq!(size_of::<Ring<[u64; 4]>>(), 24);
        assert!(Ring::<u64>::new(Sn(7)).slots.is_empty());
    }
}
