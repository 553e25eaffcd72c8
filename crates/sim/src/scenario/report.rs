//! What a scenario measured.

use crate::LinkStats;
use std::time::Duration;

/// What a scenario measured of one flow, all seeds together.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// One a seed.
    pub runs: Vec<Run>,
    /// Messages that should have been delivered.
    pub sent: u64,
    /// Messages that have been.
    pub delivered: u64,
    /// Segments sent again, by both ends.
    pub resends: u64,
}

/// What one seed gave.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Run {
    /// The seed.
    pub seed: u64,
    /// Latencies of the messages delivered, in their order: from `send`, or when the reader starts if
    /// that is later, to the `recv` that returned the message, or its echo.
    pub latencies: Vec<Duration>,
    /// From the first message sent to the last one delivered.
    pub lasted: Duration,
    /// Bytes of the messages delivered.
    pub payload: u64,
    /// Bytes sent by alice and by bob, 28 for each datagram included.
    pub bytes: [u64; 2],
    /// Datagrams sent by alice and by bob.
    pub datagrams: [u64; 2],
    /// What the links counted, of all flows: from alice to bob and back.
    pub links: [LinkStats; 2],
}

/// Latencies, summed up. All zero if there are none.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Latency {
    /// Mean.
    pub mean: Duration,
    /// Half of them are not longer.
    pub p50: Duration,
    /// 95 % of them are not longer.
    pub p95: Duration,
    /// 99 % of them are not longer.
    pub p99: Duration,
    /// 99.9 % of them are not longer.
    pub p999: Duration,
    /// Mean of the longest one of each seed.
    pub max: Duration,
}

impl Report {
    /// The latencies of all seeds in one pool; only `max` is taken by seed.
    #[must_use]
    pub fn latency(&self) -> Latency {
        let mut pool: Vec<_> = self.runs.iter().flat_map(|run| &run.latencies).copied().collect();
        pool.sort_unstable();
        let maxima: Vec<_> = self.runs.iter().filter_map(|run| run.latencies.iter().max().copied()).collect();
        Latency {
            mean: mean(&pool),
            p50: percentile(&pool, 0.5),
            p95: percentile(&pool, 0.95),
            p99: percentile(&pool, 0.99),
            p999: percentile(&pool, 0.999),
            max: mean(&maxima),
        }
    }

    /// Bytes sent by both ends, 28 for each datagram included.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.runs.iter().flat_map(|run| run.bytes).sum()
    }

    /// Bytes on the wire for each byte delivered.
    #[must_use]
    pub fn wire_per_payload(&self) -> f64 {
        let payload: u64 = self.runs.iter().map(|run| run.payload).sum();
        self.bytes() as f64 / payload.max(1) as f64
    }

    /// Bits delivered a second.
    #[must_use]
    pub fn goodput(&self) -> f64 {
        let payload: u64 = self.runs.iter().map(|run| run.payload).sum();
        let lasted: f64 = self.runs.iter().map(|run| run.lasted.as_secs_f64()).sum();
        if payload == 0 { 0.0 } else { 8.0 * payload as f64 / lasted.max(1e-6) }
    }

    /// Mean time of a packet from alice in the bottleneck, of whichever flow; mean of the seeds.
    #[must_use]
    pub fn queue_delay(&self) -> Duration {
        mean(&self.runs.iter().map(|run| run.links[0].queue_delay_mean()).collect::<Vec<_>>())
    }

    pub(super) fn add(&mut self, run: Run, sent: u32, resends: u64) {
        self.sent += u64::from(sent);
        self.delivered += run.latencies.len() as u64;
        self.resends += resends;
        self.runs.push(run);
    }
}

/// The shortest of `sorted` that at least `share` of them do not exceed ("nearest rank"); zero if
/// there are none.
#[must_use]
pub fn percentile(sorted: &[Duration], share: f64) -> Duration {
    let rank = (share * sorted.len() as f64 - ROUNDING).ceil().max(1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 on; the cast saturates"
    )]
    let index = (rank - 1.0) as usize;
    sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

fn mean(durations: &[Duration]) -> Duration {
    let sum: Duration = durations.iter().sum();
    sum / u32::try_from(durations.len()).unwrap_or(u32::MAX).max(1)
}

/// What a product of a share may be too large by.
const ROUNDING: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: impl IntoIterator<Item = u64>) -> Vec<Duration> {
        millis.into_iter().map(Duration::from_millis).collect()
    }

    #[test]
    fn a_percentile_is_the_nearest_rank() {
        let hundred = millis(1..=100);
        for (share, ms) in [(0.0, 1), (0.01, 1), (0.5, 50), (0.95, 95), (0.99, 99), (0.999, 100), (1.0, 100)]
        {
            assert_eq!(percentile(&hundred, share), Duration::from_millis(ms), "{share}");
        }
        let thousand = millis(1..=1000);
        assert_eq!(percentile(&thousand, 0.999), Duration::from_millis(999));
        assert_eq!(percentile(&millis([7, 9]), 0.5), Duration::from_millis(7));
        assert_eq!(percentile(&[], 0.99), Duration::ZERO);
    }

    #[test]
    fn latencies_are_pooled_and_the_longest_taken_by_seed() {
        let run = |latencies| Run { latencies: millis(latencies), ..Run::default() };
        let report =
            Report { runs: vec![run(vec![1, 2, 6]), run(vec![3, 2]), run(vec![])], ..Report::default() };
        let latency = report.latency();
        assert_eq!(latency.mean, Duration::from_micros(2800));
        assert_eq!((latency.p50, latency.p95), (Duration::from_millis(2), Duration::from_millis(6)));
        assert_eq!(latency.max, Duration::from_micros(4500), "of the seeds with any");
        assert_eq!(Report::default().latency(), Latency::default());
    }
}
