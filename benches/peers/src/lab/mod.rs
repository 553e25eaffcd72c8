//! Latency and bytes over real sockets: each implementation between two network namespaces of its own, joined by a
//! link that loses and delays (Linux, root). Both ends share one clock, so latencies are one-way. All implementations of
//! a row run at the same time, each over the same link with the same seed; transfers run one after another.

mod far;
mod kcptun;
mod link;
mod near;
mod quic;
mod spaces;

use far::Far;
use link::{Lab, Path};
use near::Near;
use spaces::hurry;
use std::collections::BTreeSet;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use std::{io, panic, process};
use whitewater::kcp::{self, Config, Congestion, Modern, Recovery};
use whitewater::session::Secret;
use whitewater::{Channel, ChannelConfig, Repairs, SessionConfig};

/// An implementation with its settings.
#[derive(Clone, Copy, Debug)]
enum Peer {
    /// A datagram per message, which the rig itself is judged by.
    Udp,
    /// Bare KCP by time, with this congestion control and these repairs.
    Bare(Congestion, Repairs),
    /// The same in an encrypted session.
    Session(Congestion, Repairs),
    TokioKcp,
    /// With 3 packets of parity to 10 of data.
    Kcptun,
    /// With BBR.
    Quinn(bool),
    Tcp(&'static str),
}

/// What is sent one way.
#[derive(Clone, Copy)]
struct Load {
    size: usize,
    count: u64,
    /// Between messages. `None`: as fast as they are taken.
    gap: Option<Duration>,
    /// The first ones do not count: ends get to know the path.
    warm: u64,
    patience: Duration,
}

/// What both ends need.
struct Setup {
    kcp: Config,
    session: SessionConfig,
    quic: quic::Configs,
    epoch: Instant,
}

/// What was found.
struct Found {
    /// Of each message, in ms, sorted.
    latencies: Vec<f64>,
    /// From the first message that counts until the last one has arrived.
    seconds: f64,
    /// Of IP packets, in that time.
    bytes: f64,
    /// How long connecting took, ms.
    connected: f64,
    /// How much too late the link delivered at most, ms.
    latest: f64,
    is_complete: bool,
}

/// Messages at a rate over the links, `rounds` times.
pub(crate) fn latency(seconds: u64, rounds: u64) {
    let Some(tcp) = fastest_tcp() else { return };
    println!(
        "one way, {seconds} s x {rounds} rounds, round trip 60 ms; mean / p99 ms @ bytes of IP packets of both directions per payload byte"
    );
    for (hz, size) in [(60, 100), (20, 1200)] {
        println!("\n{hz} Hz x {size} B");
        let losses = [0.0, 0.01, 0.05, 0.1];
        let rows = losses.map(|loss| row(hz, size, loss, seconds, rounds, tcp));
        println!(
            "| | {} | connecting, ms |",
            losses.map(|loss| format!("{} % lost", loss * 100.0)).join(" | ")
        );
        println!("|---|---|---|---|---|---:|");
        for (index, peer) in peers(tcp).iter().enumerate() {
            let cells = rows.each_ref().map(|row| cell(&row[index], size));
            let is_asked = matches!(peer, Peer::Session(..) | Peer::Quinn(_) | Peer::Tcp(_));
            let least = rows[0][index].iter().map(|found| found.connected).min_by(f64::total_cmp);
            let connecting = least.filter(|_| is_asked).map_or("-".into(), |least| format!("{least:.0}"));
            println!("| {} | {} | {connecting} |", name(*peer), cells.join(" | "));
        }
        let late = rows.iter().flatten().flatten().map(|found| found.latest).fold(0.0, f64::max);
        println!("the latest packet was delivered {late:.1} ms too late");
    }
}

/// What each implementation did at one loss, in each round.
fn row(hz: u64, size: usize, loss: f64, seconds: u64, rounds: u64, tcp: &'static str) -> Vec<Vec<Found>> {
    let load = Load {
        size,
        count: hz * (seconds + WARM),
        gap: Some(Duration::from_nanos(1_000_000_000 / hz)),
        warm: hz * WARM,
        patience: Duration::from_secs(10),
    };
    let path = Path { one_way: ONE_WAY, loss, bottleneck: None };
    let mut cells: Vec<Vec<Found>> = peers(tcp).iter().map(|_| Vec::new()).collect();
    for seed in 1..=rounds {
        thread::scope(|scope| {
            let running: Vec<_> = (0..)
                .zip(peers(tcp))
                .map(|(index, peer)| {
                    // Not all at once: they share two cores.
                    let delay = Duration::from_micros(700 * index);
                    (loss == 0.0 || !matches!(peer, Peer::Udp)).then(|| {
                        scope.spawn(move || {
                            thread::sleep(delay);
                            measure(peer, load, path, seed)
                        })
                    })
                })
                .collect();
            for (cell, run) in cells.iter_mut().zip(running) {
                cell.extend(run.and_then(|run| run.join().expect("no panic")));
            }
        });
    }
    cells
}

/// Over the messages of all rounds.
fn cell(found: &[Found], size: usize) -> String {
    if found.is_empty() {
        return "-".into();
    }
    let mut all: Vec<f64> = found.iter().flat_map(|found| found.latencies.iter().copied()).collect();
    all.sort_by(f64::total_cmp);
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let p99 = all[all.len() * 99 / 100];
    let bytes = found.iter().map(|found| found.bytes).sum::<f64>() / (all.len() * size) as f64;
    let late = if found.iter().all(|found| found.is_complete) { "" } else { ", not all arrived" };
    format!("{mean:.1} / {p99:.0} @ {bytes:.2}{late}")
}

/// 20 MB one way, the best of some rounds, of those with this in their name.
pub(crate) fn transfers(rounds: u64, named: &str) {
    let Some(tcp) = fastest_tcp() else { return };
    let paths = [
        ("no loss", Path { one_way: ONE_WAY, loss: 0.0, bottleneck: None }),
        ("1 % lost", Path { one_way: ONE_WAY, loss: 0.01, bottleneck: None }),
        ("10 % lost", Path { one_way: ONE_WAY, loss: 0.1, bottleneck: None }),
        ("10 Mbit/s, 75 KB", Path { one_way: ONE_WAY, loss: 0.0, bottleneck: Some((10_000_000, 75_000)) }),
    ];
    println!(
        "20 MB one way, round trip 60 ms, the fastest of {rounds} rounds; seconds @ bytes of IP packets of both directions per payload byte"
    );
    println!("| | {} |", paths.map(|(name, _)| name).join(" | "));
    println!("|---|---|---|---|---|");
    let size = 8000;
    let load = Load {
        size,
        count: TRANSFER as u64 / size as u64,
        gap: None,
        warm: 0,
        patience: Duration::from_secs(30),
    };
    let controllers = [Congestion::None, Congestion::Cubic, Congestion::Delay];
    let ours = controllers.iter().map(|congestion| Peer::Bare(*congestion, Repairs::Auto));
    let others = [
        Peer::Session(Congestion::Cubic, Repairs::Auto),
        Peer::Session(Congestion::Delay, Repairs::Auto),
        Peer::Quinn(false),
        Peer::Quinn(true),
        Peer::Tcp("cubic"),
        Peer::Tcp(tcp),
    ];
    let names: BTreeSet<_> = [tcp, "cubic"].into();
    let others = others.into_iter().filter(|peer| names.len() > 1 || !matches!(peer, Peer::Tcp("cubic")));
    for peer in ours.chain(others).filter(|peer| name(*peer).contains(named)) {
        let cells = paths.map(|(_, path)| {
            let found = (1..=rounds).filter_map(|seed| measure(peer, load, path, seed));
            let best = found.min_by(|a, b| a.seconds.total_cmp(&b.seconds));
            best.map_or("-".into(), |found| match found.is_complete {
                true => format!("{:.1} @ {:.2}", found.seconds, found.bytes / TRANSFER),
                false => format!("more than {} s", load.patience.as_secs()),
            })
        });
        println!("| {} | {} |", name(peer), cells.join(" | "));
    }
}

/// A second of everything, without loss and with much: everything that can arrives.
pub(crate) fn smoke() {
    let Some(tcp) = fastest_tcp() else { return };
    for (index, peer) in peers(tcp).iter().enumerate().skip(1) {
        let load = Load {
            size: 100,
            count: 60,
            gap: Some(Duration::from_millis(5)),
            warm: 6,
            patience: Duration::from_secs(20),
        };
        let path = Path { one_way: Duration::from_millis(5), loss: 0.05, bottleneck: None };
        let Some(found) = measure(*peer, load, path, index as u64) else {
            println!("skipped    lab, {}: not installed", name(*peer));
            continue;
        };
        assert!(found.is_complete, "{}: not all messages arrived", name(*peer));
        assert!(found.latencies[0] >= 5.0, "{}: sooner than the link", name(*peer));
    }
}

/// One implementation over a link of its own. `None` if it is not installed.
fn measure(peer: Peer, load: Load, path: Path, seed: u64) -> Option<Found> {
    if matches!(peer, Peer::Kcptun) && !kcptun::is_there() {
        return None;
    }
    let lab = Lab::new(path, seed).expect("two namespaces");
    let setup = Setup::new(peer, load);
    thread::scope(|scope| {
        let (ready, is_ready) = mpsc::channel();
        let (marks, mark) = mpsc::channel();
        let (lab, setup) = (&lab, &setup);
        let server = scope.spawn(move || {
            lab.server.enter().expect("a namespace");
            hurry(5).expect("root may");
            let mut far = far::new(peer, setup, || ready.send(()).expect("a client"));
            collect(&mut *far, load, setup.epoch, lab)
        });
        let client = scope.spawn(move || {
            lab.client.enter().expect("a namespace");
            hurry(5).expect("root may");
            is_ready.recv().expect("a server");
            let start = Instant::now();
            let mut near = near::new(peer, setup);
            let connected = start.elapsed().as_secs_f64() * 1e3;
            offer(&mut *near, load, setup.epoch, lab, &marks);
            connected
        });
        let found = server.join().expect("no panic");
        let (bytes, at) = mark.recv().expect("messages were sent");
        let connected = client.join().expect("no panic");
        Some(found.since(bytes, at, connected, lab))
    })
}

/// Sends all messages, and takes part until the other end has them.
fn offer(near: &mut dyn Near, load: Load, epoch: Instant, lab: &Lab, marks: &mpsc::Sender<(u64, Instant)>) {
    let start = Instant::now();
    let mut message = vec![7; load.size];
    for index in 0..load.count {
        if let Some(gap) = load.gap {
            near.wait(start + gap * u32::try_from(index).expect("not that many"));
        }
        if index == load.warm {
            marks.send((lab.bytes(), Instant::now())).expect("a receiver");
        }
        message[..8].copy_from_slice(&(epoch.elapsed().as_nanos() as u64).to_le_bytes());
        while !near.send(&message) {
            if lab.is_done() || start.elapsed() > load.patience + TRAFFIC_MAX {
                return;
            }
            near.wait(Instant::now() + Duration::from_millis(1));
        }
    }
    while !lab.is_done() {
        near.wait(Instant::now() + Duration::from_millis(5));
    }
}

/// What has arrived.
struct Collected {
    latencies: Vec<f64>,
    bytes: u64,
    at: Instant,
    is_complete: bool,
}

impl Collected {
    fn since(self, bytes: u64, at: Instant, connected: f64, lab: &Lab) -> Found {
        let Self { mut latencies, is_complete, .. } = self;
        latencies.sort_by(f64::total_cmp);
        Found {
            latencies,
            seconds: self.at.saturating_duration_since(at).as_secs_f64(),
            bytes: (self.bytes - bytes) as f64,
            connected,
            latest: lab.latest(),
            is_complete,
        }
    }
}

/// Takes messages until all are there or the patience is over.
fn collect(far: &mut dyn Far, load: Load, epoch: Instant, lab: &Lab) -> Collected {
    let lasts = load.gap.unwrap_or_default() * u32::try_from(load.count).expect("not that many");
    let until = Instant::now() + lasts + load.patience;
    let mut latencies = Vec::new();
    let (mut buf, mut partial, mut taken) = (vec![0; 1 << 16], Vec::new(), 0);
    while taken < load.count && Instant::now() < until {
        let Some(len) = far.recv(&mut buf, until) else { continue };
        let now = epoch.elapsed().as_nanos() as u64;
        partial.extend_from_slice(&buf[..len]);
        let whole = partial.len() / load.size * load.size;
        for message in partial[..whole].chunks(load.size) {
            let sent = u64::from_le_bytes(message[..8].try_into().expect("8 bytes"));
            if taken >= load.warm {
                latencies.push(now.saturating_sub(sent) as f64 / 1e6);
            }
            taken += 1;
        }
        partial.drain(..whole);
    }
    let (bytes, at) = (lab.bytes(), Instant::now());
    lab.done();
    Collected { latencies, bytes, at, is_complete: taken == load.count }
}

impl Setup {
    fn new(peer: Peer, load: Load) -> Self {
        let (congestion, repairs) = match peer {
            Peer::Bare(congestion, repairs) | Peer::Session(congestion, repairs) => (congestion, repairs),
            _ => (Congestion::None, Repairs::Off),
        };
        let recovery = Recovery::Modern(Modern { repairs, ..Modern::default() });
        let mut kcp = Config { congestion, recovery, ..Config::default() };
        let mut session = SessionConfig::default();
        if load.gap.is_none() {
            // Room for 290 Mbit/s over 60 ms, as the others have.
            kcp = Config { snd_queue: 1024, ..kcp.wndsize(WINDOW, WINDOW) };
            session = SessionConfig { send_memory: 16 << 20, receive_memory: 24 << 20, ..session };
        }
        session.channels = vec![ChannelConfig { kcp, ..CHANNEL.config() }];
        Self {
            kcp,
            session,
            quic: quic::Configs::new(matches!(peer, Peer::Quinn(true))),
            epoch: Instant::now(),
        }
    }

