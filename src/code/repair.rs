//! The payload of a repair (bytes <-> values) and the coefficients of its sum.

use crate::seq::Sn;

/// Most segments that one repair covers, and most from the first covered to the last.
pub const COVER_MAX: u8 = 64;
/// Bytes of a repair's payload before the coded bytes if it covers consecutive segments: span and index.
pub const REPAIR_HEAD: usize = 2;
/// Bytes of a symbol before its data: len and frg.
pub const SYMBOL_HEAD: usize = 3;

/// What a repair says about itself: which segments its coded bytes sum up, and with which coefficients.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Cover {
    /// The first covered segment: the `sn` of the WINS segment.
    pub(super) first: Sn,
    /// Which segments are covered: bit i for the i-th after the first. Bit 0 is always set.
    pub(super) set: u64,
    /// Selects one of the possible sums over these segments.
    pub(super) index: u8,
}

impl Cover {
    /// Reads the payload of a repair that covers segments from `first` on. Also returns the coded bytes.
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

    /// Writes the part of the payload before the coded bytes to the front of `to` and returns its length.
    /// Returns `None` if `to` is too short.
    pub(super) fn encode(self, to: &mut [u8]) -> Option<usize> {
        let (span, len) = (span_of(self.set), head_len(self.set));
        let (head, set) = to.get_mut(..len)?.split_first_chunk_mut::<REPAIR_HEAD>()?;
        *head = [if set.is_empty() { span } else { span | HAS_HOLES }, self.index];
        set.iter_mut().zip(self.set.to_le_bytes()).for_each(|(to, byte)| *to = byte);
        Some(len)
    }

    /// Number of segments from the first covered to the last.
    pub(super) const fn span(self) -> u8 {
        span_of(self.set)
    }

    /// The covered segments, in order.
    pub(super) fn segments(self) -> impl Iterator<Item = Sn> {
        self.segments_of(u64::MAX)
    }

    /// The covered segments that also have a bit in `set`, in order.
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
    /// It depends on every bit of `sn` and `index`, so a few sums of a few segments are almost always
    /// independent. The mixing function is MurmurHash3's `fmix32`.
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

/// Bytes of a repair's payload before the coded bytes if it covers the segments in `set` (bit i is the i-th
/// after the first).
pub const fn head_len(set: u64) -> usize {
    let span = span_of(set);
    if set == row_of(span) { REPAIR_HEAD } else { REPAIR_HEAD + set_len(span) }
}

/// Number of places from the first to the last in a set.
#[expect(clippy::cast_possible_truncation, reason = "at most 64")]
const fn span_of(set: u64) -> u8 {
    (u64::BITS - set.leading_zeros()) as u8
}

/// The set of `span` consecutive numbers.
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

/// Flag beside the span: some segments in the span are not covered, and a set that says which ones follows.
const HAS_HOLES: u8 = 0x80;

errors! {
    /// Why a repair was refused. Nothing has changed.
    RepairError {
        /// Shorter than a span, an index and the head of one symbol.
        "repair of {have} bytes is too short: at least 5 are needed" Truncated { have: usize },
        /// It spans no segment, or more than [`COVER_MAX`].
        "repair spans {found} segments, outside 1 to {COVER_MAX}" Span { found: u8 },
        /// Its set does not begin and end where the span says, or has no holes.
        "repair with an invalid set of covered segments" Holes,
        /// It has more coded bytes than the longest possible segment of the peer needs.
        "repair has {have} coded bytes, more than the maximum of {max}" TooLong { have: usize, max: usize },
        /// It covers a segment beyond the receive window, which no honest peer has sent.
        "repair covers segment {last}, which is beyond the receive window" BeyondWindow { last: Sn },
        /// It covers a segment that arrived and is no longer remembered. From an honest peer, this means that
        /// it came very late.
        "repair covers segment {sn}, which is no longer remembered" Forgotten { sn: Sn },
        /// More segments are missing than repairs are kept for.
        "repairs would cover more than {max} missing segments" TooManyMissing { max: usize },
        /// Using it with those that are kept takes more work than the datagrams so far have paid for.
        "repairs would take too much work" TooMuchWork,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn coefficients_are_the_ones_in_released_peers() {
        let of = |sn, index| Cover { first: Sn(0), set: 1, index }.coefficient(Sn(sn));
        let first: Vec<_> = (0..8).map(|sn| of(sn, 0)).collect();
        assert_eq!(first, FIRST_OF_INDEX_0);
        let second: Vec<_> = (0..8).map(|sn| of(u32::MAX - sn, 255)).collect();
        assert_eq!(second, LAST_OF_INDEX_255);
    }

    /// For the segments 0, 1, ..
    const FIRST_OF_INDEX_0: [u8; 8] = [1, 81, 49, 134, 37, 204, 93, 25];
    /// For the segments 2^32 - 1, 2^32 - 2, ..
    const LAST_OF_INDEX_255: [u8; 8] = [21, 212, 167, 175, 131, 198, 213, 134];

    proptest! {
        #[test]
        fn every_valid_payload_has_exactly_one_encoding(
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
