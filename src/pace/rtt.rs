//! Round trips, loss and reordering.

use crate::time::Time;
use std::time::Duration;

/// Round trips: smoothed, shortest, longest, jitter. All are zero before the first sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rtt {
    /// In µs, with a fraction.
    smoothed: f64,
    jitter: f64,
    min: f64,
    max: f64,
    /// Number of samples.
    pub(crate) samples: u64,
    /// When the newest packet that was answered left.
    left: Time,
}

impl Rtt {
    /// Adds one round trip of a packet that left at `left`.
    pub(crate) fn sample(&mut self, left: Time, rtt: Duration) {
        let micros = rtt.as_secs_f64() * 1e6;
        if self.samples == 0 {
            (self.smoothed, self.min, self.max) = (micros, micros, micros);
        }
        let difference = micros - self.smoothed;
        let weight = weight(left.since(self.left));
        self.smoothed += weight * difference;
        self.jitter += weight.min(JITTER_MOST) * (difference.abs() - self.jitter);
        (self.min, self.max) = (self.min.min(micros), self.max.max(micros));
        self.left = self.left.max(left);
        self.samples += 1;
    }

    /// The smoothed round trip. Each sample moves it by 10 % of the difference, or by more if samples are
    /// rare: by all of it if the packet left at least 125 ms after the previous one. So it follows a change
    /// of the path within a second, even at two pings per second.
    pub(crate) fn smoothed(&self) -> Duration {
        duration(self.smoothed)
    }

    /// The same in whole µs, for callers that need it for every packet.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the value is positive, and the cast saturates"
    )]
    pub(crate) const fn smoothed_micros(&self) -> u64 {
        self.smoothed as u64
    }

    /// Mean deviation from the smoothed round trip, smoothed in the same way, except that a sample moves it
    /// by at most half of the difference.
    pub(crate) fn jitter(&self) -> Duration {
        duration(self.jitter)
    }

    /// When the newest packet that was answered left.
    pub(crate) const fn answered(&self) -> Time {
        self.left
    }

    /// The shortest round trip.
    pub(crate) fn min(&self) -> Duration {
        duration(self.min)
    }

    /// The same in whole µs.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and far below 2^64"
    )]
    #[inline]
    pub(crate) const fn min_micros(&self) -> u64 {
        self.min as u64
    }

    /// The longest round trip.
    pub(crate) fn max(&self) -> Duration {
        duration(self.max)
    }
}

/// Rounds to the nearest ns. It is called for every packet, so it has a fast path for realistic round trips.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is positive and below A_YEAR, so it fits"
)]
fn duration(micros: f64) -> Duration {
    if micros < A_YEAR {
        return Duration::from_nanos((micros * 1e3 + 0.5) as u64);
    }
    Duration::try_from_secs_f64(micros / 1e6).unwrap_or(Duration::MAX)
}

/// One year in µs: in ns it still fits 64 bits.
const A_YEAR: f64 = 3.15e13;

/// The share of the difference that a sample counts for.
const WEIGHT: f64 = 0.1;
/// Once the gap to the previous sample reaches this, a sample counts in full, s.
const ALL_AFTER: f64 = 0.125;

/// The most that a sample counts for in the jitter: a single sample is not a mean.
const JITTER_MOST: f64 = 0.5;

/// The share of the difference that a sample counts for, by the gap since the previous one.
fn weight(gap: Duration) -> f64 {
    (gap.as_secs_f64() / ALL_AFTER).clamp(WEIGHT, 1.0)
}

/// The share of packets that get lost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Loss {
    /// Share of lost packets, 0 to 1: the mean over the first 64 packets; after that, each packet counts
    /// 1/64.
    pub(crate) share: f64,
    /// Packets lost.
    pub(crate) lost: u64,
    /// Packets whose outcome is known.
    pub(crate) judged: u64,
    /// How many of these took an earlier path.
    before: u64,
}

impl Loss {
    /// Adds one packet whose outcome is now known.
    pub(crate) fn sample(&mut self, lost: bool) {
        self.judged += 1;
        self.lost += u64::from(lost);
        let weight = 1.0 / (self.judged - self.before).min(MEMORY) as f64;
        self.share += weight * (f64::from(u8::from(lost)) - self.share);
    }

