//! Two simulated peers run from event to event: they behave as in real time, and the same for the same seed.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common::configs;
use rand::Rng;
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::{Config, Conv, Kcp};
use whitewater::machine::DatagramQueue;
use whitewater_sim::{Clock, Drive, Group, KcpEnd, Link, LinkConfig, Loss, Pair, Peer, SimRng};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn clean() -> LinkConfig {
    LinkConfig::with_rtt(ms(60))
}

/// Message `number`.
fn numbered(number: u64, len: usize) -> Vec<u8> {
    number.to_le_bytes().into_iter().cycle().take(len).collect()
}

type KcpPair = Pair<KcpEnd, KcpEnd>;

fn end(config: &Config, drive: Drive, phase: Time) -> KcpEnd {
    KcpEnd::new(Conv(7), config, drive, phase).unwrap()
}

fn links(config: &LinkConfig, seed: u64) -> [Link; 2] {
    [1, 2].map(|stream| Link::new(config.clone(), seed, stream).unwrap())
}

fn pair(config: &Config, drive: Drive, link: &LinkConfig, seed: u64) -> KcpPair {
    let end = || end(config, drive, Time::from_micros(3100));
    Pair::new(end(), end(), links(link, seed))
}

/// A game for `seconds`: alice and bob each send 60 messages per second. Returns those of alice that have
/// arrived.
fn play(pair: &mut KcpPair, seconds: u64) -> Vec<Vec<u8>> {
    let (mut message, mut received) = (Vec::new(), Vec::new());
    for frame in 0..60 * seconds {
        pair.run_to(Time::from_micros(20_000 + frame * 16_667));
        let now = pair.now();
        for end in [&mut pair.alice, &mut pair.bob] {
            end.send(now, &numbered(frame, 100)).unwrap();
        }
        while pair.bob.recv(&mut message) {
            received.push(message.clone());
        }
        while pair.alice.recv(&mut message) {}
    }
    received
}

#[test]
fn a_second_of_a_game_takes_few_steps() {
    for (drive, most) in [(Drive::CHECK, 400), (Drive::BEAT, 400), (Drive::CHECK.flushing(), 600)] {
        let mut pair = pair(&configs::classic_fast(), drive, &LinkConfig::wifi(), 1);
        play(&mut pair, 60);
        assert!(pair.steps() < 60 * most, "{drive:?}: {} steps a second", pair.steps() / 60);
    }
    let mut idle = pair(&configs::classic_fast(), Drive::CHECK, &LinkConfig::wifi(), 1);
    idle.run_for(Duration::from_secs(24 * 3600));
    assert_eq!((idle.steps(), idle.now()), (0, Time::from_millis(24 * 3600 * 1000)));
}

#[test]
fn same_seed_same_bytes() {
    let run = |seed| {
        let mut pair = pair(&configs::classic_turbo(), Drive::CHECK, &LinkConfig::mobile(), seed);
        let received = play(&mut pair, 10);
        assert!(
            received.iter().zip(0..).all(|(message, number)| *message == numbered(number, 100)),
            "seed {seed}"
        );
        (received.len(), pair.steps(), pair.links.each_ref().map(Link::digest))
    };
    for seed in 1..=3 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
        assert_ne!(run(seed), run(seed + 1), "seed {seed}");
    }
}

/// Calls only `update`, every ms, like a loop around ikcp.c.
struct Loop {
    kcp: Kcp<DatagramQueue>,
    next: Time,
}

impl Peer for Loop {
    fn input(&mut self, now: Time, datagram: &[u8]) {
        self.kcp.input(now, datagram).unwrap();
    }

    fn poll(&mut self, now: Time) {
        self.kcp.update(now);
        self.next = now + ms(1);
    }

    fn next_wake(&self, _: Time) -> Option<Time> {
        Some(self.next)
    }

    fn pop_datagram(&mut self, datagram: &mut Vec<u8>) -> bool {
        let next = self.kcp.output_mut().pop();
        *datagram = next.map(<[u8]>::to_vec).unwrap_or_default();
        !datagram.is_empty()
    }
}

