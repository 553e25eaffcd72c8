//! Damage: flipped bits and truncation.

use super::config::{LinkError, chance};
use super::rng::{SimRng, choose};
use rand::RngExt;

/// How datagrams are damaged. A chance is a number from 0 to 1. Copies of a datagram share its damage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "two numbers with names")]
pub struct Corruption {
    /// Chance that one to eight bits flip in one byte.
    pub flip: f64,
    /// Chance that the end is cut off, at least one byte.
    pub truncate: f64,
}

impl Corruption {
    pub(super) fn check(&self) -> Result<(), LinkError> {
        chance("corruption.flip", self.flip)?;
        chance("corruption.truncate", self.truncate)
    }

    /// May damage `datagram`; returns whether it did. Always draws five random numbers, so that changing the
    /// chance of one kind of damage does not affect the other.
    pub(super) fn apply(&self, rng: &mut SimRng, datagram: &mut Vec<u8>) -> bool {
        let [flips, place, mask, cuts, end] = [(); 5].map(|()| rng.random::<f64>());
        let len = u32::try_from(datagram.len()).unwrap_or(u32::MAX);
        if len == 0 {
            return false;
        }
        let (flips, cuts) = (flips < self.flip, cuts < self.truncate);
        if flips && let Some(byte) = datagram.get_mut(choose(place, len) as usize) {
            *byte ^= 1 + u8::try_from(choose(mask, 255)).unwrap_or_default();
        }
        if cuts {
            datagram.truncate(choose(end, len) as usize);
        }
        flips || cuts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_comes_at_its_rate_and_never_at_chance_zero() {
        for (flip, truncate) in [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.3, 0.2), (0.0, 0.0)] {
            let (corruption, mut rng, mut damaged) = (Corruption { flip, truncate }, SimRng::new(5, 201), 0);
            for len in (0..10_000).map(|number| number % 50) {
                let mut datagram = vec![0x5a; len];
                let is_damaged = corruption.apply(&mut rng, &mut datagram);
                assert_eq!(datagram != vec![0x5a; len], is_damaged);
                damaged += u32::from(is_damaged);
            }
            let expected = 9_800.0 * (1.0 - (1.0 - flip) * (1.0 - truncate)); // 200 empty datagrams cannot be damaged
            assert!((f64::from(damaged) - expected).abs() < 200.0, "{damaged} for {flip} and {truncate}");
        }
    }

    #[test]
    fn one_kind_of_damage_does_not_affect_the_other() {
        let lengths = |flip| {
            let (corruption, mut rng) = (Corruption { flip, truncate: 0.5 }, SimRng::new(6, 201));
            let mut cut = || {
                let mut datagram = vec![0; 100];
                corruption.apply(&mut rng, &mut datagram);
                datagram.len()
            };
            (0..100).map(|_| cut()).collect::<Vec<_>>()
        };
        assert_eq!(lengths(0.0), lengths(1.0));
    }
}
