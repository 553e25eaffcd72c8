//! Storage without searches: [`Ring`] keeps what is keyed by a segment number, [`ByteRing`] the
//! bytes that come and go in order. Both grow to what is asked of them and allocate nothing after.

use crate::seq::Sn;
use std::array;

/// Values keyed by segment number, some missing. The held numbers lie in one span
/// `[start, end)`; a value is found by its number modulo the capacity, never by a walk.
///
/// A word a [`Block`] says which of its slots are held, so that a walk over what is held skips
/// what is not. Source of the idea: quinn-proto `connection/sent_packets.rs`.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    /// None, or a power of two of them.
    blocks: Box<[Block<T>]>,
    start: Sn,
    span: u32,
}

/// Neighbours by number, and which of them are there.
#[derive(Clone, Debug)]
struct Block<T> {
    held: u32,
    slots: [T; BLOCK as usize],
}

/// Slots of a [`Block`]: the bits of its word.
const BLOCK: u32 = u32::BITS;

impl<T: Default> Ring<T> {
    /// An empty ring whose first number is `start`. It owns no memory yet.
    #[must_use]
    pub fn new(start: Sn) -> Self {
        Self { blocks: Box::default(), start, span: 0 }
    }

    /// The oldest number of the span.
    #[must_use]
    pub const fn start(&self) -> Sn {
        self.start
    }

    /// The number after the newest of the span.
    #[must_use]
    pub const fn end(&self) -> Sn {
        self.start.add(self.span)
    }

