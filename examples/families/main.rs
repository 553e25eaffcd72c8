//! How the modes of KCP compare over the families of paths that whitewater is judged by, and KCP's
//! own test: virtual time, same seeds, same figures.
//!
//! ```text
//! cargo run --release --example families [-- SEEDS [FAMILY..]]      a row per family
//! cargo run --release --example families -- SEEDS bars              the goals of whitewater, and its results
//! cargo run --release --example families -- SEEDS curve [FILE]      a picture of latency over loss (loss.svg)
//! cargo run --release --example families -- SEEDS cells [FAMILY..]  a row per cell, marked if worse than turbo + flush
//! cargo run --release --example families -- SEEDS stock             whitewater at one end, KCP at the other
//! cargo run --release --example families -- SEEDS deadline          how many messages are there in time
//! cargo run --release --example families -- SEEDS worse             which of 72 cells are worse than turbo + flush
//! ```

mod bars;
mod curve;
mod deadline;
#[path = "../latency/modes.rs"]
mod modes;

use std::error::Error;
use std::slice::from_ref;
use std::time::{Duration, Instant};
use whitewater::Repairs;
use whitewater::kcp::Modern;
use whitewater_sim::LinkConfig;
use whitewater_sim::scenario::{Family, Mode, Report, Scenario, Score, Workload};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let seeds = args.next().map_or(Ok(4), |seeds| seeds.parse())?;
    let wanted: Vec<_> = args.collect();
    match wanted.split_first().map(|(what, families)| (what.as_str(), families)) {
        Some(("bars", _)) => bars::print(seeds),
        Some(("curve", file)) => curve::draw(seeds, file.first().map_or("loss.svg", |file| file)),
        Some(("cells", families)) => print_cells(seeds, families),
        Some(("stock", _)) => print_stock(seeds),
        Some(("deadline", _)) => deadline::print(seeds),
        Some(("worse", _)) => print_worse(seeds),
        _ => print_families(seeds, &wanted),
    }
}

fn is_wanted(name: &str, wanted: &[String]) -> bool {
    wanted.is_empty() || wanted.iter().any(|wanted| wanted == name)
}

/// The modes that are compared with KCP.
fn modes() -> [Mode; 6] {
    [
        Mode::turbo_flush(),
        ours(Repairs::Off),
        ours(Repairs::Auto),
        ours(Repairs::Budget(10)),
        ours(Repairs::Budget(30)),
        ours(Repairs::Budget(100)),
    ]
}

fn ours(repairs: Repairs) -> Mode {
    Mode::modern(Modern { repairs, ..Modern::default() })
}

fn print_families(seeds: u64, wanted: &[String]) -> Result<(), Box<dyn Error>> {
    if is_wanted("upstream", wanted) {
        print_upstream(10 * seeds)?;
    }
    println!("mean / p99 / bytes, as ratios to KCP fast\n");
    println!(
        "| | turbo + flush | by time | auto | repairs 10 % | 30 % | 100 % |\n|---|---|---|---|---|---|---|"
    );
    for family in Family::all().iter().filter(|family| is_wanted(family.name, wanted)) {
        print_family(family, seeds)?;
    }
    print_speed()
}

fn print_family(family: &Family, seeds: u64) -> Result<(), Box<dyn Error>> {
    let base = family.run(&Mode::fast(), 1..=seeds)?;
    let (mut row, mut worst) = (format!("| {} |", title(family.name)), "| its worst cell |".to_owned());
    for mode in modes() {
        let reports = family.run(&mode, 1..=seeds)?;
        row += &format!(" {} |", ratios(&Score::of(&reports, &base)));
        let cells = reports.iter().zip(&base).map(|(ours, base)| score(ours, Some(base))).zip(&family.cells);
        let of_all = cells.max_by(|(a, _), (b, _)| worse(a).total_cmp(&worse(b)));
        worst +=
            &of_all.map_or(String::new(), |(score, cell)| format!(" {}: {} |", cell.name, ratios(&score)));
    }
    println!("{row}\n{worst}");
    Ok(())
}

/// What the worst cell is worst by: the mean or the p99.
fn worse(score: &Score) -> f64 {
    score.mean.max(score.p99)
}

/// The name of a family in docs/LATENCY.md.
fn title(family: &str) -> &str {
    match family {
        "input" => "60 Hz x 100 B",
        "snap" => "20 Hz x 1200 B",
        "chunk" => "1 Hz x 32 KiB",
        "sparse" => "1 Hz x 100 B",
        "harsh" => "30 % loss",
        "clean" => "no loss",
        "ge" => "bursts of loss",
        "reorder" => "reordering",
        "duplex" => "both directions",
        "rate" => "20 Mbit/s",
        "tail" => "heavy-tailed reordering",
        "cuts" => "cuts of 50 ms",
        "runs" => "30 % in runs of packets",
        "acks" => "a bad way back",
        other => other,
    }
}

/// Prints every cell in every mode.
fn print_cells(seeds: u64, wanted: &[String]) -> Result<(), Box<dyn Error>> {
    println!("mean / p99 / bytes, as ratios to KCP fast and to turbo + flush\n");
    println!("| cell | mode | fast | turbo + flush | |\n|---|---|---|---|---|");
    let families = Family::all().into_iter().chain([Family::grid72()]);
    for family in families.filter(|family| is_wanted(family.name, wanted)) {
        let run = |mode: &Mode| family.run(mode, 1..=seeds);
        let (fast, flush) = (run(&Mode::fast())?, run(&Mode::turbo_flush())?);
        for mode in modes().into_iter().skip(1) {
            for (at, (cell, report)) in family.cells.iter().zip(&run(&mode)?).enumerate() {
                let [fast, flush] = [&fast, &flush].map(|base| score(report, base.get(at)));
                let mark = if flush.is_worse() { "worse" } else { "" };
                println!(
                    "| {} | {} | {} | {} | {mark} |",
                    cell.name,
                    mode.name,
                    ratios(&fast),
                    ratios(&flush)
                );
            }
        }
    }
    Ok(())
}

