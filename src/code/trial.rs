//! Finds how many repairs get messages to the peer in time.

use super::budget::WHOLE;

/// The share of bytes for repairs with which all but one in a hundred are in time, found by trial: each late one raises
/// it, each other one lowers it a little.
///
/// Source of the method: H. Robbins, S. Monro 1951, "A Stochastic Approximation Method".
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial {
    /// Of [`WHOLE`].
    share: u32,
}

impl Default for Trial {
    fn default() -> Self {
        Self { share: WHOLE / 4 }
    }
}

impl Trial {
    pub(crate) const fn share(self) -> u32 {
        self.share
    }

    pub(crate) fn judge(&mut self, is_late: bool) {
        self.share = if is_late {
            (self.share + self.share / RISE + WHOLE / 256).min(2 * WHOLE)
        } else {
            self.share - self.share.div_ceil(RISE * LATE)
        };
    }
}

/// By which part of it the share rises if something is late.
const RISE: u32 = 8;
/// One in this many may be late, with a margin below one in a hundred.
const LATE: u32 = 140;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_ends_where_one_in_a_hundred_is_late_and_stays_within_its_limits() {
        let (mut trial, mut late) = (Trial::default(), 0);
        for number in 0..100_000_u32 {
            // What is sent with a share of one third is in time, and half of the rest is.
            let is_late = trial.share() < WHOLE / 3 && number.wrapping_mul(0x9e37_79b1) >> 31 == 1;
            late += u32::from(is_late && number > 10_000);
            trial.judge(is_late);
        }
        assert!((400..1000).contains(&late), "{late} of 90,000");
        (0..1000).for_each(|_| trial.judge(true));
        assert_eq!(trial.share(), 2 * WHOLE);
        (0..100_000).for_each(|_| trial.judge(false));
        assert_eq!(trial.share(), 0);
    }
}
