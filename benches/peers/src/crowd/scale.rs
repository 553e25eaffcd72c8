//! What a server costs for each of 1000, 10,000 and 50,000 sessions: idle, and when each sends 64 bytes both ways 30 times a
//! second. Everything is in memory and in virtual time. Of the time only what the server's ends take counts, and of the heap
//! only what they hold.

use super::bare::{Bare, ByTime};
use super::beat::Beat;
use super::enet;
use super::nothing::Nothing;
use super::quic::Ends;
use super::renet;
use super::sessions::{Clients, Server};
use super::{Side, World, thread_time};
use crate::heap;
use crate::ikcp::Ikcp;
use std::num::NonZero;
use std::sync::Barrier;
use std::thread;

/// A row each for every number of sessions and every peer, then how the time grows with the number.
pub(crate) fn table(counts: &[usize]) {
    heap::start();
    println!("{HEADER}");
    let mut all: Vec<(&str, Vec<(usize, Found)>)> = PEERS.iter().map(|name| (*name, Vec::new())).collect();
    for &count in [FEW].iter().chain(counts) {
        for (name, found) in &mut all {
            let estimate =
                found.last().map_or(0.0, |(fewer, found)| found.total * work(count) / work(*fewer));
            if estimate > LIMIT {
                println!("| {count} | {name} | not run: it would take some {estimate:.0} s of CPU |||||||||");
                continue;
            }
            let this = run(name, count);
            this.print(count, name);
            found.push((count, this));
        }
    }
    growth(&all);
}

/// How many ticks of encrypted sessions a second of CPU is enough for, with as many shards as there are cores and fewer. Each
/// shard is a server in a thread of its own, as with `thread::Server`, but without sockets: they share memory and caches only.
pub(crate) fn shards(sessions: usize) {
    println!(
        "{sessions} encrypted sessions a shard, 30 x 64 B a second both ways; the servers' ends in memory"
    );
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let mut alone = 0.0;
    for count in 1..=cores {
        let start = Barrier::new(count);
        let ticks: f64 = thread::scope(|scope| {
            let shards: Vec<_> = (0..count).map(|_| scope.spawn(|| shard(sessions, &start))).collect();
            shards.into_iter().map(|shard| shard.join().expect("no panic")).sum()
        });
        if count == 1 {
            alone = ticks;
        }
        println!("  {count:2} of {cores} cores: {ticks:9.0} ticks a second ({:.2}x)", ticks / alone);
    }
}

/// Ticks that a second of CPU is enough for, while all shards are at work.
fn shard(sessions: usize, start: &Barrier) -> f64 {
    let load = u32::try_from(sessions / STARTS).expect("thousands") + SETTLE;
    let mut world = World::new(sessions, 0, load, Server::encrypted, Clients::encrypted);
    (0..load + WARM).for_each(|now| world.tick(now));
    start.wait();
    1e9 / phase(&mut world, sessions, load + WARM, 4).tick
}

/// Columns of the table, and what they mean.
const HEADER: &str = "\
Server's ends in memory, one thread, 25 ms each way, no loss. `tick`: CPU of one session in 1/30 s. `cores`: what all sessions \
take at 30 Hz. `heap`: requested bytes, with the tables of the server. `latency`: of a message, in virtual time. `wake-ups`: ms of a \
second in which a timer is due. ikcp.c, ENet and renet are called every 10 ms. A server of ours has at \
most 16,384 sessions, a host of ENet 4095 peers, and a server of netcode, below renet, 1024 clients: more are on several of them.

| sessions | | tick idle, ns | tick at 30 Hz, ns | cores | heap idle, bytes | heap at 30 Hz, bytes | p50, ms | p99, ms | wake-ups a second idle | at 30 Hz |
|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|";

const PEERS: [&str; 8] = [
    "harness",
    "bare KCP",
    "session",
    "session, encrypted",
    "ikcp.c",
    "ENet",
    "renet, encrypted",
    "quinn, encrypted",
];

fn run(name: &str, count: usize) -> Found {
    match name {
        "harness" => measure(count, Nothing::new, Nothing::new),
        "bare KCP" => measure(count, Bare::<ByTime>::new, Bare::<ByTime>::new),
        "session" => measure(count, Server::new, Clients::new),
        "session, encrypted" => measure(count, Server::encrypted, Clients::encrypted),
        "ikcp.c" => measure(count, Beat::<Ikcp>::new, Beat::<Ikcp>::new),
        "ENet" => measure(count, enet::Hosts::new, enet::Clients::simulated),
        "renet, encrypted" => measure(count, renet::Servers::new, renet::Clients::new),
        "quinn, encrypted" => measure(count, Ends::server, Ends::clients),
        _ => panic!("{name}: none of {PEERS:?}"),
    }
}

