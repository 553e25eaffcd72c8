//! Loss detection by timing: what it promises beyond delivery, and what that costs.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;

use common::{Raw, at, drain, kcp, ms, numbers, path, raw_segments};
use std::slice::from_ref;
use std::time::Duration;
use whitewater::Repairs;
use whitewater::Time;
use whitewater::kcp::wire::Command;
use whitewater::kcp::{Config, Congestion, Conv, Kcp, Modern};
use whitewater::machine::DatagramQueue;
use whitewater_sim::scenario::{Family, Mode, Report, Scenario, Score, Workload, percentile};
use whitewater_sim::{Drive, KcpEnd, Link, LinkConfig, Loss, Pair};

/// Sends a message and returns the token of its segment.
fn send(alice: &mut Kcp<DatagramQueue>, now: Time) -> u32 {
    alice.send(b"message").unwrap();
    assert_eq!(alice.check(now), Some(now), "new data leaves at once");
    alice.update(now);
    raw_segments(drain(alice)).iter().find(|raw| raw.cmd == Command::Push).unwrap().ts
}

/// The numbers of the segments that an update at `now` sends.
fn updated(alice: &mut Kcp<DatagramQueue>, now: Time) -> Vec<u32> {
    alice.update(now);
    numbers(&raw_segments(drain(alice)), Command::Push)
}

#[test]
fn a_lost_segment_is_resent_on_the_first_acknowledgement_of_a_later_one() {
    let mut alice = kcp(&configs::turbo());
    let tokens: Vec<_> = [0, 10, 20].map(|ms| send(&mut alice, at(ms))).into();
    alice.input(at(60), &Raw { una: 1, ..Raw::ack(0, tokens[0]) }.bytes()).unwrap();
    assert!(updated(&mut alice, at(60)).is_empty());
    alice.input(at(80), &Raw { una: 1, ..Raw::ack(2, tokens[2]) }.bytes()).unwrap();
    assert_eq!(alice.check(at(80)), Some(at(80)));
    assert_eq!(updated(&mut alice, at(80)), [1]);
    let stats = alice.stats();
    assert_eq!((stats.resends_fast, stats.resends_timeout), (1, 0));
}

/// Segments lost together say only one thing about the path, however many they are.
#[test]
fn a_burst_of_loss_does_not_reset_the_observed_reordering() {
    let mut alice = kcp(&configs::turbo());
    let [first, second] = [0, 10].map(|ms| send(&mut alice, at(ms)));
    alice.input(at(60), &Raw::ack(1, second).bytes()).unwrap();
    assert_eq!(updated(&mut alice, at(60)), [0], "any later one proves it");
    alice.input(at(61), &Raw { una: 2, ..Raw::ack(0, first) }.bytes()).unwrap(); // late by 11 ms
    for _ in 0..20 {
        alice.send(&[7; 1000]).unwrap();
    }
    assert_eq!(updated(&mut alice, at(200)).len(), 20);
    let later = send(&mut alice, at(240));
    alice.input(at(290), &Raw { una: 2, ..Raw::ack(22, later) }.bytes()).unwrap();
    alice.update(at(290));
    let again = raw_segments(drain(&mut alice));
    assert!(numbers(&again, Command::Push).into_iter().eq(2..22));
    alice.input(at(340), &Raw { una: 23, ..Raw::ack(21, again[19].ts) }.bytes()).unwrap();
    let [_, second] = [400, 410].map(|ms| send(&mut alice, at(ms)));
    alice.input(at(460), &Raw { una: 23, ..Raw::ack(24, second) }.bytes()).unwrap();
    assert!(updated(&mut alice, at(460)).is_empty(), "10 ms still prove nothing");
    assert_eq!(updated(&mut alice, at(463)), [23], "but not forever");
}

#[test]
fn segments_of_one_flush_overtake_each_other_only_in_their_order() {
    let mut alice = kcp(&configs::turbo());
    for _ in 0..5 {
        alice.send(&[7; 1000]).unwrap();
    }
    alice.update(at(0));
    let token = raw_segments(drain(&mut alice))[0].ts;
    alice.input(at(50), &Raw::ack(3, token).bytes()).unwrap();
    assert_eq!(updated(&mut alice, at(50)), [0, 1, 2]);
}

