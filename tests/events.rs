//! The event log reports what happens: every line is JSON as documented in docs/EVENTS.md, all lines add up
//! to the statistics, and nobody can make the log grow.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;
use rand::Rng;
#[cfg(test)]
#[path = "common/events.rs"]
mod logs;

use common::{CONV, numbered, path, presets, repairing};
use logs::{check, lines, number, of, sum};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::{Config, Conv};
use whitewater_sim::{Drive, KcpEnd, Link, LinkConfig, Pair};

type Kcps = Pair<KcpEnd, KcpEnd>;

/// Two control blocks that log up to `most` events each.
fn logging_pair(config: &Config, link: &LinkConfig, seed: u64, most: usize) -> Kcps {
    let end = || {
        let mut end = KcpEnd::new(Conv(CONV), config, Drive::CHECK, Time::ZERO).unwrap();
        end.kcp_mut().log_events(Time::ZERO, most);
        end
    };
    let links = [1, 2].map(|stream| Link::new(link.clone(), seed, stream).unwrap());
    Pair::new(end(), end(), links)
}

/// `count` messages from alice to bob, 60 per second, and the same number at once at the end.
fn talk(pair: &mut Kcps, count: usize) {
    let mut message = Vec::new();
    for number in 0..2 * count {
        while pair.alice.send(pair.now(), &numbered(number, 100)).is_err() {
            pair.run_for(Duration::from_millis(10));
        }
        if number < count {
            pair.run_for(Duration::from_micros(16_667));
        }
        while pair.bob.recv(&mut message) {}
    }
    for _ in 0..3000 {
        pair.run_for(Duration::from_millis(10));
        while pair.bob.recv(&mut message) {}
    }
    assert_eq!(pair.alice.kcp().wait_snd(), 0, "everything has arrived");
}

#[test]
fn every_line_is_json_and_all_lines_add_up_to_the_statistics() {
    for (name, config) in presets() {
        for seed in 1..=3 {
            println!("{name}, seed {seed}");
            let mut pair = logging_pair(&config, &path(0.1), seed, usize::MAX);
            talk(&mut pair, 200);
            for end in [&mut pair.alice, &mut pair.bob] {
                let stats = end.kcp().stats();
                let lines = lines(|text| end.kcp_mut().write_log(text));
                check(&lines, &stats);
            }
            assert!(pair.alice.resends() > 10);
        }
    }
}

#[test]
fn logging_changes_nothing() {
    for (name, config) in presets() {
        let runs = [0, 100].map(|most| {
            let mut pair = logging_pair(&config, &path(0.1), 5, most);
            talk(&mut pair, 100);
            let stats = [&pair.alice, &pair.bob].map(|end| end.kcp().stats());
            (pair.now(), stats, pair.links.each_ref().map(|link| link.stats().wire_bytes()))
        });
        assert_eq!(runs[0], runs[1], "{name}");
    }
}

#[test]
fn logging_can_be_toggled_at_any_time_and_survives_shrink() {
    let mut pair = logging_pair(&repairing(50), &path(0.05), 3, 0);
    talk(&mut pair, 50);
    let before = pair.alice.kcp().stats();
    assert!(!pair.alice.kcp().is_logging() && pair.alice.kcp_mut().poll_log().is_none());
    pair.alice.kcp_mut().shrink();
    let quiet = pair.alice.kcp().memory();
    let now = pair.now();
    pair.alice.kcp_mut().log_events(now, 1 << 16);
    pair.alice.kcp_mut().shrink();
    assert!(pair.alice.kcp().is_logging(), "a quiet session keeps logging");
    talk(&mut pair, 50);
    let after = pair.alice.kcp().stats();
    let lines = lines(|text| pair.alice.kcp_mut().write_log(text));
    assert_eq!(number(&lines[0], "snd_nxt"), u64::from(before.snd_nxt.0));
    assert_eq!(sum(&lines, "send", "n"), u64::from(after.snd_nxt.0 - before.snd_nxt.0));
    assert_eq!(sum(&lines, "out", "bytes"), after.bytes_sent - before.bytes_sent);
    let now = pair.now();
    pair.alice.kcp_mut().log_events(now, 0);
    pair.alice.kcp_mut().shrink();
    assert_eq!((pair.alice.kcp().is_logging(), pair.alice.kcp().memory()), (false, quiet));
}

