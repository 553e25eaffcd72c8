//! Bytes as elements of the field GF(256) with the polynomial 0x11d, which repairs and the parity of kcp-go have in common.
//! A sum is XOR. Source: klauspost/reedsolomon, `galois.go`.

mod products;

pub use products::add_products;

/// `a` times `b`.
#[inline]
pub fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    exp_of(log_of(a) + log_of(b))
}

/// The inverse of `a`; `None` for 0.
#[inline]
pub fn inverse(a: u8) -> Option<u8> {
    (a != 0).then(|| exp_of(ORDER - log_of(a)))
}

/// `a` times x, written so that a loop over bytes compiles to vector instructions.
#[inline(always)]
pub const fn times_x(a: u8) -> u8 {
    let carry = (a.cast_signed() >> 7).cast_unsigned();
    (a << 1) ^ (carry & POLYNOMIAL)
}

/// Adds `factor` times `from` to `to`, byte by byte, up to the shorter of the two.
///
/// This is for rows of coefficients and for a few sums at once. [`Encoder`](super::Encoder) has a faster way to one sum of
/// many payloads.
#[inline]
pub fn mul_add(to: &mut [u8], factor: u8, from: &[u8]) {
    let masks: [u8; 8] = std::array::from_fn(|bit| 0u8.wrapping_sub(factor >> bit & 1));
    for (to, from) in to.iter_mut().zip(from) {
        let mut power = *from; // times x, x^2, ..
        for mask in masks {
            *to ^= power & mask;
            power = times_x(power);
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
        for a in (0..=u8::MAX).step_by(if cfg!(miri) { 127 } else { 1 }) {
            let mut products = [0; 256];
            mul_add(&mut products, a, &std::array::from_fn::<_, 256, _>(|b| b.to_le_bytes()[0]));
            for (b, product) in (0..=u8::MAX).zip(products) {
                assert_eq!([mul(a, b), product], [mul_bitwise(a, b); 2], "{a} x {b}");
            }
            assert_eq!(inverse(a).map(|inverse| mul(a, inverse)), (a != 0).then_some(1));
        }
    }
}
