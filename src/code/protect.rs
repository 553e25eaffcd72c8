//! Repairs of what is under way: which of it one covers, and its bytes.

use super::budget::Budget;
use super::encoder::Encoder;
use super::repair::{COVER_MAX, Cover, SYMBOL_HEAD, head_len};
use crate::seq::Sn;

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