#[test]
fn the_last_segment_waits_for_its_timeout_in_microseconds() {
    let mut alice = kcp(&configs::turbo());
    send(&mut alice, at(0));
    assert_eq!(alice.check(at(0)), Some(at(200)), "before the first round trip");
    let token = send(&mut alice, at(5));
    alice.input(at(45), &Raw { una: 2, ..Raw::ack(1, token) }.bytes()).unwrap();
    alice.update(at(45));
    let stats = alice.stats();
    assert_eq!((stats.srtt, stats.rttvar, stats.rto), (ms(40), ms(20), ms(120)));
    // Plus 5 ms, for which the peer delayed the acknowledgement of the first one.
    send(&mut alice, Time::from_micros(50_003));
    assert_eq!(alice.check(at(60)), Some(Time::from_micros(175_003)));
    assert!(updated(&mut alice, Time::from_micros(175_002)).is_empty());
    assert_eq!(updated(&mut alice, Time::from_micros(175_003)), [2]);
}

#[test]
fn a_token_identifies_one_transmission() {
    let mut alice = kcp(&configs::turbo());
    let mut tokens: Vec<u32> = (0..10).map(|_| send(&mut alice, at(7))).collect();
    tokens.dedup();
    assert_eq!(tokens.len(), 10);
    // The first transmission arrives after the second has left; the round trip is its own.
    let mut alice = kcp(&configs::turbo());
    let first = send(&mut alice, at(0));
    assert_eq!(updated(&mut alice, at(200)), [0]);
    alice.input(at(230), &Raw { una: 1, ..Raw::ack(0, first) }.bytes()).unwrap();
    assert_eq!(alice.stats().srtt, ms(230));
}

#[test]
fn a_forged_echo_yields_no_sample_and_no_loss() {
    let mut alice = kcp(&configs::turbo());
    let tokens: Vec<_> = (0..8).map(|number| send(&mut alice, at(10 * number))).collect();
    alice.input(at(50), &Raw::ack(0, tokens[0]).bytes()).unwrap();
    let before = alice.stats();
    for (sn, ts) in [(3, tokens[3] + 1), (4, tokens[7]), (5, 0), (6, u32::MAX), (7, tokens[7] - 1)] {
        alice.input(at(80), &Raw { una: 1, ..Raw::ack(sn, ts) }.bytes()).unwrap();
    }
    let after = alice.stats();
    assert_eq!((after.srtt, after.rttvar, after.rejected.ts_age), (before.srtt, before.rttvar, 5));
    assert!(updated(&mut alice, at(81)).is_empty());
}

#[test]
fn while_nothing_is_acknowledged_one_segment_at_a_time_probes_the_path() {
    let mut alice = kcp(&Config { snd_wnd: 128, ..configs::turbo() });
    let token = send(&mut alice, at(0));
    alice.input(at(40), &Raw { una: 1, ..Raw::ack(0, token) }.bytes()).unwrap();
    for _ in 0..100 {
        alice.send(b"message").unwrap();
    }
    let (mut now, mut sent) = (at(40), Vec::new());
    while now < at(120_000) {
        now = alice.check(now).unwrap();
        assert!(now > at(20_000) || !alice.is_dead(), "20 s have not passed");
        let numbers = updated(&mut alice, now);
        assert!(numbers.len() <= 100);
        sent.extend(numbers.iter().map(|_| now));
    }
    let within = |from, to| sent.iter().filter(|time| (at(from)..at(to)).contains(*time)).count();
    assert_eq!(within(0, 100), 100);
    assert!((5..=60).contains(&within(100, 1000)), "{}", within(100, 1000));
    assert!((5..=25).contains(&within(2000, 3000)), "{}", within(2000, 3000));
    assert!((5..=20).contains(&within(60_000, 75_000)), "{}", within(60_000, 75_000));
    assert!(sent.len() < 300, "{} in two minutes", sent.len());
    assert!(alice.is_dead());
}

#[test]
fn acks_do_not_repeat_what_una_covers() {
    let mut bob = kcp(&configs::turbo());
    let rows = [0, 1, 2, 4, 5].map(|sn| Raw { ts: 1000 + sn, ..Raw::push(sn, b"x") });
    bob.input(at(0), &Raw::datagram(&rows)).unwrap();
    bob.update(at(0));
    let acks: Vec<_> = raw_segments(drain(&mut bob)).iter().map(|raw| (raw.sn, raw.ts, raw.una)).collect();
    assert_eq!(acks, [(2, 1002, 3), (4, 1004, 3), (5, 1005, 3)]);
}