    fn limits(&self) -> kcp::PeersConfig {
        kcp::PeersConfig { kcp: self.kcp, ..kcp::PeersConfig::default() }
    }

    fn secret() -> Secret {
        [7; 32].into()
    }
}

fn peers(tcp: &'static str) -> [Peer; 11] {
    let none = Congestion::None;
    [
        Peer::Udp,
        Peer::Bare(none, Repairs::Off),
        Peer::Bare(none, Repairs::Auto),
        Peer::Bare(none, Repairs::Budget(100)),
        Peer::Session(none, Repairs::Off),
        Peer::Session(none, Repairs::Auto),
        Peer::Session(none, Repairs::Budget(100)),
        Peer::TokioKcp,
        Peer::Kcptun,
        Peer::Quinn(false),
        Peer::Tcp(tcp),
    ]
}

fn name(peer: Peer) -> String {
    let control = |congestion| match congestion {
        Congestion::None => String::new(),
        Congestion::Cubic => ", CUBIC".into(),
        congestion => format!(", {congestion:?}"),
    };
    let repairs = |repairs| match repairs {
        Repairs::Off => ", no repairs".to_owned(),
        Repairs::Budget(percent) => format!(", repairs {percent} %"),
        _ => String::new(),
    };
    match peer {
        Peer::Udp => "a UDP datagram: the rig itself".into(),
        Peer::Bare(congestion, of) => {
            format!("bare KCP by time{}{}", control(congestion), repairs(of))
        }
        Peer::Session(congestion, of) => {
            format!("encrypted session{}{}", control(congestion), repairs(of))
        }
        Peer::TokioKcp => "tokio_kcp, fast".into(),
        Peer::Kcptun => "kcptun, fast3, 10 + 3 FEC".into(),
        Peer::Quinn(false) => "quinn".into(),
        Peer::Quinn(true) => "quinn, BBR".into(),
        Peer::Tcp(control) => format!("TCP, {control}"),
    }
}

/// BBR, if the kernel has it. `None`, and says so, if there cannot be namespaces.
fn fastest_tcp() -> Option<&'static str> {
    let path = Path { one_way: ONE_WAY, loss: 0.0, bottleneck: None };
    if let Err(error) = Lab::new(path, 0).and_then(|_| hurry_elsewhere()) {
        println!("skipped    lab: {error}: it needs root and /dev/net/tun");
        return None;
    }
    // An end that fails would leave the other one waiting.
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        print(info);
        process::abort();
    }));
    let known =
        std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    Some(if known.split_whitespace().any(|name| name == "bbr") { "bbr" } else { "cubic" })
}

/// Whether a thread may have real-time priority.
fn hurry_elsewhere() -> io::Result<()> {
    thread::spawn(|| hurry(1)).join().expect("no panic")
}

const CHANNEL: Channel = Channel::ordered(0);
const ONE_WAY: Duration = Duration::from_millis(30);
/// Bytes of a transfer.
const TRANSFER: f64 = 20e6;
/// Seconds before messages count.
const WARM: u64 = 2;
/// Longest time of sending beyond patience.
const TRAFFIC_MAX: Duration = Duration::from_secs(5);
/// In segments.
const WINDOW: u16 = 4096;
const PORT: u16 = 7000;
