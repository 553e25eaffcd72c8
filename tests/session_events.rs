//! The event log of a session: each channel like a control block of its own, and the session's own events, in
//! one order.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common;
use crate::common::machine::Whole as _;
#[cfg(test)]
#[path = "common/events.rs"]
mod logs;

use common::ms;
use common::sessions::{SUITE, World, client_address, in_packets, on};
use logs::{check, lines, number, of, sum};
use serde_json::Value;
use std::collections::BTreeMap;
use whitewater::SessionConfig;
use whitewater::events::Logged;
use whitewater::kcp::{self, Stats};
use whitewater::session::{Connection, ConnectionStats, SessionEvent};
use whitewater_sim::{LinkConfig, Loss};

fn path(loss: f64) -> LinkConfig {
    LinkConfig { jitter: ms(5), loss: Loss::Random(loss), duplicate: 0.02, ..LinkConfig::with_rtt(ms(60)) }
}

fn config() -> SessionConfig {
    SessionConfig {
        channels: vec![on(0).into(), on(1).into(), in_packets(on(2))],
        ..SessionConfig::default()
    }
}

/// Both ends are connected and log up to `most` events each.
fn world(seed: u64, loss: f64, most: usize) -> World {
    let mut world = World::pair(seed, &path(loss), &config(), SUITE);
    world.connect();
    world.client().log_events(most);
    world.session().log_events(most);
    world
}

/// `rounds` rounds of a bit of everything, both ways.
fn talk(world: &mut World, rounds: u32) {
    for round in 0..rounds {
        let _now = world.now;
        for is_client in [true, false] {
            let end = if is_client { world.client() } else { world.session() };
            let _ = end.send(on(0), &round.to_le_bytes().repeat(20));
            let _ = end.send(on(1), &round.to_le_bytes().repeat(200));
            let _ = end.send_datagram(&round.to_le_bytes());
            let _ = end.send(on(2), &round.to_le_bytes());
            let mut buf = [0; 2000];
            (0..3).for_each(|channel| while end.recv_into(on(channel), &mut buf).is_ok() {});
            while end.recv_datagram_into(&mut buf).is_ok() {}
        }
        world.drain();
        world.run(17);
    }
    world.run(10_000);
}

/// What the log of an end says has to be what was counted since.
fn check_session(end: &mut Connection, before: &ConnectionStats) {
    let lines = lines(|text| end.write_log(text));
    let (stats, own) = (end.stats(), |line: &&Value| line.get("channel").is_none());
    assert!(lines.windows(2).all(|two| number(&two[0], "t") <= number(&two[1], "t")), "in order of time");
    for channel in 0..2 {
        let of_channel: Vec<_> = lines.iter().filter(|line| line["channel"] == channel).cloned().collect();
        let stats: Stats = end.kcp_stats(on(u8::try_from(channel).unwrap())).unwrap();
        check(&of_channel, &stats);
    }
    let session: Vec<_> = lines.iter().filter(own).cloned().collect();
    assert_eq!(session[0]["e"], "start");
    assert_eq!(sum(&session, "out", "n"), stats.sent - before.sent);
    assert_eq!(sum(&session, "out", "bytes"), stats.bytes_sent - before.bytes_sent);
    assert_eq!(sum(&session, "out", "pings"), stats.pings - before.pings);
    assert_eq!(of(&session, "in").count() as u64, stats.received - before.received);
    assert_eq!(sum(&session, "in", "bytes"), stats.bytes_received - before.bytes_received);
    assert_eq!(sum(&session, "packets", "n"), stats.packets_judged - before.packets_judged);
    assert_eq!(sum(&session, "packets", "lost"), stats.packets_lost - before.packets_lost);
    for ((reason, after), (_, before)) in stats.refused().zip(before.refused()) {
        let of_reason: Vec<_> = session.iter().filter(|line| line["reason"] == reason).cloned().collect();
        assert_eq!(sum(&of_reason, "reject", "n"), after - before, "{reason}");
    }
    let rtt = of(&session, "rtt").last().unwrap();
    assert_eq!(u128::from(number(rtt, "srtt")), stats.rtt.as_micros());
    assert_eq!(u128::from(number(rtt, "rttvar")), stats.rttvar.as_micros());
}

