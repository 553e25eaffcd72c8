//! A flush sends what a walk over all segments in flight would find: compares the fast way with ikcp.c's
//! simple one.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;

use common::{Raw, drain, kcp, numbers, raw_segments};
use proptest::prelude::*;
use rand::RngExt;
use std::collections::BTreeMap;
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::wire::Command;
use whitewater::kcp::{Config, Congestion, Kcp};
use whitewater::machine::DatagramQueue;
use whitewater_sim::SimRng;

/// The sending half of ikcp.c; times in ms.
struct Model {
    config: Config,
    in_flight: BTreeMap<u32, Segment>,
    waiting: u32,
    /// The next number to send.
    nxt: u32,
    /// When `update` flushes next.
    beat: u64,
    timeouts: u32,
    fast: u32,
}

#[derive(Debug)]
struct Segment {
    sent_at: u64,
    resend_at: u64,
    rto: u64,
    xmit: u16,
    fastack: u16,
}

impl Model {
    fn una(&self) -> u32 {
        self.in_flight.keys().next().map_or(self.nxt, |first| *first)
    }

    /// Takes a datagram of acknowledgements, each a number and the time that it echoes.
    fn input(&mut self, una: u32, acks: &[(u32, u64)]) {
        self.in_flight = self.in_flight.split_off(&una);
        let mut newest: Option<(u32, u64)> = None;
        for &(sn, ts) in acks {
            self.in_flight.remove(&sn);
            if newest.is_none_or(|(newest, latest)| sn > newest && ts > latest) {
                newest = Some((sn, ts));
            }
        }
        if let Some((newest, ts)) = newest.filter(|(sn, _)| *sn >= self.una()) {
            for (_, segment) in self.in_flight.range_mut(..newest) {
                segment.fastack += u16::from(ts >= segment.sent_at);
            }
        }
    }

    /// Whether a segment would be resent, and if so, whether because of its timeout.
    fn lost(&self, segment: &Segment, now: u64) -> Option<bool> {
        let Config { fast_resend, fast_limit, .. } = self.config;
        let passed = fast_resend > 0 && segment.fastack >= fast_resend;
        let may = fast_limit == 0 || segment.xmit <= fast_limit;
        if segment.resend_at <= now { Some(true) } else { (passed && may).then_some(false) }
    }

    fn room(&self, window: u32) -> u32 {
        self.waiting.min(window.saturating_sub(self.nxt - self.una()))
    }

    /// The numbers that a flush sends, given the timeout `rto` of the connection.
    fn flush(&mut self, now: u64, rto: u64, window: u32) -> Vec<u32> {
        let mut sent = Vec::new();
        let numbers: Vec<_> = self.in_flight.keys().copied().collect();
        let new = self.room(window);
        for sn in numbers {
            let segment = self.in_flight.get(&sn).unwrap();
            let Some(time_is_out) = self.lost(segment, now) else { continue };
            let segment = self.in_flight.get_mut(&sn).unwrap();
            if time_is_out {
                segment.rto += match self.config.nodelay {
                    0 => segment.rto.max(rto),
                    1 => segment.rto / 2,
                    _ => rto / 2,
                };
                self.timeouts += 1;
            } else {
                segment.fastack = 0;
                self.fast += 1;
            }
            segment.xmit += 1;
            (segment.sent_at, segment.resend_at) = (now, now + segment.rto);
            sent.push(sn);
        }
        for sn in self.nxt..self.nxt + new {
            let grace = if self.config.nodelay == 0 { rto / 8 } else { 0 };
            let resend_at = now + rto + grace;
            self.in_flight.insert(sn, Segment { sent_at: now, resend_at, rto, xmit: 1, fastack: 0 });
            sent.push(sn);
        }
        (self.nxt, self.waiting) = (self.nxt + new, self.waiting - new);
        sent
    }

    /// Whether `update` flushes.
    fn is_beat(&mut self, now: u64) -> bool {
        let interval = u64::from(self.config.interval);
        let due = self.beat <= now;
        if due {
            self.beat = if self.beat + interval > now { self.beat + interval } else { now + interval };
        }
        due
    }

