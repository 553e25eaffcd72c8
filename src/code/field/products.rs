//! Multiples of one shard, added to many sums.

use super::{mul_add, times_x};

/// Adds a multiple of `from` to each of `to`, which are at least as long. `factor` gets their indices.
///
/// If there are many sums, the multiples of each block by all values of half a byte are computed first: any
/// other multiple is the sum of two of these. Source of the idea: the method of four Russians, V. Arlazarov
/// et al. 1970.
pub fn add_products(from: &[u8], to: &mut [Vec<u8>], factor: impl Fn(usize) -> u8) {
    if to.len() < MANY {
        return to.iter_mut().enumerate().for_each(|(at, to)| mul_add(to, factor(at), from));
    }
    for (place, block) in from.chunks(BLOCK).enumerate() {
        let multiples = Multiples::of(block);
        for (at, to) in to.iter_mut().enumerate() {
            let to = to.get_mut(place * BLOCK..).unwrap_or_default();
            multiples.add_to(factor(at), to.get_mut(..block.len()).unwrap_or_default());
        }
    }
}

/// The multiples of a block by the values of the lower and of the upper half of a byte.
struct Multiples([[Block; 16]; 2]);

impl Multiples {
    fn of(bytes: &[u8]) -> Self {
        let mut power = [0; BLOCK]; // times x, x^2, ..
        power.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte);
        let mut halves = [[[0; BLOCK]; 16]; 2];
        for half in &mut halves {
            for bit in 0..4 {
                let (smaller, larger) = half.split_at_mut(1 << bit);
                for (sum, smaller) in larger.iter_mut().zip(smaller) {
                    let bytes = sum.iter_mut().zip(smaller.iter().zip(&power));
                    bytes.for_each(|(sum, (smaller, power))| *sum = smaller ^ power);
                }
                power.iter_mut().for_each(|byte| *byte = times_x(*byte));
            }
        }
        Self(halves)
    }

    fn add_to(&self, factor: u8, to: &mut [u8]) {
        let [lower, upper] = &self.0;
        let halves = (lower.get(usize::from(factor & 15)), upper.get(usize::from(factor >> 4)));
        let (Some(lower), Some(upper)) = halves else { return };
        to.iter_mut().zip(lower.iter().zip(upper)).for_each(|(to, (lower, upper))| *to ^= lower ^ upper);
    }
}

type Block = [u8; BLOCK];

/// Bytes whose multiples are made at once: the multiples stay in the first-level cache.
const BLOCK: usize = 256;
/// With this many sums or more, computing the multiples first is cheaper.
const MANY: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_products_are_those_of_one_by_one() {
        let from: Vec<u8> = (0..=u8::MAX).cycle().take(2 * BLOCK + 88).collect();
        let factors: Vec<u8> = (0..=u8::MAX).step_by(if cfg!(miri) { 51 } else { 1 }).collect();
        let mut sums = vec![vec![3; from.len() + 5]; factors.len()];
        add_products(&from, &mut sums, |at| factors[at]);
        for (factor, sum) in factors.into_iter().zip(sums) {
            let mut expected = vec![3; from.len() + 5];
            mul_add(&mut expected, factor, &from);
            assert_eq!(sum, expected, "times {factor}");
        }
    }
}
