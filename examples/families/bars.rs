//! The goals of whitewater compared with KCP, and its results.

use super::ours;
use std::error::Error;
use std::time::Duration;
use whitewater::{Repairs, Time};
use whitewater_sim::scenario::{Family, Mode, Report, Scenario, Score, Workload};
use whitewater_sim::{LinkConfig, Loss};

/// A goal: mean and p99 relative to those of KCP fast, at no more than this many times its bytes.
struct Bar {
    what: &'static str,
    family: Family,
    bytes: f64,
    demanded: [f64; 2],
    hoped: [f64; 2],
}

/// What all goals are tried with.
const SETTINGS: [Repairs; 2] = [Repairs::Auto, Repairs::Budget(130)];

/// Prints all of them except those with a bottleneck, which have their own example.
pub(crate) fn print(seeds: u64) -> Result<(), Box<dyn Error>> {
    println!(
        "| | bytes | demanded | hoped for | auto | error | repairs 130 % | holds |\n|---|---:|---|---|---|---|---|---|"
    );
    print_upstream(10 * seeds)?;
    for bar in bars() {
        let base = bar.family.run(&Mode::fast(), 1..=seeds)?;
        let mut here = Vec::new();
        for repairs in SETTINGS {
            let reports = bar.family.run(&ours(repairs), 1..=seeds)?;
            let score = Score::of(&reports, &base);
            here.push(Here {
                figures: vec![score.mean, score.p99],
                bytes: score.bytes,
                error: error(&reports, &base),
            });
        }
        print_bar(bar.what, bar.bytes, [&bar.demanded, &bar.hoped], &here);
    }
    let opened = Scenario::new(Workload::reopen(), lossy(0.1), ours(Repairs::Auto)).run(1..=10 * seeds)?;
    print_tail("a closed window opens, p99", 1.2, 0.8, &opened, Duration::ZERO);
    let outage = Time::from_millis(20_000)..Time::from_millis(23_000);
    let link = LinkConfig { outages: vec![outage], ..lossy(0.01) };
    let interrupted = Scenario::new(Workload::input60(), link, ours(Repairs::Auto)).run(1..=5 * seeds)?;
    print_tail("an outage of 3 s costs beyond it, p99", 0.25, 0.12, &interrupted, Duration::from_secs(3));
    Ok(())
}

/// The standard errors of the ratios of mean and p99, as if both were of seeds drawn at random: by how much they change
/// if one seed is left out. Source: J. Tukey's jackknife.
fn error(ours: &[Report], base: &[Report]) -> [f64; 2] {
    let without = |reports: &[Report], seed: usize| {
        let mut reports = reports.to_vec();
        reports.iter_mut().filter(|report| seed < report.runs.len()).for_each(|report| {
            report.runs.remove(seed);
        });
        reports
    };
    let seeds = base.first().map_or(0, |report| report.runs.len());
    let scores: Vec<_> =
        (0..seeds).map(|seed| Score::of(&without(ours, seed), &without(base, seed))).collect();
    [|score: &Score| score.mean, |score: &Score| score.p99].map(|of| {
        let mean = scores.iter().map(of).sum::<f64>() / seeds as f64;
        let squares = scores.iter().map(|score| (of(score) - mean).powi(2)).sum::<f64>();
        (squares * (seeds as f64 - 1.0) / seeds as f64).sqrt()
    })
}