    /// The latest time at which a flush sends something; `None`: never.
    fn due_at(&self, now: u64, window: u32) -> Option<u64> {
        if self.room(window) > 0 {
            return Some(now);
        }
        let segments = self.in_flight.values();
        segments.map(|segment| if self.lost(segment, now).is_some() { now } else { segment.resend_at }).min()
    }
}

fn any_config(rng: &mut SimRng) -> Config {
    let mut any = |end| rng.random_range(0..end);
    let pick = |values: &[u16], at: usize| values.iter().copied().nth(at).unwrap();
    Config {
        snd_wnd: pick(&[1, 8, 64, 500], any(4)),
        nodelay: pick(&[0, 1, 2], any(3)).try_into().unwrap(),
        interval: pick(&[10, 25, 100], any(3)),
        fast_resend: pick(&[0, 1, 2, 3], any(4)),
        fast_limit: pick(&[0, 1, 5], any(3)),
        congestion: if any(3) > 0 { Congestion::None } else { Congestion::Kcp },
        min_rto: Some(pick(&[1, 30, 150], any(3))),
        ..configs::classic_turbo()
    }
}

/// The current window of `alice`.
fn window(alice: &Kcp<DatagramQueue>) -> u32 {
    let (stats, config) = (alice.stats(), alice.config());
    let window = u32::from(config.snd_wnd.min(stats.rmt_wnd));
    if config.congestion == Congestion::None { window } else { window.min(stats.cwnd) }
}

/// Makes a datagram that acknowledges some of what is in flight, echoing its last time, and some of what was
/// acknowledged before.
fn acknowledge(model: &mut Model, alice: &mut Kcp<DatagramQueue>, rng: &mut SimRng, now: u64) {
    if model.nxt == 0 {
        return;
    }
    let una = model.una();
    let mut acks = Vec::new();
    for _ in 0..=rng.random_range(0..5) {
        let sn = u32::try_from(rng.random_range(0..model.nxt as usize)).unwrap();
        let sn = if rng.random_range(0..4) > 0 { sn.max(una.min(model.nxt - 1)) } else { sn };
        let sent_at = model.in_flight.get(&sn).map_or(now, |segment| segment.sent_at);
        acks.push((
            sn,
            if rng.random_range(0..5) > 0 { sent_at } else { now - now.min(rng.random_range(0..300u64)) },
        ));
    }
    let freed = u32::try_from(rng.random_range(0..(model.nxt - una) as usize + 1)).unwrap();
    let una = if rng.random_range(0..3) == 0 { una + freed } else { una };
    let segments = acks.iter().map(|&(sn, ts)| Raw { una, ..Raw::ack(sn, u32::try_from(ts).unwrap()) });
    alice.input(Time::from_millis(now), &Raw::datagram(&segments.collect::<Vec<_>>())).unwrap();
    model.input(una, &acks);
}

/// Timeouts double without end, and a time more than half of the 32-bit clock ahead counts as the past, ms.
const CLOCK: u64 = 1 << 30;

