//! Minimum standards: no cell may be worse than the best-tuned KCP, and whitewater at just one end must be
//! worth it when the other end is KCP.
//!
//! `cargo run --release --example families -- 10 cells` prints every cell; `.. 10 worse` and `.. 10 stock`
//! print what is checked here.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use std::slice::from_ref;
use std::thread;
use whitewater::Repairs;
use whitewater::kcp::Modern;
use whitewater_sim::scenario::{Family, Mode, Score};

const SEEDS: std::ops::RangeInclusive<u64> = 1..=4;

fn modern(repairs: Repairs) -> Mode {
    Mode::modern(Modern { repairs, ..Modern::default() })
}

/// Alice's end in one mode and bob's in another.
fn mixed(alice: &Mode, bob: &Mode) -> Mode {
    let name = format!("{} to {}", alice.name, bob.name);
    Mode { name, ends: [alice.ends[0], bob.ends[1]] }
}

/// Runs 72 cells; none may be worse than turbo+flush, even with more seeds. The ratio of bytes to those of
/// turbo+flush is limited.
fn compare(repairs: Repairs, bytes: f64) {
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
fn with_timed_loss_detection_no_cell_is_worse_than_turbo_with_flush() {
    compare(Repairs::Off, 1.02);
    compare(Repairs::Auto, 1.05);
    compare(Repairs::Budget(30), 1.05);
}

/// Ratios of the mean and the bytes to those of KCP's fast mode at both ends.
#[test]
fn whitewater_at_one_end_beats_kcp_at_both() {
    let (fast, flush) = (Mode::fast(), Mode::turbo_flush());
    for (family, to_fast, to_flush, from_fast, from_flush) in [
        (Family::input(), 0.87, 0.80, 0.97, 0.84),
        (Family::snap(), 0.84, 0.81, 0.99, 0.85),
        (Family::chunk(), 0.80, 0.74, 0.93, 0.84),
        (Family::sparse(), 0.86, 0.84, 1.00, 0.87),
    ] {
        let base = family.run(&fast, SEEDS).unwrap();
        // To a KCP peer, repairs are copies of small segments; they trade bytes for latency.
        for (ours, bytes) in [(modern(Repairs::Off), 1.04), (modern(Repairs::Auto), 1.22)] {
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
