//! How flows share a narrow path.

use super::{Flow, Latency, Mode, Report, Scenario, ScenarioError, Workload};
use crate::LinkConfig;
use std::time::Duration;

/// How flows in one mode share a path: a download alone, a game beside a download, two downloads.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Sharing {
    /// Bits delivered per second by a download alone.
    pub goodput: f64,
    /// Its bytes on the wire, in both directions, per byte delivered.
    pub wire_per_payload: f64,
    /// Mean time of its packets in the bottleneck.
    pub queue_delay: Duration,
    /// The longest time of one of its packets in the bottleneck.
    pub queue_delay_max: Duration,
    /// Latencies of a game, 60 messages of 100 bytes per second for 4 s, beside a download.
    pub game: Latency,
    /// Bits delivered per second by two downloads together, while both last.
    pub together: f64,
    /// Jain's index of their shares; mean over the seeds.
    pub fairness: f64,
    /// Mean time of their packets in the bottleneck.
    pub together_delay: Duration,
}

impl Sharing {
    /// Runs all three in `mode` over `link`, the same in both directions, once per seed.
    ///
    /// # Errors
    ///
    /// As [`Scenario::run`].
    pub fn measure(
        mode: &Mode,
        link: &LinkConfig,
        seeds: impl IntoIterator<Item = u64> + Clone,
    ) -> Result<Self, ScenarioError> {
        let run = |workloads: &[Workload]| {
            let flow = |workload: &Workload| Flow { workload: *workload, mode: mode.clone() };
            let links = [link.clone(), link.clone()];
            Scenario { flows: workloads.iter().map(flow).collect(), links }.run_flows(seeds.clone())
        };
        let download = Workload::bulk();
        let alone = run(&[download])?.into_iter().next().unwrap_or_default();
        let beside = run(&[GAME, download])?.into_iter().next().unwrap_or_default();
        let both = run(&[download, download])?;
        let (together, fairness) = share(&both);
        Ok(Self {
            goodput: alone.goodput(),
            wire_per_payload: alone.wire_per_payload(),
            queue_delay: alone.queue_delay(),
            queue_delay_max: alone
                .runs
                .iter()
                .map(|run| run.links[0].queue_delay_max)
                .max()
                .unwrap_or_default(),
            game: beside.latency(),
            together,
            fairness,
            together_delay: both.first().map(Report::queue_delay).unwrap_or_default(),
        })
    }
}

/// Jain's index of fairness: 1 if all get the same, 1 / n if one of n gets everything. Source: Jain, Chiu,
/// Hawe, "A Quantitative Measure of Fairness", DEC TR-301, 1984.
#[must_use]
pub fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 1.0 }
}

/// Bits per second that downloads of the same size got together until the first of them ended, and Jain's
/// index of their shares: means over the seeds.
fn share(downloads: &[Report]) -> (f64, f64) {
    let seeds = downloads.first().map_or(0, |report| report.runs.len());
    let (mut rates, mut fairness) = (0.0, 0.0);
    for seed in 0..seeds {
        let runs = || downloads.iter().filter_map(|report| report.runs.get(seed));
        let until = runs().map(|run| run.lasted).min().unwrap_or_default();
        let shares: Vec<f64> = runs()
            .map(|run| {
                let messages = run.latencies.iter().filter(|&&latency| latency <= until).count();
                run.payload as f64 * messages as f64 / run.latencies.len().max(1) as f64
            })
            .collect();
        rates += 8.0 * shares.iter().sum::<f64>() / until.as_secs_f64().max(1e-6);
        fairness += jain(&shares);
    }
    let seeds = seeds.max(1) as f64;
    (rates / seeds, fairness / seeds)
}

/// About as long as the download, which gets most of the path.
const GAME: Workload = Workload::new("game", 240, 100, Duration::from_nanos(16_666_667));

#[cfg(test)]
mod tests {
    use super::super::Run;
    use super::*;

    #[test]
    fn fairness_is_one_for_equal_shares_and_least_if_one_has_everything() {
        assert_eq!([jain(&[]), jain(&[3.0]), jain(&[2.0, 2.0]), jain(&[5.0, 0.0])], [1.0, 1.0, 1.0, 0.5]);
        assert!((jain(&[1.0, 2.0, 3.0]) - 36.0 / 42.0).abs() < 1e-9);
    }

    #[test]
    fn only_deliveries_before_the_first_end_count() {
        let download = |seconds: &[u64]| {
            let latencies: Vec<_> = seconds.iter().map(|&second| Duration::from_secs(second)).collect();
            let lasted = latencies.iter().max().copied().unwrap_or_default();
            let run = Run { latencies, lasted, payload: 4000, ..Run::default() };
            Report { runs: vec![run], ..Report::default() }
        };
        let (rate, fairness) = share(&[download(&[1, 2, 3, 4]), download(&[2, 4, 5, 6])]);
        assert!((rate - 8.0 * 6000.0 / 4.0).abs() < 1e-6, "{rate}");
        assert!((fairness - 36.0 / 40.0).abs() < 1e-9, "{fairness}");
        assert_eq!(share(&[]), (0.0, 0.0));
    }
}
