//! Makes repairs: from segments added one by one, or from what is in flight.

use super::budget::Budget;
use super::repair::{COVER_MAX, Cover, SYMBOL_HEAD, head_len};
use super::sum::Sum;
use crate::seq::Sn;

/// Makes repairs one at a time: [`begin`](Self::begin), [`add`](Self::add) each covered segment in order,
/// [`finish`](Self::finish).
///
/// It allocates nothing before the first repair, and then 9 times the longest segment. It keeps no state
/// between repairs, so one encoder can serve any number of sessions.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    cover: Cover,
    sum: Sum,
}

impl Encoder {
    /// Creates an encoder. It allocates nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a repair. Several repairs of the same segments are only useful if their indices differ.
    pub fn begin(&mut self, index: u8) {
        self.cover = Cover { index, ..Cover::default() };
        self.sum.clear();
    }

    /// Adds the segment `sn`. `copy` must write all of its `len` bytes of data. Returns `false`, and leaves
    /// the repair unchanged, if `sn` is not later than the segment added last or is too far from the first.
    #[inline]
    pub fn add(&mut self, sn: Sn, frg: u8, len: u16, copy: impl FnOnce(&mut [u8])) -> bool {
        self.add_symbol(sn, SYMBOL_HEAD + usize::from(len), |symbol| {
            if let Some((head, data)) = symbol.split_first_chunk_mut() {
                *head = symbol_head(len, frg);
                copy(data);
            }
        })
    }

    /// Like [`add`](Self::add), but `copy` writes the whole symbol of `len` bytes.
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

    /// Bytes of payload that the repair takes so far.
    pub const fn payload_len(&self) -> usize {
        head_len(self.cover.set) + self.sum.len()
    }

    /// Writes the payload of the repair to the front of `to` and returns its length. Returns `None` if `to`
    /// is too short or nothing was added.
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

/// The bytes of a symbol that precede the data.
#[inline]
pub(super) const fn symbol_head(len: u16, frg: u8) -> [u8; SYMBOL_HEAD] {
    let [low, high] = len.to_le_bytes();
    [low, high, frg]
}

/// What is in flight, by number: the segments of a channel or the packets of a session.
pub(crate) trait Source {
    /// Length of the item with this number; `None` if it has arrived or is no longer useful.
    fn len_of(&self, sn: Sn) -> Option<u16>;

    /// Adds the item to a repair.
    fn add_to(&self, encoder: &mut Encoder, sn: Sn);
}

/// A repair that could be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draft {
    cover: Cover,
    /// Length of its payload, bytes.
    pub(crate) len: u16,
}

impl Draft {
    /// Covers the last items of `source` among the `numbers` before `end`. With `in_a_row`, it begins after
    /// the last hole. Returns `None` if there are no such items.
    fn of_last(source: &impl Source, numbers: u32, end: Sn, in_a_row: bool) -> Option<Self> {
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

    /// As [`of_last`](Self::of_last), but covers what lies behind a hole only if there is room to say so.
    pub(crate) fn of_last_if(
        source: &impl Source,
        numbers: u32,
        end: Sn,
        fits: impl Fn(&Self) -> bool,
    ) -> Option<Self> {
        let of_last = |in_a_row| Self::of_last(source, numbers, end, in_a_row);
        [false, true].into_iter().find_map(|in_a_row| of_last(in_a_row).filter(&fits))
    }

    /// The first covered number.
    pub(crate) const fn first(&self) -> Sn {
        self.cover.first
    }

    /// How many items are covered.
    pub(crate) const fn count(&self) -> u32 {
        self.cover.set.count_ones()
    }
}

/// Makes repairs within a budget.
#[derive(Debug, Default)]
pub(crate) struct Protector {
    pub(crate) budget: Budget,
    encoder: Encoder,
    /// Distinguishes repairs that cover the same numbers.
    index: u8,
}

impl Protector {
    /// Writes the payload of a repair of `source` to `to`, whose length must be `draft.len`.
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

/// Most numbers that one repair covers.
const COVERED_MAX: u32 = COVER_MAX as u32 / 2;
