//! How flows share a path of 20 Mbit/s with each congestion controller. Virtual time: the same seeds give the same
//! figures. docs/TUNING.md shows the output.
//!
//! ```text
//! cargo run --release --example bottleneck [-- SEEDS]
//! ```

use std::error::Error;
use std::time::Duration;
use whitewater::kcp::{Config, Congestion, Modern};
use whitewater_sim::scenario::{Mode, Sharing};
use whitewater_sim::{Bottleneck, LinkConfig, Loss};

fn main() -> Result<(), Box<dyn Error>> {
    let seeds: u64 = std::env::args().nth(1).map_or(Ok(3), |seeds| seeds.parse())?;
    println!("{HEAD}");
    for (name, link) in links() {
        for mode in modes() {
            println!("{}", row(name, &mode, &Sharing::measure(&mode, &link, 1..=seeds)?));
        }
    }
    Ok(())
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
    let copa = by_time.clone().with_congestion("by time, `Copa`", Congestion::Copa);
    [cwnd, fast, by_time, cubic, copa].map(|mode| mode.with_window(1024))
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