/// How many cells are worse than turbo + flush, which ones, and at how many bytes; and whether they still are with four
/// times the seeds.
fn print_worse(seeds: u64) -> Result<(), Box<dyn Error>> {
    let family = Family::grid72();
    let run = |mode: &Mode| family.run(mode, 1..=seeds);
    let (fast, flush) = (run(&Mode::fast())?, run(&Mode::turbo_flush())?);
    println!("Cells with a mean > 2 % or a p99 > 5 % above that of turbo + flush\n");
    println!(
        "| mode | mean / p99 / bytes to fast | to turbo + flush | cells worse | with {} seeds |\n|---|---|---|---|---|",
        4 * seeds
    );
    let mut worse = String::new();
    for mode in modes().into_iter().skip(1) {
        let reports = run(&mode)?;
        let (mut count, mut still) = (0, 0);
        for (at, (cell, report)) in family.cells.iter().zip(&reports).enumerate() {
            let score = score(report, flush.get(at));
            if score.is_worse() {
                let run = |mode: &Mode| cell.scenario(mode).run(1..=4 * seeds);
                let more = Score::of(&[run(&mode)?], &[run(&Mode::turbo_flush())?]);
                (count, still) = (count + 1, still + u32::from(more.is_worse()));
                worse +=
                    &format!("| {} | {} | {} | {} |\n", mode.name, cell.name, ratios(&score), ratios(&more));
            }
        }
        let [fast, flush] = [&fast, &flush].map(|base| ratios(&Score::of(&reports, base)));
        println!("| {} | {fast} | {flush} | {count} of {} | {still} |", mode.name, reports.len());
    }
    println!(
        "\n| mode | cell | mean / p99 / bytes to turbo + flush | with {} seeds |\n|---|---|---|---|\n{worse}",
        4 * seeds
    );
    Ok(())
}

/// Each end of whitewater with KCP's at the other end.
fn print_stock(seeds: u64) -> Result<(), Box<dyn Error>> {
    let (fast, flush) = (Mode::fast(), Mode::turbo_flush());
    let mut rows = Vec::new();
    for ours in [ours(Repairs::Off), ours(Repairs::Auto)] {
        rows.extend([mixed(&ours, &fast), mixed(&ours, &flush), mixed(&fast, &ours), mixed(&flush, &ours)]);
    }
    println!("mean / p99 / bytes, as ratios to KCP fast at both ends\n");
    println!("| sender to receiver | input | snap | chunk | sparse |\n|---|---|---|---|---|");
    let families = [Family::input(), Family::snap(), Family::chunk(), Family::sparse()];
    let run = |family: &Family, mode: &Mode| family.run(mode, 1..=seeds);
    let base = families.iter().map(|family| run(family, &fast)).collect::<Result<Vec<_>, _>>()?;
    for mode in rows.iter().chain([&flush, &ours(Repairs::Off)]) {
        let mut row = format!("| {} |", mode.name);
        for (family, base) in families.iter().zip(&base) {
            row += &format!(" {} |", ratios(&Score::of(&run(family, mode)?, base)));
        }
        println!("{row}");
    }
    Ok(())
}

/// Alice's end of one mode with bob's end of another.
fn mixed(alice: &Mode, bob: &Mode) -> Mode {
    let name = format!("{} to {}", alice.name, bob.name);
    Mode { name, ends: [alice.ends[0], bob.ends[1]] }
}

/// The score of one cell.
fn score(ours: &Report, base: Option<&Report>) -> Score {
    Score::of(from_ref(ours), base.map_or(&[], from_ref))
}

fn ratios(score: &Score) -> String {
    format!("{:.2} / {:.2} / {:.2}", score.mean, score.p99, score.bytes)
}

fn print_upstream(seeds: u64) -> Result<(), Box<dyn Error>> {
    println!(
        "KCP's test.cpp, {seeds} seeds, ms\n\n| | mean | p99 | mean max | kB |\n|---|---:|---:|---:|---:|"
    );
    for mode in Mode::baselines().into_iter().chain(modes().into_iter().skip(1)) {
        let report: Report = Scenario::upstream(mode.clone()).run(1..=seeds)?;
        let latency = report.latency();
        let [mean, p99, max] =
            [latency.mean, latency.p99, latency.mean_max].map(|latency| latency.as_secs_f64() * 1e3);
        let kb = report.bytes() as f64 / 1e3 / seeds as f64;
        println!("| {} | {mean:.1} | {p99:.1} | {max:.0} | {kb:.1} |", mode.name);
    }
    println!();
    Ok(())
}

/// Virtual time divided by real time, for a session with 60 messages per second in each direction.
fn print_speed() -> Result<(), Box<dyn Error>> {
    let duplex = Workload { answer: Workload::input60().traffic.into(), ..Workload::input60() };
    let (start, seeds) = (Instant::now(), 1..=10);
    let report = Scenario::new(duplex, LinkConfig::mobile(), Mode::fast()).run(seeds)?;
    let virtual_time: Duration = report.runs.iter().map(|run| run.lasted).sum();
    let speed = virtual_time.as_secs_f64() / start.elapsed().as_secs_f64();
    println!("\n60 messages a second each way: {speed:.0} x real time");
    Ok(())
}
