//! A million idle bare KCP peers: what they cost, and what a timer costs among so many.

use crate::crowd::{address, random, thread_time};
use crate::heap;
use std::time::Instant;
use whitewater::Time;
use whitewater::kcp::{Config as Kcp, Conv, Peers, PeersConfig};
use whitewater::machine::Machine as _;

pub(crate) fn table(count: usize) {
    heap::start();
    println!("{count} bare KCP peers");
    let config = PeersConfig {
        kcp: Kcp::default(),
        max_peers: count,
        memory: 1 << 40,
        idle_timeout: PeersConfig::default().idle_timeout * 100,
        ..PeersConfig::registered()
    };
    let mut peers = Peers::new(&config, &mut random(1)).expect("it is in range");
    let empty = heap::live();
    let start = Time::from_millis(1000);
    for index in 0..count {
        peers.register(start, address(index), Conv(0x7777)).expect("there is room");
    }
    drain(&mut peers, start);
    // After 2 s each frees what it does not need.
    let (mut now, mut first) = (start, 0);
    while let Some(at) = peers.poll_timeout().filter(|at| *at < Time::from_millis(61_000)) {
        now = now.max(at);
        peers.handle_timeout(now);
        drain(&mut peers, now);
        first += 1;
    }
    println!("heap {} bytes each, all in", (heap::live() - empty) / count);
    println!("wake-ups in the first minute {first} for all, and then:");

    let (mut wakes, end) = (0, Time::from_millis(121_000));
    while let Some(at) = peers.poll_timeout().filter(|at| *at <= end) {
        now = at;
        peers.handle_timeout(now);
        drain(&mut peers, now);
        wakes += 1;
    }
    println!("wake-ups in a minute of virtual time {wakes}");

    // Runs a driver with nothing to do: it waits until `poll_timeout`, at most a second.
    let (cpu, began) = (thread_time(), Instant::now());
    let mut rounds = 0;
    while began.elapsed().as_secs_f64() < 5.0 {
        now = Time::from_micros(121_000_000 + began.elapsed().as_micros() as u64);
        let wait = peers.poll_timeout().map_or(1_000_000, |at| at.since(now).as_micros().min(1_000_000));
        std::thread::sleep(std::time::Duration::from_micros(wait as u64));
        peers.handle_timeout(now);
        drain(&mut peers, now);
        rounds += 1;
    }
    println!(
        "CPU of 5 s {:.3} ms in {rounds} rounds: {:.4} %",
        (thread_time() - cpu) * 1e3,
        (thread_time() - cpu) * 20.0
    );

    flooded();
    // All idle timeouts fire at once and close their peers.
    let cpu = thread_time();
    now = Time::from_millis(1000 + 3_100_000);
    let before = peers.len();
    while peers.poll_timeout().is_some_and(|at| at <= now) {
        peers.handle_timeout(now);
        drain(&mut peers, now);
        while peers.poll_event().is_some() {}
    }
    let ended = before - peers.len();
    println!(
        "{:.0} ns of a timer that goes off and ends its peer, of {ended}",
        (thread_time() - cpu) * 1e9 / ended as f64
    );
}

/// A look-up among peers whose addresses and convs an attacker has chosen, compared with one among random
/// peers.
fn flooded() {
    let config =
        PeersConfig { kcp: Kcp::default(), max_peers: CHOSEN, memory: 1 << 40, ..PeersConfig::registered() };
    let now = Time::from_millis(1000);
    let scattered = |index: usize| index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8 & 0xff_ffff;
    let choices: [(&str, &dyn Fn(usize) -> (usize, u32)); 4] = [
        ("anywhere", &|index| (scattered(index), 0x7777)),
        ("of one network", &|index| (index, 0x7777)),
        ("each 2^10th", &|index| (index << 10, 0x7777)),
        ("of one address, each 2^16th conv", &|index| (1, (index as u32) << 16 | 1)),
    ];
    let mut times = choices.map(|_| Vec::new());
    for _ in 0..7 {
        for ((_, choose), times) in choices.iter().zip(&mut times) {
            let mut peers = Peers::new(&config, &mut random(1)).expect("it is in range");
            for index in 0..CHOSEN {
                let (ip, conv) = choose(index);
                peers.register(now, address(ip), Conv(conv)).expect("there is room");
            }
            drain(&mut peers, now);
            let cpu = thread_time();
            for round in 0..4 {
                for index in 0..CHOSEN {
                    let (ip, conv) = choose(index * 7919 % CHOSEN);
                    let mut datagram = crate::pipe::header(crate::pipe::ACK, 128, round, 0);
                    datagram[..4].copy_from_slice(&conv.to_le_bytes());
                    peers.handle_datagram(now, address(ip).into(), &mut datagram);
                }
            }
            times.push((thread_time() - cpu) * 1e9 / (4 * CHOSEN) as f64);
        }
    }
    println!(
        "ns to look up one of {CHOSEN} peers and refuse its datagram, by their addresses and convs [least..most of 7]"
    );
    for ((name, _), times) in choices.iter().zip(times) {
        let spread = crate::table::Spread::of(times);
        println!("  {name:34} {:5.0} [{spread}]", spread.median);
    }
}

/// As many peers as one shard has sessions.
const CHOSEN: usize = 16_000;

fn drain(peers: &mut Peers, now: Time) {
    let mut datagram = Vec::new();
    while peers.poll_transmit(now, &mut datagram).is_some() {
        datagram.clear();
    }
}
