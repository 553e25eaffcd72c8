//! Bars: no cell may be worse than KCP tuned as well as it can be, and one end of whitewater is worth
//! having when KCP is at the other.
//!
//! `cargo run --release --example families -- 10 cells` prints every cell, `.. 10 worse` and `.. 10 stock`
//! what is held here.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use std::slice::from_ref;
use std::thread;
use whitewater::kcp::Modern;
use whitewater_sim::scenario::{Family, Mode, Score};

const SEEDS: std::ops::RangeInclusive<u64> = 1..=4;

fn modern(repairs: u8) -> Mode {
    Mode::modern(Modern { repairs, ..Modern::default() })
}

/// Alice's end of one mode and bob's of another.
fn mixed(alice: &Mode, bob: &Mode) -> Mode {
    let name = format!("{} to {}", alice.name, bob.name);
    Mode { name, ends: [alice.ends[0], bob.ends[1]] }
}

/// Runs 72 cells; none may be worse than turbo+flush, and still be with more seeds. The bytes over those of
/// turbo+flush have a limit.
fn compare(repairs: u8, bytes: f64) {
    let family = Family::grid72();
    let modes = [modern(repairs), Mode::turbo_flush()];
    let run = |mode: Mode| {
        let family = family.clone();
        thread::spawn(move || family.run(&mode, 1..=10).unwrap())
    };
    let [ours, base] = modes.clone().map(run).map(|running| running.join().unwrap());
    for ((cell, ours), base) in family.cells.iter().zip(&ours).zip(&base) {
        if Score::of(from_ref(ours), from_ref(base)).is_worse() {
            let [ours, base] = modes.clone().map(|mode| cell.scenario(&mode).run(1..=40).unwrap());
            let score = Score::of(&[ours], &[base]);
            assert!(!score.is_worse(), "{}: {score:?}", cell.name);
        }
    }
    let score = Score::of(&ours, &base);
    assert!(score.bytes <= bytes, "{score:?}");
}

#[test]
fn by_time_no_cell_is_worse_than_turbo_that_flushes_at_once() {
    compare(0, 1.02);
    compare(10, 1.02);
    compare(30, 1.05);
}

/// Mean and bytes over those of KCP's fast mode at both ends.
#[test]
fn one_end_is_worth_having_towards_kcp() {
    let (fast, flush) = (Mode::fast(), Mode::turbo_flush());
    for (family, to_fast, to_flush, from_fast, from_flush) in [
        (Family::input(), 0.87, 0.80, 0.97, 0.84),
        (Family::snap(), 0.84, 0.81, 0.99, 0.85),
        (Family::chunk(), 0.80, 0.74, 0.93, 0.84),
        (Family::sparse(), 0.86, 0.84, 1.00, 0.87),
    ] {
        let base = family.run(&fast, SEEDS).unwrap();
        // Copies of small segments are what repairs are towards KCP; they buy latency for bytes.
        for (ours, bytes) in [(modern(0), 1.04), (modern(30), 1.22)] {
            for (mode, mean) in [
                (mixed(&ours, &fast), to_fast),
                (mixed(&ours, &flush), to_flush),
                (mixed(&fast, &ours), from_fast),
                (mixed(&flush, &ours), from_flush),
            ] {
                let score = Score::of(&family.run(&mode, SEEDS).unwrap(), &base);
                let is_good = score.mean <= mean && score.p99 <= 1.0 && score.bytes <= bytes;
                assert!(is_good, "{}, {}: {score:?}", family.name, mode.name);
            }
        }
    }
}
