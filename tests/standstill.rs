//! A peer that has stopped, and a path that stalls and then delivers what it held: what both cost, and how
//! soon they are over.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;

use common::{Raw, at, drain, kcp, ms, numbers, path, raw_segments};
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::wire::Command;
use whitewater::kcp::{Config, Conv};
use whitewater_sim::{Drive, KcpEnd, Link, LinkConfig, Pair};

/// When segments are resent until `until`, with `count` of them in flight to a peer at `rtt` ms that has
/// stopped.
fn resent(rtt: u64, count: usize, until: Time) -> Vec<Time> {
    let mut alice = kcp(&Config { dead_link: u16::MAX, ..configs::turbo() });
    let mut now = Time::ZERO;
    for una in 1..=100 {
        alice.send(b"answered").unwrap();
        alice.update(now);
        let ts = raw_segments(drain(&mut alice)).last().unwrap().ts;
        now = now + Duration::from_millis(rtt);
        alice.input(now, &Raw { una, ..Raw::ack(una - 1, ts) }.bytes()).unwrap();
    }
    let start = now;
    (0..count).for_each(|_| assert_eq!(alice.send(b"not answered"), Ok(12)));
    let mut sent = Vec::new();
    while now.since(start) <= until.since(Time::ZERO) {
        alice.update(now);
        let numbers = numbers(&raw_segments(drain(&mut alice)), Command::Push);
        sent.extend(numbers.iter().map(|_| Time::ZERO + now.since(start)));
        now = alice.check(now).unwrap();
    }
    sent.split_off(count)
}

/// The same for kcp-go: a segment waits half a timeout longer each time. Source: kcp-go `flush`, with
/// `NoDelay(1, 10, 2, 1)`.
fn resent_by_kcp_go(rtt: u64, count: usize, until: Time) -> usize {
    let rto = (rtt + 10).max(30);
    let times = (1u64..).map(|time| time * rto + rto * time * (time - 1) / 4);
    count * times.take_while(|ms| at(*ms) <= until).count()
}

#[test]
fn a_stopped_peer_is_sent_no_more_than_by_kcp_go() {
    for rtt in [2, 20, 60, 200] {
        for count in [1, 2, 3, 5, 10, 50] {
            for until in [18, 60, 300].map(|seconds| at(seconds * 1000)) {
                let (ours, theirs) = (resent(rtt, count, until).len(), resent_by_kcp_go(rtt, count, until));
                assert!(ours <= theirs, "{rtt} ms, {count} in flight, {until}: {ours} and {theirs}");
            }
        }
    }
}

/// The price: how long a peer that is back may have to wait for the next try.
#[test]
fn the_more_is_in_flight_the_sooner_a_returning_peer_hears_from_us() {
    for (count, share) in [(1, 4), (2, 8), (3, 12), (5, 18), (10, 30), (50, 30)] {
        for pair in resent(20, count, at(60_000)).windows(2).filter(|pair| pair[0] >= at(1000)) {
            let (silence, wait) = (pair[0].since(Time::ZERO), pair[1].since(pair[0]));
            assert!(wait * share <= silence, "{count} in flight: {wait:?} after {silence:?}");
        }
    }
}

/// Messages at a steady rate over links that may change at [`START`].
struct Game {
    every: Duration,
    config: Config,
    links: [LinkConfig; 2],
    then: Option<LinkConfig>,
    seed: u64,
}

/// The result.
#[derive(Debug, Default)]
struct Played {
    /// The longest time that alice sent nothing while segments were in flight and the path was free.
    quiet: Duration,
    /// The longest round trip and timeout while the path was free, and the timeout after it had been free for
    /// 200 ms and for 2 s.
    srtt: Duration,
    rto: Duration,
    rto_after: [Duration; 2],
    worst: Duration,
    /// Segments resent before the path was free, and since.
    resends: [u64; 2],
}

impl Game {
    /// Runs until 20 s after `free`, when the path is back to normal.
    fn play(mut self, free: Time) -> Played {
        let [alice, bob] =
            [(); 2].map(|()| KcpEnd::new(Conv(7), &self.config, Drive::CHECK, Time::ZERO).unwrap());
        let [there, back] = self.links;
        let links = [(there, 1), (back, 2)].map(|(link, stream)| Link::new(link, self.seed, stream).unwrap());
        let mut pair = Pair::new(alice, bob, links);
        let (mut played, mut message) = (Played::default(), Vec::new());
        let (mut sent, mut received, mut datagrams, mut last) = (0, 0, 0, free);
        let sent_at = |number| Time::ZERO + self.every * number;
        while pair.now() < free + Duration::from_secs(20) {
            if !pair.step(sent_at(sent)) {
                pair.run_to(sent_at(sent));
                pair.alice.send(pair.now(), &[7; 100]).unwrap();
                sent += 1;
            }
            if let Some(link) = self.then.take_if(|_| pair.now() >= START) {
                pair.links.iter_mut().for_each(|end| end.set(link.clone()).unwrap());
            }
            let (now, stats) = (pair.now(), pair.alice.kcp().stats());
            while pair.bob.recv(&mut message) {
                played.worst = played.worst.max(now.since(sent_at(received)));
                received += 1;
            }
            if now >= free {
                played.quiet = played.quiet.max(now.since(last));
                played.srtt = played.srtt.max(stats.srtt);
                played.rto = played.rto.max(stats.rto);
            }
            let [before, since] = &mut played.resends;
            *(if now < free { before } else { since }) = pair.alice.resends();
            for (after, rto) in [ms(200), ms(2000)].into_iter().zip(&mut played.rto_after) {
                *rto = if now <= free + after { stats.rto } else { *rto };
            }
            if now < free || stats.in_flight == 0 || pair.links[0].stats().sent > datagrams {
                (last, datagrams) = (now, pair.links[0].stats().sent);
            }
        }
        played.resends[1] -= played.resends[0];
        played
    }
}

