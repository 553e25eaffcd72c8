//! A link on which nothing is acknowledged is declared dead, and is retried more and more slowly.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;

use common::{Raw, Talk, clean, drain, flushed, kcp, lossy, numbered, pair, presets, raw_segments};
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::Config;

/// The times at which the first segment leaves when nothing comes back, ms, and whether the link was dead
/// after each.
fn sends(config: &Config, count: usize) -> (Vec<u64>, Vec<bool>) {
    let mut alice = kcp(config);
    let (mut now, mut times, mut dead) = (Time::ZERO, Vec::new(), Vec::new());
    alice.send(b"anybody?").unwrap();
    while times.len() < count {
        now = alice.check(now).unwrap();
        alice.update(now);
        let sent = raw_segments(drain(&mut alice));
        assert!(sent.len() <= 1 && (sent.len() == 1 || now.as_millis() <= 100), "woken for nothing at {now}");
        if !sent.is_empty() {
            times.push(now.as_millis());
            dead.push(alice.is_dead());
        }
    }
    (times, dead)
}

#[test]
fn a_segment_sent_dead_link_times_makes_the_link_dead_and_not_before() {
    for (name, config) in presets().map(|(name, config)| (name, configs::classic(config))) {
        for dead_link in [1, 2, 5, 20] {
            let (_, dead) = sends(&Config { dead_link, ..config }, 22);
            let count = usize::from(dead_link);
            assert_eq!(dead.iter().position(|dead| *dead), Some(count - 1), "{name}, {dead_link}");
            assert!(dead[count - 1..].iter().all(|dead| *dead), "{name}, {dead_link}: it recovered");
        }
    }
}

#[test]
fn each_nodelay_backs_off_at_its_own_rate() {
    // The RTO is 200 ms; without nodelay it starts 1/8 higher.
    for (nodelay, want) in [
        (0, [0, 225, 625, 1425, 3025, 6225, 12_625]),
        (1, [0, 200, 500, 950, 1625, 2637, 4155]),
        (2, [0, 200, 500, 900, 1400, 2000, 2700]),
    ] {
        assert_eq!(sends(&Config { nodelay, ..configs::classic_turbo() }, 7).0, want, "nodelay {nodelay}");
    }
}

#[test]
fn the_back_off_ends() {
    for (nodelay, count) in [(0, 30), (1, 50)] {
        let config = Config { nodelay, dead_link: u16::MAX, ..configs::classic_turbo() };
        let (times, _) = sends(&config, count);
        let waits: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let longest = 1 << 30;
        assert!(waits.iter().all(|wait| *wait <= longest + 10), "nodelay {nodelay}: {waits:?}");
        // The backoff stays at its maximum: the wire clock wraps meanwhile, but nothing is sent at once.
        assert!(waits[count - 6..].iter().all(|wait| *wait >= longest), "nodelay {nodelay}: {waits:?}");
    }
}

#[test]
fn a_dead_link_still_delivers_but_stays_dead() {
    for (name, config) in presets() {
        let mut pair = pair(Config { dead_link: 4, ..config }, clean(), 1);
        pair.links[0].set(lossy(1.0)).unwrap();
        pair.send_numbered(20);
        pair.run_for(Duration::from_secs(5));
        assert!(pair.alice.kcp.is_dead(), "{name}");
        pair.links[0].set(clean()).unwrap();
        pair.send_numbered(20);
        assert!(pair.run_until_idle(Duration::from_secs(30)), "{name}: never went quiet");
        pair.assert_delivered();
        assert!(pair.alice.kcp.is_dead() && !pair.bob.kcp.is_dead(), "{name}");
    }
}

#[test]
fn a_peer_that_answers_anything_is_not_dead_at_30_percent_loss() {
    for (name, config) in presets() {
        for seed in 1..=5 {
            let mut pair = pair(config, lossy(0.3), seed);
            pair.send_numbered(100);
            assert!(pair.run_until_idle(Duration::from_secs(1000)), "{name}: never went quiet");
            assert!(!pair.alice.kcp.is_dead(), "{name}");
        }
    }
}

#[test]
fn resends_into_a_closed_window_count_as_well() {
    let mut alice = kcp(&Config { dead_link: 3, ..configs::classic_turbo() });
    alice.send(&numbered(1, 10)).unwrap();
    assert_eq!(flushed(&mut alice, 0).len(), 1);
    alice.input(Time::from_millis(10), &Raw::wins(0).bytes()).unwrap();
    for (ms, dead) in [(200, false), (500, true)] {
        assert_eq!(flushed(&mut alice, ms).len(), 1, "it leaves although the window is closed");
        assert_eq!(alice.is_dead(), dead);
    }
}
