//! A repair's payload, bytes <-> values, and the coefficients of its sum.

use crate::seq::Sn;

/// Most segments that one repair covers, and from its first to its last.
pub const COVER_MAX: u8 = 64;
/// Bytes of a repair's payload before the coded ones, if it covers a row: span and index.
pub const REPAIR_HEAD: usize = 2;
/// Bytes of a symbol before the data: len and frg.
pub const SYMBOL_HEAD: usize = 3;

/// What a repair says of itself: which sum of which segments its coded bytes are.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Cover {
    /// The first segment covered: the `sn` of the WINS segment.
    pub(super) first: Sn,
    /// Which segments are covered: bit i for the i-th after the first, so bit 0 is set.
    pub(super) set: u64,
    /// Which of the sums over these segments.
    pub(super) index: u8,
}

impl Cover {
    /// Reads the payload of a repair of the segments from `first` on; returns the coded bytes, too.
    pub(super) fn decode(first: Sn, payload: &[u8]) -> Result<(Self, &[u8]), RepairError> {
        let truncated = RepairError::Truncated { have: payload.len() };
        let (&[shape, index], rest) = payload.split_first_chunk().ok_or(truncated)?;
        let span = shape & !HAS_HOLES;
        if span == 0 || span > COVER_MAX {
            return Err(RepairError::Span { found: span });
        }
        let (set, body) = if shape & HAS_HOLES == 0 {
            (row_of(span), rest)
        } else {
            let (bytes, body) = rest.split_at_checked(set_len(span)).ok_or(truncated)?;
            let set = bytes.iter().rev().fold(0, |set, &byte| set << 8 | u64::from(byte));
            if set & 1 == 0 || span_of(set) != span || set == row_of(span) {
                return Err(RepairError::Holes);
            }
            (set, body)
        };
        if body.len() < SYMBOL_HEAD {
            return Err(truncated);
        }
        Ok((Self { first, set, index }, body))
    }

    /// Writes what stands before the coded bytes to the front of `to` and returns its length;
    /// `None`: there is too little room.
    pub(super) fn encode(self, to: &mut [u8]) -> Option<usize> {
        let (span, len) = (span_of(self.set), head_len(self.set));
        let (head, set) = to.get_mut(..len)?.split_first_chunk_mut::<REPAIR_HEAD>()?;
        *head = [if set.is_empty() { span } else { span | HAS_HOLES }, self.index];
        set.iter_mut().zip(self.set.to_le_bytes()).for_each(|(to, byte)| *to = byte);
        Some(len)
    }

    /// Segments from the first to the last covered.
    pub(super) const fn span(self) -> u8 {
        span_of(self.set)
    }

    /// The segments covered, in order.
    pub(super) fn segments(self) -> impl Iterator<Item = Sn> {
        self.segments_of(u64::MAX)
    }

    /// The segments covered that have a bit in `set`, too, in order.
    pub(super) fn segments_of(self, set: u64) -> impl Iterator<Item = Sn> {
        let mut left = self.set & set;
        std::iter::from_fn(move || {
            let offset = left.trailing_zeros();
            left &= left.checked_sub(1)?;
            Some(self.first.add(offset))
        })
    }

    /// The coefficient of the segment `sn`, 1 to 255.
    ///
    /// It depends on all bits of `sn` and `index`, so any few sums of any few segments are
    /// almost always independent. The mixing is MurmurHash3's `fmix32`.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the product is below 255 x 2^32")]
    pub(super) const fn coefficient(self, sn: Sn) -> u8 {
        let mut bits = sn.0 ^ (self.index as u32).wrapping_mul(0x9e37_79b1);
        bits = (bits ^ bits >> 16).wrapping_mul(0x85eb_ca6b);
        bits = (bits ^ bits >> 13).wrapping_mul(0xc2b2_ae35);
        bits ^= bits >> 16;
        1 + ((bits as u64 * 255) >> 32) as u8
    }
}

/// Bytes of a repair's payload before the coded ones, if it covers the segments of `set`: bit i for
/// the i-th after the first.
pub const fn head_len(set: u64) -> usize {
    let span = span_of(set);
    if set == row_of(span) { REPAIR_HEAD } else { REPAIR_HEAD + set_len(span) }
}

/// Numbers from the first to the last of a set.
#[expect(clippy::cast_possible_truncation, reason = "at most 64")]
const fn span_of(set: u64) -> u8 {
    (u64::BITS - set.leading_zeros()) as u8
}

/// The set of all of `span` numbers in a row.
const fn row_of(span: u8) -> u64 {
    match u64::MAX.checked_shr(u64::BITS - span as u32) {
        Some(set) => set,
        None => 0,
    }
}

/// Bytes of a set with holes.
const fn set_len(span: u8) -> usize {
    span.div_ceil(8) as usize
}

/// Flag beside the span: a set follows, since not all of the segments are covered.
const HAS_HOLES: u8 = 0x80;

errors! {
    /// Why a repair was refused; nothing has changed.
    RepairError {
        /// Fewer bytes than what it covers, an index and the head of one symbol take.
        "{have} bytes where a repair has 5 or more" Truncated { have: usize },
        /// It spans no segment, or more than [`COVER_MAX`].
        "a repair that spans {found} segments, not 1 to {COVER_MAX}" Span { found: u8 },
        /// Its set does not begin and end where it says, or has no hole.
        "a repair of a set that is none with holes" Holes,
        /// More coded bytes than a segment of the peer can have.
        "{have} coded bytes where the longest segment takes {max}" TooLong { have: usize, max: usize },
        /// It covers a segment beyond the receive window: no honest peer has sent one.
        "a repair up to segment {last}, beyond the receive window" BeyondWindow { last: Sn },
        /// It covers a segment that arrived and is no longer remembered. It came very late, if it is
        /// honest.
        "a repair of segment {sn}, which is no longer remembered" Forgotten { sn: Sn },
        /// More segments are missing than repairs are kept for.
        "repairs of more than {max} missing segments" TooManyMissing { max: usize },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn coefficients_are_those_that_peers_were_built_with() {
        let of = |sn, index| Cover { first: Sn(0), set: 1, index }.coefficient(Sn(sn));
        let first: Vec<_> = (0..8).map(|sn| of(sn, 0)).collect();
        assert_eq!(first, FIRST_OF_INDEX_0);
        let second: Vec<_> = (0..8).map(|sn| of(u32::MAX - sn, 255)).collect();
        assert_eq!(second, LAST_OF_INDEX_255);
    }

    /// Of the segments 0, 1, ..
    const FIRST_OF_INDEX_0: [u8; 8] = [1, 81, 49, 134, 37, 204, 93, 25];
    /// Of the segments 2^32 - 1, 2^32 - 2, ..
    const LAST_OF_INDEX_255: [u8; 8] = [21, 212, 167, 175, 131, 198, 213, 134];

    proptest! {
        #[test]
        fn what_decodes_has_one_encoding(
            shape in prop_oneof![any::<u8>(), (1..=16u8).prop_map(|span| span | HAS_HOLES)],
            rest in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let payload = [&[shape], rest.as_slice()].concat();
            if let Ok((cover, body)) = Cover::decode(Sn(1), &payload) {
                prop_assert_eq!(payload.len(), head_len(cover.set) + body.len());
                let mut again = payload.clone();
                again.fill(0);
                let len = cover.encode(&mut again);
                prop_assert_eq!(len, Some(head_len(cover.set)));
                prop_assert_eq!(&again[..head_len(cover.set)], &payload[..head_len(cover.set)]);
                prop_assert_eq!(cover.segments().count(), cover.set.count_ones() as usize);
            }
        }
    }
}