#[test]
fn the_log_of_a_session_adds_up_to_its_statistics() {
    for seed in 1..=3 {
        println!("seed {seed}");
        let mut world = world(seed, 0.1, usize::MAX);
        let before = [world.client().stats(), world.session().stats()];
        talk(&mut world, 300);
        let resends = world.client().stats().kcp;
        assert!(resends.resends_timeout + resends.resends_fast > 10);
        assert!(world.client().stats().rejected.duplicate > 0 && world.client().stats().packets_lost > 0);
        check_session(world.client(), &before[0]);
        check_session(world.session(), &before[1]);
    }
}

/// Without the lines of channels.
fn own(lines: &[Value]) -> Vec<Value> {
    lines.iter().filter(|line| line.get("channel").is_none()).cloned().collect()
}

#[test]
fn logging_changes_no_datagram() {
    let runs = [0, 300].map(|most| {
        let mut world = world(4, 0.1, most);
        world.taps = true;
        talk(&mut world, 100);
        world.tap
    });
    assert!(runs[0].len() > 300 && runs[0] == runs[1]);
}

/// Only encrypted sessions can migrate.
#[cfg(feature = "crypto")]
#[test]
fn a_migration_and_the_end_are_logged_with_address_and_reason() {
    let mut world = world(6, 0.0, 100_000);
    talk(&mut world, 5);
    world.rebind(0, client_address(77, 7));
    world.client().send(on(0), b"here").unwrap();
    world.run(1000);
    let moved = own(&lines(|text| world.session().write_log(text)));
    assert_eq!(of(&moved, "moved").map(|line| line["peer"].clone()).collect::<Vec<_>>(), ["10.0.0.77:7"]);
    let now = world.now;
    world.client().close(now, 7);
    world.run(500);
    let states = |lines: &[Value]| {
        let text = |line: &Value, field: &str| line[field].as_str().unwrap_or("-").to_owned();
        let state =
            |line: &Value| format!("{} {} {}", text(line, "state"), text(line, "reason"), line["code"]);
        of(&own(lines), "state").map(state).collect::<Vec<_>>()
    };
    let client = lines(|text| world.client().write_log(text));
    assert_eq!(states(&client), ["up - null", "draining local 7", "closing local 7", "closed local 7"]);
    let server = lines(|text| world.session().write_log(text));
    assert_eq!(states(&server), ["closed peer 7"]);
}

#[test]
fn strangers_and_a_hostile_peer_cannot_make_the_log_grow() {
    let (most, mut world) = (1000, world(8, 0.05, 1000));
    world.taps = true;
    talk(&mut world, 30);
    let tap = std::mem::take(&mut world.tap);
    world.taps = false;
    let now = world.now;
    // The same datagrams again and again, intact and damaged, also from the right address.
    for round in 0..200u8 {
        for (_, from, to, datagram) in tap.iter().take(300) {
            let mut datagram = datagram.clone();
            if round % 2 == 1 {
                let at = usize::from(round) % datagram.len();
                datagram[at] ^= 1 << (round % 8);
            }
            if *to == common::sessions::server_address() {
                world.server.give(now, *from, &datagram);
            } else {
                world.clients[0].session.give(now, *to, &datagram);
            }
        }
    }
    world.drain();
    let plain = {
        let mut quiet = self::world(8, 0.05, 0);
        talk(&mut quiet, 30);
        quiet.session().memory()
    };
    let record = size_of::<Logged<SessionEvent>>();
    // The log of the session plus one per channel, which is emptied after each call.
    assert!(world.session().memory() < plain + 3 * 2 * most * record, "{}", world.session().memory());
    let lines = lines(|text| world.session().write_log(text));
    assert_eq!((lines.len(), &lines[0]["e"]), (most + 1, &Value::from("lost")));
    let counted = world.session().stats().rejected;
    assert!(counted.duplicate + counted.stale + counted.forged > 10_000, "{counted:?}");
    world.session().log_events(0);
    assert!(!world.session().is_logging() && world.session().poll_log().is_none());
}

