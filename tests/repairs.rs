//! Repairs: lost segments are replaced without a resend, within a budget, and only for peers that want them.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;
use rand::RngExt;

use common::{CONV, Raw, at, drain, kcp, ms, numbered, numbers, path, raw_segments, repairing};
use std::collections::VecDeque;
use whitewater::Repairs;
use whitewater::inside::code::Encoder;
use whitewater::kcp::wire::Command;
use whitewater::kcp::{Config, Kcp, Modern, Sn};
use whitewater::machine::DatagramQueue;
use whitewater_sim::scenario::{Family, Mode, Scenario, Score, Workload};
use whitewater_sim::{LinkConfig, Loss, SimRng};

fn mode(repairs: Repairs) -> Mode {
    Mode::modern(Modern { repairs, ..Modern::default() })
}

/// Two ends, and a path on which each datagram to bob takes a step of 10 ms.
struct Game {
    alice: Kcp<DatagramQueue>,
    bob: Kcp<DatagramQueue>,
    now: u64,
    sent: u64,
    received: u64,
    /// Bytes of PUSHes and of repairs, including headers and 28 per datagram.
    data_bytes: usize,
    repair_bytes: usize,
    /// For each time of sending: the bytes of new data and of repairs, each including 28 per datagram.
    log: Vec<(u64, usize, usize)>,
    /// The number after the newest sent.
    nxt: u32,
}

impl Game {
    fn new(alice: &Config, bob: &Config) -> Self {
        let (alice, bob) = (kcp(alice), kcp(bob));
        let (data_bytes, repair_bytes, log, nxt) = (0, 0, Vec::new(), 0);
        Self { alice, bob, now: 0, sent: 0, received: 0, data_bytes, repair_bytes, log, nxt }
    }

    /// Sends a message of `len` bytes, which arrives unless `lost` says that its datagram does not.
    fn step(&mut self, len: usize, lost: impl FnMut() -> bool) {
        self.burst(1, len, lost);
    }

    /// The same for several messages at once.
    fn burst(&mut self, count: u32, len: usize, mut lost: impl FnMut() -> bool) {
        for _ in 0..count {
            let number = usize::try_from(self.sent).unwrap();
            self.alice.send(&numbered(number, len)).unwrap();
            self.sent += 1;
        }
        let now = self.now;
        self.alice.update(at(now));
        self.now += 10;
        while let Some(datagram) = self.alice.output_mut().pop() {
            self.data_bytes += 28;
            let segments = raw_segments([datagram]);
            let is_repair = |raw: &&Raw| raw.cmd == Command::Wins;
            let own = if segments.iter().all(|raw| is_repair(&raw)) { 28 } else { 0 };
            let spent = segments.iter().filter(is_repair).map(|raw| 24 + raw.data.len()).sum::<usize>() + own;
            let new = segments.iter().filter(|raw| raw.cmd == Command::Push && raw.sn >= self.nxt);
            self.log.push((now, new.map(|raw| 24 + 28 + raw.data.len()).sum(), spent));
            for raw in segments {
                if raw.cmd == Command::Push {
                    self.nxt = self.nxt.max(raw.sn + 1);
                }
                let bytes =
                    if raw.cmd == Command::Push { &mut self.data_bytes } else { &mut self.repair_bytes };
                *bytes += 24 + raw.data.len();
            }
            if !lost() {
                self.bob.input(at(self.now), datagram).unwrap();
            }
        }
        self.read();
        self.bob.update(at(self.now));
        while let Some(datagram) = self.bob.output_mut().pop() {
            self.alice.input(at(self.now), datagram).unwrap();
        }
    }

    fn read(&mut self) {
        while let Some(message) = self.bob.recv() {
            let number = usize::try_from(self.received).unwrap();
            assert!(message == numbered(number, message.len()), "message {number}");
            self.received += 1;
        }
    }
}

#[test]
fn a_lost_message_arrives_with_the_next_one_and_is_not_resent() {
    let mut game = Game::new(&repairing(100), &repairing(100));
    let mut rng = SimRng::new(1, 1);
    // Until the loss is known and there is a budget.
    for _ in 0..400 {
        game.step(100, || rng.random::<f64>() < 0.1);
    }
    for _ in 0..20 {
        game.step(100, || false);
    }
    let before = game.alice.stats();
    assert_eq!(game.received, game.sent);
    game.step(100, || true);
    assert_eq!(game.received + 1, game.sent);
    game.step(100, || false);
    game.step(100, || false);
    let (after, bob) = (game.alice.stats(), game.bob.stats());
    assert_eq!(game.received, game.sent);
    assert_eq!((after.resends_fast, after.resends_timeout), (before.resends_fast, before.resends_timeout));
    assert!(bob.rebuilt > 20 && after.repairs_sent > 100, "{} of {}", bob.rebuilt, after.repairs_sent);
    assert_eq!((bob.rejected.repair, after.rejected.ts_age), (0, 0));
}

