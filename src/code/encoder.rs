//! Segments in, a repair out.

use super::repair::{COVER_MAX, Cover, SYMBOL_HEAD, head_len};
use super::sum::Sum;
use crate::seq::Sn;

/// Makes repairs, one at a time: [`begin`](Self::begin), [`add`](Self::add) each segment covered in
/// order, [`finish`](Self::finish).
///
/// It owns no memory before the first repair, and after that 9 times the longest segment, which
/// [`shrink`](Self::shrink) gives back. It keeps nothing from one repair to the next, so one encoder
/// serves any number of sessions.
#[derive(Clone, Debug)]
pub struct Encoder {
    cover: Cover,
    sum: Sum,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// An encoder that owns no memory yet.
    pub const fn new() -> Self {
        Self { cover: Cover { first: Sn(0), set: 0, index: 0 }, sum: Sum::new() }
    }

    /// Begins a repair. Repairs of the same segments must differ in their index to be of use together.
    pub fn begin(&mut self, index: u8) {
        self.cover = Cover { first: Sn(0), set: 0, index };
        self.sum.clear();
    }

    /// Adds the segment `sn`, whose `len` bytes of data `copy` writes, all of them. `false`: it is no later
    /// than the last one added, or too far from the first, and the repair has not changed.
    #[inline]
    pub fn add(&mut self, sn: Sn, frg: u8, len: u16, copy: impl FnOnce(&mut [u8])) -> bool {
        self.add_symbol(sn, SYMBOL_HEAD + usize::from(len), |symbol| {
            if let Some((head, data)) = symbol.split_first_chunk_mut() {
                *head = symbol_head(len, frg);
                copy(data);
            }
        })
    }

    /// [`add`](Self::add) of a segment whose symbol of `len` bytes `copy` writes.
    #[inline]
    pub(super) fn add_symbol(&mut self, sn: Sn, len: usize, copy: impl FnOnce(&mut [u8])) -> bool {
        let Self { cover, sum } = self;
        if cover.set == 0 {
            cover.first = sn;
        }
        let Some(offset) = sn.offset_in(cover.first, COVER_MAX.into()).filter(|at| cover.set >> at == 0)
        else {
            return false;
        };
        sum.add(cover.coefficient(sn), len, copy);
        cover.set |= 1 << offset;
        true
    }

    /// Bytes that the payload of the repair takes so far.
    pub const fn payload_len(&self) -> usize {
        head_len(self.cover.set) + self.sum.len()
    }

    /// Writes the payload of the repair to the front of `to` and returns its length. `None`: there
    /// is too little room, or nothing was added.
    pub fn finish(&mut self, to: &mut [u8]) -> Option<usize> {
        if self.cover.set == 0 {
            return None;
        }
        let len = self.payload_len();
        let head = self.cover.encode(to.get_mut(..len)?)?;
        to.get_mut(head..len)?.copy_from_slice(self.sum.result());
        Some(len)
    }

    pub(crate) const fn memory(&self) -> usize {
        self.sum.memory()
    }

    /// Gives the memory back; what was added to a repair is lost.
    pub fn shrink(&mut self) {
        *self = Self::new();
    }
}

/// The bytes of a symbol before the data.
#[inline]
pub(super) const fn symbol_head(len: u16, frg: u8) -> [u8; SYMBOL_HEAD] {
    let [low, high] = len.to_le_bytes();
    [low, high, frg]
}
