//! Random numbers from a seed.

use rand::rand_core::{Infallible, TryCryptoRng, TryRng};
use rand::{Rng, SeedableRng};
use rand_xoshiro::SplitMix64;

/// Random numbers from a seed, in independent streams: `SplitMix64` with the traits of the crate `rand`.
///
/// It claims to be cryptographically secure, which it is not, so that sessions accept it and runs are
/// repeatable. Never use it outside of tests and simulations.
#[derive(Clone, Debug)]
pub struct SimRng(SplitMix64);

impl SimRng {
    /// The numbers of the stream `stream` of `seed`. Streams of one seed are independent.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        let start = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ stream.wrapping_mul(0xd1b5_4a32_d192_ed03);
        let mut rng = SplitMix64::from_seed(start.to_le_bytes());
        rng.next_u64();
        rng.next_u64(); // neighbouring seeds start with similar numbers
        Self(rng)
    }
}

impl TryRng for SimRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.0.try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0.try_next_u64()
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        bytes.fill_with(|| self.0.next_u64().to_le_bytes()[0]); // one number per byte, as when the tables were made
        Ok(())
    }
}

impl TryCryptoRng for SimRng {}

/// Maps `fraction`, from 0 up to 1, to one of `count` numbers: 0 up to `count`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 up to `count`")]
pub(super) fn choose(fraction: f64, count: u32) -> u32 {
    (fraction * f64::from(count)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    #[test]
    fn the_numbers_are_those_of_splitmix64_from_the_third_on() {
        // The third number of the published generator with seed 0: <https://prng.di.unimi.it/splitmix64.c>.
        assert_eq!(SimRng::new(0, 0).next_u64(), 0x06c4_5d18_8009_454f);
        assert_eq!(
            SimRng::new(0, 0).random::<f64>(),
            (0x06c4_5d18_8009_454f_u64 >> 11) as f64 / 2f64.powi(53)
        );
    }

    #[test]
    fn streams_and_seeds_differ_and_fractions_are_even() {
        let first = |seed, stream| SimRng::new(seed, stream).next_u64();
        assert_ne!(first(1, 1), first(1, 2));
        assert_ne!(first(1, 1), first(2, 1));
        let mut rng = SimRng::new(3, 1);
        let mut tenths = [0; 10];
        for _ in 0..100_000 {
            tenths[choose(rng.random(), 10) as usize] += 1;
        }
        assert!(tenths.iter().all(|count| (9_600..10_400).contains(count)), "{tenths:?}");
    }
}