#[test]
fn a_flood_of_rejected_datagrams_is_counted_and_does_not_grow_the_log() {
    let mut kcp = common::kcp(&configs::turbo());
    let most = 500;
    kcp.log_events(Time::ZERO, most);
    let (mut full, mut rng) = (0, whitewater_sim::SimRng::new(9, 1));
    let mut datagram = vec![0; 1400];
    for step in 0..50_000u32 {
        let len = usize::try_from(rng.next_u64() % 60).unwrap();
        datagram[..60].fill_with(|| rng.next_u64().to_le_bytes()[0]);
        datagram[..4].copy_from_slice(&CONV.to_le_bytes());
        datagram[4] = 81 + (step % 4).to_le_bytes()[0];
        let _ = kcp.input(Time::from_micros(step.into()), &datagram[..len]);
        kcp.flush(Time::from_micros(step.into()));
        if step == 10_000 {
            full = kcp.memory();
        }
    }
    assert!(kcp.memory() <= full + 4096, "{} {full}", kcp.memory());
    let lines = lines(|text| kcp.write_log(text));
    assert_eq!((lines.len(), &lines[0]["e"]), (most + 1, &Value::from("lost")));
    assert!(number(&lines[0], "n") > 40_000);
}

#[test]
fn each_rejection_is_logged_under_the_name_of_its_counter() {
    let mut kcp = common::kcp(&configs::fast());
    kcp.log_events(Time::ZERO, 100);
    let long = vec![0; 2000];
    let too_short = [0; 5];
    let stranger = [9; 24];
    for datagram in [&long[..], &too_short, &stranger] {
        kcp.input(Time::from_millis(1), datagram).unwrap_err();
    }
    let mut reasons = BTreeMap::new();
    for line in of(&lines(|text| kcp.write_log(text)), "reject") {
        *reasons.entry(line["reason"].as_str().unwrap().to_owned()).or_insert(0) += number(line, "n");
    }
    let want = ["conv", "too_long", "too_short"].map(|reason| (reason.to_owned(), 1));
    assert_eq!(reasons, want.into());
    assert_eq!(kcp.stats().rejected.total(), 3);
}

#[test]
fn each_kind_of_line_and_each_field_is_in_the_docs() {
    let docs = include_str!("../docs/EVENTS.md");
    let mut seen = BTreeMap::new();
    for (_, config) in presets() {
        let mut pair = logging_pair(&config, &path(0.1), 1, usize::MAX);
        talk(&mut pair, 100);
        for end in [&mut pair.alice, &mut pair.bob] {
            for line in lines(|text| end.kcp_mut().write_log(text)) {
                let kind = line["e"].as_str().unwrap();
                let row = docs.lines().find(|row| row.starts_with(&format!("| `{kind}` |"))).expect(kind);
                for field in line.as_object().unwrap().keys() {
                    assert!(
                        ["t", "e"].contains(&field.as_str()) || row.contains(&format!("`{field}`")),
                        "{line}"
                    );
                }
                if kind == "resend" {
                    let cause = line["cause"].as_str().unwrap();
                    assert!(docs.contains(&format!("\n| `{cause}` |")), "{line}");
                }
                *seen.entry(kind.to_owned()).or_insert(0) += 1;
            }
        }
    }
    let usual = [
        "start",
        "send",
        "resend",
        "repair",
        "acks",
        "out",
        "in",
        "ack",
        "rtt",
        "recv",
        "duplicate",
        "rebuilt",
    ];
    assert!(usual.iter().all(|kind| seen.contains_key(*kind)), "{seen:?}");
}
