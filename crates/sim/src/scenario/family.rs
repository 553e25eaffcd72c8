//! Panels of scenarios for comparing modes.

use super::{Latency, Mode, Report, Scenario, ScenarioError, Workload};
use crate::{Bottleneck, LinkConfig, Loss, Spread};
use std::time::Duration;

/// A panel of cells: one or a few workloads over many links.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Family {
    /// Its name in tables.
    pub name: &'static str,
    /// Its cells.
    pub cells: Vec<Cell>,
}

/// A workload over a path.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Cell {
    /// Its name in tables: the workload, the round trip in ms and the loss.
    pub name: String,
    /// What is sent.
    pub workload: Workload,
    /// The link from alice to bob.
    pub link: LinkConfig,
    /// The link from bob to alice, which carries the acknowledgements. `None`: it is like the other.
    pub back: Option<LinkConfig>,
}

impl Family {
    /// [`Workload::input60`] over round trips of 20, 60 and 150 ms with 1, 5, 10 and 20 % loss.
    #[must_use]
    pub fn input() -> Self {
        Self::grid("input", &[Workload::input60()], &LOSSES)
    }

    /// [`Workload::snap20`] over the same links.
    #[must_use]
    pub fn snap() -> Self {
        Self::grid("snap", &[Workload::snap20()], &LOSSES)
    }

    /// [`Workload::chunk32k`] over the same links.
    #[must_use]
    pub fn chunk() -> Self {
        Self::grid("chunk", &[Workload::chunk32k()], &LOSSES)
    }

    /// [`Workload::sparse1`] over the same links.
    #[must_use]
    pub fn sparse() -> Self {
        Self::grid("sparse", &[Workload::sparse1()], &LOSSES)
    }

    /// Input in one direction and snapshots in the other, over the same links.
    #[must_use]
    pub fn duplex() -> Self {
        Self::grid("duplex", &[Workload::duplex()], &LOSSES)
    }

    /// Input, snapshots and chunks with 30 % loss.
    #[must_use]
    pub fn harsh() -> Self {
        Self::grid("harsh", &GAME, &[30])
    }

    /// Input, snapshots and chunks without loss.
    #[must_use]
    pub fn clean() -> Self {
        Self::grid("clean", &GAME, &[0])
    }

    /// Input, snapshots and chunks through bursts of 50 ms every second and of 100 ms every two seconds.
    #[must_use]
    pub fn ge() -> Self {
        let mut cells = Vec::new();
        for (good, bad) in [(950, 50), (1900, 100)] {
            let [good, bad] = [good, bad].map(Duration::from_millis);
            let loss = Loss::Bursts { good, bad, in_good: 0.005, in_bad: 0.8 };
            for rtt in FAR {
                let link = LinkConfig { loss, ..path(rtt) };
                let bursts = format!("{rtt} ms, bursts of {} ms", bad.as_millis());
                cells.extend(GAME.map(|workload| Cell::new(workload, &bursts, &link)));
            }
        }
        Self { name: "ge", cells }
    }

    /// Input, snapshots and chunks that overtake each other by up to 0.1 and 0.4 round trips; 2 % get lost, 2
    /// % arrive twice.
    #[must_use]
    pub fn reorder() -> Self {
        let mut cells = Vec::new();
        for (percent, rtt) in [10, 40].into_iter().flat_map(|percent| FAR.map(|rtt| (percent, rtt))) {
            let link = LinkConfig {
                jitter: Duration::from_millis(rtt) * percent / 100,
                in_order: false,
                loss: Loss::Random(0.02),
                duplicate: 0.02,
                ..path(rtt)
            };
            let jitter = format!("{rtt} ms, {percent} % of it jitter");
            cells.extend(GAME.map(|workload| Cell::new(workload, &jitter, &link)));
        }
        Self { name: "reorder", cells }
    }

    /// [`Workload::chunk32k`] through 20 Mbit/s with a queue of 256 kB.
    #[must_use]
    pub fn rate() -> Self {
        let mut cells = Vec::new();
        for (rtt, percent) in [20, 60].into_iter().flat_map(|rtt| [0, 1, 5, 10].map(|loss| (rtt, loss))) {
            let bottleneck = Some(Bottleneck { rate: 20_000_000, queue: 256_000 });
            let link = LinkConfig { bottleneck, ..lossy(rtt, percent) };
            cells.push(Cell::new(Workload::chunk32k(), &format!("{rtt} ms, {percent} %, 20 Mbit/s"), &link));
        }
        Self { name: "rate", cells }
    }

