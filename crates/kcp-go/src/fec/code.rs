//! The erasure code: each shard is a value of one polynomial over GF(256).

use super::super::config::Shards;
use whitewater::inside::code::field::{add_products, inverse, mul};

/// Makes parity from data. It never changes, so all peers of a socket share it.
///
/// The bytes at one position of the data shards are the values of a polynomial at the points 0, 1, .. up to the number
/// of data shards, and the polynomial has the lowest degree. The parity shards are its values at the next points. So any
/// shards, if they are as many as the data, determine the polynomial and with it all other shards.
///
/// Backblaze and klauspost/reedsolomon describe the same code as a Vandermonde matrix times the inverse of its top
/// square. Lagrange's formula needs no matrix, so there is nothing to invert and nothing to cache.
#[derive(Debug)]
pub(crate) struct Code {
    /// For each parity shard the factor of each data shard.
    parity: Vec<Vec<u8>>,
}

impl Code {
    pub(crate) fn new(shards: Shards) -> Self {
        let basis = Basis::new((0..shards.data).collect());
        let places = (shards.data..=u8::MAX).take(shards.parity.into());
        Self { parity: places.map(|place| basis.at(place).collect()).collect() }
    }

    /// Adds a data shard to all parity shards, which are at least as long.
    pub(super) fn add(&self, at: usize, shard: &[u8], parity: &mut [Vec<u8>]) {
        let factor = |sum: usize| self.parity.get(sum).and_then(|factors| factors.get(at)).copied();
        add_products(shard, parity, |sum| factor(sum).unwrap_or_default());
    }
}

/// Lagrange's polynomials for some points: each is 1 at its own point and 0 at the others.
pub(super) struct Basis {
    points: Vec<u8>,
    /// For each point, the inverse of the product of its differences to the others.
    scales: Vec<u8>,
}

impl Basis {
    /// The points must differ.
    pub(super) fn new(points: Vec<u8>) -> Self {
        let others = |at: u8| points.iter().filter(move |other| **other != at);
        let scale =
            |at: u8| inverse(others(at).fold(1, |product, other| mul(product, at ^ other))).unwrap_or(0);
        let scales = points.iter().map(|at| scale(*at)).collect();
        Self { points, scales }
    }

    /// The values at `x`, which is none of the points.
    pub(super) fn at(&self, x: u8) -> impl Iterator<Item = u8> {
        let all = self.points.iter().fold(1, |product, at| mul(product, x ^ at));
        let points = self.points.iter().zip(&self.scales);
        points.map(move |(at, scale)| mul(mul(all, inverse(x ^ at).unwrap_or(0)), *scale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_shards_of_the_largest_groups_determine_the_first() {
        for (data, parity) in [(1, 1), (128, 128), (200, 56), (255, 1), (1, 255)] {
            let code = Code::new(Shards { data, parity });
            let mut sums = vec![vec![0]; parity.into()];
            let values: Vec<u8> = (0..data).map(|at| at.wrapping_mul(37) ^ 0x5a).collect();
            values.iter().enumerate().for_each(|(at, value)| code.add(at, &[*value], &mut sums));
            let all: Vec<u8> = values.into_iter().chain(sums.concat()).collect();
            let here: Vec<u8> = (parity..=u8::MAX).take(data.into()).collect(); // the last ones
            let basis = Basis::new(here.clone());
            for (at, value) in (0..parity).zip(&all) {
                let known = here.iter().map(|at| all[usize::from(*at)]);
                let sum = basis.at(at).zip(known).fold(0, |sum, (factor, known)| sum ^ mul(factor, known));
                assert_eq!(sum, *value, "{data} + {parity}: shard {at}");
            }
        }
    }
}
