//! Random numbers by a seed.

/// Random numbers by a seed, in independent streams. Source: `SplitMix64`,
/// <https://prng.di.unimi.it/splitmix64.c>.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The numbers of stream `stream` of the seed `seed`. Streams of one seed have nothing in common.
    #[must_use]
    pub const fn new(seed: u64, stream: u64) -> Self {
        let start = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ stream.wrapping_mul(0xd1b5_4a32_d192_ed03);
        let mut rng = Self(start);
        rng.next_u64();
        rng.next_u64(); // the first two of neighbouring seeds are still alike
        rng
    }

    /// 64 random bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to 1, and never 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub fn fraction(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Which one of `count` a `fraction` from 0 up to 1 chooses: 0 up to `count`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 up to `count`")]
pub(super) fn choose(fraction: f64, count: u32) -> u32 {
    (fraction * f64::from(count)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        // Seed 0 of the published generator gives these as its first to fourth.
        let published = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
        let mut from_start = Rng(0);
        assert_eq!(published, [(); 3].map(|()| from_start.next_u64()));
        assert_eq!(Rng::new(0, 0).next_u64(), published[2], "the first two are left out");
    }

    #[test]
    fn streams_and_seeds_differ_and_fractions_are_even() {
        let first = |seed, stream| Rng::new(seed, stream).next_u64();
        assert_ne!(first(1, 1), first(1, 2));
        assert_ne!(first(1, 1), first(2, 1));
        let mut rng = Rng::new(3, 1);
        let mut tenths = [0; 10];
        for _ in 0..100_000 {
            tenths[choose(rng.fraction(), 10) as usize] += 1;
        }
        assert!(tenths.iter().all(|count| (9_600..10_400).contains(count)), "{tenths:?}");
    }
}
