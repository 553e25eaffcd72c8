//! Sessions over something that loses nothing, such as a WebSocket: what is late there is not sent twice, and what a full
//! queue before it has dropped is.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common;

use common::sessions::{START, SUITE, World, in_packets, on};
use std::time::Duration;
use whitewater::machine::Underlay;
use whitewater::{Channel, SessionConfig, Time};
use whitewater_sim::LinkConfig;

const PACKED: Channel = Channel::unordered(1);

/// The channels of a game, one in KCP and one in packets, at a round trip of 60 ms.
fn world(seed: u64, is_lossless: bool, link: &LinkConfig) -> World {
    let session =
        SessionConfig { channels: vec![on(0).config(), in_packets(PACKED)], ..SessionConfig::default() };
    let link = LinkConfig { delay: Duration::from_millis(30), in_order: true, ..link.clone() };
    let mut world = World::pair(seed, &link, &session, SUITE);
    world.underlay = Underlay { is_lossless, ..Underlay::default() };
    world.connect();
    world
}

fn after(ms: u64) -> Time {
    START + Duration::from_millis(ms)
}

/// What a game of both ends has cost.
#[derive(Debug, Default)]
struct Cost {
    kcp_resends: u32,
    repairs: u32,
    packed_resends: u64,
    /// The longest that a message in KCP took, and in packets.
    worst: [u64; 2],
}

/// A message of 100 bytes in each channel at 30 Hz, both ways, for `seconds`; the last ones arrive.
fn play(world: &mut World, seconds: u64) -> Cost {
    let (start, mut cost) = (world.now, Cost::default());
    let elapsed = |now: Time| u64::try_from(now.since(start).as_millis()).unwrap();
    let mut arrived = [0; 2];
    for tick in 0..30 * seconds + 150 {
        for end in 0..2 {
            let mut message = [7; 100];
            message[..8].copy_from_slice(&elapsed(world.now).to_le_bytes());
            let session = if end == 0 { world.client() } else { world.session() };
            if tick < 30 * seconds {
                session.send(on(0), &message).unwrap();
                session.send(PACKED, &message).unwrap();
            }
        }
        world.drain();
        world.run(33);
        for end in 0..2 {
            let now = elapsed(world.now);
            let session = if end == 0 { world.client() } else { world.session() };
            for (channel, (worst, arrived)) in
                [on(0), PACKED].into_iter().zip(cost.worst.iter_mut().zip(&mut arrived))
            {
                while let Some(message) = session.recv(channel) {
                    *worst = (*worst).max(now - u64::from_le_bytes(message[..8].try_into().unwrap()));
                    *arrived += 1;
                }
            }
        }
    }
    assert_eq!(arrived, [60 * seconds; 2]);
    for session in 0..2 {
        let session = if session == 0 { world.client() } else { world.session() };
        let kcp = session.kcp_stats(on(0)).unwrap();
        cost.kcp_resends += kcp.resends_timeout + kcp.resends_fast;
        cost.repairs += kcp.repairs_sent;
        cost.packed_resends += session.channel_stats(PACKED).resends;
    }
    cost
}

#[test]
fn what_a_stalled_path_holds_back_is_sent_once() {
    // TCP has lost something, and waits for its timeout.
    let stalls = (1..12).map(|number| after(2500 * number)..after(2500 * number + 400)).collect();
    let link = LinkConfig { standstills: stalls, ..LinkConfig::default() };
    for seed in 0..10 {
        let cost = play(&mut world(seed, true, &link), 30);
        let Cost { kcp_resends, repairs, packed_resends, .. } = cost;
        assert_eq!((kcp_resends, repairs, packed_resends), (0, 0, 0), "seed {seed}");
        let datagrams = play(&mut world(seed, false, &link), 30);
        assert!(datagrams.kcp_resends > 10 && datagrams.packed_resends > 10, "seed {seed}: {datagrams:?}");
    }
}

#[test]
fn what_a_full_queue_has_dropped_is_sent_again_when_the_next_has_arrived() {
    let drops = (1..12).map(|number| after(2500 * number)..after(2500 * number + 70)).collect();
    let link = LinkConfig { outages: drops, ..LinkConfig::default() };
    for seed in 0..10 {
        let cost = play(&mut world(seed, true, &link), 30);
        // Dropped, then overtaken 70 ms later at most, which the sender hears after a round trip; then half of one more.
        assert!(cost.worst.iter().all(|worst| *worst <= 250), "seed {seed}: {cost:?}");
        assert!(cost.kcp_resends > 10 && cost.repairs == 0, "seed {seed}: {cost:?}");
    }
}

/// The price: nothing shows that the last message was dropped, so it waits for a timeout of 2 s.
#[test]
fn the_last_message_before_a_pause_is_sent_again_after_two_seconds_if_the_queue_has_dropped_it() {
    for channel in [on(0), PACKED] {
        let mut world = world(1, true, &LinkConfig::default());
        play(&mut world, 2);
        let gap = LinkConfig {
            delay: Duration::from_millis(30),
            outages: vec![world.now..world.now + Duration::from_millis(1)],
            ..LinkConfig::default()
        };
        world.set_links(0, &gap, &gap);
        let sent = world.now;
        world.client().send(channel, b"last").unwrap();
        world.drain();
        assert!(world.run_until(4000, |world| world.session().recv(channel).is_some()), "{channel:?}");
        let took = world.now.since(sent).as_millis();
        assert!((1900..=2300).contains(&took), "{channel:?}: {took} ms");
    }
}
