//! How much what was sent is overtaken.

/// By how much, µs, has been overtaken what arrived all the same: what is overtaken by no more is late perhaps, by more it is lost.
///
/// Source: RFC 8985 (6.2, step 4), with what was seen in place of a share of the round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reordering {
    allowance: u64,
    /// Losses found until the allowance is halved, if nothing comes late in between.
    keep: u8,
}

impl Reordering {
    /// What has not arrived is lost when what was sent later than it by more than this has.
    #[inline]
    pub(crate) const fn allowance(&self) -> u64 {
        self.allowance
    }

    /// Something has arrived later than it should by so much. An allowance above the shortest round trip would not find anything in time.
    pub(crate) fn came_late(&mut self, by: u64, rtt_min: u64) {
        self.allowance = self.allowance.max(by + by / 8).min(rtt_min);
        self.keep = KEEP;
    }

    /// Something was found lost.
    pub(crate) const fn found_lost(&mut self) {
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
        let mut reordering = Reordering::default();
        reordering.came_late(16, 50);
        assert_eq!(reordering.allowance(), 18);
        (0..15).for_each(|_| reordering.found_lost());
        reordering.came_late(8, 50);
        (0..15).for_each(|_| reordering.found_lost());
        assert_eq!(reordering.allowance(), 18, "16 losses from the last one on");
        reordering.found_lost();
        assert_eq!(reordering.allowance(), 9);
        reordering.came_late(200, 50);
        assert_eq!(reordering.allowance(), 50);
    }
}
