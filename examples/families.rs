//! How the modes of KCP compare over the families of paths that whitewater is judged by, and KCP's
//! own test: virtual time, same seeds, same figures.
//!
//! ```text
//! cargo run --release --example families [-- SEEDS [FAMILY..]]
//! ```

use std::error::Error;
use std::time::{Duration, Instant};
use whitewater::Modern;
use whitewater::sim::LinkConfig;
use whitewater::sim::scenario::{Family, Mode, Report, Scenario, Score, Workload};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let seeds = args.next().map_or(Ok(4), |seeds| seeds.parse())?;
    let wanted: Vec<_> = args.collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    if is_wanted("upstream") {
        print_upstream(10 * seeds)?;
    }
    println!("mean / p95 / p99 / max / bytes, as ratios to KCP fast\n");
    println!(
        "| family | turbo+flush | modern | repairs 10 % | 20 % | 30 % | 100 % |\n|---|---|---|---|---|---|---|"
    );
    for family in Family::all().iter().filter(|family| is_wanted(family.name)) {
        print_family(family, seeds)?;
    }
    print_speed()
}

fn print_family(family: &Family, seeds: u64) -> Result<(), Box<dyn Error>> {
    let base = family.run(&Mode::fast(), 1..=seeds)?;
    let mut row = format!("| {} |", family.name);
    for mode in modes() {
        let Score { mean, p95, p99, max, bytes, .. } = Score::of(&family.run(&mode, 1..=seeds)?, &base);
        row += &format!(" {mean:.2}/{p95:.2}/{p99:.2}/{max:.2}/{bytes:.2} |");
    }
    println!("{row}");
    Ok(())
}

/// What is compared with KCP.
fn modes() -> [Mode; 6] {
    let repairs = |repairs| Mode::modern(Modern { repairs, ..Modern::default() });
    [Mode::turbo_flush(), repairs(0), repairs(10), repairs(20), repairs(30), repairs(100)]
}

fn print_upstream(seeds: u64) -> Result<(), Box<dyn Error>> {
    println!(
        "KCP's test.cpp, {seeds} seeds, ms\n\n| mode | mean | p99 | max | kB |\n|---|---:|---:|---:|---:|"
    );
    for mode in Mode::baselines().into_iter().chain(modes().into_iter().skip(1)) {
        let report: Report = Scenario::upstream(mode.clone()).run(1..=seeds)?;
        let latency = report.latency();
        let [mean, p99, max] =
            [latency.mean, latency.p99, latency.max].map(|latency| latency.as_secs_f64() * 1e3);
        let kb = report.bytes() as f64 / 1e3 / seeds as f64;
        println!("| {} | {mean:.1} | {p99:.1} | {max:.0} | {kb:.1} |", mode.name);
    }
    println!();
    Ok(())
}

/// Virtual time over real time, of a session of 60 messages a second each way.
fn print_speed() -> Result<(), Box<dyn Error>> {
    let duplex = Workload { answer: Workload::input60().traffic.into(), ..Workload::input60() };
    let (start, seeds) = (Instant::now(), 1..=10);
    let report = Scenario::new(duplex, LinkConfig::mobile(), Mode::fast()).run(seeds)?;
    let virtual_time: Duration = report.runs.iter().map(|run| run.lasted).sum();
    let speed = virtual_time.as_secs_f64() / start.elapsed().as_secs_f64();
    println!("\n60 messages a second each way: {speed:.0} x real time");
    Ok(())
}
