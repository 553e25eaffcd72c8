//! Every message arrives once, in order and intact: whatever the path does, when a clock jumps, and with a
//! peer that detects loss in another way.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;

use common::{at, ms, numbered, path, repairing};
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::{Config, Conv, Recovery, Stats};
use whitewater_sim::{Bottleneck, Corruption, Drive, KcpEnd, Link, LinkConfig, Loss, Pair, Peer};

/// An end with a checksum around KCP, as on UDP, and a clock of its own.
struct Checked {
    end: KcpEnd,
    /// How far its clock is ahead of the time, µs.
    ahead: u64,
    sent: usize,
    received: usize,
    /// The longest that a message was in flight.
    worst: Duration,
    seed: u64,
}

impl Checked {
    fn new(config: &Config, seed: u64) -> Self {
        let config = Config { snd_queue: 1 << 16, ..*config };
        let end = KcpEnd::new(Conv(7), &config, Drive::CHECK, Time::ZERO).unwrap();
        Self { end, ahead: AHEAD, sent: 0, received: 0, worst: Duration::ZERO, seed }
    }

    fn clock(&self, now: Time) -> Time {
        now + Duration::from_micros(self.ahead)
    }

    fn send(&mut self, now: Time) {
        let clock = self.clock(now);
        self.end.send(clock, &message(self.sent)).unwrap();
        self.sent += 1;
    }

    fn read(&mut self, now: Time) {
        let mut got = Vec::new();
        while self.end.recv(&mut got) {
            assert!(got == message(self.received), "seed {}: not message {}", self.seed, self.received);
            self.worst = self.worst.max(now.since(sent_at(self.received)));
            self.received += 1;
        }
    }

    fn stats(&self) -> Stats {
        self.end.kcp().stats()
    }
}

impl Peer for Checked {
    fn input(&mut self, now: Time, datagram: &[u8]) {
        let Some((data, sum)) = datagram.split_last_chunk() else { return };
        if checksum(data).to_le_bytes() == *sum {
            self.end.input(self.clock(now), data);
        }
    }

    fn poll(&mut self, now: Time) {
        self.end.poll(self.clock(now));
    }

    fn next_wake(&self, now: Time) -> Option<Time> {
        let clock = self.clock(now);
        self.end.next_wake(clock).map(|at| now + at.since(clock))
    }

    fn pop_datagram(&mut self, datagram: &mut Vec<u8>) -> bool {
        let has = self.end.pop_datagram(datagram);
        if has {
            let sum = checksum(datagram);
            datagram.extend_from_slice(&sum.to_le_bytes());
        }
        has
    }
}