/// Standstills of each length in ms, in both directions or one, with each window.
fn standstills(loss: f64) -> Vec<(String, Time, [LinkConfig; 2], Config)> {
    let mut all = Vec::new();
    for (name, which) in [("both", [true, true]), ("there", [true, false]), ("back", [false, true])] {
        for (length, snd_wnd) in [1000, 2000, 4000, 8000].into_iter().flat_map(|ms| [(ms, 32), (ms, 128)]) {
            // Either all is held, or it is lost from the middle on, as when a buffer is full.
            for share in [0, 50] {
                let end = START + ms(length);
                let (standstill, outage) = (START..end, START + ms(length - length * share / 100)..end);
                let links = which.map(|stands| match stands {
                    true => LinkConfig {
                        standstills: vec![standstill.clone()],
                        outages: vec![outage.clone()],
                        ..path(loss)
                    },
                    false => path(loss),
                });
                let name =
                    format!("{name}, {length} ms, {share} % of it lost, window {snd_wnd}, loss {loss}");
                all.push((name, end, links, Config { snd_wnd, ..configs::turbo() }));
            }
        }
    }
    all
}

/// What a standstill held yields no round trip: the path is known again one round trip later.
#[test]
fn a_standstill_is_over_a_round_trip_after_it_ends() {
    for (name, end, links, config) in standstills(0.0) {
        for seed in 1..=3 {
            let game = Game { every: ms(1000) / 60, config, links: links.clone(), then: None, seed };
            let played = game.play(end);
            let Played { quiet, srtt, rto, rto_after: [soon, later], worst, resends } = played;
            let held = end.since(START);
            assert!(quiet <= ms(100) && rto <= ms(2000) && later <= ms(100), "{name}: {played:?}");
            assert!(held < ms(2000) || (srtt <= ms(150) && soon <= ms(400)), "{name}: {played:?}");
            assert!(worst <= held + ms(50), "{name}: {played:?}");
            assert!(resends[0] <= 100 && resends[1] <= 100, "{name}: {played:?}");
        }
    }
}

/// The same with additional loss, so that the timeout is needed. It may be longer for a while: lost
/// acknowledgements look as if the peer delayed them.
#[test]
fn after_a_standstill_a_free_path_is_used_whatever_is_lost() {
    for (name, end, links, config) in [0.05, 0.2].into_iter().flat_map(standstills) {
        for seed in 1..=5 {
            let game = Game { every: ms(1000) / 60, config, links: links.clone(), then: None, seed };
            let played = game.play(end);
            let (Played { quiet, rto, rto_after: [_, later], worst, .. }, held) = (&played, end.since(START));
            assert!(*quiet <= ms(300) && *rto <= ms(2000) && *later <= ms(300), "{name}: {played:?}");
            assert!(*worst <= held + ms(300), "{name}: {played:?}");
        }
    }
}

/// Stalled, free for a while, and so on.
#[test]
fn a_path_that_stalls_repeatedly_is_used_in_between() {
    for free in [200, 500, 1500] {
        let starts = (0..5).map(|turn| START + ms((1500 + free) * turn));
        let standstills: Vec<_> = starts.map(|start| start..start + ms(1500)).collect();
        let end = standstills.last().unwrap().end;
        let links = [(); 2].map(|()| LinkConfig { standstills: standstills.clone(), ..path(0.05) });
        for seed in 1..=5 {
            let game = Game {
                every: ms(1000) / 60,
                config: configs::turbo(),
                links: links.clone(),
                then: None,
                seed,
            };
            let played = game.play(end);
            let Played { quiet, srtt, rto, worst, .. } = &played;
            assert!(*quiet <= ms(100) && *srtt <= ms(150) && *rto <= ms(300), "{free}: {played:?}");
            assert!(*worst <= 3 * ms(1500), "{free}: {played:?}");
        }
    }
}

/// The price: a path that became longer for good looks like one that stalled, until the second round trip.
/// Until then one segment at a time probes it.
#[test]
fn a_permanently_longer_path_is_known_after_two_round_trips() {
    for (hz, rtt) in [60, 10, 1].into_iter().flat_map(|hz| [600, 1200, 2500].map(|rtt| (hz, rtt))) {
        let link = |rtt| LinkConfig { jitter: ms(6), ..LinkConfig::with_rtt(ms(rtt)) };
        let (config, links) =
            (Config { snd_wnd: 256, rcv_wnd: 256, ..configs::turbo() }, [link(60), link(60)]);
        let game = Game { every: ms(1000) / hz, config, links, then: Some(link(rtt)), seed: 1 };
        let played = game.play(START + 4 * ms(rtt) + ms(1000));
        let Played { srtt, rto_after: [rto, _], resends: [before, since], .. } = played;
        assert!(srtt * 100 >= ms(rtt) * 95 && rto >= ms(rtt), "{hz} Hz, {rtt} ms: {played:?}");
        assert!(before <= 70 && since <= 5, "{hz} Hz, {rtt} ms: {played:?}");
    }
}

const START: Time = at(3000);
