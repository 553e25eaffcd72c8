//! Bulk over bad paths in virtual time: how fast 64 MiB get through, and how many bytes that takes on the
//! wire. Both ends have the same window. A step is 1 ms, in which each end takes what has arrived and is
//! updated.

use crate::ikcp::Ikcp;
use crate::pipe::{ByTime, Link, MTU, Peer, Port, Whitewater};
use crate::rust::Rust;
use crate::table::Spread;

/// Every window, loss and round trip, with `rounds` seeds each.
pub(crate) fn table(rounds: u64) {
    println!(
        "64 MiB: MB/s of ikcp.c; goodput of the others as a multiple of it, and in brackets theirs and their bytes on the wire as such"
    );
    println!("multiples, least and most; medians of {rounds} seeds");
    println!("| window | round trip | loss | ikcp.c | kcp | ww classic | ww by time | ww, repairs of 30 % |");
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|");
    for window in [128, 512, 1024] {
        for rtt in [20, 60, 150] {
            for loss in [0, 1, 5, 10, 20] {
                row(Path { window, rtt, loss }, rounds);
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Path {
    window: u16,
    /// ms.
    rtt: u32,
    /// In percent, each direction.
    loss: u32,
}

/// The cost of a run.
struct Run {
    millis: f64,
    wire: f64,
}

fn row(path: Path, rounds: u64) {
    let peers: [fn(Path, u64) -> Run; 4] =
        [run::<Rust>, run::<Whitewater>, run::<ByTime<0>>, run::<ByTime<30>>];
    let base: Vec<Run> = (1..=rounds).map(|seed| run::<Ikcp>(path, seed)).collect();
    let cell = |peer: &fn(Path, u64) -> Run| {
        let runs: Vec<_> = (1..=rounds).map(|seed| peer(path, seed)).collect();
        let both = || runs.iter().zip(&base);
        let speed = Spread::of(both().map(|(run, base)| base.millis / run.millis).collect());
        let wire = Spread::of(both().map(|(run, base)| run.wire / base.wire).collect());
        format!("{:.2} [{speed}; wire {wire}]", speed.median)
    };
    let cells: Vec<_> = peers.iter().map(cell).collect();
    let Path { window, rtt, loss } = path;
    let speed = Spread::of(base.iter().map(|run| BULK as f64 / 1000.0 / run.millis).collect());
    println!("| {window} | {rtt} ms | {loss} % | {:.2} MB/s | {} |", speed.median, cells.join(" | "));
}

fn run<P: Peer>(path: Path, seed: u64) -> Run {
    let room = 8 * usize::from(path.window) + 1024;
    let port = |stream| Link::port(path.rtt / 2, path.loss, seed * 1000 + stream, room);
    let ports = [port(1), port(2)];
    let [there, back] = &ports;
    let (mut sender, mut receiver) = (P::new(path.window, there.clone()), P::new(path.window, back.clone()));
    let (mut now, mut sent, mut got, mut buf) = (0, 0, 0, vec![0; MTU]);
    let message = vec![0x5a; MESSAGE];
    while got < BULK {
        now += 1;
        assert!(now < 100_000_000, "{}: {got} bytes", P::NAME);
        ports_at(&ports, now);
        there.deliver(now, |at, datagram| receiver.input(at, datagram));
        back.deliver(now, |at, datagram| sender.input(at, datagram));
        while let Some(len) = receiver.recv(&mut buf) {
            got += len;
        }
        while sent < BULK && sender.wait_snd() < 2 * usize::from(path.window) {
            sender.send(&message);
            sent += message.len();
        }
        sender.update(now);
        receiver.update(now);
    }
    Run {
        millis: f64::from(now),
        wire: ports.iter().map(|port| port.bytes() + IP_AND_UDP * port.datagrams()).sum::<u64>() as f64,
    }
}

fn ports_at(ports: &[Port; 2], now: u32) {
    ports.iter().for_each(|port| port.set_clock(now));
}

/// Size of a message, bytes: one segment, even where repairs need some room in a datagram.
const MESSAGE: usize = 1350;
/// Size of the IPv4 and UDP headers, bytes.
const IP_AND_UDP: u64 = 28;
/// Bytes per run.
const BULK: usize = 64 << 20;