fn bars() -> Vec<Bar> {
    let bar = |what, family, bytes, demanded, hoped| Bar { what, family, bytes, demanded, hoped };
    vec![
        bar("60 Hz x 100 B", Family::input(), 1.0, [0.67, 0.64], [0.57, 0.45]),
        bar("60 Hz x 100 B", Family::input(), 1.1, [0.62, 0.57], [0.55, 0.40]),
        bar("60 Hz x 100 B", Family::input(), 1.5, [0.56, 0.37], [0.52, 0.30]),
        bar("20 Hz x 1200 B", Family::snap(), 1.02, [0.79, 0.73], [0.72, 0.58]),
        bar("20 Hz x 1200 B", Family::snap(), 1.2, [0.72, 0.63], [0.66, 0.50]),
        bar("20 Hz x 1200 B", Family::snap(), 2.0, [0.62, 0.28], [0.58, 0.20]),
        bar("1 Hz x 32 KiB", Family::chunk(), 1.0, [0.47, 0.45], [0.32, 0.20]),
        bar("1 Hz x 32 KiB", Family::chunk(), 1.1, [0.32, 0.32], [0.27, 0.12]),
        bar("1 Hz x 100 B", Family::sparse(), 1.0, [0.85, 0.80], [0.78, 0.60]),
        bar("1 Hz x 100 B", Family::sparse(), 2.0, [0.72, 0.30], [0.67, 0.20]),
        bar("30 % loss", Family::harsh(), 1.0, [0.36, 0.33], [0.24, 0.20]),
        bar("bursts of loss", Family::ge(), 1.07, [0.87, 0.85], [0.78, 0.70]),
        bar("reordering", Family::reorder(), 1.15, [0.74, 0.62], [0.67, 0.45]),
        bar("both directions", Family::duplex(), 1.02, [0.67, 0.64], [0.57, 0.45]),
        bar("no loss", Family::clean(), 1.0, [0.84, 0.74], [0.84, 0.74]),
    ]
}

/// KCP's test.cpp, compared with the fastest KCP at both ends.
fn print_upstream(seeds: u64) -> Result<(), Box<dyn Error>> {
    let run = |mode| Scenario::upstream(mode).run(1..=seeds);
    let base = [run(Mode::turbo())?];
    let mut here = Vec::new();
    for repairs in SETTINGS {
        let reports = [run(ours(repairs))?];
        let score = Score::of(&reports, &base);
        let figures = vec![score.mean, score.p99, score.mean_max];
        here.push(Here { figures, bytes: score.bytes, error: error(&reports, &base) });
    }
    let (demanded, hoped) = ([0.85, 0.80, 0.85], [0.75, 0.60, 0.65]);
    print_bar("test.cpp: mean / p99 / mean max", 1.0, [&demanded, &hoped], &here);
    Ok(())
}

/// What a setting reaches.
struct Here {
    figures: Vec<f64>,
    bytes: f64,
    /// Of the mean and the p99.
    error: [f64; 2],
}

/// Prints a row, with the error of the first setting. Holds if one of the settings reaches the goal.
fn print_bar(what: &str, bytes: f64, [demanded, hoped]: [&[f64]; 2], here: &[Here]) {
    let holds = |here: &Here| is_at_most(&here.figures, demanded) && is_at_most(&[here.bytes], &[bytes]);
    print!("| {what} | {bytes:.2} | {} | {} |", figures(demanded), figures(hoped));
    for (at, Here { figures: reached, bytes, error }) in here.iter().enumerate() {
        let error = if at == 0 { format!(" {} |", figures(error)) } else { String::new() };
        print!(" {} at {bytes:.2} |{error}", figures(reached));
    }
    println!(" {} |", yes(here.iter().any(holds)));
}

/// The 99th percentile, over the seeds, of the longest latency, minus `free`.
fn print_tail(what: &str, demanded: f64, hoped: f64, report: &Report, free: Duration) {
    let mut longest: Vec<_> =
        report.runs.iter().filter_map(|run| run.latencies.iter().max().copied()).collect();
    longest.sort_unstable();
    let p99 = longest.get((longest.len() * 99).div_ceil(100).saturating_sub(1)).copied();
    let seconds = p99.unwrap_or(Duration::MAX).saturating_sub(free).as_secs_f64();
    let holds = yes(is_at_most(&[seconds], &[demanded]));
    println!("| {what} | | {demanded} s | {hoped} s | {seconds:.2} s | | | {holds} |");
}

/// A round trip of 60 ms, without a bottleneck.
pub(crate) fn lossy(share: f64) -> LinkConfig {
    let rtt = Duration::from_millis(60);
    LinkConfig { jitter: rtt / 10, loss: Loss::Random(share), ..LinkConfig::with_rtt(rtt) }
}

/// Whether no value is larger than its goal, in hundredths, like the goals.
fn is_at_most(here: &[f64], demanded: &[f64]) -> bool {
    here.iter().zip(demanded).all(|(here, demanded)| (here * 100.0).round() <= (demanded * 100.0).round())
}

fn figures(figures: &[f64]) -> String {
    figures.iter().map(|figure| format!("{figure:.2}")).collect::<Vec<_>>().join(" / ")
}

fn yes(holds: bool) -> &'static str {
    if holds { "yes" } else { "no" }
}
