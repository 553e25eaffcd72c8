//! Every message arrives once, in order and intact, whatever the network does; and what that costs.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;

use common::{Pair, Setup, Talk, clean, lossy, numbered, pair, presets, rough};
use std::net::SocketAddr;
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::{self, Congestion, Conv, Recovery};
use whitewater::machine::Machine;
use whitewater_sim::{Drive, LinkConfig};

const DRIVES: [Drive; 3] = [Drive::CHECK, Drive::BEAT, Drive::CHECK.flushing()];

/// Both ends send 60 messages of 100 bytes per second, for 5 s. Returns the largest delay of any of them.
fn play(pair: &mut Pair) -> Duration {
    let tick = Duration::from_micros(16_667);
    for number in 0..300 {
        pair.send(numbered(number, 100));
        pair.reply(numbered(1000 + number, 100));
        pair.run_for(tick);
    }
    assert!(pair.run_until_idle(Duration::from_secs(60)), "never went quiet");
    let sent_at = |number: usize| Time::ZERO + tick * u32::try_from(number).unwrap();
    let delays = [&pair.alice, &pair.bob]
        .map(|end| end.received_at.iter().enumerate().map(|(number, at)| at.since(sent_at(number))).max());
    delays.into_iter().flatten().max().unwrap()
}

#[test]
fn a_clean_link_costs_a_header_and_an_ack_per_segment_and_no_resends() {
    for ((name, config), drive) in
        presets().into_iter().flat_map(|preset| DRIVES.map(|drive| (preset, drive)))
    {
        let mut pair = Setup { drive, ..Setup::new(config, clean(), 1) }.pair();
        pair.send_numbered(200);
        assert!(pair.run_until_idle(Duration::from_secs(10)), "{name}: never went quiet");
        pair.assert_delivered();
        let payload: usize = pair.alice.sent.iter().map(Vec::len).sum();
        let (alice, bob) = (pair.alice.kcp.stats(), pair.bob.kcp.stats());
        assert_eq!((pair.resends(), alice.duplicates, bob.duplicates), (0, 0, 0), "{name}");
        let acks = if config.recovery == Recovery::Classic { 200 } else { bob.segments_sent };
        let repairs = u64::from(alice.repairs_sent); // until it is clear that nothing gets lost
        assert!(acks == 200 || acks <= 106 + repairs, "{name}: {acks} for what una says");
        assert!(
            repairs <= if ["auto", "repairs"].contains(&name) { 2 } else { 0 },
            "{name}: {repairs} repairs"
        );
        assert_eq!((alice.segments_sent, bob.segments_sent), (200 + repairs, acks), "{name}");
        let most = payload as u64 + 200 * 24 + repairs * 1400;
        assert!((most - repairs * 1400..=most).contains(&alice.bytes_sent), "{name}: {}", alice.bytes_sent);
        assert_eq!(bob.bytes_sent, acks * 24, "{name}");
    }
}

#[test]
fn loss_costs_resends_but_no_message() {
    // Loss in %, and the minimum and maximum of resends per 1000 messages, since acknowledgements get lost as
    // well.
    for (loss, least, most) in [(1, 10, 40), (5, 50, 120), (10, 100, 240), (20, 250, 550), (30, 450, 1100)] {
        for (name, config) in presets() {
            let (mut messages, mut resends) = (0, 0);
            for (drive, seed) in DRIVES.into_iter().flat_map(|drive| (1..=10).map(move |seed| (drive, seed)))
            {
                let link = lossy(f64::from(loss) / 100.0);
                let mut pair = Setup { drive, ..Setup::new(config, link.clone(), seed) }.pair();
                pair.send_numbered(200);
                let limit = if config.congestion == Congestion::None { 30 } else { 400 };
                assert!(
                    pair.run_until_idle(Duration::from_secs(limit)),
                    "{name}, {loss} %: never went quiet"
                );
                pair.assert_delivered();
                messages += 200;
                resends += pair.resends();
            }
            let price = resends * 1000 / messages;
            assert!((least..=most).contains(&price), "{name}, {loss} %: {price} resends of 1000");
        }
    }
}

#[test]
fn reordering_costs_a_few_resends_but_no_message() {
    let link = LinkConfig { reorder: 0.2, late: Duration::from_millis(25), ..clean() };
    for ((name, config), seed) in
        presets().into_iter().flat_map(|preset| (1..=5).map(move |seed| (preset, seed)))
    {
        let mut pair =
            Setup { drive: Drive::CHECK.flushing(), ..Setup::new(config, link.clone(), seed) }.pair();
        play(&mut pair);
        pair.assert_delivered();
        let (alice, bob) = (pair.alice.kcp.stats(), pair.bob.kcp.stats());
        // What was rebuilt before it arrived also counts as a duplicate.
        let needless = alice.duplicates + bob.duplicates - alice.rebuilt - bob.rebuilt;
        assert_eq!(pair.resends(), needless, "{name}: nothing was lost");
        let is_classic = config.recovery == Recovery::Classic;
        let most = if config.nodelay > 0 || !is_classic { 40 } else { 0 };
        assert!(pair.resends() <= most, "{name}: {} needless resends of 600", pair.resends());
    }
}

