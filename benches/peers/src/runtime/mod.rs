//! Streams under tokio, both ends on loopback in one process: bulk, small messages, round trips. Compares
//! ours over bare KCP, over a session and over an encrypted one with tokio_kcp, quinn, and TCP, which the
//! system provides. KCP has the same mtu, windows and settings everywhere.

pub(crate) mod cpu;
mod load;
mod pairs;
pub(crate) mod quic;
mod udp;

use crate::table::{Spread, spreads};
use cpu::Cpu;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// What is measured.
#[derive(Clone, Copy)]
enum Load {
    /// This many bytes one way, in writes of 64 KiB.
    Bulk(usize),
    /// This many messages of 64 bytes one way.
    Messages(usize),
    /// This many messages of 64 bytes there and back, one after another.
    PingPong(usize),
    /// The same from a future that is not spawned, as of `#[tokio::main]`, to a task that is, on one thread or beside
    /// two.
    Unspawned(usize),
    UnspawnedBeside(usize),
    /// As in a ping-pong, 60 per second.
    Echo(usize),
}

impl Load {
    /// Whether a bare UDP socket can carry it: nothing gets lost with one datagram at a time.
    const fn is_in_turns(self) -> bool {
        !matches!(self, Self::Bulk(_) | Self::Messages(_))
    }

    /// How long to wait before each message.
    const fn pause(self) -> Duration {
        if let Self::Echo(_) = self { Duration::from_micros(16_667) } else { Duration::ZERO }
    }
}

/// Each load `rounds` times. The implementations take turns.
pub(crate) fn table(rounds: usize) {
    rows(
        rounds,
        &[("bulk", "MB/s", Load::Bulk(128 << 20)), ("64-byte messages", "k/s", Load::Messages(200_000))],
    );
}

/// Round trips, in the same way.
pub(crate) fn turns(rounds: usize) {
    rows(
        rounds,
        &[
            ("ping-pong p50", "us", Load::PingPong(10_000)),
            ("not spawned, p50", "us", Load::Unspawned(10_000)),
            ("beside threads", "us", Load::UnspawnedBeside(10_000)),
        ],
    );
}

/// The cost of a player's traffic on an otherwise idle machine: each message has to wake everybody up.
pub(crate) fn echo(rounds: usize) {
    rows(rounds, &[("60 Hz echo, p50", "us", Load::Echo(120))]);
}

fn rows(rounds: usize, loads: &[(&str, &str, Load)]) {
    for &(name, unit, load) in loads {
        let names = pairs::NAMES.iter().filter(|name| **name != "udp" || load.is_in_turns());
        let mut found: Vec<(&str, Vec<f64>, Vec<f64>)> =
            names.map(|name| (*name, Vec::new(), Vec::new())).collect();
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
        "unspawned" => Load::Unspawned(count),
        "beside" => Load::UnspawnedBeside(count),
        "echo" => Load::Echo(count),
        _ => panic!("{load}: none of bulk, messages, ping-pong, unspawned, beside, echo"),
    };
    let (figure, cpu) = measure(peer, load);
    println!("{figure:.1} {cpu:.1}");
}

/// One run: the figure, and the CPU time of both ends per MB or message.
fn measure(name: &str, load: Load) -> (f64, f64) {
    let runtime = runtime(load);
    runtime.block_on(async {
        let (near, far) = pairs::pair(name, matches!(load, Load::Bulk(_)), load.is_in_turns()).await;
        let (start, cpu) = (Instant::now(), Cpu::now());
        let p50 = load::run(near, far, load).await;
        let (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu.elapsed());
        match load {
            Load::Bulk(bytes) => (bytes as f64 / 1e6 / seconds, cpu * 1e6 / (bytes as f64 / 1e6)),
            Load::Messages(count) => (count as f64 / 1e3 / seconds, cpu * 1e9 / count as f64),
            Load::PingPong(count)
            | Load::Unspawned(count)
            | Load::UnspawnedBeside(count)
            | Load::Echo(count) => (p50 * 1e6, cpu * 1e9 / count as f64),
        }
    })
}

/// Two threads if both ends work at the same time, or beside the one that takes turns; otherwise one.
fn runtime(load: Load) -> Runtime {
    let mut builder = match load {
        Load::Bulk(_) | Load::Messages(_) | Load::UnspawnedBeside(_) => Builder::new_multi_thread(),
        _ => Builder::new_current_thread(),
    };
    builder.worker_threads(2).enable_all().build().expect("a runtime")
}
