//! A program that cannot send on a lane, or waits until everything has arrived, gets an event, once.

#![expect(clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;

use common::ms;
use common::sessions::{SUITE, World};
use whitewater::kcp::{self, Config};
use whitewater::session::{Event, SessionConfig};
use whitewater_sim::{LinkConfig, Loss};

const LANE: usize = 0;

fn world(seed: u64, lane: Config) -> World {
    let session = SessionConfig { lanes: vec![lane], ..SessionConfig::default() };
    let link = LinkConfig { loss: Loss::Random(0.1), ..LinkConfig::with_rtt(ms(50)) };
    let mut world = World::pair(seed, &link, &session, SUITE);
    world.connect();
    world
}

/// How often the server, or the first client, got the event.
fn told(world: &World, is_client: bool) -> usize {
    if is_client {
        return world.clients[0].events.iter().filter(|(_, event)| *event == Event::Writable).count();
    }
    world.events.iter().filter(|(.., event)| *event == Event::Writable).count()
}

#[test]
fn a_full_lane_reports_when_it_has_room_again_at_either_end() {
    for seed in 1..=10 {
        for is_client in [false, true] {
            let mut world = world(seed, Config { snd_queue: 16, snd_wnd: 8, ..configs::turbo() });
            let mut sent = 0u32;
            for turn in 0..10 {
                let lane = if is_client { world.client() } else { world.session() };
                let full = loop {
                    match lane.send(LANE, &sent.to_le_bytes()) {
                        Ok(_) => sent += 1,
                        Err(error) => break error,
                    }
                };
                let queue_full = kcp::SendError::Full { segments: 16, bytes: 64 };
                assert_eq!(full, queue_full.into(), "seed {seed}");
                world.drain();
                assert!(
                    world.run_until(5_000, |world| told(world, is_client) > turn),
                    "seed {seed}: not told"
                );
            }
            assert!(sent > 10 * 8, "seed {seed}: half of the queue each time, {sent}");
            world.run(2_000);
            assert_eq!(told(&world, is_client), 10, "seed {seed}: once each time");
        }
    }
}

#[test]
fn delivery_is_reported_once_everything_has_arrived_and_the_end_comes_last() {
    for seed in 1..=10 {
        let mut world = world(seed, Config { stream: true, ..configs::turbo() });
        let client = world.client();
        client.send(LANE, &[7; 20_000]).unwrap();
        client.send_end(LANE).unwrap();
        assert!(!client.is_delivered(LANE) && client.send_end(9).is_err());
        assert!(client.is_delivered(9), "nothing is in flight on a lane that does not exist");
        world.drain();
        assert!(world.run_until(10_000, |world| told(world, true) == 1), "seed {seed}");
        assert!(world.client().is_delivered(LANE));
        let (mut buf, mut received, lane) = ([0; 2000], 0, world.session());
        let end = loop {
            match lane.recv(LANE, &mut buf).unwrap() {
                0 => break lane.recv(LANE, &mut buf),
                len => received += len,
            }
        };
        assert!(received == 20_000 && end.is_err(), "seed {seed}: {received}");
    }
}

#[test]
fn a_session_out_of_memory_reports_when_it_has_room_again() {
    let session = SessionConfig { send_memory: 20_000, ..SessionConfig::default() };
    let mut world = World::pair(1, &LinkConfig::with_rtt(ms(50)), &session, SUITE);
    world.connect();
    while world.client().send(LANE, &[1; 1000]).is_ok() {}
    world.drain();
    assert!(world.run_until(1_000, |world| told(world, true) == 1), "not told");
    assert!(world.client().send(LANE, &[1; 9000]).is_ok(), "half of it at least");
    world.drain();
    world.run(2_000);
    assert_eq!(told(&world, true), 1, "nobody waits");
}