#[test]
fn repairs_stay_within_the_budget() {
    for (repairs, len, loss) in [(10, 100, 0.1), (30, 100, 0.3), (100, 1000, 0.2), (30, 1300, 0.05)] {
        let mut game = Game::new(&repairing(repairs), &repairing(repairs));
        let mut rng = SimRng::new(repairs.into(), 1);
        for _ in 0..100 {
            for _ in 0..100 {
                game.step(len, || rng.random::<f64>() < loss);
            }
            let share = game.repair_bytes as f64 / game.data_bytes as f64;
            assert!(share <= f64::from(repairs) / 100.0, "{repairs} %: {share}");
        }
        assert!(game.repair_bytes > 1000, "{repairs} %, {len} B: {} B", game.repair_bytes);
    }
}

/// In any second, repairs take at most their share of what was new in it, plus the savings from the 64 KiB
/// sent before.
#[test]
fn in_no_second_do_repairs_exceed_the_budget_plus_savings() {
    for (repairs, loss) in [(10, 0.1), (50, 0.3), (100, 0.5), (200, 0.5)] {
        for seed in 1..=3 {
            let mut game = Game::new(&repairing(repairs), &repairing(repairs));
            let mut rng = SimRng::new(seed, 1);
            for number in 0..4000 {
                // Small messages, whose datagrams have room for two repairs each, and then large ones, which
                // get up to 16 datagrams for repairs.
                let (count, len) = if number % 400 < 360 { (5, 100) } else { (1, 12_000) };
                game.burst(count, len, || rng.random::<f64>() < loss);
            }
            let (mut from, mut new, mut spent) = (0, 0, 0);
            for &(now, more_new, more_spent) in &game.log {
                (new, spent) = (new + more_new, spent + more_spent);
                while let Some(&(then, old_new, old_spent)) = game.log.get(from)
                    && then + 1000 <= now
                {
                    (from, new, spent) = (from + 1, new - old_new, spent - old_spent);
                }
                let most = (new + (64 << 10)) * usize::from(repairs) / 100;
                assert!(
                    spent <= most,
                    "{repairs} %, seed {seed}: {spent} of {most} in the second to {now} ms"
                );
            }
            let all = game.log.iter().fold((0, 0), |(new, spent), row| (new + row.1, spent + row.2));
            assert!(all.1 > 100_000, "seed {seed}: {all:?}");
            assert!(all.1 * 100 <= all.0 * usize::from(repairs), "{repairs} %, seed {seed}: {all:?}");
        }
    }
}

#[test]
fn acks_of_a_steady_flow_are_combined_unless_something_is_missing() {
    let link = path(0.1);
    let run = |repairs| Scenario::new(Workload::input60(), link.clone(), mode(repairs)).run(1..=3).unwrap();
    let (none, some) = (run(Repairs::Off), run(Repairs::Budget(20)));
    let acks = |report: &whitewater_sim::scenario::Report| {
        report.runs.iter().map(|run| run.datagrams[1]).sum::<u64>()
    };
    println!("{} datagrams back without, {} with", acks(&none), acks(&some));
    assert!(acks(&some) * 100 < acks(&none) * 80, "{} and {}", acks(&some), acks(&none));
    assert!(some.latency().mean < none.latency().mean && some.bytes() < none.bytes());
}

/// Until it is clear that nothing gets lost, a loss of 1 % is assumed.
#[test]
fn without_loss_there_are_few_repairs_at_first_and_then_none() {
    let mut game = Game::new(&repairing(100), &repairing(100));
    for _ in 0..300 {
        game.step(100, || false);
    }
    let at_first = game.repair_bytes;
    assert!(at_first * 5 < game.data_bytes, "{at_first} of {}", game.data_bytes);
    for _ in 0..1000 {
        game.step(100, || false);
    }
    assert_eq!((game.repair_bytes, game.received), (at_first, 1300));
}

