//! A repair's payload, bytes <-> values, and the coefficients of its sum.

use crate::seq::Sn;
use thiserror::Error;

/// Most segments that one repair covers.
pub const COVER_MAX: u8 = 64;
/// Bytes of a repair's payload before the coded ones: count and index.
pub const REPAIR_HEAD: usize = 2;
/// Bytes of a symbol before the data: len and frg.
pub const SYMBOL_HEAD: usize = 3;

/// What a repair says of itself: which sum of which segments its coded bytes are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Cover {
    /// The first segment covered: the `sn` of the WINS segment.
    pub(super) first: Sn,
    /// Segments covered: 1 to [`COVER_MAX`].
    pub(super) count: u8,
    /// Which of the sums over these segments.
    pub(super) index: u8,
}

impl Cover {
    /// Reads the payload of a repair of the segments from `first` on; returns the coded bytes, too.
    pub(super) fn decode(first: Sn, payload: &[u8]) -> Result<(Self, &[u8]), RepairError> {
        let truncated = RepairError::Truncated { have: payload.len() };
        let (&[count, index], body) = payload.split_first_chunk().ok_or(truncated)?;
        if body.len() < SYMBOL_HEAD {
            return Err(truncated);
        }
        if count == 0 || count > COVER_MAX {
            return Err(RepairError::Count { found: count });
        }
        Ok((Self { first, count, index }, body))
    }

    /// The bytes before the coded ones.
    pub(super) const fn to_bytes(self) -> [u8; REPAIR_HEAD] {
        [self.count, self.index]
    }

    /// The segments covered, in order.
    pub(super) fn segments(self) -> impl Iterator<Item = Sn> {
        (0..self.count.into()).map(move |offset| self.first.add(offset))
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

/// Why a repair was refused; nothing has changed.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum RepairError {
    /// Fewer bytes than a count, an index and the head of one symbol take.
    #[error("{have} bytes where a repair has {} or more", REPAIR_HEAD + SYMBOL_HEAD)]
    Truncated {
        /// Bytes there were.
        have: usize,
    },
    /// It covers no segment, or more than [`COVER_MAX`].
    #[error("a repair of {found} segments, not 1 to {COVER_MAX}")]
    Count {
        /// The byte in its place.
        found: u8,
    },
    /// More coded bytes than a segment of the peer can have.
    #[error("{have} coded bytes where the longest segment takes {max}")]
    TooLong {
        /// Bytes there were.
        have: usize,
        /// Most bytes accepted.
        max: usize,
    },
    /// It covers a segment beyond the receive window: no honest peer has sent one.
    #[error("a repair up to segment {last}, beyond the receive window")]
    BeyondWindow {
        /// The last segment covered.
        last: Sn,
    },
    /// It covers a segment that arrived and is no longer remembered. It came very late, if it is
    /// honest.
    #[error("a repair of segment {sn}, which is no longer remembered")]
    Forgotten {
        /// The first such segment.
        sn: Sn,
    },
    /// More segments are missing than repairs are kept for.
    #[error("repairs of more than {max} missing segments")]
    TooManyMissing {
        /// Most that may be missing.
        max: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn coefficients_are_those_that_peers_were_built_with() {
        let of = |sn, index| Cover { first: Sn(0), count: 1, index }.coefficient(Sn(sn));
        let first: Vec<_> = (0..8).map(|sn| of(sn, 0)).collect();
        assert_eq!(first, FIRST_OF_INDEX_0);
        let second: Vec<_> = (0..8).map(|sn| of(u32::MAX - sn, 255)).collect();
        assert_eq!(second, LAST_OF_INDEX_255);
    }

    /// Of the segments 0, 1, ..
    const FIRST_OF_INDEX_0: [u8; 8] = [1, 81, 49, 134, 37, 204, 93, 25];
    /// Of the segments 2^32 - 1, 2^32 - 2, ..
    const LAST_OF_INDEX_255: [u8; 8] = [21, 212, 167, 175, 131, 198, 213, 134];

    #[test]
    fn coefficients_are_even_over_their_range() {
        let mut counts = [0; 256];
        for index in 0..=u8::MAX {
            for sn in 0..1000 {
                counts[usize::from(Cover { first: Sn(0), count: 1, index }.coefficient(Sn(sn)))] += 1;
            }
        }
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|count| (850..1160).contains(count)), "{counts:?}");
    }

    #[test]
    fn every_way_to_be_no_repair_has_its_name() {
        for have in 0..5 {
            let payload = &[1, 0, 0, 0, 0][..have];
            assert_eq!(Cover::decode(Sn(0), payload), Err(RepairError::Truncated { have }));
        }
        for count in 0..=u8::MAX {
            let payload = [count, 9, 0, 0, 0];
            let decoded = Cover::decode(Sn(7), &payload);
            match count {
                1..=COVER_MAX => assert_eq!(decoded.unwrap().0, Cover { first: Sn(7), count, index: 9 }),
                found => assert_eq!(decoded, Err(RepairError::Count { found })),
            }
        }
    }

    proptest! {
        #[test]
        fn what_decodes_has_one_encoding(payload in prop::collection::vec(any::<u8>(), 0..20)) {
            if let Ok((cover, body)) = Cover::decode(Sn(1), &payload) {
                prop_assert_eq!([&cover.to_bytes(), body].concat(), payload);
                prop_assert_eq!(cover.segments().count(), usize::from(cover.count));
            }
        }
    }
}