#[test]
fn skipped_updates_make_no_difference() {
    let modes =
        [Config::classic(), configs::classic_normal(), configs::classic_fast(), configs::classic_turbo()];
    for (seed, config) in (1..=5).flat_map(|seed| modes.map(|config| (seed, config))) {
        let link = LinkConfig { loss: Loss::Random(0.2), jitter: ms(10), ..clean() };
        let phases = [Time::from_micros(1234), Time::from_micros(7000)];
        let looped =
            phases.map(|next| Loop { kcp: Kcp::new(Conv(7), &config, DatagramQueue::new()).unwrap(), next });
        let beaten = phases.map(|phase| end(&config, Drive::BEAT, phase));
        let ([alice, bob], [other_alice, other_bob]) = (looped, beaten);
        let mut loops = Pair::new(alice, bob, links(&link, seed));
        let mut beats = Pair::new(other_alice, other_bob, links(&link, seed));
        // Pauses of many lengths, and messages at the very time of an update.
        let (mut now, mut rng) = (phases[0], SimRng::new(seed, 9));
        for number in 0..300 {
            now = now + ms(rng.next_u64() % 9 * (rng.next_u64() % 60));
            loops.run_to(now);
            beats.run_to(now);
            loops.alice.kcp.send(&numbered(number, 50)).unwrap();
            beats.alice.send(now, &numbered(number, 50)).unwrap();
        }
        loops.run_for(ms(2000));
        beats.run_for(ms(2000));
        let digests = |links: &[Link; 2]| links.each_ref().map(Link::digest);
        assert_eq!(digests(&loops.links), digests(&beats.links), "seed {seed}, {config:?}");
        assert!(beats.steps() * 10 < loops.steps(), "{} of {}", beats.steps(), loops.steps());
    }
}

#[test]
fn a_flushing_drive_sends_and_acknowledges_at_once() {
    for clock in [Clock::Check, Clock::Beat] {
        let drive = Drive { clock, flush: true };
        let mut pair = pair(&configs::classic_normal(), drive, &clean(), 1);
        pair.run_to(Time::from_millis(50));
        pair.alice.send(pair.now(), b"now").unwrap();
        let mut message = Vec::new();
        assert!(pair.run_until(ms(30), |pair| pair.bob.recv(&mut message)));
        assert_eq!((pair.now(), &message[..]), (Time::from_millis(80), &b"now"[..]));
        assert!(pair.run_until(ms(30), |pair| pair.alice.kcp().is_idle()));
        assert_eq!(pair.now(), Time::from_millis(110));
    }
}

#[test]
fn a_conversation_survives_a_partition() {
    for seed in 1..=5 {
        let outages = vec![Time::from_millis(1000)..Time::from_millis(2000)];
        let link = LinkConfig { outages, ..LinkConfig::wifi() };
        let mut pair = pair(&configs::classic_turbo(), Drive::CHECK, &link, seed);
        let before = play(&mut pair, 2).len();
        assert!((55..=60).contains(&before), "seed {seed}: {before} by the end of it");
        let mut message = Vec::new();
        let all = pair.run_until(Duration::from_secs(3), |pair| {
            while pair.bob.recv(&mut message) {}
            message == numbered(119, 100)
        });
        assert!(all, "seed {seed}");
        assert!(pair.links.iter().all(|link| link.stats().cut_off > 0), "seed {seed}");
    }
}

/// A peer that always asks to be polled at once.
struct Impatient;

impl Peer for Impatient {
    fn input(&mut self, _: Time, _: &[u8]) {}

    fn poll(&mut self, _: Time) {}

    fn next_wake(&self, now: Time) -> Option<Time> {
        Some(now)
    }

    fn pop_datagram(&mut self, _: &mut Vec<u8>) -> bool {
        false
    }
}

#[test]
fn no_peer_stops_the_clock() {
    let mut pair = Pair::new(Impatient, Impatient, links(&clean(), 1));
    pair.run_for(Duration::from_micros(50));
    assert_eq!(pair.now(), Time::from_micros(50));
}

#[test]
fn a_group_shares_a_path_and_keeps_its_members_apart() {
    let convs = [Conv(3), Conv(9), Conv(1)];
    let group = || {
        let new = |conv| KcpEnd::new(conv, &configs::classic_fast(), Drive::CHECK, Time::ZERO).unwrap();
        Group::new(convs.map(|conv| (conv, new(conv))).into())
    };
    for seed in 1..=5 {
        let mut pair = Pair::new(group(), group(), links(&LinkConfig::mobile(), seed));
        for number in 0..30 {
            let now = pair.now();
            for index in 0..3 {
                pair.alice
                    .get_mut(index)
                    .unwrap()
                    .send(now, &numbered(number * 3 + index as u64, 90))
                    .unwrap();
            }
            pair.run_for(ms(15));
        }
        pair.links[0].send(pair.now(), &[0xff; 24]);
        pair.run_for(Duration::from_secs(3));
        let mut message = Vec::new();
        for index in 0..3 {
            for number in 0..30 {
                assert!(
                    pair.bob.get_mut(index).unwrap().recv(&mut message),
                    "seed {seed}: {number} of {index}"
                );
                assert_eq!(message, numbered(number * 3 + index as u64, 90), "seed {seed}");
            }
            let rejected = pair.bob.get(index).unwrap().kcp().stats().rejected;
            assert_eq!(rejected.total(), 0, "what is for others, or nobody, does not reach it");
        }
    }
}