fn compare(seed: u64) {
    let mut rng = SimRng::new(seed, 5);
    let config = any_config(&mut rng);
    let mut alice = kcp(&config);
    let mut model = Model {
        config,
        in_flight: BTreeMap::new(),
        waiting: 0,
        nxt: 0,
        beat: 1000 + u64::from(config.interval),
        timeouts: 0,
        fast: 0,
    };
    alice.input(Time::ZERO, &Raw::wins(400).bytes()).unwrap();
    let mut now = 1000;
    alice.update(Time::from_millis(now));
    for _ in 0..400 {
        if now >= CLOCK {
            break;
        }
        match rng.random_range(0..10) {
            0..3 => {
                for _ in 0..rng.random_range(0..60) {
                    model.waiting += u32::from(alice.send(b"payload").is_ok());
                }
            }
            3..7 => {
                for _ in 0..rng.random_range(0..4) {
                    acknowledge(&mut model, &mut alice, &mut rng, now);
                }
            }
            7 if rng.random_range(0..10) == 0 => {
                let Config { snd_wnd, interval, .. } = config;
                model.config = Config { snd_wnd, interval, ..any_config(&mut rng) };
                model.config.nodelay = config.nodelay;
                alice.configure(&model.config).unwrap();
            }
            _ => {}
        }
        let due = model.due_at(now, window(&alice));
        let wake = alice.check(Time::from_millis(now)).map(|at| at.as_millis());
        let latest = due.map(|due| due.max(model.beat));
        assert!(
            latest.is_none_or(|at| wake.is_some_and(|wake| wake <= at.max(now))),
            "{wake:?}, not {latest:?}"
        );
        now = match rng.random_range(0..4) {
            0 => wake.unwrap_or(now).max(now),
            1 => now + rng.random_range(0..300u64),
            _ => now + rng.random_range(0..20u64),
        };
        let time = Time::from_millis(now);
        let (rto, window) = (u64::try_from(alice.stats().rto.as_millis()).unwrap(), window(&alice));
        let flushes = if rng.random_range(0..5) == 0 {
            alice.flush(time);
            true
        } else {
            alice.update(time);
            model.is_beat(now)
        };
        let want = if flushes { model.flush(now, rto, window) } else { Vec::new() };
        let sent = numbers(&raw_segments(drain(&mut alice)), Command::Push);
        assert_eq!(sent, want, "at {now} ms, rto {rto}, window {window}");
        let stats = alice.stats();
        assert_eq!((stats.snd_una.0, stats.snd_nxt.0), (model.una(), model.nxt));
        assert_eq!((stats.resends_timeout, stats.resends_fast), (model.timeouts, model.fast));
        assert_eq!(stats.in_flight as usize, model.in_flight.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_flush_sends_what_a_walk_over_all_segments_finds(seed: u64) {
        compare(seed);
    }
}

#[test]
fn the_earliest_deadline_counts_whichever_segment_has_it() {
    // The first segment was sent with an RTO of 200 ms, the third with 30 ms, after a round trip of 5 ms.
    let mut alice = kcp(&configs::classic_turbo());
    let at = |ms| Time::from_millis(ms);
    alice.send(b"lost").unwrap();
    alice.send(b"quick").unwrap();
    alice.update(at(0));
    alice.input(at(5), &Raw::ack(1, 0).bytes()).unwrap();
    alice.send(b"lost too").unwrap();
    alice.update(at(10));
    drain(&mut alice);
    assert_eq!(alice.stats().rto, Duration::from_millis(30));
    assert_eq!(alice.check(at(10)), Some(at(40)));
    alice.update(at(40));
    assert_eq!(numbers(&raw_segments(drain(&mut alice)), Command::Push), [2]);
}

#[test]
fn new_settings_apply_at_once_to_segments_in_flight() {
    let mut alice = kcp(&Config { fast_resend: 5, ..configs::classic_turbo() });
    let at = |ms| Time::from_millis(ms);
    for _ in 0..4 {
        alice.send(b"x").unwrap();
    }
    alice.update(at(0));
    for sn in [1, 2] {
        alice.input(at(5), &Raw::ack(sn, 0).bytes()).unwrap();
    }
    alice.update(at(10));
    drain(&mut alice);
    alice.configure(&Config { fast_resend: 2, ..configs::classic_turbo() }).unwrap();
    assert_eq!(alice.check(at(11)), Some(at(20)));
    alice.update(at(20));
    assert_eq!(numbers(&raw_segments(drain(&mut alice)), Command::Push), [0]);
    // That is all: the next event is the timeout of the last segment.
    assert_eq!(alice.check(at(20)), Some(at(200)));
    let mut idle = kcp(&configs::classic_turbo());
    idle.configure(&configs::classic_fast()).unwrap();
    assert_eq!(idle.check(at(20)), None);
}
