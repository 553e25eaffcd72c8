//! The numbers of slots and generations in an order that only this server knows, so that ids given out one after the
//! other have none.

use crate::hash::Keyed;
use std::hash::BuildHasher;

/// A keyed permutation of the 26 bits `slot (14) | generation (12)`. The lower half of the result is the generation,
/// permuted for each slot by a Feistel network (Luby and Rackoff, 1988). The upper half is the slot, xor a secret
/// number that the lower half selects. So it costs a look-up to find a slot, which is done for each packet.
pub(super) struct Shuffle {
    key: Keyed,
    pads: Box<[u16; TAGS]>,
}

printed_without_secrets! { Shuffle {} }

impl Shuffle {
    /// Bits of the result.
    pub(super) const BITS: u32 = SLOT_BITS + TAG_BITS;
    /// Most slots.
    pub(super) const SLOTS: u32 = 1 << SLOT_BITS;

    pub(super) fn new(key: [u64; 2]) -> Self {
        let key = Keyed(key);
        // 64 bits, so that the ids are the same on every system.
        let pad =
            |tag| u16::try_from(key.hash_one((PAD, tag as u64)) % u64::from(Self::SLOTS)).unwrap_or_default();
        Self { key, pads: Box::new(std::array::from_fn(pad)) }
    }

    /// The number of a slot and its generation, of which the lower 12 bits count.
    pub(super) fn mix(&self, slot: u32, generation: u16) -> u32 {
        let (mut left, mut right) = (generation >> HALF_BITS & HALF, generation & HALF);
        for round in 0..4_u8 {
            let hash = u16::try_from(self.key.hash_one((round, slot, right)) & u64::from(HALF));
            (left, right) = (right, left ^ hash.unwrap_or_default());
        }
        let tag = u32::from(left << HALF_BITS | right);
        (slot << TAG_BITS | tag) ^ self.pad(tag)
    }

    /// The slot of such a number. Bits above do not count.
    #[inline]
    pub(super) fn slot(&self, mixed: u32) -> usize {
        ((mixed ^ self.pad(mixed)) >> TAG_BITS & (Self::SLOTS - 1)) as usize
    }

    #[inline]
    fn pad(&self, mixed: u32) -> u32 {
        let pad = self.pads.get(mixed as usize % TAGS).copied();
        u32::from(pad.unwrap_or_default()) << TAG_BITS
    }
}

const SLOT_BITS: u32 = 14;
const TAG_BITS: u32 = 2 * HALF_BITS;
const TAGS: usize = 1 << TAG_BITS;
const HALF_BITS: u32 = 6;
const HALF: u16 = (1 << HALF_BITS) - 1;
/// Where a round has its number.
const PAD: u8 = 0xff;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_generation_of_each_slot_has_its_own_number_that_differs_in_half_of_its_bits() {
        let (shuffle, mut seen) = (Shuffle::new([1, 2]), HashSet::new());
        let mut changed = [0_u32; 2];
        for slot in (0..Shuffle::SLOTS).step_by(1021) {
            for generation in 0..1 << TAG_BITS {
                let mixed = shuffle.mix(slot, generation);
                assert!(mixed < 1 << Shuffle::BITS && seen.insert(mixed));
                assert_eq!(shuffle.slot(mixed | 7 << Shuffle::BITS), slot as usize);
                changed[0] += (mixed ^ shuffle.mix(slot ^ 1, generation)).count_ones();
                changed[1] += (mixed ^ shuffle.mix(slot, generation ^ 1)).count_ones();
            }
        }
        let numbers = f64::from(u32::try_from(seen.len()).unwrap());
        for changed in changed {
            let mean = f64::from(changed) / numbers;
            assert!((12.0..14.0).contains(&mean), "{mean} of 26 bits");
        }
    }
}
