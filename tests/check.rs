//! `check` is never late: a session updated only when it says so behaves like one updated all the time, and
//! an idle one is left alone.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;

use common::{Pair, Raw, Setup, Talk, clean, drain, kcp, numbered, pair, presets, raw_segments};
use proptest::prelude::*;
use rand::RngExt;
use std::time::Duration;
use whitewater::Repairs;
use whitewater::Time;
use whitewater::kcp::{Config, Congestion, Modern, Recovery, Sn};
use whitewater_sim::{Drive, LinkConfig, Loss, SimRng};

/// Random settings, link and start; both ends detect loss by timing, or neither does.
fn setup(seed: u64, is_by_time: bool) -> Setup {
    let mut rng = SimRng::new(seed, 77);
    let recoveries = [1, 2].map(|end| if is_by_time { by_time(seed, end) } else { Recovery::Classic });
    let mut any = |end| rng.random_range(0..end);
    let configs = recoveries.map(|recovery| Config {
        mtu: [50, 300, 1400][any(3)],
        snd_wnd: [1, 8, 32, 256][any(4)],
        rcv_wnd: [128, 256][any(2)],
        nodelay: [0, 1, 2][any(3)],
        interval: [10, 20, 40, 100, 1000][any(5)],
        fast_resend: [0, 1, 2][any(3)],
        congestion: if any(3) > 0 { Congestion::None } else { Congestion::Kcp },
        min_rto: [None, Some(1), Some(400)][any(3)],
        recovery,
        ..configs::with_cwnd()
    });
    let chance = |percent| f64::from(u32::try_from(percent).unwrap()) / 100.0;
    let links = [(); 2].map(|()| LinkConfig {
        delay: Duration::from_millis([0, 3, 40][any(3)]),
        jitter: Duration::from_millis([0, 0, 20][any(3)]),
        loss: Loss::Random(chance([0, 0, 10, 25][any(4)])),
        reorder: chance([0, 10][any(2)]),
        late: Duration::from_millis(30),
        duplicate: chance([0, 10][any(2)]),
        ..LinkConfig::default()
    });
    let clock = |any: &mut dyn FnMut(usize) -> usize| {
        Time::from_micros([0, 1 << 40, (1 << 31) * 1000 - 300_000, (1 << 32) * 1000 - 300_001][any(4)])
    };
    let clocks = [clock(&mut any), clock(&mut any)];
    let start = |any: &mut dyn FnMut(usize) -> usize| Sn([0, u32::MAX - 5, (1 << 31) - 5][any(3)]);
    let starts = [start(&mut any), start(&mut any)];
    Setup { configs, links, starts, clocks, ..Setup::new(Config::classic(), clean(), seed) }
}

/// With random settings.
fn by_time(seed: u64, end: u64) -> Recovery {
    let mut rng = SimRng::new(seed, 78 + end);
    let (at_once, repairs) = (rng.random_range(0..4) > 0, rng.random_range(0..5));
    let within = rng.random_range(1..400);
    let all =
        [Repairs::Off, Repairs::Auto, Repairs::Budget(10), Repairs::Budget(200), Repairs::Deadline(within)];
    Recovery::Modern(Modern { at_once, repairs: all[repairs] })
}

/// Sends, waits and pauses of the reader in random order; then everything arrives.
fn traffic(pair: &mut Pair, seed: u64, mut between: impl FnMut(&mut Pair, &mut SimRng)) {
    let mut rng = SimRng::new(seed, 78);
    for number in 0..40 {
        let len = rng.random_range(0..700);
        if rng.random_range(0..3) == 0 {
            pair.reply(numbered(number, len));
        } else {
            pair.send(numbered(number, len));
        }
        pair.bob.reads = rng.random_range(0..10) > 0;
        pair.read(rng.random_range(0..4));
        between(pair, &mut rng);
        pair.run_for(Duration::from_micros(rng.random_range(0..60_000)));
    }
    pair.bob.reads = true;
    pair.read(usize::MAX);
    assert!(pair.run_until_idle(Duration::from_secs(20_000)), "never went quiet");
    pair.assert_delivered();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn check_is_never_late_and_none_when_idle(seed: u64, is_by_time: bool) {
        let mut pair = setup(seed, is_by_time).pair();
        traffic(&mut pair, seed, |pair, rng| {
            // If called before the time that `check` returned, `update` has nothing to do.
            let now = pair.now();
            for end in [&mut pair.alice, &mut pair.bob] {
                let time = end.time(now);
                let ahead = match end.kcp.check(time) {
                    None => 10_000_000,
                    Some(at) => usize::try_from(at.since(time).as_micros()).unwrap(),
                };
                if ahead > 0 {
                    let early = rng.random_range(0..ahead) as u64;
                    let early = if is_by_time { early } else { early / 1000 * 1000 };
                    end.kcp.update(time + Duration::from_micros(early));
                    assert_eq!(drain(&mut end.kcp), Vec::<Vec<u8>>::new(), "{ahead} µs early, and it had work");
                }
            }
        });
        // A window that was last reported as closed is probed until it is known to be open.
        pair.run_for(Duration::from_secs(3600));
        prop_assert_eq!(pair.next_event(), None);
        for end in [&mut pair.alice, &mut pair.bob] {
            let late = Time::from_millis(1 << 45);
            prop_assert_eq!(end.kcp.check(late), None);
            end.kcp.update(late);
            prop_assert!(drain(&mut end.kcp).is_empty());
        }
    }

    #[test]
    fn driving_by_check_delivers_the_same_as_ticking(seed: u64, is_by_time: bool) {
        let [check, tick, flush] = [Drive::CHECK, Drive::BEAT, Drive::CHECK.flushing()].map(|drive| {
            let mut pair = Setup { drive, ..setup(seed, is_by_time) }.pair();
            traffic(&mut pair, seed, |_, _| ());
            (pair.bob.received.clone(), pair.alice.received.clone())
        });
        prop_assert!(check == tick && tick == flush);
    }
}

