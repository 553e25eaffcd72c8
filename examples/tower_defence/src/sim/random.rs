//! Random numbers without state, so there is no state to send.

/// A number below `count` for this seed, moment and purpose. Source: the finaliser of `SplitMix64`.
#[must_use]
pub fn draw(seed: u64, tick: u32, purpose: u32, count: u32) -> u32 {
    let mut mixed = seed ^ (u64::from(tick) << 32 | u64::from(purpose)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    u32::try_from(((mixed >> 32) * u64::from(count)) >> 32).unwrap_or(0)
}
