//! Arithmetic of bytes in GF(256): polynomials over the bits, modulo x^8 + x^4 + x^3 + x^2 + 1.
//!
//! Adding is XOR, and so is subtracting. Source of the field: RFC 8681, section 3.7.1.

/// Powers of x, twice one after the other, so that a sum of two logarithms needs no modulo.
const EXP: [u8; 512] = exp();
/// The exponent that gives a byte; that of 0 is never used.
const LOG: [u8; 256] = log();

/// The low byte of the polynomial 0x11d.
const POLYNOMIAL: u8 = 0x1d;
/// Powers of x until they begin anew.
const ORDER: usize = 255;

/// `a` times `b`.
#[inline]
pub(super) fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    exp_of(log_of(a) + log_of(b))
}

/// What times `a` is 1; `None` for 0.
#[inline]
pub(super) fn inverse(a: u8) -> Option<u8> {
    (a != 0).then(|| exp_of(ORDER - log_of(a)))
}

/// `a` times x. Written so that a loop over bytes becomes vector instructions.
#[inline(always)]
pub(super) const fn times_x(a: u8) -> u8 {
    let carry = (a.cast_signed() >> 7).cast_unsigned();
    (a << 1) ^ (carry & POLYNOMIAL)
}

/// Adds `factor` times `from` to `to`, byte by byte, up to the shorter of the two.
///
/// This is for lines of coefficients. [`Sum`](super::sum::Sum) is faster for a sum of many payloads.
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
    use proptest::prelude::*;

    /// Long multiplication, then the remainder of a division by 0x11d.
    fn mul_plainly(a: u8, b: u8) -> u8 {
        let product = (0..8).filter(|bit| b >> bit & 1 == 1).fold(0, |sum, bit| sum ^ u16::from(a) << bit);
        let remainder = (8..15).rev().fold(product, |rest, bit| match rest >> bit & 1 {
            1 => rest ^ 0x11d << (bit - 8),
            _ => rest,
        });
        u8::try_from(remainder).unwrap()
    }

    #[test]
    fn every_product_is_that_of_long_multiplication() {
        for a in 0..=u8::MAX {
            for b in 0..=u8::MAX {
                assert_eq!(mul(a, b), mul_plainly(a, b), "{a} x {b}");
            }
            assert_eq!(times_x(a), mul_plainly(a, 2));
        }
    }

    #[test]
    fn every_byte_but_zero_has_one_inverse() {
        assert_eq!(inverse(0), None);
        for a in 1..=u8::MAX {
            assert_eq!(mul(a, inverse(a).unwrap()), 1);
        }
    }

    proptest! {
        #[test]
        fn it_is_a_field(a: u8, b: u8, c: u8) {
            prop_assert_eq!(mul(a, b), mul(b, a));
            prop_assert_eq!(mul(mul(a, b), c), mul(a, mul(b, c)));
            prop_assert_eq!(mul(a, b ^ c), mul(a, b) ^ mul(a, c));
            prop_assert_eq!(mul(a, 1), a);
        }

        #[test]
        fn mul_add_is_a_product_and_a_sum_byte_by_byte(
            to in prop::collection::vec(any::<u8>(), 0..200),
            from in prop::collection::vec(any::<u8>(), 0..200),
            factor: u8,
        ) {
            let mut sum = to.clone();
            mul_add(&mut sum, factor, &from);
            for (index, byte) in sum.iter().enumerate() {
                let product = from.get(index).map_or(0, |&from| mul_plainly(factor, from));
                prop_assert_eq!(*byte, to[index] ^ product);
            }
        }
    }
}
