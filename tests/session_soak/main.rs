//! Sessions under random faults: messages arrive intact, in order where that is promised, and every session
//! ends.
//!
//! Each seed is a run. `SESSION_SOAK=<runs>` runs more of them (6,000 in the gate), `SESSION_SEED=<seed>`
//! only one. `SESSION_HOURS=<hours>` says how long the day of a server is (24 in the gate, 1 otherwise).

#![expect(clippy::cast_possible_truncation, reason = "a test that panics has found something")]

#[cfg(test)]
#[path = "../common/mod.rs"]
mod common;
#[cfg(test)]
mod day;
#[cfg(test)]
mod draw;
#[cfg(test)]
mod flow;
#[cfg(test)]
mod net;
#[cfg(test)]
mod run;

use day::Day;
use draw::Fault;
use run::{Outcome, Run};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The results of runs.
#[derive(Default)]
struct Tally {
    drained: u64,
    lost: u64,
    faults: BTreeMap<Fault, u64>,
}

/// Runs the seeds in two threads.
fn soak(seeds: RangeInclusive<u64>) -> Tally {
    let (next, failed) = (AtomicU64::new(*seeds.start()), AtomicBool::new(false));
    let work = || {
        let mut tally = Tally::default();
        while !failed.load(Relaxed) {
            let seed = next.fetch_add(1, Relaxed);
            if seed > *seeds.end() {
                break;
            }
            let mut run = Run::new(seed);
            match catch_unwind(AssertUnwindSafe(|| run.go())) {
                Ok(Outcome::Drained) => tally.drained += 1,
                Ok(Outcome::Lost) => tally.lost += 1,
                Err(error) => {
                    failed.store(true, Relaxed);
                    eprintln!("seed {seed}, step {}, at {}, {:?}", run.step, run.net.now, run.faults);
                    resume_unwind(error);
                }
            }
            for fault in run.faults {
                *tally.faults.entry(fault).or_default() += 1;
            }
        }
        tally
    };
    std::thread::scope(|scope| {
        let threads = [scope.spawn(work), scope.spawn(work)];
        threads.into_iter().fold(Tally::default(), |mut sum, thread| {
            let Tally { drained, lost, faults } = thread.join().unwrap_or_else(|error| resume_unwind(error));
            (sum.drained, sum.lost) = (sum.drained + drained, sum.lost + lost);
            faults.into_iter().for_each(|(fault, count)| *sum.faults.entry(fault).or_default() += count);
            sum
        })
    })
}

#[test]
fn whatever_the_network_does_sessions_keep_their_promises() {
    let seeds = match number("SESSION_SEED") {
        Some(seed) => seed..=seed,
        None => 1..=number("SESSION_SOAK").unwrap_or(RUNS),
    };
    let count = seeds.end() - seeds.start() + 1;
    let Tally { drained, lost, faults } = soak(seeds);
    println!("{drained} runs drained, {lost} ended by their faults, {faults:?}");
    // Unencrypted sessions cannot migrate, so fewer survive.
    assert!(drained * 4 > count || count < 100, "{drained} of {count} survived");
    assert!(faults.len() == Fault::ALL.len() || count < 1000, "some faults never happened: {faults:?}");
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

#[test]
fn the_same_seed_is_the_same_run() {
    let trace = |seed| {
        let mut run = Run::new(seed);
        run.go();
        (run.net.now, run.net.digest(), run.faults)
    };
    for seed in 1..=40 {
        assert_eq!(trace(seed), trace(seed), "seed {seed}");
    }
}

/// A session takes more than 4 KiB. What 40 of them leave behind is less than a tenth of that each, and part
/// of it is the test's own list.
#[test]
fn closed_sessions_free_their_memory() {
    let mut run = Run::new(1);
    run.lives(80);
    let left = allocation_counter::measure(|| run.lives(40)).bytes_current;
    assert!(left <= 16_000, "{left} bytes are left");
}

#[test]
fn a_server_with_a_thousand_clients_stays_as_it_is_all_day() {
    let hours = number("SESSION_HOURS").unwrap_or(1);
    let mut day = Day::new(1, PLAYERS);
    let third = Duration::from_secs(hours * 1200);
    let (mut sessions, mut memory, mut grown) = ([0; 3], [0; 3], [0; 3]);
    for part in 0..3 {
        let heap = allocation_counter::measure(|| {
            for _ in 0..100 {
                day.pass(third / 100);
                let stats = day.server.stats();
                sessions[part] = stats.sessions.max(sessions[part]);
                memory[part] = stats.memory.max(memory[part]);
            }
        });
        grown[part] = heap.bytes_current;
        println!(
            "{} s: {} up, {sessions:?} sessions, {memory:?} bytes, heap {grown:?}",
            day.now.as_millis() / 1000,
            day.up()
        );
    }
    println!("{:?}", day.tally);
    let faults = ["moves", "partitions", "goodbyes", "crashes", "kicks", "replays", "datagrams of strangers"];
    assert!(faults.iter().all(|fault| day.tally.get(fault).is_some_and(|count| *count > 500 * hours)));
    assert!(hours < 3 || day.tally.contains_key("restarts of the server"));
    assert!(day.up() > PLAYERS * 9 / 10, "{} are up", day.up());
    for part in 1..3 {
        assert!(sessions[part] <= sessions[0] + PLAYERS / 20, "{sessions:?} sessions");
        assert!(memory[part] <= memory[0] + memory[0] / 10, "{memory:?} bytes");
        assert!(grown[part] <= GROWTH_MAX, "{grown:?} bytes of heap, with what is under way");
    }
    day.end();
    assert_eq!((day.server.len(), day.server.stats().memory), (0, 0), "what is left when all have gone");
}

/// Clients of the day.
const PLAYERS: usize = 1000;
/// 4 KiB for each: less than a session. In a third of 24 hours, 24,000 sessions begin.
const GROWTH_MAX: i64 = 4_096_000;

/// Runs unless `SESSION_SOAK` is set: a few seconds on one core.
const RUNS: u64 = 1_000;