#[test]
fn an_old_datagram_does_not_close_the_window() {
    let mut alice = kcp(&configs::turbo());
    let tokens: Vec<_> = (0..4).map(|number| send(&mut alice, at(number))).collect();
    let ack = |una: u32, wnd| Raw { una, wnd, ..Raw::ack(una - 1, tokens[una as usize - 1]) };
    alice.input(at(40), &ack(3, 100).bytes()).unwrap();
    alice.input(at(41), &ack(1, 7).bytes()).unwrap();
    assert_eq!(alice.stats().rmt_wnd, 100);
    alice.input(at(42), &Raw { una: 3, ..Raw::wins(128) }.bytes()).unwrap();
    assert_eq!(alice.stats().rmt_wnd, 128);
    alice.input(at(43), &ack(4, 90).bytes()).unwrap();
    assert_eq!(alice.stats().rmt_wnd, 90);
}

#[test]
fn a_session_with_nothing_to_do_is_never_woken() {
    let mut alice = kcp(&configs::with_cwnd());
    assert_eq!(alice.check(at(0)), None);
    let token = send(&mut alice, at(0));
    alice.input(at(30), &Raw { una: 1, ..Raw::ack(0, token) }.bytes()).unwrap();
    alice.update(at(30));
    assert_eq!((alice.check(at(30)), alice.is_idle()), (None, true));
}

#[test]
fn a_clock_set_back_costs_no_more_than_a_timeout() {
    let mut alice = kcp(&configs::turbo());
    let token = send(&mut alice, at(10_000_000));
    alice.input(at(10_000_040), &Raw { una: 1, ..Raw::ack(0, token) }.bytes()).unwrap();
    send(&mut alice, at(10_000_050));
    assert_eq!(alice.check(at(1000)), Some(at(1000)));
    alice.update(at(1000));
    let due = alice.check(at(1000)).unwrap();
    assert!(due > at(1000) && due <= at(1200), "{due}");
    assert_eq!(updated(&mut alice, due), [1]);
    let token = send(&mut alice, at(2000));
    alice.input(at(2060), &Raw { una: 3, ..Raw::ack(2, token) }.bytes()).unwrap();
    assert!(alice.stats().srtt > ms(40), "round trips are measured again");
}

fn modern() -> Mode {
    Mode::modern(Modern { repairs: Repairs::Off, ..Modern::default() })
}

fn repairs(repairs: u8) -> Mode {
    Mode::modern(Modern { repairs: Repairs::Budget(repairs), ..Modern::default() })
}

/// One mode at alice's end and another at bob's.
fn mixed(alice: Mode, bob: Mode) -> Mode {
    let name = format!("{} to {}", alice.name, bob.name);
    Mode { name, ends: [alice.ends[0], bob.ends[1]] }
}

#[test]
fn every_message_arrives_over_any_path_to_any_peer() {
    let reordered = LinkConfig { in_order: false, jitter: ms(60), duplicate: 0.2, ..path(0.02) };
    let late = LinkConfig { reorder: 0.3, late: ms(40), duplicate: 0.2, ..path(0.05) };
    let bursts = Loss::Bursts { good: ms(950), bad: ms(150), in_good: 0.01, in_bad: 0.9 };
    let partition = vec![at(5_000)..at(35_000)];
    let mut links = vec![reordered, late, LinkConfig { loss: bursts, ..path(0.0) }];
    links.push(LinkConfig { outages: partition, ..path(0.01) });
    links.extend([LinkConfig::mobile(), LinkConfig::congested()]);
    links.extend([0.0, 0.1, 0.3, 0.6].map(path));
    let modes = [modern(), mixed(modern(), Mode::fast()), mixed(Mode::turbo_flush(), modern())];
    for (link, mode) in links.iter().flat_map(|link| modes.iter().map(move |mode| (link, mode))) {
        for workload in [Workload::input60(), Workload::chunk32k(), Workload::duplex()] {
            let scenario = Scenario::new(workload, link.clone(), mode.clone());
            let report = scenario.run(1..=2).unwrap();
            assert_eq!(report.sent, report.delivered, "{} {} {link:?}", mode.name, workload.name);
        }
    }
}