#[test]
fn a_peer_that_does_not_rebuild_gets_copies_of_small_segments_and_no_repairs() {
    for (other, len) in [configs::turbo(), configs::classic_turbo()].into_iter().zip([100, 400]) {
        let mut game = Game::new(&repairing(100), &other);
        let mut rng = SimRng::new(7, 1);
        for _ in 0..500 {
            game.step(len, || rng.random::<f64>() < 0.1);
        }
        assert_eq!((game.repair_bytes, game.bob.stats().rebuilt), (0, 0));
        let alice = game.alice.stats();
        let resends = alice.resends_fast + alice.resends_timeout;
        println!("{} copies and {resends} resends of 500", alice.repairs_sent);
        assert!((40..120).contains(&alice.repairs_sent), "{} copies of about 50 lost", alice.repairs_sent);
        assert!(resends < 25, "{resends} of about 50 lost were resent nevertheless");
        // Larger ones are not copied.
        let mut game = Game::new(&repairing(100), &other);
        for _ in 0..500 {
            game.step(401, || rng.random::<f64>() < 0.1);
        }
        assert_eq!(game.alice.stats().repairs_sent, 0);
        // A peer without repairs of its own does not use them.
        let mut game = Game::new(&other, &repairing(100));
        for _ in 0..500 {
            game.step(100, || rng.random::<f64>() < 0.1);
        }
        assert_eq!((game.repair_bytes, game.bob.stats().rebuilt), (0, 0));
    }
}

#[test]
fn forged_repairs_are_only_counted() {
    let mut bob = kcp(&repairing(30));
    for sn in [0, 1, 2, 4, 5] {
        bob.input(at(0), &Raw::push(sn, &[7; 50]).bytes()).unwrap();
    }
    let before = bob.stats();
    let mut rng = SimRng::new(3, 3);
    for count in 0..2000 {
        let len = 1 + rng.random_range(0..60);
        let mut data: Vec<u8> = (0..len).map(|_| rng.random()).collect();
        data[0] = if count % 3 == 0 { 0 } else { 65 + rng.random_range(0..63) };
        bob.input(at(1), &Raw { sn: 3, data, ..Raw::wins(128) }.bytes()).unwrap();
    }
    let after = bob.stats();
    assert_eq!((after.rejected.repair, after.rebuilt), (2000, 0));
    assert_eq!((after.rcv_nxt, after.rcv_queue, after.rcv_buf), (before.rcv_nxt, 3, 2));
    // A well-formed repair can forge the missing segments but no more: that is the price of trusting it.
    for count in 0..200 {
        let data: Vec<u8> = [3, count].into_iter().chain((0..60).map(|byte: u8| byte ^ count)).collect();
        bob.input(at(2), &Raw { sn: 3, data, ..Raw::wins(128) }.bytes()).unwrap();
    }
    assert!(bob.stats().rebuilt <= 1);
    assert_eq!(bob.conv().0, CONV);
}

/// As when moving from a LAN to a mobile network: an old short round trip must not count forever.
#[test]
fn a_path_that_became_longer_is_still_protected() {
    for seed in 1..=7 {
        let mut repairs = Vec::new();
        let mut ends = [kcp(&repairing(50)), kcp(&repairing(50))];
        let (mut rng, mut paths) = (SimRng::new(seed, 1), [VecDeque::new(), VecDeque::new()]);
        for now in 0..120_000 {
            let delay = if now < 40_000 { 5 } else { 40 };
            if now % 16 == 0 {
                ends[0].send(&[7; 100]).unwrap();
            }
            for (from, path) in paths.iter_mut().enumerate() {
                ends[from].update(at(now));
                let leave = drain(&mut ends[from]).into_iter().filter(|_| rng.random::<f64>() >= 0.05);
                path.extend(leave.map(|datagram| (now + delay, datagram)));
                while path.front().is_some_and(|(arrives, _)| *arrives <= now) {
                    let (_, datagram) = path.pop_front().unwrap();
                    ends[1 - from].input(at(now), &datagram).unwrap();
                }
            }
            while ends[1].recv().is_some() {}
            if now % 40_000 == 39_999 {
                repairs.push(ends[0].stats().repairs_sent);
            }
        }
        assert!(repairs[0] > 1000 && repairs[2] - repairs[1] > 400, "seed {seed}: {repairs:?}");
    }
}

/// The payload of a repair of segment `sn` alone.
fn repair_of(sn: u32, frg: u8, data: &[u8]) -> Vec<u8> {
    let (mut encoder, mut payload) = (Encoder::new(), vec![0; data.len() + 5]);
    encoder.begin(0);
    assert!(encoder.add(Sn(sn), frg, data.len().try_into().unwrap(), |to| to.copy_from_slice(data)));
    assert_eq!(encoder.finish(&mut payload), Some(payload.len()));
    payload
}

