//! What a scenario measured.

use crate::LinkStats;
use std::time::Duration;

/// The measurements of one flow, over all seeds.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// One run per seed.
    pub runs: Vec<Run>,
    /// Messages that should be delivered.
    pub sent: u64,
    /// Messages that were delivered.
    pub delivered: u64,
    /// Segments resent by both ends.
    pub resends: u64,
}

/// The measurements of one seed.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Run {
    /// The seed.
    pub seed: u64,
    /// Latencies of the delivered messages, in order: from `send`, or from the start of the reader if that is
    /// later, to the `recv` that returned the message or its echo.
    pub latencies: Vec<Duration>,
    /// From the first message sent to the last one delivered.
    pub lasted: Duration,
    /// Bytes of the messages delivered.
    pub payload: u64,
    /// Bytes sent by alice and by bob, including 28 for each datagram.
    pub bytes: [u64; 2],
    /// Datagrams sent by alice and by bob.
    pub datagrams: [u64; 2],
    /// Counters of the links, for all flows: from alice to bob and back.
    pub links: [LinkStats; 2],
}

/// A summary of latencies. All zero if there are none.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Latency {
    /// The mean.
    pub mean: Duration,
    /// Median: half of them are no longer.
    pub p50: Duration,
    /// 95 % of them are no longer.
    pub p95: Duration,
    /// 99 % of them are no longer.
    pub p99: Duration,
    /// 99.9 % of them are no longer.
    pub p999: Duration,
    /// The longest.
    pub max: Duration,
    /// Mean over the seeds of the longest latency of each, as KCP's test.cpp reports it.
    pub mean_max: Duration,
}

impl Report {
    /// Summarises the latencies of all seeds in one pool; only `mean_max` is taken per seed.
    #[must_use]
    pub fn latency(&self) -> Latency {
        let pool = self.runs.iter().flat_map(|run| &run.latencies).copied().collect();
        let maxima: Vec<_> = self.runs.iter().filter_map(|run| run.latencies.iter().max().copied()).collect();
        Latency { mean_max: mean(&maxima), ..latency(pool) }
    }

    /// Bytes sent by both ends, including 28 for each datagram.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.runs.iter().flat_map(|run| run.bytes).sum()
    }

    /// Bytes on the wire per byte delivered.
    #[must_use]
    pub fn wire_per_payload(&self) -> f64 {
        let payload: u64 = self.runs.iter().map(|run| run.payload).sum();
        self.bytes() as f64 / payload.max(1) as f64
    }

    /// Bits delivered per second.
    #[must_use]
    pub fn goodput(&self) -> f64 {
        let payload: u64 = self.runs.iter().map(|run| run.payload).sum();
        let lasted: f64 = self.runs.iter().map(|run| run.lasted.as_secs_f64()).sum();
        if payload == 0 { 0.0 } else { 8.0 * payload as f64 / lasted.max(1e-6) }
    }

    /// Mean time of a packet from alice in the bottleneck, over all flows; mean over the seeds.
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

/// The shortest value in `sorted` that at least `share` of them do not exceed ("nearest rank"); zero if
/// empty.
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

/// Summarises latencies of one run.
pub(super) fn latency(mut pool: Vec<Duration>) -> Latency {
    pool.sort_unstable();
    let max = percentile(&pool, 1.0);
    Latency {
        mean: mean(&pool),
        p50: percentile(&pool, 0.5),
        p95: percentile(&pool, 0.95),
        p99: percentile(&pool, 0.99),
        p999: percentile(&pool, 0.999),
        max,
        mean_max: max,
    }
}

fn mean(durations: &[Duration]) -> Duration {
    let sum: Duration = durations.iter().sum();
    sum / u32::try_from(durations.len()).unwrap_or(u32::MAX).max(1)
}

/// Tolerance for rounding errors in a product with a share.
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
        assert_eq!(latency.max, Duration::from_millis(6));
        assert_eq!(latency.mean_max, Duration::from_micros(4500), "only seeds with latencies count");
        assert_eq!(Report::default().latency(), Latency::default());
    }
}
