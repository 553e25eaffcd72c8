//! What strangers send does not flood the log: one line every two seconds per kind, and every datagram is
//! counted.

#[cfg(test)]
mod common;

use crate::common::machine::Whole as _;
use common::sessions::World;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;
use whitewater::inside::session::wire::{Connect, Hello};
use whitewater::session::Suite;
use whitewater::{Channel, ClientConfig, ServerConfig, SessionConfig};
use whitewater_sim::LinkConfig;

/// Number of lines by their text without numbers.
static LINES: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

struct Counter;

impl log::Log for Counter {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.target().starts_with("whitewater::session")
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            let kind: String =
                record.args().to_string().chars().filter(|one| !one.is_ascii_digit()).collect();
            let mut lines = LINES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            *lines.entry(kind).or_default() += 1;
        }
    }

    fn flush(&self) {}
}

#[test]
fn a_flood_of_each_kind_gives_one_line_every_two_seconds() {
    log::set_logger(&Counter).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    let mut world = World::new(
        1,
        &ServerConfig { challenges_per_second: 10, ..ServerConfig::insecure(SessionConfig::default()) },
    );
    let hello = |suite: u16, protocol_id| {
        let mut datagram = Vec::new();
        Hello { suite, protocol_id, cid: 1, client_stamp: 0, size: 512 }.encode(&mut datagram).unwrap();
        datagram
    };
    let (mut connect, mut version) = (Vec::new(), hello(0, 0));
    version[1] = 9;
    let cookie = [0; 16];
    Connect { suite: 0, protocol_id: 0, cid: 1, epoch: 0, cookie, client_sid: 1, token: &[], msg1: &[0; 30] }
        .encode(&mut connect)
        .unwrap();
    let data = [&[0xa6][..], &[0; 40]].concat();
    let flood =
        [vec![7; 50], version, hello(0, 9), hello(Suite::TOKEN.code(), 0), hello(0, 0), connect, data];
    let from = ([100, 0, 0, 1], 9).into();
    for step in 0..10_000u64 {
        let now = world.now + Duration::from_millis(step); // 10 s
        for datagram in &flood {
            world.server.give(now, from, datagram);
            while world.server.emit_to(now, &mut Vec::new()).is_some() {}
        }
    }
    let rejected = world.server.stats().rejected;
    let counted = [rejected.malformed, rejected.version, rejected.protocol, rejected.suite];
    assert_eq!((counted, rejected.cookie, rejected.unknown), ([10_000; 4], 10_000, 10_000));
    assert!(rejected.challenge_rate > 9_000);
    let lines = LINES.lock().unwrap();
    assert!(lines.len() == 7 && lines.values().all(|count| *count == 5), "{lines:#?}");
    drop(lines);
    LINES.lock().unwrap().clear();
    both_ends_say_why_they_do_not_connect();
}

/// One test, because there is one logger.
fn both_ends_say_why_they_do_not_connect() {
    let session = SessionConfig::default();
    let more = SessionConfig {
        channels: [0, 1].map(|number| Channel::<[u8]>::ordered(number).config()).to_vec(),
        ..SessionConfig::default()
    };
    let other = SessionConfig { protocol_id: 9, ..session.clone() };
    for (server, client) in [(&session, &more), (&session, &other)] {
        let config = ServerConfig { deny_protocol: true, ..ServerConfig::insecure(server.clone()) };
        let mut world = World::new(1, &config);
        let path = LinkConfig::with_rtt(Duration::from_millis(20));
        world.add(&path, &path, client, ClientConfig::insecure(client.clone()));
        world.run(3_000);
    }
    let lines = LINES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for said in [
        "Shape,  so far: channel  is missing here and ordered there", // the server
        "channel  is ordered here and missing there",                 // the client
        "Protocol,  so far: `protocol_id` is x there and x here",
        "somebody on the way: the server has another `protocol_id`",
    ] {
        assert!(lines.keys().any(|line| line.contains(said)), "{said}: {lines:#?}");
    }
}