/// Ratios of mean, p99 and bytes to those of KCP's fast mode.
#[test]
fn latency_under_loss_is_four_fifths_of_kcps_fast_mode() {
    for (family, mean, p99, bytes) in [
        (Family::input(), 0.80, 0.75, 1.04),
        (Family::snap(), 0.80, 0.74, 1.02),
        (Family::chunk(), 0.73, 0.54, 1.02),
        (Family::sparse(), 0.82, 0.76, 1.01),
        (Family::harsh(), 0.61, 0.45, 1.03),
        (Family::duplex(), 0.80, 0.74, 1.04),
        (Family::clean(), 0.84, 0.74, 1.00),
        (Family::ge(), 0.90, 0.86, 1.01),
        (Family::reorder(), 0.95, 0.92, 1.01),
    ] {
        let [ours, base] = [modern(), Mode::fast()].map(|mode| family.run(&mode, 1..=4).unwrap());
        let score = Score::of(&ours, &base);
        println!("{}: {:.3} {:.3} {:.3}", family.name, score.mean, score.p99, score.bytes);
        let is_good = score.mean <= mean && score.p99 <= p99 && score.bytes <= bytes;
        assert!(is_good, "{}: {score:?}", family.name);
    }
}

#[test]
fn to_a_stock_receiver_no_more_is_resent_than_by_a_stock_sender() {
    for family in [Family::input(), Family::snap(), Family::chunk(), Family::reorder()] {
        let resends = |mode: &Mode| {
            family.run(mode, 1..=4).unwrap().iter().map(|report: &Report| report.resends).sum::<u64>()
        };
        let (ours, stock) = (resends(&mixed(modern(), Mode::fast())), resends(&Mode::fast()));
        println!("{}: {ours} and {stock}", family.name);
        assert!(ours * 100 <= stock * 115, "{}: {ours} resends, {stock} by stock", family.name);
    }
}

/// Nothing is lost here, so every resend is needless; 2 % is duplicated. Most resends come from the first
/// burst of a session that is overtaken: it teaches how late segments may come.
#[test]
fn reordering_causes_few_resends() {
    for cell in Family::reorder().cells {
        let link = LinkConfig { loss: Loss::Random(0.0), ..cell.link };
        for mode in [modern(), repairs(30)] {
            let report = Scenario::new(cell.workload, link.clone(), mode.clone()).run(1..=4).unwrap();
            let messages = report.delivered * cell.workload.traffic.size.div_ceil(1376) as u64;
            let needless = report.resends * 1000 / messages;
            assert_eq!(report.sent, report.delivered);
            assert!(needless <= 30, "{}, {}: {needless} of 1000", cell.name, mode.name);
        }
    }
}

/// Delays with a heavy tail: one packet of a hundred is late by half a round trip, and 2 % get lost. Resends do not wait
/// for the latest, at the price of some that are needless.
#[test]
fn where_few_are_very_late_messages_are_as_early_as_kcps_for_no_more_bytes() {
    let family = Family::tail();
    let [ours, base] = [modern(), Mode::fast()].map(|mode| family.run(&mode, 1..=8).unwrap());
    let score = Score::of(&ours, &base);
    assert!(score.mean <= 0.96 && score.p99 <= 1.0 && score.bytes <= 1.01, "{score:?}");
    for ((cell, report), base) in family.cells.iter().zip(&ours).zip(&base) {
        let score = Score::of(from_ref(report), from_ref(base));
        let is_chance = cell.workload.name == "chunk32k"; // 480 messages: five are later than p99
        assert!(score.mean <= 1.1 && (score.p99 <= 1.15 || is_chance), "{}: {score:?}", cell.name);
    }
}

