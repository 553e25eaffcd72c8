//! How much gets lost.

/// The share of what was sent that got lost: a moving average over the last [`OVER`], and over fewer
/// at first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossShare {
    /// Of 65,535.
    share: u32,
    /// How many the average is over.
    over: u32,
}

impl LossShare {
    /// Nothing was sent yet, and so many of 65,535 are assumed to get lost.
    pub(crate) const fn assumed(share: u32) -> Self {
        Self { share, over: OVER_FIRST }
    }

    /// One more was sent.
    pub(crate) fn judge(&mut self, is_lost: bool) {
        let lost = if is_lost { WHOLE + self.over - 1 } else { 0 };
        self.share = ((self.over - 1) * self.share + lost).min(self.over * WHOLE) / self.over;
        self.over = (self.over + 1).min(OVER);
    }

    /// One that was judged lost lately was not.
    pub(crate) fn excuse(&mut self) {
        self.share = self.share.saturating_sub((WHOLE - self.share) / self.over);
    }

    /// The share, of 65,535; 0: so little that it counts as nothing.
    pub(crate) const fn get(self) -> u32 {
        if self.share < LEAST { 0 } else { self.share }
    }

    /// The share, of 254.
    pub(crate) fn of_254(self) -> u8 {
        u8::try_from((self.share * 254 + WHOLE / 2) / WHOLE).unwrap_or(254)
    }
}

/// All of them.
pub(crate) const WHOLE: u32 = 65_535;
/// Segments in the average.
const OVER: u32 = 128;
/// Segments that what is assumed counts as.
const OVER_FIRST: u32 = 16;
/// Less than one in a thousand counts as nothing.
const LEAST: u32 = WHOLE / 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_near_what_is_lost_and_back_to_nothing() {
        let mut share = LossShare::assumed(0);
        let mut worst = 0;
        for number in 0..2000u32 {
            share.judge(number.is_multiple_of(10));
            if number > 300 {
                worst = worst.max(share.get().abs_diff(WHOLE / 10));
            }
        }
        assert!(worst < WHOLE / 100, "off by {worst} of {WHOLE}");
        assert!((23..=28).contains(&share.of_254()));
        let mut until_nothing = 0;
        while share.get() > 0 {
            share.judge(false);
            until_nothing += 1;
        }
        assert!((400..700).contains(&until_nothing), "{until_nothing}");
    }

    #[test]
    fn what_is_taken_back_was_hardly_lost() {
        let mut share = LossShare::assumed(0);
        (0..1000).for_each(|_| share.judge(false));
        for number in 0..1000u32 {
            share.judge(number.is_multiple_of(10));
            if number.is_multiple_of(10) {
                share.excuse();
            }
        }
        assert_eq!(share.get(), 0);
        (0..10).for_each(|_| share.excuse());
        assert_eq!(share.get(), 0);
    }

    #[test]
    fn all_lost_is_all_and_stays_in_range() {
        let mut share = LossShare::assumed(WHOLE);
        (0..1000).for_each(|_| share.judge(true));
        assert_eq!((share.get(), share.of_254()), (WHOLE, 254));
    }
}