#[test]
fn an_event_has_the_documented_size() {
    assert!(size_of::<Logged<kcp::Event>>() <= 40, "{}", size_of::<Logged<kcp::Event>>());
    assert!(size_of::<Logged<SessionEvent>>() <= 56, "{}", size_of::<Logged<SessionEvent>>());
}

#[test]
fn each_kind_of_line_and_each_field_of_a_session_is_in_the_docs() {
    let docs = include_str!("../docs/EVENTS.md");
    let (_, docs) = docs.split_once("\n## A session\n").unwrap();
    let mut world = world(9, 0.1, usize::MAX);
    talk(&mut world, 100);
    world.rebind(0, client_address(78, 7));
    talk(&mut world, 5);
    let now = world.now;
    world.client().close(now, 7);
    world.run(500);
    let mut seen = BTreeMap::new();
    for is_client in [true, false] {
        let end = if is_client { world.client() } else { world.session() };
        for line in own(&lines(|text| end.write_log(text))) {
            let kind = line["e"].as_str().unwrap();
            let row = docs.lines().find(|row| row.starts_with(&format!("| `{kind}` |"))).expect(kind);
            for field in line.as_object().unwrap().keys() {
                assert!(
                    ["t", "e"].contains(&field.as_str()) || row.contains(&format!("`{field}`")),
                    "{line}"
                );
            }
            *seen.entry(kind.to_owned()).or_insert(0) += 1;
        }
    }
    let usual = ["start", "out", "in", "reject", "packets", "rtt", "queue", "state", "moved", "mtu"];
    let is_usual = |kind: &&str| cfg!(feature = "crypto") || *kind != "moved"; // only encrypted sessions can migrate
    assert!(usual.into_iter().filter(is_usual).all(|kind| seen.contains_key(kind)), "{seen:?}");
}

#[test]
fn a_server_counts_all_datagrams_of_sessions_and_strangers() {
    let server = common::sessions::server_config(&config(), SUITE);
    let mut world = World::new(11, &server);
    world.taps = true;
    for _ in 0..3 {
        let clear = LinkConfig::with_rtt(ms(40));
        world.add(&clear, &clear, &config(), common::sessions::client_config(SUITE));
    }
    world.connect();
    world.run(1000);
    talk(&mut world, 20);
    world.inject(client_address(99, 9), &[0xee; 50]);
    let last = world.tap.iter().rev().find(|(.., to, _)| *to == common::sessions::server_address()).unwrap();
    let (_, from, _, again) = last.clone();
    world.inject(from, &again);
    let total = |to_server: bool| {
        let is = |(.., to, _): &&common::sessions::Tapped| {
            (*to == common::sessions::server_address()) == to_server
        };
        let sizes = || world.tap.iter().filter(is).map(|(.., datagram)| datagram.len() as u64);
        (sizes().count() as u64, sizes().sum::<u64>())
    };
    let stats = world.server.stats();
    assert_eq!((stats.datagrams_sent, stats.bytes_sent), total(false));
    let (count, bytes) = total(true);
    assert!(stats.datagrams <= count + 2 && stats.datagrams > count - 10, "some are still in flight");
    assert!(stats.bytes_received <= bytes + 50 + again.len() as u64);
    assert_eq!((stats.sessions, stats.dropped, stats.rejected.malformed), (3, 1, 1));
}

#[test]
fn every_change_of_the_mtu_is_logged() {
    let config = SessionConfig { path_mtu: Some(1472), ..config() };
    let link = LinkConfig { mtu: Some(1500), ..LinkConfig::with_rtt(ms(40)) };
    let mut world = World::pair(12, &link, &config, SUITE);
    world.connect();
    world.client().log_events(100_000);
    for _ in 0..100 {
        let _ = world.client().send(on(0), &[7; 8000]);
        while world.session().recv_into(on(0), &mut [0; 8000]).is_ok() {}
        world.run(20);
    }
    let lines = own(&lines(|text| world.client().write_log(text)));
    let told: Vec<_> = of(&lines, "mtu").map(|line| number(line, "mtu")).collect();
    assert_eq!((told.first(), told.last()), (Some(&1200), Some(&u64::from(world.client().stats().mtu))));
    assert!(told.len() > 1 && told.is_sorted(), "{told:?}");
}
