//! Segments in, a repair out.

use super::repair::{COVER_MAX, Cover, REPAIR_HEAD, SYMBOL_HEAD};
use super::sum::Sum;
use crate::seq::Sn;

/// Makes repairs, one at a time: [`begin`](Self::begin), [`add`](Self::add) each segment covered,
/// [`finish`](Self::finish).
///
/// It owns no memory before the first repair, and after that 9 times the longest segment, which
/// [`shrink`](Self::shrink) gives back. It keeps nothing from one repair to the next, so one encoder
/// serves any number of sessions.
///
/// ```
/// use whitewater::Sn;
/// use whitewater::code::Encoder;
///
/// let mut encoder = Encoder::new();
/// encoder.begin(Sn(7), 0);
/// for data in [b"first".as_slice(), b"second"] {
///     assert!(encoder.add(0, data.len() as u16, |to| to.copy_from_slice(data)));
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
        Self { cover: Cover { first: Sn(0), count: 0, index: 0 }, sum: Sum::new() }
    }

    /// Begins the repair `index` of the segments from `first` on. Repairs of the same segments must
    /// differ in their index to be of use together.
    pub fn begin(&mut self, first: Sn, index: u8) {
        self.cover = Cover { first, count: 0, index };
        self.sum.clear();
    }

    /// Adds the next segment, whose `len` bytes of data `copy` writes, all of them. `false`: the
    /// repair is full and has not changed.
    #[inline]
    pub fn add(&mut self, frg: u8, len: u16, copy: impl FnOnce(&mut [u8])) -> bool {
        let Self { cover, sum } = self;
        if cover.count == COVER_MAX {
            return false;
        }
        let coefficient = cover.coefficient(cover.first.add(cover.count.into()));
        sum.add(coefficient, SYMBOL_HEAD + usize::from(len), |symbol| {
            if let Some((head, data)) = symbol.split_first_chunk_mut() {
                *head = symbol_head(len, frg);
                copy(data);
            }
        });
        cover.count += 1;
        true
    }

    /// Bytes that the payload of the repair takes so far.
    #[must_use]
    pub const fn payload_len(&self) -> usize {
        REPAIR_HEAD + self.sum.len()
    }

    /// Writes the payload of the repair to the front of `to` and returns its length. `None`: there
    /// is too little room, or nothing was added.
    pub fn finish(&mut self, to: &mut [u8]) -> Option<usize> {
        if self.cover.count == 0 {
            return None;
        }
        let len = self.payload_len();
        let (head, body) = to.get_mut(..len)?.split_first_chunk_mut()?;
        *head = self.cover.to_bytes();
        body.copy_from_slice(self.sum.result());
        Some(len)
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
    fn a_repair_is_full_after_64_segments() {
        let mut encoder = Encoder::new();
        assert_eq!(encoder.finish(&mut [0; 99]), None);
        encoder.begin(Sn(u32::MAX), 3);
        for _ in 0..COVER_MAX {
            assert!(encoder.add(0, 0, |_| ()));
        }
        assert!(!encoder.add(0, 1, |_| ()));
        assert_eq!(encoder.payload_len(), 5);
        assert_eq!(encoder.finish(&mut [0; 4]), None);
        assert_eq!(encoder.finish(&mut [0; 5]), Some(5));
    }

    #[test]
    fn a_repair_of_one_segment_is_its_symbol_times_a_coefficient() {
        use super::super::gf256::mul;
        let (mut encoder, mut payload) = (Encoder::new(), [0; 9]);
        encoder.begin(Sn(5), 1);
        encoder.add(2, 4, |to| to.copy_from_slice(b"data"));
        encoder.finish(&mut payload).unwrap();
        let by = Cover { first: Sn(5), count: 1, index: 1 }.coefficient(Sn(5));
        let symbol = [4, 0, 2, b'd', b'a', b't', b'a'].map(|byte| mul(by, byte));
        assert_eq!(payload[..2], [1, 1]);
        assert_eq!(payload[2..], symbol);
    }
}
