//! Random numbers, from the owner.

use rand_core::CryptoRng;

/// What the owner draws from.
pub(super) struct Random(pub(super) Box<dyn CryptoRng + Send>);

printed_without_secrets! { Random {} }

/// Random bytes. Every number is made of these, so that it does not matter how a generator makes numbers.
pub(crate) fn random<const N: usize>(rng: &mut dyn CryptoRng) -> [u8; N] {
    let mut bytes = [0; N];
    rng.fill_bytes(&mut bytes);
    bytes
}

pub(crate) fn hash_key(rng: &mut dyn CryptoRng) -> [u64; 2] {
    [u64::from_le_bytes(random(rng)), u64::from_le_bytes(random(rng))]
}
