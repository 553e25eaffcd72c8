//! Packet numbers that are never used. Whoever acknowledges one acknowledges what they have not received. Source: RFC
//! 9000 section 21.4.

use crate::session::local_key::{Label, LocalKey};
use std::num::NonZeroU32;

/// One number of each block is skipped, at a place derived from a key of this end.
#[derive(Clone, Copy)]
pub(super) struct Skips {
    /// log2 of the length of a block.
    bits: NonZeroU32,
    /// The places of those of the two blocks before that of `next`, the nearer first: most questions are about these.
    before: [u16; 2],
    /// The first skipped number that is not below the next packet's.
    pub(super) next: u64,
}

impl Skips {
    /// Skips one of 2^`bits` numbers from `pn` on; `bits` is 6 to 16.
    pub(super) fn new(key: LocalKey, bits: NonZeroU32, pn: u64) -> Self {
        let mut skips = Self { bits, before: [0; 2], next: 0 };
        let block = pn >> bits.get();
        let block = block + u64::from(skips.number(block, skips.draw(key, block)) < pn);
        skips.before = [1, 2].map(|age| skips.draw(key, block.wrapping_sub(age)));
        skips.next = skips.number(block, skips.draw(key, block));
        skips
    }

    /// The next number that may be used, from `pn` on, which follows the last one used.
    #[inline]
    pub(super) fn pass(&mut self, key: LocalKey, pn: u64) -> u64 {
        if pn != self.next {
            return pn;
        }
        self.begin_block(key);
        pn + 1 // two skipped numbers never follow each other
    }

    #[cold]
    fn begin_block(&mut self, key: LocalKey) {
        let block = (self.next >> self.bits.get()) + 1;
        self.before = [self.place(self.next), self.before[0]];
        self.next = self.number(block, self.draw(key, block));
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

    /// The skipped number of the block of `pn`.
    #[inline]
    fn in_block_of(self, key: LocalKey, pn: u64) -> u64 {
        let block = pn >> self.bits.get();
        let [one, two] = self.before;
        match (self.next >> self.bits.get()).wrapping_sub(block) {
            0 => self.next,
            1 => self.number(block, one),
            2 => self.number(block, two),
            _ => self.number(block, self.draw(key, block)),
        }
    }

    /// The place of the skipped number in a block: never the first, and in the first block one of the second half, so
    /// that the peer has received a few packets before one seems to be lost.
    #[cold]
    fn draw(self, key: LocalKey, block: u64) -> u16 {
        let place = self.place(key.number(Label::Skip, block));
        if block == 0 { place | 1 << (self.bits.get() - 1) } else { place.max(1) }
    }

    #[expect(clippy::cast_possible_truncation, reason = "a block has 2^16 numbers at most")]
    const fn place(self, pn: u64) -> u16 {
        (pn & ((1 << self.bits.get()) - 1)) as u16
    }

    fn number(self, block: u64, place: u16) -> u64 {
        (block << self.bits.get()) + u64::from(place)
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
