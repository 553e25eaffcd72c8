/// A queue of bytes: pushed at one end, popped at the other. A byte is named by its position, which is the
/// number of bytes pushed before it, modulo 2^31.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByteRing {
    buf: Box<[u8]>,
    /// Index in `buf` of the oldest byte.
    head: u32,
    /// Index in `buf` where the next byte goes. The end of `buf` is equivalent to its start.
    tail: u32,
    len: u32,
    /// Position of the oldest byte.
    start: u32,
}

#[expect(clippy::cast_possible_truncation, reason = "lengths and indices are at most BYTES_MAX")]
impl ByteRing {
    /// Position of the oldest byte held.
    #[inline]
    pub(crate) const fn start(&self) -> u32 {
        self.start
    }

    /// Position of the next byte to be pushed.
    #[inline]
    pub(crate) const fn end(&self) -> u32 {
        self.start.wrapping_add(self.len)
    }

    /// Number of bytes held.
    #[inline]
    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    pub(crate) const fn memory(&self) -> usize {
        self.buf.len()
    }

    /// Whether the ring is empty.
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends `bytes` and returns their position. Returns `None` if the ring would hold more than
    /// [`BYTES_MAX`].
    #[inline]
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Option<u32> {
        if let Some((position, room)) = self.extend(bytes.len()) {
            room.copy_from_slice(bytes);
            return Some(position);
        }
        let position = self.end();
        self.push_slowly(bytes).then_some(position)
    }

    /// Appends `len` bytes for the caller to fill in, and returns their position. Returns `None` if they
    /// would cross the edge of the buffer or need a larger one.
    #[inline]
    pub(crate) fn extend(&mut self, len: usize) -> Option<(u32, &mut [u8])> {
        if self.len == 0 {
            (self.head, self.tail) = (0, 0); // as far from the edge as possible
        }
        let (position, at) = (self.end(), self.tail as usize);
        if len > self.buf.len() - self.len as usize {
            return None;
        }
        let room = self.buf.get_mut(at..at.wrapping_add(len))?;
        self.tail += len as u32;
        self.len += len as u32;
        Some((position, room))
    }

    /// The `N` oldest bytes; `None` if fewer are held or they cross the edge of the buffer.
    #[inline]
    pub(crate) fn front<const N: usize>(&self) -> Option<&[u8; N]> {
        if (self.len as usize) < N {
            return None;
        }
        self.buf.get(self.head as usize..)?.first_chunk()
    }

    /// Fills `to` with the bytes from `position` on, all of which must be held.
    #[inline(always)]
    pub(crate) fn copy_to(&self, position: u32, to: &mut [u8]) {
        self.reader(position).copy_next(to);
    }

    /// A reader that starts at `position`, which must be held or the end.
    #[inline]
    pub(crate) fn reader(&self, position: u32) -> Reader<'_> {
        Reader { buf: &self.buf, at: self.index(position) }
    }

    /// Drops the `skip` oldest bytes, then fills `to` with the bytes after them and drops those as well. All
    /// of them must be held.
    #[inline(always)]
    pub(crate) fn pop_front(&mut self, skip: u32, to: &mut [u8]) {
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

    /// Whether the oldest byte held is at `position`.
    #[inline]
    pub(crate) const fn starts_at(&self, position: u32) -> bool {
        self.offset(position) == 0
    }

    /// Drops all bytes before `position`, which must be held or the end.
    #[inline]
    pub(crate) fn release_to(&mut self, position: u32) {
        self.release(self.offset(position));
    }

    /// Drops the `count` oldest bytes, which must be held.
    #[inline]
    pub(crate) fn release(&mut self, count: usize) {
        let index = self.head as usize + count;
        self.head = if index >= self.buf.len() { index - self.buf.len() } else { index } as u32;
        self.len = self.len.wrapping_sub(count as u32);
        self.start = self.start.wrapping_add(count as u32);
    }

    /// Frees the memory if the ring is empty.
    pub(crate) fn shrink(&mut self) {
        if self.is_empty() {
            *self = Self { start: self.start, ..Self::default() };
        }
    }

    /// Number of bytes held before `position`.
    #[inline]
    const fn offset(&self, position: u32) -> usize {
        (position.wrapping_sub(self.start) as usize) & BYTES_MAX
    }

    /// Index in `buf` of the byte at `position`, which need not have been pushed yet.
    #[inline]
    const fn index(&self, position: u32) -> usize {
        let index = self.head as usize + self.offset(position);
        if index >= self.buf.len() { index - self.buf.len() } else { index }
    }

    /// Appends across the edge or into a larger buffer. Returns `false` if there is no room.
    #[cold]
    fn push_slowly(&mut self, bytes: &[u8]) -> bool {
        let need = self.len as usize + bytes.len();
        if need > BYTES_MAX {
            return false;
        }
        if need > self.buf.len() {
            self.grow(need);
        }
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

    /// Makes the buffer long enough for `need` bytes. It grows in small steps, so that little memory goes
    /// unused; mostly the allocation is extended in place.
    fn grow(&mut self, need: usize) {
        let (before, held) = (self.buf.len(), self.head as usize + self.len as usize);
        let mut buf = std::mem::take(&mut self.buf).into_vec();
        let count = need + (need / 16).min(GROWTH_MAX) + GROWTH_MIN;
        buf.reserve_exact(count - before);
        buf.resize(count, 0);
        if held > before {
            let head = count - (before - self.head as usize);
            buf.copy_within(self.head as usize..before, head);
            self.head = head as u32;
        }
        self.buf = buf.into_boxed_slice();
    }
}

/// A buffer grows by at least this much more than needed, bytes.
const GROWTH_MIN: usize = 64;
/// A buffer grows by at most this much more than `GROWTH_MIN` and what is needed, bytes. This is less than a
/// sixteenth for buffers of more than 768 KiB.
const GROWTH_MAX: usize = 48 << 10;

/// Reads consecutive bytes; made by [`ByteRing::reader`].
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    buf: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    /// Fills `to` with the next bytes, which must be held.
    #[inline(always)]
    pub(crate) fn copy_next(&mut self, to: &mut [u8]) {
        let end = self.at.wrapping_add(to.len());
        match self.buf.get(self.at..end) {
            Some(from) => {
                to.copy_from_slice(from);
                self.at = end;
            }
            None => self.copy_across_the_edge(to),
        }
    }

    /// Reads the next `N` bytes, which must be held.
    #[inline(always)]
    pub(crate) fn next_chunk<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.copy_next(&mut bytes);
        bytes
    }

    #[cold]
    fn copy_across_the_edge(&mut self, to: &mut [u8]) {
        let from = self.buf.get(self.at..).unwrap_or_default();
        if let Some((first, second)) = to.split_at_mut_checked(from.len()) {
            first.copy_from_slice(from);
            self.at = 0;
            self.copy_next(second);
        }
    }
}

/// Most bytes that a [`ByteRing`] holds: positions are compared over half of their range.
pub(crate) const BYTES_MAX: usize = i32::MAX as usize;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn an_unused_ring_allocates_nothing_and_slack_stays_small() {
        let mut ring = ByteRing::default();
        assert!(ring.buf.is_empty());
        for _ in 0..if cfg!(miri) { 200 } else { 10_000 } {
            ring.push(&[0; 100]).unwrap();
            assert!(ring.buf.len() - ring.len as usize <= ring.len as usize / 16 + 164);
        }
    }

    proptest! {
        #[test]
        fn byte_ring_behaves_like_a_queue(ops in prop::collection::vec((any::<u8>(), 0..300usize, 0..400u32), 1..if cfg!(miri) { 20 } else { 100 })) {
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
