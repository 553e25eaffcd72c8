//! A sum of many symbols, each times its coefficient. This is where the code spends its time.

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

/// Powers of x, twice in a row, so that a sum of two logarithms needs no modulo.
const EXP: [u8; 512] = exp();
/// The exponent that yields a byte; the entry for 0 is never used.
const LOG: [u8; 256] = log();

/// The low byte of the polynomial 0x11d.
const POLYNOMIAL: u8 = 0x1d;
/// Number of different powers of x.
const ORDER: usize = 255;

/// `a` times `b`.
#[inline]
pub(super) fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    exp_of(log_of(a) + log_of(b))
}

/// The inverse of `a`; `None` for 0.
#[inline]
pub(super) fn inverse(a: u8) -> Option<u8> {
    (a != 0).then(|| exp_of(ORDER - log_of(a)))
}

/// `a` times x, written so that a loop over bytes compiles to vector instructions.
#[inline(always)]
pub(super) const fn times_x(a: u8) -> u8 {
    let carry = (a.cast_signed() >> 7).cast_unsigned();
    (a << 1) ^ (carry & POLYNOMIAL)
}

/// Adds `factor` times `from` to `to`, byte by byte, up to the shorter of the two.
///
/// This is for rows of coefficients. [`Sum`](super::sum::Sum) is faster for a sum of many payloads.
#[inline]
pub(super) fn mul_add(to: &mut [u8], factor: u8, from: &[u8]) {
    let masks: [u8; 8] = std::array::from_fn(|bit| 0u8.wrapping_sub(factor >> bit & 1));
    for (to, from) in to.iter_mut().zip(from) {
        let mut power = *from; // times x, x^2, ..
        for mask in masks {
            *to ^= power & mask;
            power = times_x(power);
        }
    }
}

#[inline]
fn log_of(a: u8) -> usize {
    LOG.get(usize::from(a)).copied().unwrap_or(0).into()
}

#[inline]
fn exp_of(exponent: usize) -> u8 {
    EXP.get(exponent).copied().unwrap_or(0)
}

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn exp() -> [u8; 512] {
    let mut powers = [1; 512];
    let mut exponent = 1;
    while exponent < powers.len() {
        powers[exponent] = times_x(powers[exponent - 1]);
        exponent += 1;
    }
    powers
}

#[expect(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "evaluated by the compiler")]
const fn log() -> [u8; 256] {
    let mut logarithms = [0; 256];
    let mut exponent = 0;
    while exponent < ORDER {
        logarithms[EXP[exponent] as usize] = exponent as u8;
        exponent += 1;
    }
    logarithms
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long multiplication, then the remainder of the division by 0x11d.
    fn mul_bitwise(a: u8, b: u8) -> u8 {
        let product = (0..8).filter(|bit| b >> bit & 1 == 1).fold(0, |sum, bit| sum ^ u16::from(a) << bit);
        let remainder = (8..15).rev().fold(product, |rest, bit| match rest >> bit & 1 {
            1 => rest ^ 0x11d << (bit - 8),
            _ => rest,
        });
        u8::try_from(remainder).unwrap()
    }

    #[test]
    fn products_match_long_multiplication_and_every_byte_but_zero_has_an_inverse() {
        for a in (0..=u8::MAX).step_by(if cfg!(miri) { 51 } else { 1 }) {
            let mut products = [0; 256];
            mul_add(&mut products, a, &std::array::from_fn::<_, 256, _>(|b| b.to_le_bytes()[0]));
            for (b, product) in (0..=u8::MAX).zip(products) {
                assert_eq!([mul(a, b), product], [mul_bitwise(a, b); 2], "{a} x {b}");
            }
            assert_eq!(inverse(a).map(|inverse| mul(a, inverse)), (a != 0).then_some(1));
        }
    }
}
