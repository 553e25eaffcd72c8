//! Whoever acknowledges what has not arrived is sent no more than others.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::unwrap_used,
    reason = "a test that panics has found something"
)]

use crate::common;

use common::Raw;
use common::rogue::{Rogue, open_server};
use common::sessions::{World, on};
use std::time::Duration;
use whitewater::kcp::wire::Command;
use whitewater::session::Suite;
use whitewater::{ServerConfig, SessionConfig, Time};
use whitewater_sim::LinkConfig;

const RTT: u64 = 50;
const SECONDS: u64 = 10;

/// Gives the first channel as much as it takes.
fn fill(world: &mut World, bytes: &[u8]) {
    while world.session().send(on(0), bytes).is_ok() {}
    world.drain();
}

/// What a client is sent that is honest and reads everything at once, in bytes a second.
fn honest() -> f64 {
    let path = LinkConfig::with_rtt(Duration::from_millis(RTT));
    let mut world = World::pair(1, &path, &SessionConfig::default(), Suite::Checked);
    world.connect();
    for _ in 0..SECONDS * 1000 {
        fill(&mut world, &[1; 1000]);
        world.run(1);
        while world.client().recv(on(0)).is_some() {}
    }
    world.down_stats(0).bytes as f64 / SECONDS as f64
}

/// How a client misbehaves: it gets what it has received and knows what it has been sent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lie {
    /// Says that all of it has arrived.
    Una,
    /// Acknowledges each segment, with the time at which it probably left.
    Names,
    /// Acknowledges honestly what arrives, and says that all has.
    Both,
}

/// What a client is sent that acknowledges what is under way, in bytes a second, and how many ACKs came too early.
fn hostile(lie: Lie) -> (f64, u32) {
    let mut world = open_server(ServerConfig::insecure(SessionConfig::default()));
    let mut rogue = Rogue::connect(&mut world, 1).unwrap();
    let (mut sent, mut named) = (0, 0);
    let mut under_way: Vec<(Time, Raw)> = Vec::new();
    let raw = |cmd, sn, ts, una| Raw { cmd, frg: 0, wnd: 512, ts, sn, una, data: Vec::new() };
    let (ack, una) = (|sn, ts| raw(Command::Ack, sn, ts, 0), |una| raw(Command::Wins, 0, 0, una));
    for _ in 0..SECONDS * 1000 {
        fill(&mut world, &[1; 1000]);
        let (segments, bytes) = rogue.received(&mut world);
        sent += bytes;
        let now = world.now;
        under_way.extend(
            segments.into_iter().filter(|segment| !segment.data.is_empty()).map(|segment| (now, segment)),
        );
        let here = |(left, _): &(Time, Raw)| now.since(*left) >= Duration::from_millis(RTT);
        let came: Vec<_> =
            under_way.extract_if(.., |segment| here(segment)).map(|(_, segment)| segment).collect();
        let nxt = came
            .iter()
            .chain(under_way.iter().map(|(_, segment)| segment))
            .map(|segment| segment.sn + 1)
            .max();
        let nxt = nxt.unwrap_or(0).max(named);
        let lies: Vec<_> = match lie {
            Lie::Una => vec![una(nxt)],
            Lie::Names => (named..nxt).map(|sn| ack(sn, now.as_micros() as u32 - 700)).collect(),
            Lie::Both => came.iter().map(|segment| ack(segment.sn, segment.ts)).chain([una(nxt)]).collect(),
        };
        named = named.max(nxt);
        for lies in lies.chunks(40) {
            rogue.segments(&mut world, lies);
        }
        world.run(1);
    }
    assert_eq!(world.closed(), None, "whoever lies harms only themselves");
    let early = world.session().kcp_stats(on(0)).unwrap().early_acks;
    (sent as f64 / world.now.since(common::sessions::START).as_secs_f64(), early)
}

#[test]
fn acknowledging_what_has_not_arrived_opens_no_window() {
    let honest = honest();
    for lie in [Lie::Una, Lie::Names, Lie::Both] {
        let (sent, early) = hostile(lie);
        println!("{lie:?}: {sent:.0} bytes a second, an honest client {honest:.0}; {early} early");
        assert!(sent <= 1.5 * honest, "{lie:?}: {sent}, and {honest} to an honest one");
        assert_eq!(early >= 100, lie == Lie::Names, "{lie:?}: {early}");
    }
}

/// Round trips may grow or shrink at any time, and resends may prove needless.
#[test]
fn an_honest_peer_is_believed_however_its_path_changes() {
    for seed in 0..4 {
        let rtts = [1500, 20, 900, 60, 2500, 5];
        let path = |rtt| LinkConfig {
            jitter: Duration::from_millis(rtt / 3),
            ..LinkConfig::with_rtt(Duration::from_millis(rtt))
        };
        let mut world = World::pair(seed, &path(rtts[0]), &SessionConfig::default(), Suite::Checked);
        world.connect();
        let mut got = 0;
        for rtt in rtts.into_iter().cycle().take(24) {
            world.set_links(0, &path(rtt), &path(rtt));
            for _ in 0..300 {
                fill(&mut world, &[1; 1000]);
                world.run(10);
                while world.client().recv(on(0)).is_some() {
                    got += 1;
                }
            }
        }
        assert_eq!(world.closed(), None, "seed {seed}");
        assert!(got > 50_000, "seed {seed}: {got} messages");
    }
}
