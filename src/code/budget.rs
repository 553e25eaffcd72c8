//! How many bytes repairs may take.

use crate::config::{ConfigError, in_range};

/// How many bytes to spend on protection, which replaces what gets lost before it could be sent again. Nothing is spent
/// without loss, nor on a path with a queue, which more bytes would only lengthen.
///
/// docs/TUNING.md measures the effect of each choice.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Repairs {
    /// Send none, and do not use those of the peer.
    Off,
    /// As many as replace about their own bytes of resends and acknowledgements, which is about 5 % more bytes than
    /// without. None to a peer that does not rebuild.
    #[default]
    Auto,
    /// At most this share of the bytes sent, in percent: 0 to 200. The share in use follows the measured loss. 0: send
    /// none, but use those of the peer.
    Budget(u8),
    /// As few as get 99 of 100 messages to the peer within this many ms: 1 to 10,000. Messages that are longer than a
    /// segment may take longer.
    Deadline(u16),
}

impl Repairs {
    pub(crate) fn check(self) -> Result<(), ConfigError> {
        match self {
            Self::Off | Self::Auto => Ok(()),
            Self::Budget(percent) => in_range("repairs", percent, 0..=BUDGET_MAX),
            Self::Deadline(within) => in_range("repairs", within, 1..=DEADLINE_MAX),
        }
    }
}

/// New segments, or a new packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// The share that gets lost, in 1/65,535.
    pub(crate) loss: u32,
    pub(crate) segments: u32,
    /// Their bytes on the wire.
    pub(crate) bytes: u64,
    /// How many segments a repair covers.
    pub(crate) together: u32,
    /// Bytes that acknowledgements have saved since the last ones by waiting for each other.
    pub(crate) saved: u64,
}

/// Bytes that new segments have earned for repairs and that repairs have not spent yet.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    /// In units of 1/65,535.
    earned: u64,
}

impl Budget {
    /// Adds `bytes`, whatever was sent.
    pub(crate) fn grant(&mut self, bytes: u64) {
        self.earned += bytes * u64::from(WHOLE);
    }

    /// Adds a `share` of `bytes`, which were sent for the first time.
    pub(crate) fn earn(&mut self, share: u32, bytes: u64) {
        let share = u64::from(share);
        self.earned = (self.earned + share * bytes.min(BUCKET)).min(share * BUCKET);
    }

    /// Adds what [`pays`] returned. Nothing is saved up if that is nothing.
    pub(crate) fn earn_back(&mut self, earned: u64) {
        let most = if earned > 0 { earned.max(SAVED * u64::from(WHOLE)) } else { 0 };
        self.earned = (self.earned + earned).min(most);
    }

    /// Earns what new segments allow by the setting `repairs`, and a share of [`WHOLE`] with a deadline. Returns the share
    /// of their bytes; 0 if that is not what counts.
    pub(crate) fn earn_by(&mut self, repairs: Repairs, sent: &Sent, timely: u32) -> u32 {
        let &Sent { loss, segments, bytes, together, saved } = sent;
        let share = match repairs {
            Repairs::Off => 0,
            Repairs::Auto => {
                let paid = pays(loss, (segments, bytes), together);
                self.earn_back(if paid > 0 { paid + spared(loss, saved) } else { 0 });
                return 0;
            }
            Repairs::Budget(percent) => share(loss, percent, together),
            Repairs::Deadline(_) => timely,
        };
        self.earn(share, bytes);
        share
    }

    pub(crate) fn affords(&self, bytes: u64) -> bool {
        self.earned >= bytes * u64::from(WHOLE)
    }

    /// Spends `bytes`. Returns `false`, and spends nothing, if fewer are left.
    pub(crate) fn spend(&mut self, bytes: u64) -> bool {
        let rest = self.earned.checked_sub(bytes * u64::from(WHOLE));
        self.earned = rest.unwrap_or(self.earned);
        rest.is_some()
    }
}

/// How many bytes to earn per byte sent, in 1/65,535, if `loss` (also in 1/65,535) of the data gets lost. At
/// most `percent` %. A repair covers up to `together` segments.
///
/// The loss itself pays for average losses. The rest is a margin for worse ones: a multiple of the standard
/// deviation of the losses among `together` segments, larger the higher `percent` is. The deviation shrinks
/// as `together` grows, so repairs that cover many segments need little margin.
pub(crate) fn share(loss: u32, percent: u8, together: u32) -> u32 {
    let (loss, percent) = (loss.min(WHOLE), u32::from(percent));
    let deviation = (u64::from(loss * (WHOLE - loss)) / u64::from(together.max(1))).isqrt();
    let margin = deviation * u64::from(DEVIATIONS * percent * percent) / 10_000;
    let share = u64::from(loss) + margin;
    u32::try_from(share).map_or(u32::MAX, |share| share.min(percent * WHOLE / 100))
}

/// What `segments` new segments of `bytes` on the wire earn, in 1/65,535 of a byte, if repairs are to replace about
/// their own bytes. `loss` and `together` are as in [`share`].
///
/// A lost segment costs a resend, its acknowledgement, and what is resent needlessly around it. Repairs replace more of
/// that the more segments they cover: one that covers a single segment is only a copy of it. They never take more bytes
/// than what they cover. The factors are those with
/// which the families of docs/LATENCY.md arrive soonest at 1.05 times the bytes of KCP fast.
pub(crate) fn pays(loss: u32, (segments, bytes): (u32, u64), together: u32) -> u64 {
    let (loss, together) = (u64::from(loss.min(WHOLE)), u64::from(together.max(1)));
    let again = loss + loss * loss * 7 / (10 * u64::from(WHOLE)); // resends get lost as well
    let earned = (bytes + u64::from(segments) * AROUND) * again * 2 * together / (together + 4);
    earned.min(bytes * u64::from(WHOLE))
}

