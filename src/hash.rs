//! Hashing. What strangers choose is hashed under a secret key, so that nobody can construct collisions.
//! Numbers that we assign ourselves get a nearly free hash.

use rustc_hash::FxBuildHasher;
use siphasher::sip::SipHasher13;
use std::hash::BuildHasher;

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
pub(crate) type Given = FxBuildHasher;
