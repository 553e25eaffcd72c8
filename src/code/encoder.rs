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
///
/// ```
/// use whitewater::Sn;
/// use whitewater::inside::code::Encoder;
///
/// let mut encoder = Encoder::new();
/// encoder.begin(0);
/// for (sn, data) in [(Sn(7), b"first".as_slice()), (Sn(8), b"second")] {
///     assert!(encoder.add(sn, 0, data.len() as u16, |to| to.copy_from_slice(data)));
/// }
/// let mut payload = [0; 2 + 3 + 6];
/// assert_eq!(encoder.finish(&mut payload), Some(payload.len()));
/// ```
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
    #[must_use]
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
    #[must_use]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repair_takes_segments_in_order_up_to_64_from_its_first() {
        let mut encoder = Encoder::new();
        assert_eq!(encoder.finish(&mut [0; 99]), None);
        encoder.begin(3);
        let first = Sn(u32::MAX);
        for offset in 0..COVER_MAX {
            assert!(encoder.add(first.add(offset.into()), 0, 0, |_| ()));
        }
        for refused in [first.add(COVER_MAX.into()), first.add(63), first, first.sub(1)] {
            assert!(!encoder.add(refused, 0, 1, |_| ()));
        }
        assert_eq!(encoder.payload_len(), 5);
        assert_eq!(encoder.finish(&mut [0; 4]), None);
        assert_eq!(encoder.finish(&mut [0; 5]), Some(5));
    }

    #[test]
    fn a_repair_of_one_segment_is_its_symbol_times_a_coefficient() {
        use super::super::gf256::mul;
        let (mut encoder, mut payload) = (Encoder::new(), [0; 9]);
        encoder.begin(1);
        encoder.add(Sn(5), 2, 4, |to| to.copy_from_slice(b"data"));
        encoder.finish(&mut payload).unwrap();
        let by = Cover { first: Sn(5), set: 1, index: 1 }.coefficient(Sn(5));
        let symbol = [4, 0, 2, b'd', b'a', b't', b'a'].map(|byte| mul(by, byte));
        assert_eq!(payload[..2], [1, 1]);
        assert_eq!(payload[2..], symbol);
    }

    #[test]
    fn a_set_with_holes_stands_behind_the_index() {
        let (mut encoder, mut payload) = (Encoder::new(), [0; 7]);
        encoder.begin(4);
        for offset in [0, 2, 11] {
            assert!(encoder.add(Sn(9).add(offset), 0, 0, |_| ()));
        }
        assert_eq!(encoder.finish(&mut payload), Some(7));
        assert_eq!(payload[..4], [0x80 | 12, 4, 0b101, 0b1000]);
    }
}