    /// Input, snapshots and chunks that overtake each other by delays with a heavy tail: one of a hundred packets is
    /// delayed by half a round trip. 2 % get lost.
    #[must_use]
    pub fn tail() -> Self {
        let mut cells = Vec::new();
        for (name, spread) in
            [("Pareto", Spread::Pareto { shape: 2.0 }), ("log-normal", Spread::LogNormal { sigma: 1.0 })]
        {
            for rtt in FAR {
                let (jitter, loss) = (Duration::from_millis(rtt) / 20, Loss::Random(0.02));
                let link = LinkConfig { jitter, spread, in_order: false, loss, ..path(rtt) };
                let path = format!("{rtt} ms, {name}");
                cells.extend(GAME.map(|workload| Cell::new(workload, &path, &link)));
            }
        }
        Self { name: "tail", cells }
    }

    /// Input, snapshots and chunks over a path that is cut for 50 ms every second, and loses 1 % otherwise.
    #[must_use]
    pub fn cuts() -> Self {
        let [good, bad] = [950, 50].map(Duration::from_millis);
        let loss = Loss::Bursts { good, bad, in_good: 0.01, in_bad: 1.0 };
        Self::over("cuts", loss, "cut for 50 ms")
    }

    /// Input, snapshots and chunks of which 30 % get lost, four packets in a row on average.
    #[must_use]
    pub fn runs() -> Self {
        let loss = Loss::PacketBursts { enter: 0.25 * 3.0 / 7.0, leave: 0.25, in_good: 0.0, in_bad: 1.0 };
        Self::over("runs", loss, "30 % in runs of 4")
    }

    /// Input, snapshots and chunks with 5 % loss, whose acknowledgements return over 48 kbit/s with a queue of 2 kB, or
    /// with 30 % loss.
    #[must_use]
    pub fn acks() -> Self {
        let mut cells = Vec::new();
        for rtt in FAR {
            let narrow = Some(Bottleneck { rate: 48_000, queue: 2_000 });
            for (name, back) in [
                ("narrow way back", LinkConfig { bottleneck: narrow, ..lossy(rtt, 5) }),
                ("30 % of ACKs lost", lossy(rtt, 30)),
            ] {
                let cell = |workload| Cell {
                    back: Some(back.clone()),
                    ..Cell::new(workload, &format!("{rtt} ms, {name}"), &lossy(rtt, 5))
                };
                cells.extend(GAME.map(cell));
            }
        }
        Self { name: "acks", cells }
    }

    /// Input, snapshots, chunks and sparse messages over the same round trips with 0 to 30 % loss: cells to
    /// look at one by one. They are also in the other families, so this one is not in [`all`](Self::all).
    #[must_use]
    pub fn grid72() -> Self {
        let [input, snap, chunk] = GAME;
        Self::grid("grid72", &[input, snap, chunk, Workload::sparse1()], &[0, 1, 5, 10, 20, 30])
    }

    /// The families that modes are scored by.
    #[must_use]
    pub fn all() -> [Self; 14] {
        [
            Self::input(),
            Self::snap(),
            Self::chunk(),
            Self::sparse(),
            Self::harsh(),
            Self::clean(),
            Self::ge(),
            Self::reorder(),
            Self::duplex(),
            Self::rate(),
            Self::tail(),
            Self::cuts(),
            Self::runs(),
            Self::acks(),
        ]
    }

    /// Runs every cell in `mode`; the reports are in the order of the cells.
    ///
    /// # Errors
    ///
    /// As [`Scenario::run`].
    pub fn run(
        &self,
        mode: &Mode,
        seeds: impl IntoIterator<Item = u64> + Clone,
    ) -> Result<Vec<Report>, ScenarioError> {
        self.cells.iter().map(|cell| cell.scenario(mode).run(seeds.clone())).collect()
    }

    /// Input, snapshots and chunks over every round trip with the same loss.
    fn over(name: &'static str, loss: Loss, what: &str) -> Self {
        let cell = |rtt| {
            let link = LinkConfig { loss, ..path(rtt) };
            GAME.map(|workload| Cell::new(workload, &format!("{rtt} ms, {what}"), &link))
        };
        Self { name, cells: RTTS.into_iter().flat_map(cell).collect() }
    }

    /// Every workload over every round trip with every loss, in percent.
    fn grid(name: &'static str, workloads: &[Workload], losses: &[u32]) -> Self {
        let mut cells = Vec::new();
        for workload in workloads {
            for (rtt, percent) in RTTS.into_iter().flat_map(|rtt| losses.iter().map(move |loss| (rtt, *loss)))
            {
                cells.push(Cell::new(*workload, &format!("{rtt} ms, {percent} %"), &lossy(rtt, percent)));
            }
        }
        Self { name, cells }
    }
}

impl Cell {
    fn new(workload: Workload, path: &str, link: &LinkConfig) -> Self {
        Self { name: format!("{}, {path}", workload.name), workload, link: link.clone(), back: None }
    }