#[test]
fn a_forged_repair_cannot_begin_a_message_that_never_fits() {
    for (frg, is_taken) in [(127, true), (128, false), (255, false)] {
        let mut bob = kcp(&repairing(30));
        bob.input(at(0), &Raw::push(2, b"later").bytes()).unwrap();
        let data = repair_of(0, frg, b"forged");
        bob.input(at(1), &Raw { sn: 0, data, ..Raw::wins(128) }.bytes()).unwrap();
        let stats = bob.stats();
        assert_eq!((stats.rebuilt == 1, stats.rejected.repair == 0), (is_taken, is_taken), "{frg}");
    }
}

#[test]
fn an_end_that_will_repeat_an_acknowledgement_is_not_idle() {
    let mut bob = kcp(&repairing(30));
    let payload = repair_of(0, 0, b"repair");
    let mut told_again = 0;
    for number in 0..100 {
        let now = at(20 * u64::from(number));
        // Every other one is lost, so losing an acknowledgement matters.
        bob.input(now, &Raw { ts: number, ..Raw::push(2 * number, &[7; 1000]) }.bytes()).unwrap();
        bob.input(now, &Raw { data: payload.clone(), ..Raw::wins(128) }.bytes()).unwrap();
        bob.update(now);
        drain(&mut bob);
        let again = bob.check(now);
        assert_eq!(bob.is_idle(), again.is_none());
        if let Some(again) = again {
            bob.shrink();
            assert_eq!(bob.check(now), Some(again));
            bob.update(again);
            assert_eq!(numbers(&raw_segments(drain(&mut bob)), Command::Ack), [2 * number]);
            assert!(bob.is_idle() && bob.check(again).is_none());
            told_again += 1;
        }
    }
    assert!(told_again > 40, "{told_again}");
}

#[test]
fn only_a_repair_makes_acknowledgements_wait() {
    for (data, waits) in [(vec![0, 0, 0, 0, 0], false), (vec![1], false), (repair_of(0, 0, b"repair"), true)]
    {
        let mut bob = kcp(&repairing(30));
        for number in 0..10 {
            let now = at(10 * u64::from(number));
            bob.input(now, &Raw::push(number, b"message").bytes()).unwrap();
            bob.update(now);
            drain(&mut bob);
            let wins = Raw { frg: 2, data: data.clone(), ..Raw::wins(128) };
            bob.input(now, &wins.bytes()).unwrap();
        }
        // An acknowledgement is owed: it waits for at most 1.25 packet gaps, or for the third packet.
        assert_eq!(bob.check(at(90)), waits.then_some(at(90 + 25)), "{data:?}");
        let mut left = Vec::new();
        for number in 10..12 {
            bob.input(at(100), &Raw::push(number, b"message").bytes()).unwrap();
            bob.update(at(100));
            left.push(numbers(&raw_segments(drain(&mut bob)), Command::Ack));
        }
        let expected = if waits { [vec![], vec![11]] } else { [vec![10], vec![11]] };
        assert_eq!(left, expected, "{data:?}");
    }
}

/// Its ACKs must not ask for repairs that it ignores.
#[test]
fn repairs_can_be_switched_off_and_on() {
    let (on, off) = (repairing(100), configs::turbo());
    let mut game = Game::new(&on, &on);
    let mut rng = SimRng::new(5, 1);
    let mut spent = Vec::new();
    for config in [on, off, on] {
        game.bob.configure(&config).unwrap();
        let before = game.repair_bytes;
        for _ in 0..500 {
            game.step(100, || rng.random::<f64>() < 0.1);
        }
        spent.push(game.repair_bytes - before);
    }
    assert!(spent[0] > 10_000 && spent[1] < 1000 && spent[2] > 10_000, "{spent:?}");
}

