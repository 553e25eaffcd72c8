//! A sum of many symbols, each times its coefficient. This is where the code spends its time.

use super::field::times_x;

/// Σ coefficient × symbol over GF(256).
///
/// A product is the sum of `symbol` × x^bit over the bits of the coefficient. So there is one plane per bit:
/// the sum of all symbols whose coefficient has that bit. The planes are combined once, at the end. A symbol
/// costs four XORs of its length on average, which the compiler turns into vector instructions, and no table.
///
/// The memory grows to the longest symbol and is reused.
#[derive(Clone, Debug, Default)]
pub(super) struct Sum {
    /// For each chunk of the longest symbol, the corresponding chunk of every plane.
    planes: Vec<[Chunk; 8]>,
    /// The symbol being added, or the result.
    symbol: Vec<Chunk>,
    /// Length of the longest symbol.
    len: usize,
}

impl Sum {
    /// Length of the longest symbol so far, which is the length of the result, bytes.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn memory(&self) -> usize {
        (self.planes.capacity() * 8 + self.symbol.capacity()) * CHUNK
    }

    /// Starts over with an empty sum.
    pub(super) fn clear(&mut self) {
        self.planes.clear();
        self.len = 0;
    }

    /// Adds `coefficient` times a symbol. `write` must set all of its `len` bytes.
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

    /// Returns the sum, as long as the longest symbol.
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

    /// Makes room for exactly this many chunks.
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