#[test]
fn a_segment_lost_twice_is_sent_twice_only_without_a_congestion_window() {
    for (congestion, times) in [(Congestion::None, 2), (Congestion::Kcp, 1)] {
        let mut alice = kcp(&Config { congestion, snd_wnd: 8, ..configs::turbo() });
        let acks = |sent: &[Raw], una: u32| {
            let acks: Vec<_> = sent.iter().map(|raw| Raw { una, ..Raw::ack(raw.sn, raw.ts) }).collect();
            Raw::datagram(&acks)
        };
        for number in 0..400 {
            alice.send(&[7; 1300]).unwrap();
            alice.update(at(20 * number));
            let sent = raw_segments(drain(&mut alice));
            let una = u32::try_from(number).unwrap() + 1;
            alice.input(at(20 * number + 10), &acks(&sent, una)).unwrap();
        }
        (0..20).for_each(|_| assert_eq!(alice.send(&[7; 1300]), Ok(1300)));
        alice.update(at(8000));
        let sent = raw_segments(drain(&mut alice));
        assert_eq!(numbers(&sent, Command::Push), (400..408).collect::<Vec<_>>());
        alice.input(at(8010), &acks(&sent[1..], 400)).unwrap(); // the first is lost
        alice.update(at(8010));
        assert_eq!(numbers(&raw_segments(drain(&mut alice)), Command::Push), [400]);
        let again = alice.check(at(8010)).unwrap();
        alice.update(again); // and again
        let third = numbers(&raw_segments(drain(&mut alice)), Command::Push);
        assert_eq!(third, vec![400; times], "{congestion:?}");
    }
}

/// A segment lost twice would stall a full window for another round trip if it were lost again, so it is sent
/// twice: that saves a twentieth of the time for half a percent of the bytes.
#[test]
fn bulk_through_a_full_window_is_a_third_faster_than_kcps_for_an_eighteenth_more_bytes() {
    const MESSAGES: usize = 3000;
    let config = Config { snd_wnd: 128, snd_queue: 10_000, snd_queue_bytes: 1 << 30, ..configs::turbo() };
    let (mut took, mut wire) = ([Duration::ZERO; 2], [0; 2]);
    for seed in 1..=5 {
        let ends = [(configs::classic(config), Drive::BEAT), (config, Drive::CHECK)];
        for (which, (config, drive)) in ends.into_iter().enumerate() {
            let end = || KcpEnd::new(Conv(7), &config, drive, Time::ZERO).unwrap();
            let links = [1, 2].map(|stream| Link::new(path(0.1), seed, stream).unwrap());
            let mut pair = Pair::new(end(), end(), links);
            let (mut message, mut count) = (Vec::new(), 0);
            (0..MESSAGES).for_each(|_| assert_eq!(pair.alice.send(Time::ZERO, &[7; 1300]), Ok(1300)));
            let is_through = pair.run_until(Duration::from_secs(600), |pair| {
                while pair.bob.recv(&mut message) {
                    count += 1;
                }
                count == MESSAGES
            });
            assert!(is_through, "seed {seed}");
            took[which] += pair.now().since(Time::ZERO);
            wire[which] += pair.links.iter().map(|link| link.stats().wire_bytes()).sum::<u64>();
        }
    }
    println!("{took:?} {wire:?}");
    assert!(took[1] * 11 <= took[0] * 8, "{took:?}");
    assert!(wire[1] * 18 <= wire[0] * 19, "{wire:?}");
}

#[test]
fn a_closed_window_reopens_within_a_second_of_the_read() {
    let report = Scenario::new(Workload::reopen(), path(0.1), modern()).run(1..=100).unwrap();
    assert_eq!(report.delivered, 40_000);
    let mut last: Vec<_> = report.runs.iter().map(|run| *run.latencies.iter().max().unwrap()).collect();
    last.sort_unstable();
    let p99 = percentile(&last, 0.99);
    println!("p50 {:?}, p99 {p99:?}", percentile(&last, 0.5));
    assert!(p99 <= ms(1200), "{p99:?}");
}

#[test]
fn an_outage_of_3_s_costs_a_quarter_of_a_second_more() {
    let outages = vec![at(20_000)..at(23_000)];
    let link = LinkConfig { outages, ..path(0.01) };
    let report = Scenario::new(Workload::input60(), link, modern()).run(1..=50).unwrap();
    let longest = |latencies: &[Duration]| latencies.iter().max().unwrap().saturating_sub(ms(3000));
    let mut late: Vec<_> = report.runs.iter().map(|run| longest(&run.latencies)).collect();
    late.sort_unstable();
    let p99 = percentile(&late, 0.99);
    println!("p50 {:?}, p99 {p99:?}", percentile(&late, 0.5));
    assert!(p99 <= ms(250), "{p99:?}");
}
