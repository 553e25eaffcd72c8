//! The cost of recovery with KCPs that acknowledge in their own ways:
//!
//! ```text
//! cargo run --release -p interop --example recovery [beat] [bulk] [congestion]
//! ```

use interop::beat::{self, BEATS, LOAD, Sender};
use interop::exchange::CONV;
use interop::kcp_go::{self, Knobs, Receiver};
use interop::messages::Load;
use interop::ours;
use interop::relay::Relay;
use std::env;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::exit;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio_kcp::{KcpConfig, KcpListener, KcpNoDelayConfig};
use whitewater::kcp::{Config, Recovery};
use whitewater_sim::LinkConfig;

fn main() {
    let wanted: Vec<_> = env::args().skip(1).collect();
    let tables: [(&str, fn()); 3] = [("beat", beats), ("bulk", bulk), ("congestion", congestion)];
    if let Some(unknown) = wanted.iter().find(|wanted| tables.iter().all(|(name, _)| name != wanted)) {
        eprintln!("{unknown} is none of the tables: {:?}", tables.map(|(name, _)| name));
        exit(2);
    }
    for (name, print) in tables {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            print();
        }
    }
}

fn beats() {
    if !kcp_go::is_there() {
        return;
    }
    println!(
        "\nSegments sent again of {} at {} Hz, {} bytes, to kcp-go, 10 ms each way, none lost\n",
        LOAD.count, LOAD.hz, LOAD.size
    );
    println!("| sender | beat {} |", BEATS.map(|beat| format!("{beat} ms")).join(" | "));
    println!("|---|{}", "---:|".repeat(BEATS.len()));
    let (names, senders): (Vec<_>, Vec<_>) = Sender::all().into_iter().unzip();
    for (name, counts) in names.iter().zip(beat::resends(&senders)) {
        println!("| {name} | {} |", counts.map(|count| count.to_string()).join(" | "));
    }
}

/// Bursts that overrun a receiver show up as more segments than the load has.
fn bulk() {
    if !kcp_go::is_there() {
        return;
    }
    let load = Load { size: 1200, count: 16_667, hz: 0 };
    println!(
        "\n{} segments of {} bytes over loopback to kcp-go with its default socket buffer, medians of {RUNS} runs in turn\n",
        load.count, load.size
    );
    println!("| window | by time, MB/s | segments | kcp-go, MB/s | segments |");
    println!("|---:|---:|---:|---:|---:|");
    for window in [64, 128, 256, 512, 1024] {
        let rcv_wnd = window.max(128);
        let config = Config { mtu: 1224, snd_wnd: window, rcv_wnd, snd_queue: 4096, ..Config::default() };
        let knobs = Knobs::of(&config);
        let mut runs = [Vec::new(), Vec::new()];
        for _ in 0..RUNS {
            let run = |send: &dyn Fn(SocketAddr) -> u64| {
                let mut receiver = Receiver::start(knobs, &load);
                let segments = send(receiver.address);
                (load.bytes() as f64 / receiver.seconds() / 1e6, segments)
            };
            runs[0].push(run(&|to| ours::send(to, CONV, &config, &load).segments_sent));
            runs[1].push(run(&|to| kcp_go::send(to, knobs, &load)["OutSegs"]));
        }
        let [ours, theirs] = runs.map(|runs| {
            format!(
                "{} | {}",
                spread(runs.iter().map(|run| run.0)),
                spread(runs.iter().map(|run| run.1 as f64))
            )
        });
        println!("| {window} | {ours} | {theirs} |");
    }
}

/// The median, minimum and maximum.
fn spread(values: impl Iterator<Item = f64>) -> String {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    let digits = usize::from(values[RUNS / 2] < 1000.0);
    format!("{:.digits$} ({:.digits$} to {:.digits$})", values[RUNS / 2], values[0], values[RUNS - 1])
}

/// Each needless timeout closes the congestion window.
fn congestion() {
    let load = Load { size: 1200, count: 3000, hz: 0 };
    println!(
        "\n{} segments of {} bytes, `Congestion::Kcp`, to tokio_kcp, 10 ms each way, 5 ms of jitter in order, none lost\n",
        load.count, load.size
    );
    println!("| sender | beat 20 ms | segments sent again | 40 ms | segments sent again |");
    println!("|---|---:|---:|---:|---:|");
    let run = |config: Config, beat: u16| {
        let receiver = TokioKcp::start(beat, load.bytes());
        let path = LinkConfig {
            delay: Duration::from_millis(10),
            jitter: Duration::from_millis(5),
            in_order: true,
            ..LinkConfig::default()
        };
        let relay = Relay::start(receiver.address, &path, 0);
        let start = Instant::now();
        let _ = ours::send(relay.address, CONV, &config, &load);
        format!("{:.1} s | {}", start.elapsed().as_secs_f64(), relay.pushes().resent())
    };
    let classic = [Config::classic(), Config::classic().nodelay(1, 10, 2, false)];
    let [default, turbo] = classic.map(|config| Config { recovery: Recovery::default(), ..config });
    let senders = [
        ("by time", default),
        ("classic", classic[0]),
        ("by time, turbo", turbo),
        ("classic, turbo", classic[1]),
    ];
    thread::scope(|scope| {
        let running =
            senders.map(|(name, config)| (name, [20, 40].map(|beat| scope.spawn(move || run(config, beat)))));
        for (name, beats) in running {
            println!("| {name} | {} |", beats.map(|one| one.join().unwrap()).join(" | "));
        }
    });
}

/// A listener of `tokio_kcp` that reads this many bytes from one session and answers with one byte.
struct TokioKcp {
    address: SocketAddr,
    _runtime: Runtime,
}

impl TokioKcp {
    fn start(beat: u16, bytes: usize) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let nodelay = KcpNoDelayConfig { interval: beat.into(), ..KcpNoDelayConfig::fastest() };
        let config = KcpConfig { nodelay, ..KcpConfig::default() };
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut listener = runtime.block_on(KcpListener::bind(config, any)).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (mut left, mut buf) = (bytes, vec![0; 1 << 17]);
            while left > 0 {
                left -= stream.recv(&mut buf).await.unwrap();
            }
            stream.send(&[1]).await.unwrap();
            let _ = stream.recv(&mut buf).await; // until it ends
        });
        Self { address, _runtime: runtime }
    }
}

const RUNS: usize = 5;