/// A phase of a run: idle, or at 30 Hz.
struct Phase {
    /// ns per session in 1/30 s.
    tick: f64,
    /// Bytes per session.
    heap: f64,
    /// A second.
    wakes: f64,
}

struct Found {
    idle: Phase,
    busy: Phase,
    /// ms from sending to receiving, in both directions.
    p50: u32,
    p99: u32,
    /// Percentage of the messages that did not arrive in time.
    missing: f64,
    /// CPU time of the whole run, both sides, s.
    total: f64,
}

fn measure<S: Side, C: Side>(
    count: usize,
    server: impl Fn(usize, u32) -> S,
    clients: impl Fn(usize, u32) -> C,
) -> Found {
    let began = thread_time();
    // Handshakes, and then until everybody has freed what is only needed for them.
    let idle = u32::try_from(count / STARTS).expect("thousands") + SETTLE;
    let load = idle + 1000 * IDLE;
    let mut world = World::new(count, 0, load, server, clients);
    (0..idle).for_each(|now| world.tick(now));
    let idle = phase(&mut world, count, idle, IDLE);
    let (warm, seconds) = (load + WARM, seconds(count));
    (load..warm).for_each(|now| world.tick(now));
    world.latencies.fill(0);
    let busy = phase(&mut world, count, warm, seconds);
    let total: u64 = world.latencies.iter().sum();
    Found {
        idle,
        busy,
        p50: world.quantile(total / 2),
        p99: world.quantile(total / 100 * 99),
        missing: 100.0 - total as f64 / (60 * count as u64 * u64::from(seconds)) as f64 * 100.0,
        total: thread_time() - began,
    }
}

/// How long the load of so many sessions is measured, s.
fn seconds(count: usize) -> u32 {
    (MESSAGES / count as u32).clamp(1, 6)
}

/// Session-seconds of load in a run, which take most of its time.
fn work(count: usize) -> f64 {
    count as f64 * (f64::from(seconds(count)) + f64::from(WARM) / 1000.0)
}

/// The ms from `from` on, for so many seconds.
fn phase<S: Side, C: Side>(world: &mut World<S, C>, count: usize, from: u32, seconds: u32) -> Phase {
    let (cpu, wakes) = (world.cpu, world.wakes);
    (from..from + 1000 * seconds).for_each(|now| world.tick(now));
    let (count, seconds) = (count as f64, f64::from(seconds));
    Phase {
        tick: (world.cpu - cpu) * 1e9 / count / seconds / 30.0,
        heap: world.heap as f64 / count,
        wakes: (world.wakes - wakes) as f64 / seconds,
    }
}

impl Found {
    fn print(&self, count: usize, name: &str) {
        let Self { idle, busy, p50, p99, missing, .. } = self;
        println!(
            "| {count} | {name} | {:.0} | {:.0} | {:.3} | {:.0} | {:.0} | {p50} | {p99} | {:.0} | {:.0} |{}",
            idle.tick,
            busy.tick,
            busy.tick * 30.0 * count as f64 / 1e9,
            idle.heap,
            busy.heap,
            idle.wakes,
            busy.wakes,
            if *missing > 1.0 { format!(" {missing:.1} % of messages missing") } else { String::new() }
        );
    }
}

/// How often a tick at each number takes as long as at the smallest, without what the harness takes, the first peer.
fn growth(all: &[(&str, Vec<(usize, Found)>)]) {
    println!("\nA tick at 30 Hz without the harness, as a multiple of one of {FEW} sessions:\n");
    let Some(((_, harness), peers)) = all.split_first() else { return };
    let alone = |(count, found): &(usize, Found)| {
        let harness = harness.iter().find(|(same, _)| same == count);
        found.busy.tick - harness.map_or(0.0, |(_, found)| found.busy.tick)
    };
    for (name, found) in peers {
        let Some((few, more)) = found.split_first() else { continue };
        let times = more.iter().map(|at| format!("{}: {:.2}", at.0, alone(at) / alone(few)));
        println!("- {name}: {}", times.collect::<Vec<_>>().join(", "));
    }
}

/// What growth is compared with.
const FEW: usize = 300;
/// Clients that connect in the same ms.
const STARTS: usize = 20;
/// From the last start of a client to the measurement, ms.
const SETTLE: u32 = 4000;
/// How long the idle part is measured, s.
const IDLE: u32 = 2;
/// From the start of the load to its measurement, ms: acknowledgements have learnt to wait for messages.
const WARM: u32 = 2000;
/// Seconds of the load that are measured, times sessions: at least 1 s, at most 6.
const MESSAGES: u32 = 40_000;
/// Longest run, s of CPU.
const LIMIT: f64 = 200.0;
