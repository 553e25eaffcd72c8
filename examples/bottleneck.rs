//! How flows share a path of 20 Mbit/s with each congestion controller, and what a download gets of a cellular path.
//! Virtual time: the same seeds give the same figures. docs/TUNING.md shows the output.
//!
//! ```text
//! cargo run --release --example bottleneck [-- SEEDS]
//! cargo run --release --example bottleneck -- trace             # traces made by seeds 1 to 3
//! cargo run --release --example bottleneck -- trace FILE [UP]   # a recorded trace, and one for what comes back
//! ```
//!
//! A trace has a line per opportunity to deliver 1504 bytes: its ms from the start, as in Mahimahi.

use std::error::Error;
use std::time::Duration;
use whitewater::kcp::{Config, Congestion, Modern};
use whitewater_sim::scenario::{Downloads, Mode, Sharing};
use whitewater_sim::{Bottleneck, Discipline, LinkConfig, Loss, OPPORTUNITY, Playback, Trace};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(("trace", files)) = args.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return traces(files);
    }
    let seeds: u64 = args.first().map_or(Ok(3), |seeds| seeds.parse())?;
    println!("{HEAD}");
    for (name, link) in links() {
        for mode in modes() {
            println!("{}", row(name, &mode, &Sharing::measure(&mode, &link, 1..=seeds)?));
        }
    }
    Ok(())
}

/// A download of a cellular path, alone and with a game beside it.
fn traces(files: &[String]) -> Result<(), Box<dyn Error>> {
    let read =
        |file: &String| -> Result<Trace, Box<dyn Error>> { Ok(std::fs::read_to_string(file)?.parse()?) };
    let traces = match files {
        [] => (1..=3).map(|seed| (format!("seed {seed}"), Trace::wandering(seed, 60, 1000), None)).collect(),
        [down] => vec![(name(down), read(down)?, None)],
        [down, up, ..] => vec![(name(down), read(down)?, Some(read(up)?))],
    };
    println!("{TRACE_HEAD}");
    for (name, down, up) in traces {
        for (queue, discipline) in [("tail", Discipline::DropTail(100)), ("CoDel", Discipline::CoDel(1000))] {
            let cell = |trace: &Trace| Some(Playback { trace: trace.clone(), queue: discipline });
            let path = |playback| LinkConfig { playback, ..LinkConfig::with_rtt(Duration::from_millis(60)) };
            let links = [path(cell(&down)), path(up.as_ref().and_then(cell))];
            trace_rows(&format!("{name} | {queue}"), &down, &links)?;
        }
    }
    Ok(())
}

fn trace_rows(name: &str, trace: &Trace, links: &[LinkConfig; 2]) -> Result<(), Box<dyn Error>> {
    let (lasts, game) = (trace.period(), Mode::modern(Modern::default()));
    let capacity = trace.opportunities(whitewater::Time::ZERO + lasts) * OPPORTUNITY as u64;
    let run = |modes: &[Mode], game| Downloads::measure(modes, game, links.clone(), lasts, 1);
    let alone = run(&[], Some(&game))?.game.p99;
    for mode in modes() {
        let download = run(std::slice::from_ref(&mode), None)?;
        let beside = run(std::slice::from_ref(&mode), Some(&game))?.game.p99;
        let (payload, wire): (u64, u64) = (download.payload.iter().sum(), download.wire.iter().sum());
        let (used, wire) = (payload as f64 / capacity as f64, wire as f64 / payload.max(1) as f64);
        let [beside, alone] = [beside, alone].map(|time| time.as_secs_f64() * 1e3);
        println!("| {name} | {} | {used:.2} | {wire:.2} | {beside:.0} | {alone:.0} |", mode.name);
    }
    Ok(())
}

/// A file's name, without its folder.
fn name(file: &str) -> String {
    std::path::Path::new(file).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// 20 Mbit/s with a queue of one round trip of 60 ms, and home Wi-Fi.
fn links() -> [(&'static str, LinkConfig); 4] {
    let narrow = |loss| LinkConfig {
        bottleneck: Some(Bottleneck { rate: 20_000_000, queue: 150_000 }),
        loss: Loss::Random(loss),
        ..LinkConfig::with_rtt(Duration::from_millis(60))
    };
    [("0 %", narrow(0.0)), ("1 %", narrow(0.01)), ("10 %", narrow(0.1)), ("`wifi`", LinkConfig::wifi())]
}

fn modes() -> [Mode; 5] {
    let fast = Mode::fast();
    let cwnd = fast.ends[0].config;
    let cwnd = Mode::new("KCP, `nc` 0", Config { congestion: Congestion::Kcp, ..cwnd }, fast.ends[0].drive);
    let fast = Mode { name: "KCP, `nc` 1".to_owned(), ..fast };
    let by_time = Mode { name: "by time, `nc` 1".to_owned(), ..Mode::modern(Modern::default()) };
    let cubic = by_time.clone().with_congestion("by time, `Cubic`", Congestion::Cubic);
    let delay = by_time.clone().with_congestion("by time, `Delay`", Congestion::Delay);
    [cwnd, fast, by_time, cubic, delay].map(|mode| mode.with_window(1024))
}

fn row(link: &str, mode: &Mode, sharing: &Sharing) -> String {
    let ms = |duration: Duration| format!("{:.1}", duration.as_secs_f64() * 1e3);
    let mbit = |rate: f64| format!("{:.1}", rate / 1e6);
    let cells = [
        link.to_owned(),
        mode.name.clone(),
        mbit(sharing.goodput),
        format!("{:.2}", sharing.wire_per_payload),
        ms(sharing.queue_delay),
        ms(sharing.queue_delay_max),
        ms(sharing.game.p50),
        ms(sharing.game.p99),
        mbit(sharing.together),
        format!("{:.3}", sharing.fairness),
        ms(sharing.together_delay),
    ];
    format!("| {} |", cells.join(" | "))
}

const HEAD: &str = "\
| link | mode | Mbit/s | wire / payload | queue, mean | max | game, p50 | p99 | two flows, Mbit/s | Jain | queue, mean |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|";

const TRACE_HEAD: &str = "\
| path | queue | mode | share of the path | wire / payload | game, p99 beside it | p99 alone |
|---|---|---|---:|---:|---:|---:|";
