//! Storage without searches: [`Ring`] keeps what is keyed by a segment number, [`ByteRing`] the
//! bytes that come and go in order. Both grow to what is asked of them and allocate nothing after.

use crate::seq::Sn;

/// Values keyed by segment number, some missing. The numbers lie in one span `[start, end)`; a value
/// is found by its number modulo the capacity, never by a search.
///
/// Source of the idea: quinn-proto `connection/sent_packets.rs`.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    /// None, or a power of two of them.
    slots: Box<[Option<T>]>,
    start: Sn,
    span: u32,
}

impl<T> Ring<T> {
    /// An empty ring whose first number is `start`. It owns no memory yet.
    #[must_use]
    pub fn new(start: Sn) -> Self {
        Self { slots: Box::default(), start, span: 0 }
    }

    /// The oldest number of the span.
    #[inline]
    #[must_use]
    pub const fn start(&self) -> Sn {
        self.start
    }

    /// The number after the newest of the span.
    #[inline]
    #[must_use]
    pub const fn end(&self) -> Sn {
        self.start.add(self.span)
    }

    /// Numbers in the span, held or not.
    #[inline]
    #[must_use]
    pub const fn span(&self) -> u32 {
        self.span
    }

    /// The value held at `sn`.
    #[inline]
    #[must_use]
    pub fn get(&self, sn: Sn) -> Option<&T> {
        sn.offset_in(self.start, self.span)?;
        self.slots.get(self.index(sn))?.as_ref()
    }

