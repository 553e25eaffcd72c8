//! How much of what the peer sends gets lost, by the numbers of its packets.

use crate::code::budget::{LossShare, WHOLE};

/// Judges each number when three higher ones have come. Whoever is later than that counts as lost, for a repair would have brought it
/// sooner; who was rebuilt counts as lost as well.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    /// The number after the highest that came; 0: none did.
    end: u64,
    /// Bit i: `end` - 1 - i came, or is before all that are looked at.
    came: u64,
    share: LossShare,
    /// Of 65,535.
    min_loss: u32,
    is_on: bool,
}

impl Losses {
    /// Repairs are wanted from a loss of so many in a thousand on.
    pub(super) fn new(min_loss: u16) -> Self {
        let min_loss = u32::from(min_loss) * WHOLE / 1000;
        Self { end: 0, came: u64::MAX, share: LossShare::assumed(0), min_loss, is_on: false }
    }

    /// The packet `pn` has come, in whatever order.
    pub(super) fn arrived(&mut self, pn: u64) {
        if self.end == 0 {
            self.end = pn; // what was sent before is of no interest
        }
        if let Some(age) = self.end.checked_sub(pn + 1) {
            let bit = u32::try_from(age).ok().and_then(|age| 1_u64.checked_shl(age)).unwrap_or(0);
            self.came |= bit;
            return;
        }
        for _ in 0..(pn + 1 - self.end).min(u64::BITS.into()) {
            self.came <<= 1;
            self.share.judge(self.came >> JUDGED_AT & 1 == 0);
        }
        self.came |= 1;
        self.end = pn + 1;
        let least = if self.is_on { self.min_loss / 2 } else { self.min_loss };
        self.is_on = self.share.get() >= least.max(1);
    }

    /// The highest number that came.
    pub(super) const fn newest(&self) -> Option<u64> {
        self.end.checked_sub(1)
    }

    /// Whether so much gets lost that repairs are of use.
    pub(super) const fn is_on(&self) -> bool {
        self.is_on
    }

    /// What the peer is told: the share, of 255, and 0 where no repairs are wanted.
    pub(super) fn told(&self) -> u8 {
        if self.is_on { of_255(self.share.get()).max(1) } else { 0 }
    }
}

/// A share of 65,535 in units of 1/255.
fn of_255(share: u32) -> u8 {
    u8::try_from((share + 128) / 257).unwrap_or(u8::MAX)
}

/// Higher numbers that have come when one is judged.
const JUDGED_AT: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_on_from_a_loss_and_until_half_of_it() {
        let mut losses = Losses::new(10);
        (1000..2000).for_each(|pn| losses.arrived(pn));
        assert!(!losses.is_on() && losses.told() == 0, "what was before the first is no loss");
        (2000..3000).filter(|pn| pn % 300 != 0).for_each(|pn| losses.arrived(pn));
        assert!(!losses.is_on(), "0.3 %");
        (3000..5000).filter(|pn| pn % 20 != 0).for_each(|pn| losses.arrived(pn));
        assert!(losses.is_on() && (10..=16).contains(&losses.told()), "5 %: {}", losses.told());
        let clean = (5000..).take_while(|pn| {
            losses.arrived(*pn);
            losses.is_on()
        });
        assert!((200..450).contains(&clean.count()));
        assert_eq!(losses.told(), 0);
    }

    #[test]
    fn what_is_overtaken_by_two_is_not_lost_and_a_jump_costs_little() {
        let mut losses = Losses::new(10);
        for pn in (0..300).step_by(3) {
            [pn + 2, pn + 1, pn].into_iter().for_each(|pn| losses.arrived(pn));
        }
        assert!(!losses.is_on());
        losses.arrived(1 << 47);
        losses.arrived(5);
        assert!(losses.is_on() && losses.end == (1 << 47) + 1);
    }
}
