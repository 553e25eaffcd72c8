//! Segment numbers and clocks that wrap only change the numbers on the wire.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;

use common::{Pair, Raw, Setup, Talk, drain, kcp, lossy, numbered, raw_segments, repairing, rough};
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::wire::Command;
use whitewater::kcp::{Conv, Kcp, Sn};
use whitewater::machine::DatagramQueue;
use whitewater_sim::Drive;

/// Where a run of some hundred numbers or a few seconds reaches an edge of the 32 bits.
const EDGES: [u64; 4] = [1 << 31, 1 << 32, (1 << 32) + (1 << 31), 3 << 32];

/// Bulk, then a game, over a bad link. Returns what can be observed, except for the numbers.
fn run(setup: Setup) -> (Time, Vec<Time>, Vec<Time>, [u32; 6], [u64; 4]) {
    let mut pair = setup.pair();
    for number in 0..150 {
        pair.send(numbered(number, number * 31 % 4000));
    }
    for number in 0..150 {
        pair.reply(numbered(number, 100));
        pair.run_for(Duration::from_millis(16));
    }
    assert!(pair.run_until_idle(Duration::from_secs(60)), "never went quiet");
    pair.assert_delivered();
    let (alice, bob) = (pair.alice.kcp.stats(), pair.bob.kcp.stats());
    assert_eq!((alice.rejected.total(), bob.rejected.total()), (0, 0));
    assert_eq!(bob.rcv_nxt, alice.snd_una);
    let counts = [alice.resends_timeout, alice.resends_fast, alice.duplicates];
    let counts_bob = [bob.resends_timeout, bob.resends_fast, bob.duplicates];
    let bytes = [alice.bytes_sent, alice.segments_sent, bob.bytes_sent, bob.segments_sent];
    let counts = [counts, counts_bob].concat().try_into().unwrap();
    let Pair { alice, bob, .. } = &pair;
    (pair.now(), alice.received_at.clone(), bob.received_at.clone(), counts, bytes)
}

#[test]
fn a_run_across_the_edge_of_the_segment_numbers_is_like_any_other() {
    for (drive, seed) in [(Drive::CHECK, 1), (Drive::BEAT, 2), (Drive::CHECK.flushing(), 3)] {
        let setup = Setup { drive, ..Setup::new(configs::classic_turbo(), rough(), seed) };
        let want = run(setup.clone());
        for before in [1, 40, 100, 299] {
            for edge in [0, 1 << 31] {
                let starts = [Sn(edge).sub(before), Sn(edge).sub(before / 2)];
                assert!(run(Setup { starts, ..setup.clone() }) == want, "{starts:?}");
            }
        }
    }
}

#[test]
fn a_run_across_the_edge_of_the_clock_is_like_any_other() {
    for (drive, seed) in [(Drive::CHECK, 1), (Drive::BEAT, 2), (Drive::CHECK.flushing(), 3)] {
        let setup = Setup { drive, ..Setup::new(configs::classic_turbo(), rough(), seed) };
        let want = run(setup.clone());
        for (edge, before) in EDGES.into_iter().flat_map(|edge| [1, 30, 1000, 2399].map(|ms| (edge, ms))) {
            let clocks = [Time::from_millis(edge - before), Time::from_millis(edge / 2 + 7)];
            assert!(run(Setup { clocks, ..setup.clone() }) == want, "{clocks:?}");
        }
    }
}

#[test]
fn numbers_and_clock_may_wrap_at_once_with_every_preset() {
    for (name, config) in common::presets() {
        let clocks = [Time::from_millis(1 << 20), Time::from_millis(1 << 21)]; // far from any edge
        let setup = Setup { clocks, ..Setup::new(config, lossy(0.1), 4) };
        let edges = Setup {
            starts: [Sn(u32::MAX - 60), Sn(1 << 31).sub(60)],
            clocks: [Time::from_millis((1 << 32) - 700), Time::from_millis((1 << 31) - 700)],
            ..setup.clone()
        };
        assert!(run(edges) == run(setup), "{name}");
    }
}

/// With loss detection by timing, `ts` is a token in µs that wraps every 72 minutes; a repair names segments
/// by their numbers.
#[test]
fn tokens_and_repairs_may_wrap_anywhere_in_a_run() {
    for (config, seed) in [0, 10, 100].into_iter().zip(1..).map(|(percent, seed)| (repairing(percent), seed))
    {
        let far = [Time::from_millis(1 << 20), Time::from_millis(1 << 21)];
        let setup = Setup { clocks: far, ..Setup::new(config, rough(), seed) };
        let want = run(setup.clone());
        for before in [1, 30, 100, 299] {
            let starts = [Sn(0).sub(before), Sn(1 << 31).sub(before / 2)];
            assert!(run(Setup { starts, ..setup.clone() }) == want, "{starts:?}");
        }
        for (edge, before) in [1 << 31, 1 << 32, 7 << 32]
            .into_iter()
            .flat_map(|edge| [1, 30_001, 1_000_000, 2_399_999].map(move |before| (edge, before)))
        {
            let clocks = [Time::from_micros(edge - before), Time::from_micros(edge - before / 2)];
            assert!(run(Setup { clocks, ..setup.clone() }) == want, "{clocks:?}");
        }
    }
}

#[test]
fn probes_keep_their_times_across_the_edge_of_the_clock() {
    let asked = |clock: u64| {
        let mut alice = kcp(&configs::classic_turbo());
        let mut now = Time::from_millis(clock);
        alice.input(now, &Raw::wins(0).bytes()).unwrap();
        let mut asked = Vec::new();
        while asked.len() < 6 {
            now = alice.check(now).unwrap();
            alice.update(now);
            asked.extend(raw_segments(drain(&mut alice)).iter().map(|_| now.as_millis() - clock));
        }
        asked
    };
    let want = asked(50_000);
    for (edge, before) in EDGES.into_iter().flat_map(|edge| [0, 5, 5000, 5001, 12_500].map(|ms| (edge, ms))) {
        assert_eq!(asked(edge - before), want, "{before} ms before {edge}");
    }
}

#[test]
fn a_duplicate_from_before_the_edge_is_a_duplicate_after_it() {
    let rcv = Sn(u32::MAX);
    let mut bob =
        Kcp::starting_at(Conv(common::CONV), &configs::classic_turbo(), DatagramQueue::new(), Sn(0), rcv)
            .unwrap();
    for (sn, duplicates) in
        [(u32::MAX, 0), (0, 0), (u32::MAX, 1), (0, 2), (u32::MAX - 100, 3), (2, 3), (1, 3)]
    {
        bob.input(Time::ZERO, &Raw::push(sn, &sn.to_le_bytes()).bytes()).unwrap();
        assert_eq!(bob.stats().duplicates, duplicates, "{sn}");
    }
    let sent = common::flushed(&mut bob, 10);
    assert_eq!(common::numbers(&sent, Command::Ack), [u32::MAX, 0, u32::MAX, 0, u32::MAX - 100, 2, 1]);
    assert!(sent.iter().all(|ack| ack.una == 3), "{sent:?}");
    let received: Vec<_> = std::iter::from_fn(|| bob.recv()).collect();
    assert_eq!(received, [u32::MAX, 0, 1, 2].map(|sn| sn.to_le_bytes().to_vec()));
}
