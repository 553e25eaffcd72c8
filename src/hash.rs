//! Hashing: of what strangers choose with a key that none of them knows, so that none finds things which fall together; of numbers that we
//! give ourselves with next to nothing.

use siphasher::sip::SipHasher13;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};

/// SipHash-1-3 under a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keyed(pub(crate) [u64; 2]);

impl BuildHasher for Keyed {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        let Self([first, second]) = *self;
        SipHasher13::new_with_keys(first, second)
    }
}

/// For keys that nobody else can choose.
pub(crate) type Given = BuildHasherDefault<GivenHasher>;

/// A multiplication a number. Source: the hash of Firefox and rustc, `fxhash`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GivenHasher(u64);

impl Hasher for GivenHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    /// Of a variant of an enum.
    fn write_isize(&mut self, number: isize) {
        self.write_u64(number.unsigned_abs() as u64);
    }
}
