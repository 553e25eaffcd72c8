//! Storage without searches: [`Ring`] for values keyed by segment number, [`SequenceBuffer`] for values keyed
//! by packet number, [`ByteRing`] for a queue of bytes. All grow as needed and then allocate nothing more.

mod bytes;
mod sequence;

pub(crate) use bytes::{BYTES_MAX, ByteRing, Reader};
#[cfg(test)]
pub(crate) use sequence::LOOKS;
pub use sequence::SequenceBuffer;

use crate::seq::{Seq16, Sn};
use std::collections::VecDeque;

/// Values keyed by segment number, with gaps. The numbers lie in one span `[start, end)`. A value is found by
/// its number modulo the capacity, never by a search.
///
/// After an idea in quinn-proto, `connection/sent_packets.rs`.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    /// Empty, or a power of two of them.
    slots: Box<[Option<T>]>,
    start: Sn,
    span: u32,
}

impl<T> Ring<T> {
    /// Creates an empty ring whose span begins at `start`. It allocates nothing yet.
    pub(crate) fn new(start: Sn) -> Self {
        Self { slots: Box::default(), start, span: 0 }
    }

    /// The oldest number in the span.
    #[inline]
    pub(crate) const fn start(&self) -> Sn {
        self.start
    }

    /// The number after the newest in the span.
    #[inline]
    pub(crate) const fn end(&self) -> Sn {
        self.start.add(self.span)
    }

    /// How many numbers the span has, whether or not a value is held.
    #[inline]
    pub(crate) const fn span(&self) -> u32 {
        self.span
    }

    pub(crate) const fn memory(&self) -> usize {
        self.slots.len() * size_of::<Option<T>>()
    }

    /// Whether the next number will need more memory.
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

    /// The value held at `sn`, mutable.
    #[inline]
    pub(crate) fn get_mut(&mut self, sn: Sn) -> Option<&mut T> {
        sn.offset_in(self.start, self.span)?;
        let index = self.index(sn);
        self.slots.get_mut(index)?.as_mut()
    }

    /// Stores `value` at `sn`, which must be at or after the start and less than 2^31 after it. The span and
    /// the memory grow to include it. Returns the value it replaces, or `value` itself if it was refused.
    #[inline]
    pub(crate) fn insert(&mut self, sn: Sn, value: T) -> Option<T> {
        match self.slot(sn) {
            Some(slot) => slot.replace(value),
            None => Some(value),
        }
    }

    /// Stores `value` at `sn`, as [`insert`](Self::insert) does, unless a value is held there. Returns
    /// `false` if it was refused.
    #[inline]
    pub(crate) fn insert_new(&mut self, sn: Sn, value: T) -> bool {
        match self.slot(sn) {
            Some(slot @ None) => *slot = Some(value),
            _ => return false,
        }
        true
    }

    /// The slot of `sn`; span and memory grow to include it. Returns `None` if `sn` lies before the start, or
    /// 2^31 or more after it.
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

    /// Stores `value` at the end of the span.
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

    /// Removes the first number from the span, and returns its value if there is one.
    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let index = self.index(self.start);
        self.span = self.span.checked_sub(1)?;
        self.start = self.start.add(1);
        self.slots.get_mut(index)?.take()
    }

    /// Removes numbers without a value from the front of the span.
    #[inline]
    pub(crate) fn trim(&mut self) {
        while self.span > 0 && self.get(self.start).is_none() {
            self.pop_front();
        }
    }

    /// Extends the span back to `start`, which is before it.
    #[cold]
    pub(crate) fn reach_back(&mut self, start: Sn) {
        let span = self.end().0.wrapping_sub(start.0);
        if span as usize > self.slots.len() {
            self.grow(span as usize);
        }
        (self.start, self.span) = (start, span);
    }

    /// Bytes of memory that a span of so many numbers would add.
    pub(crate) const fn growth(&self, span: u32) -> usize {
        if span as usize <= self.slots.len() {
            return 0;
        }
        (Self::room_for(span as usize) - self.slots.len()) * size_of::<Option<T>>()
    }

    /// Moves the start past its number, even if the span is empty, and returns the value held there.
    #[inline]
    pub(crate) fn step(&mut self) -> Option<T> {
        if self.span > 0 {
            return self.pop_front();
        }
        self.start = self.start.add(1);
        None
    }

    /// The values held, in no particular order. Visits every slot.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().flatten()
    }

    /// Removes every number before `end`, which must lie within the span, and passes the values that were
    /// held to `each`.
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

    /// The slots of the `count` numbers from `first` on, or fewer if the span ends before, in two parts.
    #[inline]
    pub(crate) fn slots_mut(&mut self, first: Sn, count: u32) -> [&mut [Option<T>]; 2] {
        let left = self.span.saturating_sub(first.0.wrapping_sub(self.start.0));
        let count = count.min(left) as usize;
        let (after, from) = self.slots.split_at_mut_checked(self.index(first)).unwrap_or_default();
        let in_first = count.min(from.len());
        [from.get_mut(..in_first).unwrap_or_default(), after.get_mut(..count - in_first).unwrap_or_default()]
    }

    /// The first number from `from` up to, but not including, `end` whose value is `wanted`. Both must be in
    /// the span or its end.
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

    /// Removes the value at `sn`; its number stays in the span.
    #[inline]
    pub(crate) fn remove(&mut self, sn: Sn) -> Option<T> {
        sn.offset_in(self.start, self.span)?;
        let index = self.index(sn);
        self.slots.get_mut(index)?.take()
    }

    /// Restarts with an empty span at `start`.
    pub(crate) fn restart(&mut self, start: Sn) {
        self.start = start;
        self.span = 0;
    }

    /// Frees the memory if the span is empty.
    pub(crate) fn shrink(&mut self) {
        if self.span == 0 {
            self.slots = Box::default();
        }
    }

    /// Makes room for a span of `need` numbers.
    #[cold]
    fn grow(&mut self, need: usize) {
        let fresh = std::iter::repeat_with(|| None).take(Self::room_for(need)).collect();
        let mut old = std::mem::replace(&mut self.slots, fresh);
        let mut sn = self.start;
        for _ in 0..old.len() {
            let place = sn.0 as usize & old.len().wrapping_sub(1);
            let (value, index) = (old.get_mut(place).and_then(Option::take), self.index(sn));
            if let Some(slot) = self.slots.get_mut(index) {
                *slot = value;
            }
            sn = sn.add(1);
        }
    }

    /// Slots for a span of `need` numbers.
    const fn room_for(need: usize) -> usize {
        let count = need.next_power_of_two();
        if count < SLOTS_MIN { SLOTS_MIN } else { count }
    }

    #[inline]
    const fn index(&self, sn: Sn) -> usize {
        sn.0 as usize & self.slots.len().wrapping_sub(1)
    }
}

/// Appends a number to a list of at most `most`. Returns `true` if the oldest one was dropped to make room.
pub(crate) fn push_newest(numbers: &mut VecDeque<Seq16>, sequence: Seq16, most: usize) -> bool {
    let is_full = numbers.len() >= most;
    if is_full {
        numbers.pop_front();
    }
    numbers.push_back(sequence);
    is_full
}

/// Slots in the smallest ring that is allocated.
const SLOTS_MIN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unused_ring_allocates_nothing() {
        assert_eq!(size_of::<Ring<[u64; 4]>>(), 2 * size_of::<usize>() + 8);
        assert!(Ring::<u64>::new(Sn(7)).slots.is_empty());
    }
}