    /// The value held at `sn`, to change.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, sn: Sn) -> Option<&mut T> {
        sn.offset_in(self.start, self.span)?;
        let index = self.index(sn);
        self.slots.get_mut(index)?.as_mut()
    }

    /// Holds `value` at `sn`, which must not lie before the start nor 2^31 or more after it; the
    /// span and the memory grow up to it. Returns what was held there, or the refused value.
    #[inline]
    pub fn insert(&mut self, sn: Sn, value: T) -> Option<T> {
        let Some(offset) = sn.offset_in(self.start, 1 << 31) else {
            return Some(value);
        };
        if offset >= self.span {
            while offset as usize >= self.slots.len() {
                self.grow();
            }
            self.span = offset + 1;
        }
        let index = self.index(sn);
        self.slots.get_mut(index)?.replace(value)
    }

    /// Holds `value` at the end of the span.
    #[inline]
    pub fn push_back(&mut self, value: T) {
        if self.span as usize == self.slots.len() {
            self.grow();
        }
        let index = self.index(self.end());
        if let Some(slot) = self.slots.get_mut(index) {
            *slot = Some(value);
            self.span += 1;
        }
    }

    /// Takes the first number out of the span, and the value if one is held there.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let index = self.index(self.start);
        self.span = self.span.checked_sub(1)?;
        self.start = self.start.add(1);
        self.slots.get_mut(index)?.take()
    }

    /// Takes every number before `end`, which lies within the span, out of it; `each` gets the
    /// values that were held.
    #[inline]
    pub fn pop_until(&mut self, end: Sn, mut each: impl FnMut(Sn, &T)) {
        let mut sn = self.start;
        while sn != end {
            let index = self.index(sn);
            let Some(slot) = self.slots.get_mut(index) else { break };
            if let Some(value) = slot {
                each(sn, value);
            }
            *slot = None;
            sn = sn.add(1);
        }
        self.span = self.span.saturating_sub(sn.0.wrapping_sub(self.start.0));
        self.start = sn;
    }

    /// Lets go of the value at `sn`; its number stays in the span.
    #[inline]
    pub fn remove(&mut self, sn: Sn) -> Option<T> {
        sn.offset_in(self.start, self.span)?;
        let index = self.index(sn);
        self.slots.get_mut(index)?.take()
    }

    /// The first held number of `[from, to)`, which lies within the span.
    #[inline]
    #[must_use]
    pub fn next_held(&self, from: Sn, to: Sn) -> Option<Sn> {
        let left = u32::try_from(to.distance(from)).ok()?;
        let slots = self.slots.get(self.index(from)..)?;
        let until_the_edge = slots.len().min(left as usize);
        if let Some(skip) = slots.get(..until_the_edge)?.iter().position(Option::is_some) {
            return Some(from.add(skip as u32));
        }
        let after = from.add(until_the_edge as u32);
        let across = self.slots.get(..(left as usize) - until_the_edge)?;
        across.iter().position(Option::is_some).map(|skip| after.add(skip as u32))
    }

    /// Starts an empty span at `start`.
    pub fn restart(&mut self, start: Sn) {
        self.start = start;
        self.span = 0;
    }

    /// Gives the memory back when the span is empty.
    pub fn shrink(&mut self) {
        if self.span == 0 {
            self.slots = Box::default();
        }
    }

    /// Doubles the capacity.
    #[cold]
    fn grow(&mut self) {
        let count = (2 * self.slots.len()).max(SLOTS_MIN);
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

/// Slots of the smallest ring that owns memory.
const SLOTS_MIN: usize = 8;

/// Bytes that come in at one end and go at the other, named by their position: the count of bytes
/// pushed before them, wrapping at 2^32.
#[derive(Clone, Debug, Default)]
pub struct ByteRing {
    buf: Box<[u8]>,
    /// Where in `buf` the oldest byte is.
    head: u32,
    /// Where in `buf` the next byte goes; the end of `buf` is as good as its start.
    tail: u32,
    len: u32,
    /// Position of the oldest byte.
    start: u32,
}

/// Most bytes that a [`ByteRing`] holds: positions are compared over half their range.
pub const BYTES_MAX: usize = i32::MAX as usize;

impl ByteRing {
    /// Position of the oldest byte held.
    #[inline]
    #[must_use]
    pub const fn start(&self) -> u32 {
        self.start
    }

    /// Position of the byte that is pushed next.
    #[inline]
    #[must_use]
    pub const fn end(&self) -> u32 {
        self.start.wrapping_add(self.len)
    }

    /// Bytes held.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether no byte is held.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends `bytes` and returns their position; `None`: there would be more than [`BYTES_MAX`].
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) -> Option<u32> {
        self.push_both([], bytes)
    }

    /// Appends `head` and `bytes`, and returns the position of `bytes`; `None`: there would be more
    /// than [`BYTES_MAX`].
    #[inline(always)]
    pub fn push_both<const N: usize>(&mut self, head: [u8; N], bytes: &[u8]) -> Option<u32> {
        let len = N + bytes.len();
        let position = self.end().wrapping_add(N as u32);
        let at = self.tail as usize;
        if len <= self.buf.len() - self.len as usize
            && let Some(room) = self.buf.get_mut(at..at.wrapping_add(len))
            && let Some((to_head, to_bytes)) = room.split_first_chunk_mut()
        {
            self.tail += len as u32;
            self.len += len as u32;
            *to_head = head;
            to_bytes.copy_from_slice(bytes);
            return Some(position);
        }
        self.append_both(&head, bytes).then_some(position)
    }

    /// The `N` oldest bytes; `None` where fewer are held, or they lie across the edge of the buffer.
    #[inline]
    #[must_use]
    pub fn front<const N: usize>(&self) -> Option<&[u8; N]> {
        if (self.len as usize) < N {
            return None;
        }
        self.buf.get(self.head as usize..)?.first_chunk()
    }

    /// Copies the bytes from `position` on, which must be held, to the whole of `to`.
    #[inline(always)]
    pub fn copy_to(&self, position: u32, to: &mut [u8]) {
        let at = self.index(position);
        match self.buf.get(at..at.wrapping_add(to.len())) {
            Some(from) => to.copy_from_slice(from),
            None => self.copy_across_the_edge(at, to),
        }
    }

    /// Lets go of the `skip` oldest bytes and copies those after them to the whole of `to`, which
    /// lets go of them as well. All must be held.
    #[inline(always)]
    pub fn pop_front(&mut self, skip: u32, to: &mut [u8]) {
        let at = self.index(self.start.wrapping_add(skip));
        let Some(from) = self.buf.get(at..at.wrapping_add(to.len())) else {
            return self.pop_across_the_edge(skip, to);
        };
        let gone = skip + from.len() as u32;
        self.head = (at + from.len()) as u32;
        self.start = self.start.wrapping_add(gone);
        self.len -= gone;
        to.copy_from_slice(from);
    }

    #[cold]
    fn pop_across_the_edge(&mut self, skip: u32, to: &mut [u8]) {
        let position = self.start.wrapping_add(skip);
        self.copy_to(position, to);
        self.release_to(position.wrapping_add(to.len() as u32));
    }

    #[cold]
    fn copy_across_the_edge(&self, at: usize, to: &mut [u8]) {
        let from = self.buf.get(at..).unwrap_or_default();
        if let Some((first, second)) = to.split_at_mut_checked(from.len()) {
            first.copy_from_slice(from);
            if let Some(from) = self.buf.get(..second.len()) {
                second.copy_from_slice(from);
            }
        }
    }

    /// Lets go of all bytes before `position`, which is held or the end.
    #[inline]
    pub fn release_to(&mut self, position: u32) {
        self.release(position.wrapping_sub(self.start));
    }

    /// Lets go of the `count` oldest bytes, which are held.
    #[inline]
    pub fn release(&mut self, count: u32) {
        let index = self.head as usize + count as usize;
        self.head = if index >= self.buf.len() { index - self.buf.len() } else { index } as u32;
        self.len = self.len.wrapping_sub(count);
        self.start = self.start.wrapping_add(count);
    }

    /// Gives the memory back when no byte is held.
    pub fn shrink(&mut self) {
        if self.is_empty() {
            *self = Self { start: self.start, ..Self::default() };
        }
    }

    /// Where in `buf` the byte at `position` is or will be.
    #[inline]
    const fn index(&self, position: u32) -> usize {
        let index = self.head as usize + position.wrapping_sub(self.start) as usize;
        if index >= self.buf.len() { index - self.buf.len() } else { index }
    }

    /// Appends both across the edge or into a larger buffer. `false`: there is no room.
    #[cold]
    fn append_both(&mut self, head: &[u8], bytes: &[u8]) -> bool {
        let need = self.len as usize + head.len() + bytes.len();
        if need > BYTES_MAX {
            return false;
        }
        if need > self.buf.len() {
            self.grow(need);
        }
        self.append(head);
        self.append(bytes);
        true
    }

    fn append(&mut self, bytes: &[u8]) {
        let at = self.index(self.end());
        let (first, second) = bytes.split_at_checked(self.buf.len() - at).unwrap_or((bytes, &[]));
        if let Some(room) = self.buf.get_mut(at..at + first.len()) {
            room.copy_from_slice(first);
        }
        if let Some(room) = self.buf.get_mut(..second.len()) {
            room.copy_from_slice(second);
        }
        self.len += bytes.len() as u32;
        self.tail = self.index(self.end()) as u32;
    }

    /// Takes a buffer for `need` bytes. In small steps, so that what is never used stays under 1/16.
    fn grow(&mut self, need: usize) {
        let mut buf = vec![0; need + need / 16 + 64].into_boxed_slice();
        if let Some(held) = buf.get_mut(..self.len as usize) {
            self.copy_to(self.start, held);
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
        assert!(Ring::<u64>::new(Sn(7)).slots.is_empty());
        assert!(ByteRing::default().buf.is_empty());
    }

    #[derive(Clone, Debug)]
    enum Op {
        Insert(u32),
        Remove(u32),
        Pop,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => (0..200u32).prop_map(Op::Insert),
            4 => (0..200u32).prop_map(Op::Remove),
            2 => Just(Op::Pop),
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
                    Op::Pop => {
                        let was_empty = ring.span() == 0;
                        prop_assert_eq!(ring.pop_front(), model.remove(&base));
                        base += u32::from(!was_empty);
                        prop_assert_eq!(ring.start(), Sn(start).add(base));
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
                let position = ring.push(&vec![byte; count]).unwrap();
                prop_assert_eq!(position.wrapping_add(u32::try_from(count).unwrap()), ring.end());
                model.extend(std::iter::repeat_n(byte, count));
                let release = release.min(ring.len());
                let skip = release / 3;
                let mut popped = vec![0; (release - skip) as usize];
                if byte % 2 == 0 {
                    ring.pop_front(skip, &mut popped);
                    prop_assert!(popped.iter().eq(model.iter().take(release as usize).skip(skip as usize)));
                } else {
                    ring.release_to(ring.start.wrapping_add(release));
                }
                model.drain(..release as usize);
                let mut held = vec![0; model.len()];
                ring.copy_to(ring.start, &mut held);
                prop_assert!(held.iter().eq(model.iter()));
            }
        }
    }
}
