//! How often strangers are answered.

use super::ServerConfig;
use crate::rate::{AddressRate, Rate};
use crate::session::random::hash_key;
use rand_core::CryptoRng;

#[derive(Debug)]
pub(super) struct Rates {
    pub(super) challenges: Rate,
    pub(super) denials: Rate,
    pub(super) resets: Rate,
    pub(super) accepts: AddressRate,
}

impl Rates {
    pub(super) fn new(config: &ServerConfig, rng: &mut dyn CryptoRng) -> Self {
        let ServerConfig { accepts_per_second, accept_burst, .. } = *config;
        let ServerConfig { challenges_per_second, refusals_per_second, .. } = *config;
        let burst = |per_second: u32| per_second.div_ceil(10).max(10);
        let each = |per_second| Rate::new(per_second, burst(per_second));
        Self {
            challenges: each(challenges_per_second),
            denials: each(refusals_per_second),
            resets: each(refusals_per_second),
            accepts: AddressRate::new(accepts_per_second, accept_burst, hash_key(rng)),
        }
    }
}