/// What bytes that waiting acknowledgements have saved are worth for repairs, in 1/65,535 of a byte: all of them with
/// little `loss`, and nothing from a twentieth on, where losses alone pay for as many repairs as are of use.
pub(crate) fn spared(loss: u32, bytes: u64) -> u64 {
    bytes * u64::from(WHOLE.saturating_sub(20 * loss.min(WHOLE)))
}

/// Whether a smoothed round trip is so much longer than the shortest one, both in µs, that a queue must have
/// built up on the path. Repairs would lengthen that queue.
pub(crate) const fn is_queued(srtt: u64, min: u64) -> bool {
    srtt.saturating_sub(min) > min / 2 + QUEUE
}

/// By how much a round trip may exceed 1.5 times the shortest before that counts as a queue, µs.
const QUEUE: u64 = 20_000;
/// The budget holds at most what this many bytes sent have earned.
const BUCKET: u64 = 64 << 10;
/// Most bytes that are saved up of what pays.
const SAVED: u64 = 32 << 10;
/// What a lost segment costs besides its resend, bytes.
const AROUND: u64 = 160;
/// Longest deadline, ms.
const DEADLINE_MAX: u16 = 10_000;
/// Largest budget, percent.
const BUDGET_MAX: u8 = 200;
/// Standard deviations above the average loss that 100 % pays for.
const DEVIATIONS: u32 = 6;

/// The share of segments that got lost: a moving average over the last [`OVER`], and over fewer at first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossShare {
    /// In 1/65,535.
    share: u32,
    /// Number of segments that the average is taken over.
    over: u32,
}

impl LossShare {
    /// Starts with an assumed share, in 1/65,535, before anything is sent.
    pub(crate) const fn assumed(share: u32) -> Self {
        Self { share, over: OVER_FIRST }
    }

    /// The share after this many segments, none of which got lost.
    pub(crate) fn after(segments: u64) -> Self {
        let over = u32::try_from(segments).map_or(OVER, |segments| segments.min(OVER) + OVER_FIRST);
        Self { share: 0, over: over.min(OVER) }
    }

    pub(crate) fn judge(&mut self, is_lost: bool) {
        if is_lost {
            self.share += (WHOLE - self.share).div_ceil(self.over);
        } else {
            self.share -= self.share.div_ceil(self.over);
        }
        self.over = (self.over + 1).min(OVER);
    }

    /// Takes back one recent loss that turned out not to be one.
    pub(crate) fn excuse(&mut self) {
        self.share = self.share.saturating_sub(WHOLE / self.over);
    }

    /// One of the recent losses was only late, which counts for 5/32 of one.
    pub(crate) fn was_late(&mut self) {
        self.share = self.share.saturating_sub(WHOLE / self.over * 27 / 32);
    }

    /// The share in 1/65,535; 0 if it is negligible.
    pub(crate) const fn get(self) -> u32 {
        if self.share < LEAST { 0 } else { self.share }
    }

    /// The share in 1/254.
    pub(crate) fn of_254(self) -> u8 {
        u8::try_from((self.share * 254 + WHOLE / 2) / WHOLE).unwrap_or(254)
    }
}

/// A share of 1: everything.
pub(crate) const WHOLE: u32 = 65_535;
/// Segments in the moving average.
const OVER: u32 = 128;
/// Number of segments that the assumed share counts for.
const OVER_FIRST: u32 = 16;
/// Less than one in a thousand is negligible.
const LEAST: u32 = WHOLE / 1000;

#[cfg(test)]
mod tests {
    use super::*;

    /// `share` in percent, for a loss in percent.
    fn percent(loss: u32, percent: u8, together: u32) -> f64 {
        let share = share(loss * WHOLE / 100, percent, together);
        (f64::from(share) / f64::from(WHOLE) * 1000.0).round() / 10.0
    }

    #[test]
    fn the_share_follows_the_loss_up_to_the_limit() {
        assert_eq!([0, 1, 5, 10, 30].map(|loss| percent(loss, 10, 4)), [0.0, 1.3, 5.7, 10.0, 10.0]);
        assert_eq!([0, 1, 5, 10, 30].map(|loss| percent(loss, 30, 4)), [0.0, 3.7, 10.9, 18.1, 30.0]);
        assert_eq!([0, 1, 5, 10, 30].map(|loss| percent(loss, 100, 4)), [0.0, 30.8, 70.4, 100.0, 100.0]);
        assert_eq!([1, 4, 32].map(|together| percent(5, 50, together)), [37.7, 21.3, 10.8]);
        assert_eq!(percent(100, 200, 1), 100.0);
    }

    #[test]
    fn only_earned_bytes_can_be_spent_and_few_can_be_saved_up() {
        let mut budget = Budget::default();
        budget.earn(WHOLE / 10, 1000);
        assert!(!budget.spend(100) && budget.spend(99) && !budget.spend(1));
        budget.earn(WHOLE / 10, 1 << 40);
        assert!(budget.spend(6553) && !budget.spend(6553));
        budget.earn(0, 1000);
        assert!(!budget.spend(1), "a share of 0 clears the savings");
    }

    #[test]
    fn the_loss_share_converges_to_the_loss_and_returns_to_zero() {
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
    fn excused_losses_hardly_count() {
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
    fn losing_everything_is_a_share_of_one_and_never_more() {
        let mut share = LossShare::assumed(WHOLE);
        (0..1000).for_each(|_| share.judge(true));
        assert_eq!((share.get(), share.of_254()), (WHOLE, 254));
    }
}
