//! A sum of many symbols, each times its coefficient: the work of the code.

use super::gf256::times_x;

/// Σ coefficient × symbol over GF(256).
///
/// A product is a sum of `symbol` × x^bit over the bits of the coefficient. So there is a plane for
/// each bit, the sum of all symbols that have it in their coefficient, and the planes are put
/// together once, at the end: a symbol costs four XORs of its length on average, which the compiler
/// makes vector instructions, and no table.
///
/// The memory grows to the longest symbol and is used again.
#[derive(Clone, Debug, Default)]
pub(super) struct Sum {
    /// For each chunk of the longest symbol, that chunk of every plane.
    planes: Vec<[Chunk; 8]>,
    /// A symbol being added, or the result.
    symbol: Vec<Chunk>,
    /// Length of the longest symbol.
    len: usize,
}

impl Sum {
    /// A sum of nothing. It owns no memory yet.
    pub(super) const fn new() -> Self {
        Self { planes: Vec::new(), symbol: Vec::new(), len: 0 }
    }

    /// Length of the longest symbol so far, bytes: that of the result.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn memory(&self) -> usize {
        (self.planes.capacity() * 8 + self.symbol.capacity()) * CHUNK
    }

    /// Begins again, with a sum of nothing.
    pub(super) fn clear(&mut self) {
        self.planes.clear();
        self.len = 0;
    }

    /// Adds `coefficient` times a symbol of `len` bytes, all of which `write` sets.
    #[inline]
    pub(super) fn add(&mut self, coefficient: u8, len: usize, write: impl FnOnce(&mut [u8])) {
        let chunks = len.div_ceil(CHUNK);
        if chunks > self.planes.len() {
            self.grow(chunks);
        }
        self.len = self.len.max(len);
        let symbol = self.symbol.get_mut(..chunks).unwrap_or_default();
        if let Some((symbol, padding)) = symbol.as_flattened_mut().split_at_mut_checked(len) {
            write(symbol);
            padding.fill(0);
        }
        add_to_planes(&mut self.planes, coefficient, symbol);
    }

    /// The sum, as long as the longest symbol.
    pub(super) fn result(&mut self) -> &[u8] {
        for (sum, [lower @ .., highest]) in self.symbol.iter_mut().zip(&self.planes) {
            *sum = *highest;
            for plane in lower.iter().rev() {
                for (sum, bits) in sum.iter_mut().zip(plane) {
                    *sum = times_x(*sum) ^ bits; // Horner's rule
                }
            }
        }
        self.symbol.as_flattened().get(..self.len).unwrap_or_default()
    }

    /// Makes room for so many chunks, and no more.
    fn grow(&mut self, chunks: usize) {
        self.planes.reserve_exact(chunks - self.planes.len());
        self.planes.resize(chunks, [[0; CHUNK]; 8]);
        if chunks > self.symbol.len() {
            self.symbol.reserve_exact(chunks - self.symbol.len());
            self.symbol.resize(chunks, [0; CHUNK]);
        }
    }
}

/// Bytes that are added at once: a few vector registers.
const CHUNK: usize = 64;

type Chunk = [u8; CHUNK];

fn add_to_planes(planes: &mut [[Chunk; 8]], coefficient: u8, symbol: &[Chunk]) {
    for (planes, chunk) in planes.iter_mut().zip(symbol) {
        for (bit, plane) in planes.iter_mut().enumerate() {
            if coefficient >> bit & 1 == 1 {
                for (sum, byte) in plane.iter_mut().zip(chunk) {
                    *sum ^= byte;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::gf256::mul_add;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_sum_of_the_products_whatever_was_summed_before(
            sums in prop::collection::vec(
                prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..300)), 0..10),
                1..4,
            ),
        ) {
            let mut sum = Sum::new();
            for symbols in sums {
                sum.clear();
                let len = symbols.iter().map(|(_, symbol)| symbol.len()).max().unwrap_or(0);
                let mut plain = vec![0; len];
                for (coefficient, symbol) in &symbols {
                    sum.add(*coefficient, symbol.len(), |to| to.copy_from_slice(symbol));
                    mul_add(&mut plain, *coefficient, symbol);
                }
                prop_assert_eq!(sum.len(), len);
                prop_assert_eq!(sum.result(), plain);
            }
        }
    }
}