#[test]
fn every_message_arrives_with_repairs_on_any_path() {
    let late = LinkConfig { reorder: 0.3, late: ms(40), duplicate: 0.2, ..path(0.05) };
    let bursts = Loss::Bursts { good: ms(950), bad: ms(150), in_good: 0.01, in_bad: 0.9 };
    let outages = vec![at(5_000)..at(35_000)];
    let mut links =
        vec![late, LinkConfig { loss: bursts, ..path(0.0) }, LinkConfig { outages, ..path(0.01) }];
    links.extend([LinkConfig::mobile(), LinkConfig::congested()]);
    links.extend([0.0, 0.1, 0.3, 0.6].map(path));
    for (link, repairs) in
        links.iter().flat_map(|link| [10, 100, 200].map(|repairs| (link, Repairs::Budget(repairs))))
    {
        for workload in [Workload::input60(), Workload::chunk32k(), Workload::duplex()] {
            let report = Scenario::new(workload, link.clone(), mode(repairs)).run(1..=2).unwrap();
            assert_eq!(report.sent, report.delivered, "{} {repairs:?} {link:?}", workload.name);
        }
    }
}

/// Ratios of mean, p99 and bytes to those of KCP's fast mode, by family and budget.
#[test]
fn repairs_trade_bytes_for_latency() {
    for (family, repairs, mean, p99, bytes) in [
        (Family::input(), Repairs::Budget(10), 0.74, 0.67, 0.99),
        (Family::input(), Repairs::Budget(30), 0.66, 0.60, 1.03),
        (Family::input(), Repairs::Budget(100), 0.56, 0.38, 1.33),
        (Family::snap(), Repairs::Budget(10), 0.77, 0.66, 1.05),
        (Family::snap(), Repairs::Budget(100), 0.62, 0.32, 1.62),
        (Family::chunk(), Repairs::Budget(10), 0.59, 0.50, 1.00),
        (Family::chunk(), Repairs::Budget(30), 0.47, 0.43, 1.03),
        (Family::sparse(), Repairs::Budget(150), 0.70, 0.36, 1.90),
        (Family::harsh(), Repairs::Budget(30), 0.42, 0.33, 1.01),
        (Family::ge(), Repairs::Budget(30), 0.87, 0.84, 1.04),
        (Family::reorder(), Repairs::Budget(20), 0.76, 0.60, 1.05),
        (Family::duplex(), Repairs::Budget(30), 0.67, 0.60, 1.12),
        (Family::clean(), Repairs::Budget(100), 0.84, 0.74, 1.00),
        (Family::input(), Repairs::Auto, 0.61, 0.53, 1.07),
        (Family::snap(), Repairs::Auto, 0.77, 0.66, 1.06),
        (Family::chunk(), Repairs::Auto, 0.37, 0.38, 1.06),
        (Family::sparse(), Repairs::Auto, 0.83, 0.75, 1.06),
        (Family::harsh(), Repairs::Auto, 0.27, 0.25, 1.05),
        (Family::ge(), Repairs::Auto, 0.87, 0.83, 1.05),
        (Family::clean(), Repairs::Auto, 0.84, 0.74, 1.00),
    ] {
        let [ours, base] = [mode(repairs), Mode::fast()].map(|mode| family.run(&mode, 1..=4).unwrap());
        let score = Score::of(&ours, &base);
        println!("{} {repairs:?}: {:.3} {:.3} {:.3}", family.name, score.mean, score.p99, score.bytes);
        let is_good = score.mean <= mean && score.p99 <= p99 && score.bytes <= bytes;
        assert!(is_good, "{} {repairs:?}: {score:?}", family.name);
    }
}

/// The deadline is that of the way there and five more messages of a player's input.
#[test]
fn with_a_deadline_99_of_100_messages_are_in_time_at_1_15_times_the_bytes() {
    let family = Family::input();
    let (mut held, mut bytes) = (0, 0.0);
    for cell in &family.cells {
        let within = cell.link.delay + 5 * cell.workload.traffic.every;
        let run = |mode: &Mode| cell.scenario(mode).run(1001..=1004).unwrap();
        let (ours, base) =
            (run(&mode(Repairs::Deadline(u16::try_from(within.as_millis()).unwrap()))), run(&Mode::fast()));
        let latencies = || ours.runs.iter().flat_map(|run| &run.latencies);
        let late = latencies().filter(|latency| **latency > within).count();
        let share = late as f64 / latencies().count() as f64;
        let score = Score::of(std::slice::from_ref(&ours), &[base]);
        println!("{}: {:.2} % late at {:.2}", cell.name, 100.0 * share, score.bytes);
        assert!(share < 0.015, "{}: {share}", cell.name);
        held += u32::from(share <= 0.01);
        bytes += score.bytes.ln();
    }
    let bytes = (bytes / family.cells.len() as f64).exp();
    assert!(held >= 11 && bytes <= 1.15, "{held} of 12 at {bytes:.3}");
}
