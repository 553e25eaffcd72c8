//! Round trips.

use crate::time::Time;
use std::time::Duration;

/// Round trips: smoothed, extremes, jitter. All are zero before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rtt {
    /// µs, and a fraction of one.
    smoothed: f64,
    jitter: f64,
    min: f64,
    max: f64,
    /// How many were measured.
    pub(crate) samples: u64,
    /// When the newest of what was answered had left.
    left: Time,
}

impl Rtt {
    /// Takes one round trip, of what left at a time.
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

    /// Smoothed: each round trip moves it by 10 % of the difference, or by more where they are seldom: by all of it if what was answered
    /// left 125 ms or longer after the one before. So it follows a path that changes within a second, also by two pings a second.
    pub(crate) fn smoothed(&self) -> Duration {
        duration(self.smoothed)
    }

    /// The same in whole µs, for who asks for each packet.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is positive, and the cast ends where 64 bits do"
    )]
    pub(crate) const fn smoothed_micros(&self) -> u64 {
        self.smoothed as u64
    }

    /// Mean distance of a round trip from the smoothed one, smoothed in the same way, but each makes half of the difference at most.
    pub(crate) fn jitter(&self) -> Duration {
        duration(self.jitter)
    }

    /// The shortest.
    pub(crate) fn min(&self) -> Duration {
        duration(self.min)
    }

    /// The longest.
    pub(crate) fn max(&self) -> Duration {
        duration(self.max)
    }
}

/// To the nearest ns. Who sends packets asks for each of them, so it is quick for round trips that there are.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is positive and less than that"
)]
fn duration(micros: f64) -> Duration {
    if micros < A_YEAR {
        return Duration::from_nanos((micros * 1e3 + 0.5) as u64);
    }
    Duration::try_from_secs_f64(micros / 1e6).unwrap_or(Duration::MAX)
}

/// µs, fewer than what 64 bits have of ns.
const A_YEAR: f64 = 3.15e13;

/// How much of the difference a sample makes.
const WEIGHT: f64 = 0.1;
/// So long after the one before it makes all of it, s.
const ALL_AFTER: f64 = 0.125;

/// How much of the difference of the jitter a sample makes at most: one is no mean.
const JITTER_MOST: f64 = 0.5;

/// How much of the difference a sample makes so long after the one before.
fn weight(gap: Duration) -> f64 {
    (gap.as_secs_f64() / ALL_AFTER).clamp(WEIGHT, 1.0)
}

/// The share of packets that get lost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Loss {
    /// What gets lost, 0 to 1: the mean of the first 64 packets, then each counts 1/64.
    pub(crate) share: f64,
    /// Packets that got lost.
    pub(crate) lost: u64,
    /// Packets of which it is decided.
    pub(crate) judged: u64,
    /// Of them, those of paths before this one.
    before: u64,
}

impl Loss {
    /// Takes one packet, of which it is now decided.
    pub(crate) fn sample(&mut self, lost: bool) {
        self.judged += 1;
        self.lost += u64::from(lost);
        let weight = 1.0 / (self.judged - self.before).min(MEMORY) as f64;
        self.share += weight * (f64::from(u8::from(lost)) - self.share);
    }

    /// Packets take another path from now on: the share begins anew, and what was counted stays.
    pub(crate) const fn path_changed(&mut self) {
        (self.share, self.before) = (0.0, self.judged);
    }
}

/// One by the weight of a packet.
const MEMORY: u64 = 64;

/// By how much, µs, has been overtaken what arrived all the same: what is overtaken by no more is late perhaps, by more it is lost.
///
/// Source: RFC 8985 (6.2, step 4), with what was seen in place of a share of the round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reordering {
    /// What has not arrived is lost when what was sent later than it by more than this has.
    pub(crate) allowance: u64,
    /// Losses found until the allowance is halved, if nothing comes late in between.
    keep: u8,
}

impl Reordering {
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
    fn a_sample_moves_it_by_a_tenth() {
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
    fn what_is_measured_seldom_counts_for_more() {
        let (mut rtt, ms) = (Rtt::default(), Duration::from_millis);
        let mut sample = |left, millis| {
            rtt.sample(Time::from_millis(left), ms(millis));
            rtt.smoothed().as_millis()
        };
        assert_eq!(sample(1000, 60), 60);
        assert_eq!(sample(1010, 160), 70, "100 times a second");
        assert_eq!(sample(1060, 170), 110, "20 times");
        assert_eq!(sample(1560, 300), 300, "a ping");
        assert_eq!(sample(1500, 200), 290, "it left before the last one");
    }

    #[test]
    fn no_time_is_too_long() {
        let mut rtt = Rtt::default();
        [Duration::MAX, Duration::ZERO, Duration::MAX]
            .into_iter()
            .for_each(|time| rtt.sample(Time::ZERO, time));
        assert!(rtt.smoothed() > Duration::MAX / 2 && rtt.jitter() > Duration::ZERO);
    }

    #[test]
    fn another_path_has_a_share_of_its_own_and_counts_go_on() {
        let mut loss = Loss::default();
        (0..100).for_each(|_| loss.sample(true));
        loss.path_changed();
        assert_eq!((loss.share, loss.lost, loss.judged), (0.0, 100, 100));
        [true, false].into_iter().for_each(|lost| loss.sample(lost));
        assert_eq!((loss.share, loss.lost, loss.judged), (0.5, 101, 102));
    }

    #[test]
    fn what_was_seen_is_allowed_until_it_is_not_seen_any_more() {
        let mut reordering = Reordering::default();
        reordering.came_late(16, 50);
        assert_eq!(reordering.allowance, 18);
        (0..15).for_each(|_| reordering.found_lost());
        reordering.came_late(8, 50);
        (0..15).for_each(|_| reordering.found_lost());
        assert_eq!(reordering.allowance, 18, "16 losses from the last one on");
        reordering.found_lost();
        assert_eq!(reordering.allowance, 9);
        reordering.came_late(200, 50);
        assert_eq!(reordering.allowance, 50);
    }
}