/// Detects every change of a single byte. Source: FNV-1a.
fn checksum(data: &[u8]) -> u32 {
    data.iter().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

type Game = Pair<Checked, Checked>;

/// Ends with these configs over a path, the same both ways.
fn game([alice, bob]: [Config; 2], link: &LinkConfig, seed: u64) -> Game {
    let links = [1, 2].map(|stream| Link::new(link.clone(), seed, stream).unwrap());
    Pair::new(Checked::new(&alice, seed), Checked::new(&bob, seed), links)
}

/// Both ends send a message every [`TICK`]; `before` is called before each.
fn play(game: &mut Game, messages: usize, mut before: impl FnMut(usize, &mut Game)) {
    let limit = sent_at(messages) + Duration::from_secs(1_000_000);
    for number in 0..messages {
        before(number, game);
        game.alice.send(game.now());
        game.bob.send(game.now());
        while game.step(sent_at(number + 1)) {
            read(game);
        }
        game.run_to(sent_at(number + 1));
    }
    while game.alice.received.min(game.bob.received) < messages && game.step(limit) {
        read(game);
    }
    assert_eq!([game.alice.received, game.bob.received], [messages; 2], "seed {}", game.alice.seed);
}

fn read(game: &mut Game) {
    let now = game.now();
    game.alice.read(now);
    game.bob.read(now);
}

/// Small ones, and now and then one of many segments.
fn message(number: usize) -> Vec<u8> {
    numbered(number, if number % 50 == 49 { 20_000 } else { 40 + number % 100 })
}

fn sent_at(number: usize) -> Time {
    Time::ZERO + TICK * u32::try_from(number).unwrap()
}

/// Loss detection by timing, by timing with repairs, and as in ikcp.c: every combination with at least one
/// end by timing.
fn ends() -> Vec<(&'static str, [Config; 2])> {
    let (modern, repairs, classic) = (configs::turbo(), repairing(100), configs::classic_turbo());
    vec![
        ("modern", [modern, modern]),
        ("auto", [configs::auto(), configs::auto()]),
        ("repairs", [repairs, repairs]),
        ("repairs, modern", [repairs, modern]),
        ("modern, classic", [modern, classic]),
        ("repairs, classic", [repairs, classic]),
    ]
}

/// A path and its price: how many of 1000 segments may be resent, and how long a message may take; with
/// timing at both ends, and with a peer like ikcp.c.
struct Path {
    name: &'static str,
    link: LinkConfig,
    resends: [u32; 2],
    worst: [Duration; 2],
}

fn paths() -> Vec<Path> {
    let path_of = |name, link, resends, [ours, theirs]: [u64; 2]| {
        let worst = [ms(ours), ms(theirs)];
        Path { name, link, resends, worst }
    };
    let loss = Loss::Bursts { good: ms(950), bad: ms(150), in_good: 0.01, in_bad: 0.9 };
    let late = LinkConfig { reorder: 0.3, late: ms(40), duplicate: 0.2, ..path(0.0) };
    let partition = LinkConfig { outages: vec![at(2_000)..at(32_000)], ..path(0.01) };
    let bottleneck = Some(Bottleneck { rate: 1_000_000, queue: 20_000 });
    let corruption = Corruption { flip: 0.1, truncate: 0.1 };
    vec![
        path_of("nothing lost", path(0.0), [20, 20], [40, 60]),
        path_of("10 %", path(0.1), [250, 250], [800, 800]),
        path_of("30 %", path(0.3), [1_000, 1_000], [2_000, 4_000]),
        // The timeout of ikcp.c grows without a limit: one run of 40 takes longer than an hour.
        path_of("60 %", path(0.6), [4_000, 4_000], [15_000, 1_000_000_000]),
        path_of("bursts", LinkConfig { loss, ..path(0.0) }, [800, 800], [2_000, 4_000]),
        path_of("reordered and doubled", late, [25, 150], [80, 100]), // nothing is lost, so all of these are needless
        path_of("a partition of 30 s", partition, [400, 700], [31_000, 120_000]),
        path_of("narrow", LinkConfig { bottleneck, ..path(0.02) }, [500, 700], [2_000, 2_000]),
        path_of("damaged", LinkConfig { corruption, ..path(0.0) }, [600, 600], [1_500, 1_500]),
    ]
}

#[test]
fn every_message_arrives_over_any_path_with_any_peer() {
    let mut rebuilt = 0;
    for (ends, path) in ends().iter().flat_map(|ends| paths().into_iter().map(move |path| (ends, path))) {
        let (who, configs) = *ends;
        let row = usize::from(configs.iter().any(|config| config.recovery == Recovery::Classic));
        for seed in 1..=3 {
            let mut game = game(configs, &path.link, seed);
            play(&mut game, MESSAGES, |_, _| {});
            let (alice, bob) = (game.alice.stats(), game.bob.stats());
            let resends = alice.resends_fast + alice.resends_timeout + bob.resends_fast + bob.resends_timeout;
            let segments = alice.snd_nxt.0 + bob.snd_nxt.0;
            let worst = game.alice.worst.max(game.bob.worst);
            let what = format!("{who}, {}, seed {seed}: {resends} resends, {worst:?}", path.name);
            assert!(resends * 1000 <= path.resends[row] * segments, "{what}");
            assert!(worst <= path.worst[row], "{what}");
            assert_eq!((alice.rejected.total(), bob.rejected.total()), (0, 0), "{what}");
            rebuilt += alice.rebuilt + bob.rebuilt;
        }
    }
    assert!(rebuilt > 1000, "{rebuilt} of repairs");
}

/// Alice's clock jumps forward and back, and back and forward, by the same amount, on a path with 5 % loss.
#[test]
fn a_clock_that_jumps_costs_no_message() {
    for (who, configs) in ends() {
        for jump in [1_000, 300_000, 990_000, 1_100_000, 30_000_000, 3_600_000_000, AHEAD] {
            for seed in 1..=3 {
                let mut game = game(configs, &path(0.05), seed);
                play(&mut game, MESSAGES, |number, game| match number {
                    100 | 400 => game.alice.ahead += jump,
                    200 | 300 => game.alice.ahead -= jump,
                    _ => {}
                });
                let worst = game.alice.worst.max(game.bob.worst);
                assert!(worst <= ms(1000), "{who}, {jump} µs, seed {seed}: {worst:?}");
            }
        }
    }
}

const TICK: Duration = ms(16);
const MESSAGES: usize = 500;
/// How far clocks are ahead at the start, µs, so that they can be set back.
const AHEAD: u64 = 10_000_000_000;
