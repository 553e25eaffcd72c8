//! Random numbers, from the owner.

use rand_core::CryptoRng;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// What the owner draws from.
pub(super) struct Random(Box<dyn CryptoRng + Send>);

impl Random {
    pub(super) fn new(rng: impl CryptoRng + Send + 'static) -> Self {
        Self(Box::new(rng))
    }
}

impl Deref for Random {
    type Target = dyn CryptoRng + Send;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl DerefMut for Random {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.0
    }
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Random(..)")
    }
}

/// Random bytes. Every number is made of these, so that it does not matter how a generator makes numbers.
pub(crate) fn random<const N: usize>(rng: &mut dyn CryptoRng) -> [u8; N] {
    let mut bytes = [0; N];
    rng.fill_bytes(&mut bytes);
    bytes
}

/// A key for [`Keyed`](crate::hash::Keyed).
pub(crate) fn hash_key(rng: &mut dyn CryptoRng) -> [u64; 2] {
    [u64::from_le_bytes(random(rng)), u64::from_le_bytes(random(rng))]
}