    /// Whether nothing is in the span.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.span == 0
    }

    /// The value held at `sn`.
    #[must_use]
    pub fn get(&self, sn: Sn) -> Option<&T> {
        sn.offset_in(self.start, self.span)?;
        let block = self.blocks.get(self.block_of(sn))?;
        let slot = block.slots.get(slot_of(sn))?;
        (block.held & bit_of(sn) != 0).then_some(slot)
    }

    /// The value held at `sn`, to change.
    #[must_use]
    pub fn get_mut(&mut self, sn: Sn) -> Option<&mut T> {
        sn.offset_in(self.start, self.span)?;
        let index = self.block_of(sn);
        let block = self.blocks.get_mut(index)?;
        let slot = block.slots.get_mut(slot_of(sn))?;
        (block.held & bit_of(sn) != 0).then_some(slot)
    }

    /// Holds `value` at `sn`, which must not lie before the start nor 2^31 or more after it; the
    /// span and the memory grow up to it. Returns what was held there, or the refused value.
    pub fn insert(&mut self, sn: Sn, value: T) -> Option<T> {
        let Some(offset) = sn.offset_in(self.start, 1 << 31) else {
            return Some(value);
        };
        if offset >= self.span {
            self.span = offset + 1;
            if self.span > self.capacity() {
                self.grow();
            }
        }
        let index = self.block_of(sn);
        let block = self.blocks.get_mut(index)?;
        let slot = block.slots.get_mut(slot_of(sn))?;
        let was_held = block.held & bit_of(sn) != 0;
        block.held |= bit_of(sn);
        let old = std::mem::replace(slot, value);
        was_held.then_some(old)
    }

    /// Holds `value` at the end of the span.
    pub fn push_back(&mut self, value: T) {
        self.insert(self.end(), value);
    }

    /// Lets go of the value at `sn`; its number stays in the span.
    pub fn remove(&mut self, sn: Sn) -> Option<T> {
        sn.offset_in(self.start, self.span)?;
        let index = self.block_of(sn);
        let block = self.blocks.get_mut(index)?;
        let slot = block.slots.get_mut(slot_of(sn))?;
        let was_held = block.held & bit_of(sn) != 0;
        block.held &= !bit_of(sn);
        was_held.then(|| std::mem::take(slot))
    }

    /// Moves the start up to `sn`, within the span. What lies before must have been removed.
    pub fn advance(&mut self, sn: Sn) {
        if let Some(offset) = sn.offset_in(self.start, self.span + 1) {
            debug_assert!(self.next_held(self.start, sn).is_none(), "advanced over a held value");
            self.start = sn;
            self.span -= offset;
        }
    }

    /// The first held number in `[from, to)`; both within the span.
    #[must_use]
    pub fn next_held(&self, from: Sn, to: Sn) -> Option<Sn> {
        let mut left = u32::try_from(to.distance(from)).unwrap_or(0);
        let mut sn = from;
        while left > 0 {
            let in_block = BLOCK - sn.0 % BLOCK;
            let held = self.blocks.get(self.block_of(sn))?.held >> (sn.0 % BLOCK);
            if held != 0 {
                let skip = held.trailing_zeros();
                return (skip < left).then_some(sn.add(skip));
            }
            left = left.saturating_sub(in_block);
            sn = sn.add(in_block);
        }
        None
    }

    /// Gives the memory back when nothing is in the span.
    pub fn shrink(&mut self) {
        if self.is_empty() {
            self.blocks = Box::default();
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the span is at most 2^31, so are the slots")]
    fn capacity(&self) -> u32 {
        (self.blocks.len() as u32).saturating_mul(BLOCK)
    }

    /// Makes room for the span, whose last number is not held yet.
    #[cold]
    fn grow(&mut self) {
        let count = self.span.div_ceil(BLOCK).next_power_of_two() as usize;
        let fresh = (0..count).map(|_| Block { held: 0, slots: array::from_fn(|_| T::default()) }).collect();
        let mut old = Self { blocks: std::mem::replace(&mut self.blocks, fresh), ..*self };
        let (mut sn, end) = (self.start, self.start.add(old.capacity()));
        while let Some(held) = old.next_held(sn, end) {
            sn = held.add(1);
            let value = old.remove(held).unwrap_or_default();
            let index = self.block_of(held);
            if let Some(block) = self.blocks.get_mut(index)
                && let Some(slot) = block.slots.get_mut(slot_of(held))
            {
                block.held |= bit_of(held);
                *slot = value;
            }
        }
    }

    const fn block_of(&self, sn: Sn) -> usize {
        (sn.0 / BLOCK) as usize & self.blocks.len().wrapping_sub(1)
    }
}

const fn slot_of(sn: Sn) -> usize {
    (sn.0 % BLOCK) as usize
}

const fn bit_of(sn: Sn) -> u32 {
    1 << (sn.0 % BLOCK)
}

/// Bytes that come in at one end and go at the other, named by their position: the count of bytes
/// pushed before them, wrapping at 2^32.
#[derive(Clone, Debug, Default)]
pub struct ByteRing {
    buf: Box<[u8]>,
    /// Where in `buf` the oldest byte is.
    head: u32,
    len: u32,
    /// Position of the oldest byte.
    start: u32,
}

impl ByteRing {
    /// Position of the oldest byte held.
    #[must_use]
    pub const fn start(&self) -> u32 {
        self.start
    }

    /// Position of the byte that is pushed next.
    #[must_use]
    pub const fn end(&self) -> u32 {
        self.start.wrapping_add(self.len)
    }

    /// Bytes held.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether no byte is held.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends `bytes` and returns their position. The owner keeps the total below 2^31.
    pub fn push(&mut self, bytes: &[u8]) -> u32 {
        let position = self.end();
        let Ok(more) = u32::try_from(bytes.len()) else {
            return position;
        };
        let need = self.len.saturating_add(more);
        if need as usize > self.buf.len() {
            self.grow(need);
        }
        let at = self.index(self.len);
        self.len = need;
        let before_the_edge = bytes.len().min(self.buf.len() - at);
        if let Some((first, second)) = bytes.split_at_checked(before_the_edge) {
            if let Some(room) = self.buf.get_mut(at..at + first.len()) {
                room.copy_from_slice(first);
            }
            if !second.is_empty()
                && let Some(room) = self.buf.get_mut(..second.len())
            {
                room.copy_from_slice(second);
            }
        }
        position
    }

    /// The `len` bytes at `position`, in two parts where they lie across the edge of the buffer.
    /// Empty when they are not held.
    #[must_use]
    pub fn slices(&self, position: u32, len: usize) -> (&[u8], &[u8]) {
        let offset = position.wrapping_sub(self.start);
        if offset as usize + len > self.len as usize {
            return (&[], &[]);
        }
        let at = self.index(offset);
        let end = at + len;
        match self.buf.get(at..end) {
            Some(whole) => (whole, &[]),
            None => (
                self.buf.get(at..).unwrap_or_default(),
                self.buf.get(..end.wrapping_sub(self.buf.len())).unwrap_or_default(),
            ),
        }
    }

    /// Lets go of all bytes before `position`.
    pub fn release_to(&mut self, position: u32) {
        let count = position.wrapping_sub(self.start);
        if count <= self.len {
            self.head = u32::try_from(self.index(count)).unwrap_or(0);
            self.start = position;
            self.len -= count;
        }
    }

    /// Gives the memory back when no byte is held.
    pub fn shrink(&mut self) {
        if self.is_empty() {
            self.buf = Box::default();
            self.head = 0;
        }
    }

    /// Where in `buf` the byte `offset` after the oldest one is or will be.
    const fn index(&self, offset: u32) -> usize {
        let index = self.head as usize + offset as usize;
        if index >= self.buf.len() { index - self.buf.len() } else { index }
    }

    /// In small steps, so that what is never used stays under 1/16.
    #[cold]
    fn grow(&mut self, need: u32) {
        let mut buf = vec![0; need as usize + need as usize / 16 + 64].into_boxed_slice();
        let (first, second) = self.slices(self.start, self.len as usize);
        if let Some((to_first, rest)) = buf.split_at_mut_checked(first.len()) {
            to_first.copy_from_slice(first);
            if let Some(to_second) = rest.get_mut(..second.len()) {
                to_second.copy_from_slice(second);
            }
        }
        self.buf = buf;
        self.head = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, VecDeque};

    #[test]
    fn an_unused_ring_owns_no_memory() {
        assert_eq!(size_of::<Ring<[u64; 4]>>(), 24);
        assert!(Ring::<u64>::new(Sn(7)).blocks.is_empty());
        assert!(ByteRing::default().buf.is_empty());
    }

    #[derive(Clone, Debug)]
    enum Op {
        Insert(u32),
        Remove(u32),
        AdvanceToHeld,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => (0..200u32).prop_map(Op::Insert),
            4 => (0..200u32).prop_map(Op::Remove),
            1 => Just(Op::AdvanceToHeld),
        ]
    }

    proptest! {
        #[test]
        fn ring_behaves_like_a_map(start: u32, ops in prop::collection::vec(op(), 1..400)) {
            let mut ring = Ring::new(Sn(start));
            let mut model = BTreeMap::new(); // by distance from the first start
            let mut base = 0;
            for (value, op) in ops.into_iter().enumerate() {
                match op {
                    Op::Insert(offset) => {
                        prop_assert_eq!(ring.insert(Sn(start).add(base + offset), value), model.insert(base + offset, value));
                    }
                    Op::Remove(offset) => {
                        prop_assert_eq!(ring.remove(Sn(start).add(base + offset)), model.remove(&(base + offset)));
                    }
                    Op::AdvanceToHeld => {
                        let to = ring.next_held(ring.start(), ring.end()).unwrap_or(ring.end());
                        ring.advance(to);
                        base = to.0.wrapping_sub(start);
                        prop_assert!(model.keys().all(|&key| key >= base));
                    }
                }
                let (mut sn, mut held) = (ring.start(), Vec::new());
                while let Some(found) = ring.next_held(sn, ring.end()) {
                    held.push((found.0.wrapping_sub(start), *ring.get(found).unwrap()));
                    sn = found.add(1);
                }
                prop_assert_eq!(held, model.clone().into_iter().collect::<Vec<_>>());
            }
        }

        #[test]
        fn byte_ring_behaves_like_a_queue(ops in prop::collection::vec((any::<u8>(), 0..300usize, 0..400u32), 1..100)) {
            let mut ring = ByteRing { start: u32::MAX - 500, ..ByteRing::default() };
            let mut model = VecDeque::new();
            for (byte, count, release) in ops {
                let position = ring.push(&vec![byte; count]);
                prop_assert_eq!(position.wrapping_add(u32::try_from(count).unwrap()), ring.end());
                model.extend(std::iter::repeat_n(byte, count));
                let release = release.min(ring.len());
                ring.release_to(ring.start.wrapping_add(release));
                model.drain(..release as usize);
                let (first, second) = ring.slices(ring.start, model.len());
                prop_assert!(first.iter().chain(second).eq(model.iter()));
                prop_assert!(ring.slices(ring.start, model.len() + 1).0.is_empty());
            }
        }
    }
}