#[test]
fn duplicates_are_delivered_once_and_cost_an_ack_each() {
    let link = LinkConfig { duplicate: 0.3, ..clean() };
    for ((name, config), seed) in
        presets().into_iter().flat_map(|preset| (1..=5).map(move |seed| (preset, seed)))
    {
        let setup = Setup { links: [link.clone(), clean()], ..Setup::new(config, link.clone(), seed) };
        let mut pair = setup.pair();
        pair.send_numbered(200);
        assert!(pair.run_until_idle(Duration::from_secs(20)), "{name}: never went quiet");
        pair.assert_delivered();
        let (alice, bob) = (pair.alice.kcp.stats(), pair.bob.kcp.stats());
        assert!((20..=120).contains(&bob.duplicates), "{name}: {} copies of 200", bob.duplicates);
        assert_eq!((alice.segments_sent, pair.resends()), (200 + u64::from(alice.repairs_sent), 0), "{name}");
        assert!(alice.repairs_sent <= 2, "{name}");
        let acks = 200 + u64::from(bob.duplicates);
        let is_classic = config.recovery == Recovery::Classic;
        assert!(bob.segments_sent == acks || !is_classic && bob.segments_sent < acks / 4, "{name}");
    }
}

#[test]
fn a_mobile_link_in_both_directions_costs_a_fast_preset_half_a_second_at_worst() {
    for (name, config) in presets() {
        for (drive, seed) in DRIVES.into_iter().flat_map(|drive| (1..=10).map(move |seed| (drive, seed))) {
            let mut pair = Setup { drive, ..Setup::new(config, rough(), seed) }.pair();
            let worst = play(&mut pair);
            pair.assert_delivered();
            let limit = if config.congestion == Congestion::None {
                Duration::from_millis(500)
            } else {
                Duration::from_secs(15)
            };
            assert!(worst <= limit, "{name}, {drive:?}: a message was {worst:?} under way");
            let resends = pair.resends();
            assert!((1..=100).contains(&resends), "{name}, {drive:?}: {resends} resends of 600");
        }
    }
}

#[test]
fn updating_when_check_says_is_as_fast_as_ticking_with_fewer_wakes() {
    for (name, config) in presets() {
        let [(check, wakes), (tick, ticks)] = [Drive::CHECK, Drive::BEAT].map(|drive| {
            let mut pair = Setup { drive, ..Setup::new(config, lossy(0.02), 3) }.pair();
            for number in 0..30 {
                pair.send(numbered(number, 100));
                pair.run_for(Duration::from_secs(1));
            }
            assert!(pair.run_until_idle(Duration::from_secs(60)), "{name}: never went quiet");
            pair.assert_delivered();
            let late = pair
                .bob
                .received_at
                .iter()
                .enumerate()
                .map(|(number, at)| at.since(Time::from_millis(1000 * number as u64)));
            (late.sum::<Duration>() / 30, pair.alice.updates + pair.bob.updates)
        });
        assert!(check <= tick, "{name}: {check:?} on average, {tick:?} by ticking");
        assert!(
            wakes <= 30 * 4 && ticks >= 2 * 30 * 1000 / u32::from(config.interval),
            "{name}: {wakes} wakes"
        );
    }
}

#[test]
fn an_outage_of_three_seconds_costs_time_but_no_message() {
    for ((name, config), seed) in
        presets().into_iter().flat_map(|preset| (1..=3).map(move |seed| (preset, seed)))
    {
        let mut pair = pair(config, clean(), seed);
        pair.send_numbered(20);
        for loss in [0.0, 1.0, 0.0] {
            for link in &mut pair.links {
                link.set(lossy(loss)).unwrap();
            }
            pair.send_numbered(10);
            pair.run_for(Duration::from_secs(3));
        }
        assert!(pair.run_until_idle(Duration::from_secs(20)), "{name}: never went quiet");
        pair.assert_delivered();
        assert!(!pair.alice.kcp.is_dead(), "{name}");
    }
}

#[test]
fn bare_kcp_is_done_when_everything_sent_has_arrived() {
    let [to, from] = [1, 2].map(|port| SocketAddr::from(([10, 0, 0, 1], port)));
    let mut alice = kcp::Link::new(to, Conv(7), &configs::turbo()).unwrap();
    let mut bob = kcp::Link::new(from, Conv(7), &configs::turbo()).unwrap();
    assert!(alice.shutdown(Time::ZERO, 0));
    alice.send(b"last words").unwrap();
    let mut datagram = Vec::new();
    alice.handle_timeout(Time::ZERO);
    assert_eq!(alice.poll_transmit(Time::ZERO, &mut datagram).map(|transmit| transmit.address), Some(to));
    assert!(!alice.shutdown(Time::ZERO, 0));
    bob.handle_datagram(Time::ZERO, from.into(), &mut datagram);
    bob.handle_timeout(Time::ZERO);
    datagram.clear();
    bob.poll_transmit(Time::ZERO, &mut datagram).unwrap();
    alice.handle_datagram(Time::ZERO, to.into(), &mut datagram);
    assert!(alice.shutdown(Time::ZERO, 0));
}

#[test]
fn the_same_seed_sends_the_same_bytes() {
    let run = |seed| {
        let mut pair = pair(configs::classic_fast(), rough(), seed);
        play(&mut pair);
        (
            pair.now(),
            pair.alice.kcp.stats(),
            pair.bob.kcp.stats(),
            pair.links[0].digest(),
            pair.links[1].digest(),
        )
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}
