//! Streams under tokio, both ends on loopback in one process: bulk, small messages, round trips. Ours over bare KCP and over a session,
//! tokio_kcp, and TCP as what the system does by itself. KCP has the same mtu, windows and knobs everywhere.

mod cpu;
mod load;
mod pairs;

use crate::table::{Spread, spreads};
use cpu::Cpu;
use std::time::Instant;
use tokio::runtime::{Builder, Runtime};

/// What is measured.
#[derive(Clone, Copy)]
enum Load {
    /// So many bytes one way, in writes of 64 KiB.
    Bulk(usize),
    /// So many messages of 64 bytes one way.
    Messages(usize),
    /// So many messages of 64 bytes there and back, one after another.
    PingPong(usize),
}

/// Each load so many times, the implementations in turn.
pub(crate) fn table(rounds: usize) {
    for (name, unit, load) in [
        ("bulk", "MB/s", Load::Bulk(32 << 20)),
        ("64-byte messages", "k/s", Load::Messages(200_000)),
        ("ping-pong p50", "us", Load::PingPong(10_000)),
    ] {
        let mut found: [(&str, Vec<f64>, Vec<f64>); pairs::NAMES.len()] =
            pairs::NAMES.map(|name| (name, Vec::new(), Vec::new()));
        for _ in 0..rounds {
            for (name, figures, cpu) in &mut found {
                let (figure, used) = measure(name, load);
                figures.push(figure);
                cpu.push(used);
            }
        }
        let (figures, cpu): (Vec<_>, Vec<_>) = found
            .into_iter()
            .map(|(name, figures, cpu)| ((name, Spread::of(figures)), (name, Spread::of(cpu))))
            .unzip();
        println!("{name:<18}{}", spreads(unit, &figures));
        let unit = if let Load::Bulk(_) = load { "us/MB" } else { "ns" };
        println!("{:<18}{}", "  CPU, both ends", spreads(unit, &cpu));
    }
}

/// One run, for a profiler.
pub(crate) fn one(peer: &str, load: &str, count: usize) {
    let load = match load {
        "bulk" => Load::Bulk(count),
        "messages" => Load::Messages(count),
        "ping-pong" => Load::PingPong(count),
        _ => panic!("{load}: none of bulk, messages, ping-pong"),
    };
    let (figure, cpu) = measure(peer, load);
    println!("{figure:.1} {cpu:.1}");
}

/// One run: the figure, and the CPU time of both ends for each MB or message.
fn measure(name: &str, load: Load) -> (f64, f64) {
    let runtime = runtime(load);
    runtime.block_on(async {
        let (near, far) =
            pairs::pair(name, matches!(load, Load::Bulk(_)), matches!(load, Load::PingPong(_))).await;
        let (start, cpu) = (Instant::now(), Cpu::now());
        let p50 = load::run(near, far, load).await;
        let (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu.elapsed());
        match load {
            Load::Bulk(bytes) => (bytes as f64 / 1e6 / seconds, cpu * 1e6 / (bytes as f64 / 1e6)),
            Load::Messages(count) => (count as f64 / 1e3 / seconds, cpu * 1e9 / count as f64),
            Load::PingPong(count) => (p50 * 1e6, cpu * 1e9 / count as f64),
        }
    })
}

/// Two threads for what both ends do at the same time, one for what they do in turn.
fn runtime(load: Load) -> Runtime {
    let mut builder = match load {
        Load::PingPong(_) => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    builder.worker_threads(2).enable_all().build().expect("a runtime")
}