    /// Notes that packets take another path from now on: the share starts over, the counts stay.
    pub(crate) const fn path_changed(&mut self) {
        (self.share, self.before) = (0.0, self.judged);
    }
}

/// Number of packets that the share averages over.
const MEMORY: u64 = 64;

/// How far packets may arrive out of order: a packet overtaken by at most this much may just be late; one
/// overtaken by more is lost.
///
/// Source: RFC 8985 (6.2, step 4), with what was seen in place of a share of the round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reordering {
    /// A packet is lost when one that was sent more than this much later, µs, has arrived.
    pub(crate) allowance: u64,
    /// Losses left until the allowance is halved, unless another packet comes late.
    keep: u8,
}

impl Reordering {
    /// Notes that a packet arrived late by this much, µs. The allowance stays at or below the shortest round
    /// trip, since a larger one would never detect a loss in time.
    pub(crate) fn came_late(&mut self, by: u64, rtt_min: u64) {
        self.allowance = self.allowance.max(by + by / 8).min(rtt_min);
        self.keep = KEEP;
    }

    /// Notes that a packet was found lost.
    pub(crate) const fn found_lost(&mut self) {
        self.keep = self.keep.saturating_sub(1);
        if self.keep == 0 {
            (self.allowance, self.keep) = (self.allowance / 2, KEEP);
        }
    }
}

/// Losses after which an allowance is halved.
const KEEP: u8 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_moves_the_round_trip_by_a_tenth() {
        let mut rtt = Rtt::default();
        let ms =
            |rtt: &Rtt| [rtt.smoothed(), rtt.jitter(), rtt.min(), rtt.max()].map(|time| time.as_micros());
        let mut sample = |millis| {
            rtt.sample(Time::ZERO, Duration::from_millis(millis));
            ms(&rtt)
        };
        assert_eq!(sample(100), [100_000, 0, 100_000, 100_000]);
        assert_eq!(sample(200), [110_000, 10_000, 100_000, 200_000]);
        assert_eq!(sample(10), [100_000, 19_000, 10_000, 200_000]);
        assert_eq!(rtt.samples, 3);
    }

    #[test]
    fn rare_samples_count_for_more() {
        let (mut rtt, ms) = (Rtt::default(), Duration::from_millis);
        let mut sample = |left, millis| {
            rtt.sample(Time::from_millis(left), ms(millis));
            rtt.smoothed().as_millis()
        };
        assert_eq!(sample(1000, 60), 60);
        assert_eq!(sample(1010, 160), 70, "100 times a second");
        assert_eq!(sample(1060, 170), 110, "20 times");
        assert_eq!(sample(1560, 300), 300, "a ping");
        assert_eq!(sample(1500, 200), 290, "it left before the previous one");
    }

    #[test]
    fn no_round_trip_is_too_long() {
        let mut rtt = Rtt::default();
        [Duration::MAX, Duration::ZERO, Duration::MAX]
            .into_iter()
            .for_each(|time| rtt.sample(Time::ZERO, time));
        assert!(rtt.smoothed() > Duration::MAX / 2 && rtt.jitter() > Duration::ZERO);
    }

    #[test]
    fn a_new_path_starts_a_new_share_and_keeps_the_counts() {
        let mut loss = Loss::default();
        (0..100).for_each(|_| loss.sample(true));
        loss.path_changed();
        assert_eq!((loss.share, loss.lost, loss.judged), (0.0, 100, 100));
        [true, false].into_iter().for_each(|lost| loss.sample(lost));
        assert_eq!((loss.share, loss.lost, loss.judged), (0.5, 101, 102));
    }

    #[test]
    fn observed_reordering_is_allowed_until_it_stops() {
        let mut reordering = Reordering::default();
        reordering.came_late(16, 50);
        assert_eq!(reordering.allowance, 18);
        (0..15).for_each(|_| reordering.found_lost());
        reordering.came_late(8, 50);
        (0..15).for_each(|_| reordering.found_lost());
        assert_eq!(reordering.allowance, 18, "16 losses after the last late one");
        reordering.found_lost();
        assert_eq!(reordering.allowance, 9);
        reordering.came_late(200, 50);
        assert_eq!(reordering.allowance, 50);
    }
}
