//! A peer that has stopped, and a path that holds what is under way: what both cost, and how soon they are over.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;

use common::{Raw, at, drain, kcp, numbers, raw_segments};
use std::time::Duration;
use whitewater::wire::Command;
use whitewater::{Config, Time};

/// When segments leave again up to `until`, with `count` of them in flight to a peer at `rtt` ms that has stopped.
fn resent(rtt: u64, count: usize, until: Time) -> Vec<Time> {
    let mut alice = kcp(&Config { dead_link: u16::MAX, ..Config::turbo() });
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

/// The same for kcp-go: a segment waits half a timeout longer each time. Source: kcp-go `flush`, with `NoDelay(1, 10, 2, 1)`.
fn resent_by_kcp_go(rtt: u64, count: usize, until: Time) -> usize {
    let rto = (rtt + 10).max(30);
    let times = (1u64..).map(|time| time * rto + rto * time * (time - 1) / 4);
    count * times.take_while(|ms| at(*ms) <= until).count()
}

#[test]
fn a_peer_that_has_stopped_is_sent_no_more_than_by_kcp_go() {
    for rtt in [2, 20, 60, 200] {
        for count in [1, 2, 3, 5, 10, 50] {
            for until in [18, 60, 300].map(|seconds| at(seconds * 1000)) {
                let (ours, theirs) = (resent(rtt, count, until).len(), resent_by_kcp_go(rtt, count, until));
                assert!(ours <= theirs, "{rtt} ms, {count} in flight, {until}: {ours} and {theirs}");
            }
        }
    }
}

/// The price: how long one that is back may have to wait for the next try.
#[test]
fn the_more_is_in_flight_the_sooner_a_peer_that_is_back_hears_of_it() {
    for (count, share) in [(1, 4), (2, 8), (3, 12), (5, 18), (10, 30), (50, 30)] {
        for pair in resent(20, count, at(60_000)).windows(2).filter(|pair| pair[0] >= at(1000)) {
            let (silence, wait) = (pair[0].since(Time::ZERO), pair[1].since(pair[0]));
            assert!(wait * share <= silence, "{count} in flight: {wait:?} after {silence:?}");
        }
    }
}
