//! Acknowledgements of channels ride in datagrams that leave anyway as long as nothing is lost; messages are not
//! delayed.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common;
use rand::Rng;

use common::ms;
use common::sessions::{SUITE, World, on};
use whitewater::kcp::Stats;
use whitewater::{Event, SessionConfig};
use whitewater_sim::{LinkConfig, SimRng};

/// ms between two messages of an end, and by how much one may be late.
#[derive(Clone, Copy)]
struct Beat {
    gap: u64,
    jitter: u64,
}

/// The results of both ends, the client first.
struct Found {
    /// Datagrams per second, after the first 12 s.
    datagrams: [u64; 2],
    resends: [u32; 2],
    /// Latencies of the messages of both, ms, sorted.
    latencies: Vec<u64>,
}

impl Found {
    fn quantile(&self, of_1000: usize) -> u64 {
        self.latencies[self.latencies.len() * of_1000 / 1000]
    }
}

/// Messages of 64 bytes both ways, the server's `phase` ms after the client's, for `seconds` seconds.
fn run(seed: u64, link: &LinkConfig, beats: [Beat; 2], phase: u64, seconds: u64) -> Found {
    let mut world = World::pair(seed, link, &SessionConfig::default(), SUITE);
    world.connect();
    let (mut rng, mut next, mut sent) = (SimRng::new(seed, 9), [1, 1 + phase], [0; 2]);
    let mut latencies = Vec::new();
    for t in 0..1000 * seconds {
        if t == 12_000 {
            sent = [world.client().stats().sent, world.session().stats().sent];
        }
        for end in 0..2 {
            let Beat { gap, jitter } = beats[end];
            let start = 1 + phase * end as u64;
            if t >= next[end] {
                let mut message = [0; 64];
                message[..8].copy_from_slice(&t.to_le_bytes());
                let session = if end == 0 { world.client() } else { world.session() };
                session.send(on(0), &message).unwrap();
                let number = (t - start) / gap + 1;
                next[end] = start + number * gap + rng.next_u64() % (jitter + 1);
            }
        }
        world.drain();
        world.run(1);
        let mut message = [0; 64];
        for end in 0..2 {
            let session = if end == 0 { world.client() } else { world.session() };
            while session.recv_into(on(0), &mut message).is_ok() {
                latencies.push(t + 1 - u64::from_le_bytes(message[..8].try_into().unwrap()));
            }
        }
    }
    latencies.sort_unstable();
    let each = |sent: u64, before: u64| (sent - before) / (seconds - 12);
    let resends = |stats: Stats| stats.resends_timeout + stats.resends_fast;
    Found {
        datagrams: [each(world.client().stats().sent, sent[0]), each(world.session().stats().sent, sent[1])],
        resends: [
            resends(world.client().kcp_stats(on(0)).unwrap()),
            resends(world.session().kcp_stats(on(0)).unwrap()),
        ],
        latencies,
    }
}

const STEADY: Beat = Beat { gap: 33, jitter: 0 };

#[test]
fn messages_both_ways_30_times_a_second_cost_30_datagrams_each_way() {
    for phase in [0, 1, 4, 9, 16, 21, 28, 32] {
        let found = run(1, &LinkConfig::with_rtt(ms(50)), [STEADY; 2], phase, 30);
        assert!(
            found.datagrams.iter().all(|each| *each <= 31),
            "phase {phase}: {:?} a second",
            found.datagrams
        );
        assert_eq!(found.resends, [0, 0], "phase {phase}");
        assert_eq!(
            (found.quantile(0), found.quantile(999)),
            (25, 25),
            "phase {phase}: as long as the path takes"
        );
    }
}

#[test]
fn drifting_and_jittery_intervals_cost_little_more() {
    let jittery = |gap| Beat { gap, jitter: 8 };
    for (beats, most) in [
        ([STEADY, Beat { gap: 34, jitter: 0 }], [32, 32]),
        ([jittery(33), jittery(34)], [40, 40]),
        ([STEADY, Beat { gap: 16, jitter: 0 }], [32, 64]),
    ] {
        let found = run(2, &LinkConfig::with_rtt(ms(50)), beats, 7, 60);
        let [client, server] = found.datagrams;
        assert!(
            client <= most[0] && server <= most[1],
            "{client} and {server}, of {most:?}, {:?}",
            found.resends
        );
        assert!(found.resends.iter().all(|resends| *resends <= 4), "{:?} for nothing", found.resends);
        assert_eq!(found.quantile(999), 25);
    }
}

#[test]
fn at_1_percent_loss_messages_arrive_as_soon_as_without_the_delay() {
    let lossy = LinkConfig { loss: whitewater_sim::Loss::Random(0.01), ..LinkConfig::with_rtt(ms(50)) };
    for seed in 0..3 {
        let found = run(seed, &lossy, [STEADY; 2], 11, 120);
        // A round trip and a half, plus a margin.
        assert!(found.quantile(985) <= 80, "seed {seed}: {} ms", found.quantile(985));
        assert!(found.datagrams.iter().all(|each| *each <= 61), "seed {seed}: {:?}", found.datagrams);
    }
}

#[test]
fn a_close_does_not_hold_back_a_waiting_acknowledgement() {
    let mut world = World::pair(1, &LinkConfig::with_rtt(ms(4)), &SessionConfig::default(), SUITE);
    world.connect();
    let mut message = [0; 64];
    let messages = 400;
    for number in 0..messages {
        world.session().send(on(0), &message).unwrap();
        world.drain();
        world.run(5);
        world.client().send(on(0), &message).unwrap();
        world.drain();
        world.run(3);
        world.client().recv_into(on(0), &mut message).unwrap();
        world.session().recv_into(on(0), &mut message).unwrap(); // which acknowledges all that the server has sent
        world.run(if number + 1 < messages { 25 } else { 0 });
    }
    let before = world.session().kcp_stats(on(0)).unwrap();
    assert_eq!((before.in_flight, before.resends_timeout), (0, 0));
    let (now, id) = (world.now, world.sessions[0]);
    world.server.close(now, id, 7);
    world.drain();
    world.run(2_000);
    let undelivered = world.clients[0].events.iter().find_map(|(_, event)| match event {
        Event::Closed { undelivered, .. } => Some(*undelivered),
        _ => None,
    });
    assert_eq!(undelivered.unwrap().segments, 0, "it had come");
}