    /// The scenario of this cell in `mode`.
    #[must_use]
    pub fn scenario(&self, mode: &Mode) -> Scenario {
        let mut scenario = Scenario::new(self.workload, self.link.clone(), mode.clone());
        if let ([_, back], Some(link)) = (&mut scenario.links, &self.back) {
            *back = link.clone();
        }
        scenario
    }
}

/// The ratio of one mode to another over a family: geometric means over its cells, with the same seeds. Less
/// is better.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Score {
    /// Ratio of the mean latencies.
    pub mean: f64,
    /// Ratio of the 95th percentiles.
    pub p95: f64,
    /// Ratio of the 99th percentiles.
    pub p99: f64,
    /// Ratio of the longest latencies, each the mean over the seeds.
    pub mean_max: f64,
    /// Ratio of the bytes on the wire.
    pub bytes: f64,
}

impl Score {
    /// The score of `ours` against `base`, which must be reports of the same cells. NaN if there are no
    /// reports or one has no latencies.
    #[must_use]
    pub fn of(ours: &[Report], base: &[Report]) -> Self {
        let latencies = |reports: &[Report]| reports.iter().map(Report::latency).collect::<Vec<_>>();
        let both: Vec<_> = latencies(ours).into_iter().zip(latencies(base)).collect();
        let ratio = |of: fn(&Latency) -> Duration| {
            geometric_mean(both.iter().map(|(ours, base)| of(ours).as_secs_f64() / of(base).as_secs_f64()))
        };
        let bytes = ours.iter().zip(base).map(|(ours, base)| ours.bytes() as f64 / base.bytes() as f64);
        Self {
            mean: ratio(|latency| latency.mean),
            p95: ratio(|latency| latency.p95),
            p99: ratio(|latency| latency.p99),
            mean_max: ratio(|latency| latency.mean_max),
            bytes: geometric_mean(bytes),
        }
    }

    /// Whether the mean is more than 2 % above the base, or the p99 more than 5 %. The p99 of few messages is
    /// mostly chance: that of chunks varies by a third between sets of ten seeds.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        self.mean > 1.02 || self.p99 > 1.05
    }
}

fn geometric_mean(ratios: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = ratios.fold((0.0, 0.0), |(sum, count), ratio| (sum + ratio.ln(), count + 1.0));
    (sum / count).exp()
}

/// A lossless path with a round trip of `rtt` ms and a tenth of that as jitter, in order.
fn path(rtt: u64) -> LinkConfig {
    let rtt = Duration::from_millis(rtt);
    LinkConfig { jitter: rtt / 10, ..LinkConfig::with_rtt(rtt) }
}

/// The same path with a loss of `percent` % each way.
fn lossy(rtt: u64, percent: u32) -> LinkConfig {
    LinkConfig { loss: Loss::Random(f64::from(percent) / 100.0), ..path(rtt) }
}

const GAME: [Workload; 3] = [Workload::input60(), Workload::snap20(), Workload::chunk32k()];
/// Round trips, ms.
const RTTS: [u64; 3] = [20, 60, 150];
/// Round trips of families that need long ones, ms.
const FAR: [u64; 2] = [60, 150];
/// Loss each way, percent.
const LOSSES: [u32; 4] = [1, 5, 10, 20];

#[cfg(test)]
mod tests {
    use super::super::report::Run;
    use super::*;

    #[test]
    fn families_have_their_cells() {
        let sizes = Family::all().map(|family| (family.name, family.cells.len()));
        let grids = [("input", 12), ("snap", 12), ("chunk", 12), ("sparse", 12), ("harsh", 9), ("clean", 9)];
        assert_eq!(sizes[..6], grids);
        assert_eq!(sizes[6..10], [("ge", 12), ("reorder", 12), ("duplex", 12), ("rate", 8)]);
        assert_eq!(sizes[10..], [("tail", 12), ("cuts", 9), ("runs", 9), ("acks", 12)]);
        assert_eq!(Family::grid72().cells.len(), 72);
        for cell in Family::all().iter().chain([&Family::grid72()]).flat_map(|family| &family.cells) {
            let back = cell.back.as_ref().unwrap_or(&cell.link);
            assert_eq!((cell.link.check(), back.check()), (Ok(()), Ok(())), "{}", cell.name);
        }
    }

    #[test]
    fn a_score_is_a_geometric_mean_of_ratios() {
        let report = |ms: u64, bytes| {
            let latencies = vec![Duration::from_millis(ms); 3];
            let run = Run { latencies, bytes: [bytes, bytes], ..Run::default() };
            Report { runs: vec![run], ..Report::default() }
        };
        let score = Score::of(&[report(10, 5), report(80, 5)], &[report(20, 5), report(20, 20)]);
        assert!((score.mean - 2f64.sqrt()).abs() < 1e-9 && score.mean == score.p99, "{score:?}");
        assert!((score.bytes - 0.5).abs() < 1e-9, "{score:?}");
        assert!(Score::of(&[], &[]).mean.is_nan());
    }
}