#[test]
fn an_idle_session_is_never_woken() {
    for (name, config) in presets() {
        let mut fresh = kcp(&config);
        assert_eq!(fresh.check(Time::ZERO), None, "{name}");
        fresh.update(Time::ZERO);
        assert_eq!(fresh.check(Time::ZERO), None, "{name}");

        let mut pair = pair(config, clean(), 1);
        pair.send_numbered(50);
        assert!(pair.run_until_idle(Duration::from_secs(10)), "{name}: never went quiet");
        let updates = (pair.alice.updates, pair.bob.updates);
        pair.run_for(Duration::from_secs(86_400));
        assert_eq!((pair.next_event(), (pair.alice.updates, pair.bob.updates)), (None, updates), "{name}");
    }
}

#[test]
fn an_update_with_nothing_due_emits_nothing_and_changes_nothing() {
    for (name, config) in presets() {
        let mut alice = kcp(&config);
        alice.update(Time::ZERO);
        let stats = alice.stats();
        for ms in 0..1000 {
            alice.update(Time::from_millis(ms));
            assert!(alice.output().is_empty(), "{name}");
        }
        assert_eq!(alice.stats(), stats, "{name}");
    }
}

#[test]
fn a_wait_for_an_ack_is_one_wake_at_the_time_of_the_resend() {
    let mut alice = kcp(&configs::classic_turbo());
    alice.update(Time::ZERO);
    alice.send(b"lost").unwrap();
    assert_eq!(alice.check(Time::from_millis(3)), Some(Time::from_millis(10)), "at the next flush");
    assert_eq!(
        alice.check(Time::from_millis(12)),
        Some(Time::from_millis(12)),
        "or at once, if that is past"
    );
    alice.update(Time::from_millis(12));
    assert_eq!(alice.output().len(), 1);
    for ms in [12, 100, 211] {
        assert_eq!(alice.check(Time::from_millis(ms)), Some(Time::from_millis(212)));
    }
    alice.update(Time::from_millis(212));
    assert_eq!(alice.output().len(), 2);
}

#[test]
fn received_segments_are_acknowledged_at_the_next_interval() {
    let mut bob = kcp(&configs::classic_fast());
    bob.update(Time::from_millis(100));
    for (arrives, wakes) in [(101, 120), (119, 120), (120, 120), (133, 133)] {
        let at = Time::from_millis(arrives);
        bob.input(at, &Raw::push(0, b"hi").bytes()).unwrap();
        assert_eq!(bob.check(at), Some(Time::from_millis(wakes)));
    }
    bob.update(Time::from_millis(133));
    assert_eq!((bob.output().len(), bob.check(Time::from_millis(133))), (1, None));
}

#[test]
fn a_full_window_waits_for_acks_and_not_for_the_clock() {
    let mut alice = kcp(&Config { snd_wnd: 2, ..configs::classic_turbo() });
    for number in 0..5 {
        alice.send(&numbered(number, 10)).unwrap();
    }
    alice.update(Time::ZERO);
    assert_eq!(raw_segments(drain(&mut alice)).len(), 2);
    assert_eq!(
        alice.check(Time::from_millis(1)),
        Some(Time::from_millis(200)),
        "for the resend, not for the queue"
    );
    alice.input(Time::from_millis(40), &Raw { una: 1, ..Raw::wins(128) }.bytes()).unwrap();
    assert_eq!(alice.check(Time::from_millis(40)), Some(Time::from_millis(40)));
}
