//! Segments in, a repair out; and repairs of what is under way: which of it one covers, and its bytes.

use super::budget::Budget;
use super::repair::{COVER_MAX, Cover, SYMBOL_HEAD, head_len};
use super::sum::Sum;
use crate::seq::Sn;

/// Makes repairs, one at a time: [`begin`](Self::begin), [`add`](Self::add) each segment covered in
/// order, [`finish`](Self::finish).
///
/// It owns no memory before the first repair, and after that 9 times the longest segment. It keeps nothing from one repair to the next, so one encoder
/// serves any number of sessions.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    cover: Cover,
    sum: Sum,
}

impl Encoder {
    /// An encoder that owns no memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a repair. Repairs of the same segments must differ in their index to be of use together.
    pub fn begin(&mut self, index: u8) {
        self.cover = Cover { index, ..Cover::default() };
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
}

/// The bytes of a symbol before the data.
#[inline]
pub(super) const fn symbol_head(len: u16, frg: u8) -> [u8; SYMBOL_HEAD] {
    let [low, high] = len.to_le_bytes();
    [low, high, frg]
}

/// What is under way, by number: the segments of a lane, or the packets of a session.
pub(crate) trait Source {
    /// Bytes of what has this number; `None`: it has arrived, or is of no use any more.
    fn len_of(&self, sn: Sn) -> Option<u16>;

    /// Adds it to a repair.
    fn add_to(&self, encoder: &mut Encoder, sn: Sn);
}

/// A repair that could be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draft {
    cover: Cover,
    /// Bytes of its payload.
    pub(crate) len: u16,
}

impl Draft {
    /// Covers the last of `source` before `end`, of so many numbers; `in_a_row`: those from the last hole on. `None`: there are none.
    pub(crate) fn of_last(source: &impl Source, numbers: u32, end: Sn, in_a_row: bool) -> Option<Self> {
        let (mut first, mut set, mut longest, mut sn) = (end, 0_u64, 0, end);
        for _ in 0..numbers.min(COVER_MAX.into()) {
            if set.count_ones() == COVERED_MAX {
                break;
            }
            sn = sn.sub(1);
            match source.len_of(sn) {
                Some(len) => {
                    set = if set == 0 { 1 } else { set << first.0.wrapping_sub(sn.0) | 1 };
                    (first, longest) = (sn, len.max(longest));
                }
                None if in_a_row && set != 0 => break,
                None => {}
            }
        }
        let head = u16::try_from(head_len(set) + SYMBOL_HEAD).ok().filter(|_| set != 0)?;
        Some(Self { cover: Cover { first, set, index: 0 }, len: longest.saturating_add(head) })
    }

    /// The first number covered.
    pub(crate) const fn first(&self) -> Sn {
        self.cover.first
    }

    /// How many are covered.
    pub(crate) const fn count(&self) -> u32 {
        self.cover.set.count_ones()
    }
}

/// Makes repairs, as far as a budget goes.
#[derive(Debug, Default)]
pub(crate) struct Protector {
    pub(crate) budget: Budget,
    encoder: Encoder,
    /// Tells repairs of the same numbers apart.
    index: u8,
}

impl Protector {
    /// Writes the payload of a repair of `source` to `to`, which is as long.
    pub(crate) fn write(&mut self, source: &impl Source, draft: &Draft, to: &mut [u8]) {
        self.encoder.begin(self.index);
        self.index = self.index.wrapping_add(1);
        for sn in draft.cover.segments() {
            source.add_to(&mut self.encoder, sn);
        }
        self.encoder.finish(to);
    }

    pub(crate) const fn memory(&self) -> usize {
        self.encoder.memory()
    }
}

/// Numbers that a repair covers at most.
const COVERED_MAX: u32 = COVER_MAX as u32 / 2;
