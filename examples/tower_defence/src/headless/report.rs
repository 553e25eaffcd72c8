//! Prints the measurements.

use super::run::{Outcome, Settings, run};
use super::samples::{Samples, percentile};
use crate::lab::{LinkSpec, Transport};
use std::fmt::{self, Write};

/// Percentiles of the measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Prediction error, cells: median, 99th percentile, maximum.
    pub error: [f32; 3],
    /// Share of snapshots that differed from the client's prediction, 0 to 1.
    pub wrong: f64,
    /// Mean size of snapshots, bytes: as sent, and in full.
    pub bytes: [f64; 2],
    /// From an input to its effect, ms: median, 99th percentile.
    pub effect: [f64; 2],
    /// Bytes per second of a client, up and down.
    pub traffic: [f64; 2],
}

impl Figures {
    /// Ignores the first five seconds, in which players join.
    #[must_use]
    pub fn of(samples: &Samples) -> Self {
        let errors = || samples.errors.iter().filter(|(at, _)| at.as_secs() >= WARM).map(|(_, error)| *error);
        let effects = || {
            let late = samples.latencies.iter().filter(|latency| latency.at.as_secs() >= WARM);
            late.map(|latency| latency.took.as_secs_f64() * 1e3)
        };
        let snapshots = || samples.snapshots.iter().filter(|snapshot| snapshot.at.as_secs() >= WARM);
        let traffic = || samples.traffic.iter().filter(|traffic| traffic.at.as_secs() > WARM);
        let wrong = mean(errors().map(|error| if error > 0.0 { 1.0 } else { 0.0 }));
        let number = |bytes: usize| f64::from(u32::try_from(bytes).unwrap_or(u32::MAX));
        Self {
            error: [percentile(errors(), 50), percentile(errors(), 99), percentile(errors(), 100)],
            wrong,
            bytes: [
                mean(snapshots().map(|one| number(one.bytes))),
                mean(snapshots().map(|one| number(one.full))),
            ],
            effect: [percentile(effects(), 50), percentile(effects(), 99)],
            traffic: [mean(traffic().map(|one| one.up)), mean(traffic().map(|one| one.down))],
        }
    }
}

/// Prints the figures of a game.
///
/// # Errors
///
/// Errors of `out`.
pub fn print(out: &mut impl Write, samples: &Samples, outcome: &Outcome) -> fmt::Result {
    let Figures { error, wrong, bytes, effect, traffic } = Figures::of(samples);
    let Outcome { counts, wave, base } = outcome;
    let inputs = counts.in_time + counts.guessed;
    writeln!(out, "{}", samples.title)?;
    writeln!(
        out,
        "prediction error   p50 {:.3}, p99 {:.3}, max {:.3} cells; {:.1} % of snapshots were not as predicted",
        error[0],
        error[1],
        error[2],
        wrong * 100.0
    )?;
    writeln!(
        out,
        "input to effect    p50 {:.0} ms, p99 {:.0} ms; {} of {inputs} inputs were not there in time",
        effect[0], effect[1], counts.guessed
    )?;
    writeln!(
        out,
        "snapshots          {:.0} bytes as sent, {:.0} in full; {} full, {} by what has changed",
        bytes[0], bytes[1], counts.full, counts.deltas
    )?;
    writeln!(out, "bandwidth          {:.0} B/s up, {:.0} B/s down, each client", traffic[0], traffic[1])?;
    writeln!(
        out,
        "the game           wave {wave}, {base} of the base left; {} orders and packets refused",
        counts.refused
    )
}

/// Prints a table: the same game over sessions and over KCP alone, at several losses.
///
/// # Errors
///
/// Errors of `out`.
pub fn compare(out: &mut impl Write, settings: &Settings) -> fmt::Result {
    writeln!(
        out,
        "| loss | carried by | input to effect p50, p99 | not as predicted | error p99, cells | snapshot | B/s up, down |"
    )?;
    writeln!(out, "|---:|---|---:|---:|---:|---:|---:|")?;
    for loss in [0.0, 0.02, 0.05, 0.1] {
        for (name, transport) in [("whitewater channels", Transport::Sessions), ("KCP only", Transport::Kcp)]
        {
            let link = LinkSpec { loss, ..settings.link.clone() };
            let (samples, _) = run(&Settings { link, transport, ..settings.clone() });
            print_row(out, &format!("{:.0} % | {name}", loss * 100.0), &samples)?;
        }
    }
    Ok(())
}

/// Prints a row of that table.
///
/// # Errors
///
/// Errors of `out`.
pub fn print_row(out: &mut impl Write, head: &str, samples: &Samples) -> fmt::Result {
    let Figures { error, wrong, bytes, effect, traffic } = Figures::of(samples);
    writeln!(
        out,
        "| {head} | {:.0}, {:.0} ms | {:.1} % | {:.2} | {:.0} B | {:.0}, {:.0} |",
        effect[0],
        effect[1],
        wrong * 100.0,
        error[1],
        bytes[0],
        traffic[0],
        traffic[1]
    )
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    if count > 0.0 { sum / count } else { 0.0 }
}

/// Seconds in which players join.
const WARM: u64 = 5;
