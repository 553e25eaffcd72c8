//! Packet numbers that are never used. Whoever acknowledges one acknowledges what they have not received. Source: RFC
//! 9000 section 21.4.

use crate::session::local_key::{Label, LocalKey};
use std::num::NonZeroU32;

/// One number of each block is skipped, at a place derived from a key of this end.
#[derive(Clone, Copy)]
pub(super) struct Skips {
    /// log2 of the length of a block.
    bits: NonZeroU32,
    /// The first skipped number that is not below the next packet's.
    pub(super) next: u64,
}

impl Skips {
    /// Skips one of 2^`bits` numbers from `pn` on; `bits` is at least 6.
    pub(super) fn new(key: LocalKey, bits: NonZeroU32, pn: u64) -> Self {
        let mut skips = Self { bits, next: 0 };
        skips.next = skips.in_block_of(key, pn);
        if skips.next < pn {
            skips.next = skips.in_block_of(key, pn + (1 << bits.get()));
        }
        skips
    }

    /// The next number that may be used, from `pn` on, which follows the last one used.
    #[inline]
    pub(super) fn pass(&mut self, key: LocalKey, pn: u64) -> u64 {
        if pn != self.next {
            return pn;
        }
        self.next = self.in_block_of(key, pn + (1 << self.bits.get()));
        pn + 1 // two skipped numbers never follow each other
    }

    /// Bit n: `newest` - n is skipped. For the 33 numbers of an ACK.
    pub(super) fn among(self, key: LocalKey, newest: u64) -> u64 {
        let oldest = newest.saturating_sub(REACH);
        let is_one_block = newest >> self.bits.get() == oldest >> self.bits.get();
        let before = (!is_one_block).then(|| self.in_block_of(key, oldest));
        let skipped = before.into_iter().chain([self.in_block_of(key, newest)]);
        let ages = skipped.filter_map(|skipped| newest.checked_sub(skipped));
        ages.filter(|age| *age <= REACH).fold(0, |set, age| set | 1 << age)
    }

    /// How many of the numbers up to `pn` are skipped.
    pub(super) fn up_to(self, key: LocalKey, pn: u64) -> u64 {
        (pn >> self.bits.get()) + u64::from(self.in_block_of(key, pn) <= pn)
    }

    pub(super) fn is_skipped(self, key: LocalKey, pn: u64) -> bool {
        self.in_block_of(key, pn) == pn
    }

    /// The skipped number of a block: never its first, and in the first block one of the second half, so that the peer
    /// has received a few packets before one seems to be lost.
    fn in_block_of(self, key: LocalKey, pn: u64) -> u64 {
        let (block, len) = (pn >> self.bits.get(), 1 << self.bits.get());
        let at = key.number(Label::Skip, block) & (len - 1);
        let at = if block == 0 { at | (len / 2) } else { at.max(1) };
        (block << self.bits.get()) + at
    }
}

/// How many numbers before the newest an ACK covers.
const REACH: u64 = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_block_skips_one_number_and_all_questions_agree_on_it() {
        let key = LocalKey::new([3, 4]);
        for (bits, start) in [(6, 0), (9, 0), (6, 99), (6, (1 << 47) - 1000)] {
            let mut skips = Skips::new(key, NonZeroU32::new(bits).unwrap(), start);
            let (mut used, mut pn) = (BTreeSet::new(), start);
            for _ in 0..5000 {
                pn = skips.pass(key, pn);
                used.insert(pn);
                pn += 1;
            }
            let skipped: BTreeSet<_> = (start..pn).filter(|pn| !used.contains(pn)).collect();
            assert!(
                skipped.iter().all(|pn| skips.is_skipped(key, *pn))
                    && used.iter().all(|pn| !skips.is_skipped(key, *pn))
            );
            let blocks: BTreeSet<_> = skipped.iter().map(|pn| pn >> bits).collect();
            assert_eq!(blocks.len(), skipped.len());
            assert!(skipped.len() as u64 + 2 >= (pn - start) >> bits, "{skipped:?}");
            for newest in used.iter().copied().filter(|pn| *pn >= start + REACH) {
                let told = (0..=REACH).filter(|age| skipped.contains(&(newest - age)));
                assert_eq!(skips.among(key, newest), told.fold(0, |set, age| set | 1 << age), "{newest}");
                let count = skips.up_to(key, newest) - skips.up_to(key, newest - REACH);
                assert_eq!(count, skipped.range(newest - REACH + 1..=newest).count() as u64, "{newest}");
            }
        }
    }
}
