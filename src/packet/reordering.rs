//! How much packets overtake each other.

use std::time::Duration;

/// By how much packets have been overtaken that arrived all the same: one overtaken by no more is late perhaps, by more it is lost.
///
/// Source: RFC 8985 (6.2, step 4), with what was seen in place of a share of the round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reordering {
    allowance: Duration,
    /// Losses found until the allowance is halved, if nothing comes late in between.
    keep: u8,
}

impl Reordering {
    /// A packet is lost when a packet sent later than it by more than this has arrived, and it has not.
    pub(super) const fn allowance(&self) -> Duration {
        self.allowance
    }

    /// A packet has arrived after one that was sent later by `overtaken_by`. An allowance above the shortest round trip would not
    /// find anything in time.
    pub(super) fn arrived(&mut self, overtaken_by: Duration, rtt_min: Duration) {
        if !overtaken_by.is_zero() {
            self.allowance = self.allowance.max(overtaken_by + overtaken_by / 8).min(rtt_min);
            self.keep = KEEP;
        }
    }

    /// A packet was found lost.
    pub(super) fn found_lost(&mut self) {
        self.keep = self.keep.saturating_sub(1);
        if self.keep == 0 {
            (self.allowance, self.keep) = (self.allowance / 2, KEEP);
        }
    }
}

/// Losses for which an allowance is kept.
const KEEP: u8 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_allowed_until_it_is_not_seen_any_more() {
        let ms = Duration::from_millis;
        let mut reordering = Reordering::default();
        reordering.arrived(ms(0), ms(50));
        assert_eq!(reordering.allowance(), ms(0), "in order");
        reordering.arrived(ms(16), ms(50));
        assert_eq!(reordering.allowance(), ms(18));
        (0..15).for_each(|_| reordering.found_lost());
        reordering.arrived(ms(8), ms(50));
        (0..15).for_each(|_| reordering.found_lost());
        assert_eq!(reordering.allowance(), ms(18), "16 losses from the last one on");
        reordering.found_lost();
        assert_eq!(reordering.allowance(), ms(9));
        reordering.arrived(ms(200), ms(50));
        assert_eq!(reordering.allowance(), ms(50));
    }
}
