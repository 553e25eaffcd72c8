//! Which players reach each other without the relay, and how soon: in virtual time, behind NATs of each kind.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

mod common;
mod internet;

use common::TALK;
use internet::{Internet, Kind, LEG};
use std::time::Duration;

const KINDS: [Kind; 4] = [Kind::Open, Kind::Cone, Kind::Restricted, Kind::Symmetric];

/// Whether a NAT of one kind or the other lets the other one's datagrams in at a port that it can know.
fn can_be_direct(host: Kind, guest: Kind) -> bool {
    use Kind::{Restricted, Symmetric};
    !matches!((host, guest), (Symmetric, Restricted | Symmetric) | (Restricted, Symmetric))
}

fn joined(seed: u64, kinds: [Kind; 2], loss: f64) -> (Internet, Duration) {
    let mut internet = Internet::new(seed, kinds, loss);
    let began = internet.join();
    let is_up = internet.run_until(10_000, |internet| internet.guest.is_connected());
    assert!(is_up, "{kinds:?}, seed {seed}");
    let took = internet.now.since(began);
    (internet, took)
}

/// Sends a message each way in so many turns of 50 ms, and checks that each arrives once. Returns the longest time that the host heard nothing.
fn talk(internet: &mut Internet, turns: u32) -> Duration {
    internet.run_until(5000, |internet| !internet.sessions.is_empty());
    let id = *internet.sessions.last().unwrap();
    let (mut heard, mut said, mut last, mut longest) = (Vec::new(), Vec::new(), internet.now, Duration::ZERO);
    for turn in 0..turns + 60 {
        if turn < turns {
            internet.guest.connection_mut().unwrap().send(TALK, &turn.to_le_bytes()).unwrap();
            internet.host.connection_mut(id).unwrap().send(TALK, &turn.to_le_bytes()).unwrap();
        }
        for _ in 0..10 {
            internet.run(5);
            while let Some(message) = internet.host.connection_mut(id).unwrap().recv(TALK) {
                longest = longest.max(internet.now.since(last));
                last = internet.now;
                heard.push(u32::from_le_bytes((&*message).try_into().unwrap()));
            }
            while let Some(message) = internet.guest.connection_mut().unwrap().recv(TALK) {
                said.push(u32::from_le_bytes((&*message).try_into().unwrap()));
            }
        }
    }
    assert!(heard.iter().copied().eq(0..turns) && said.iter().copied().eq(0..turns), "each once, in order");
    longest
}

#[test]
fn a_host_that_anybody_can_send_to_is_reached_in_a_round_trip_and_others_after_a_leg_by_the_relay_and_three_direct_ones()
 {
    for host in KINDS {
        for guest in KINDS {
            let (mut internet, took) = joined(1, [host, guest], 0.0);
            let is_direct = can_be_direct(host, guest);
            assert_eq!(internet.is_direct(), is_direct, "a host behind {host:?}, a guest behind {guest:?}");
            let is_open = matches!(host, Kind::Open | Kind::Cone);
            let legs = if is_open {
                2
            } else if is_direct {
                5
            } else {
                8
            };
            assert!(took <= legs * LEG + Duration::from_millis(1), "{host:?} {guest:?}: {took:?}");
            internet.run(3000);
            assert_eq!(internet.is_answered_directly(), is_direct);
            assert_eq!(internet.sessions.len(), 1);
        }
    }
}

#[test]
fn a_host_registers_within_seconds_whatever_is_lost() {
    let took = |seed| Internet::new(seed, [Kind::Restricted; 2], 0.2).registered;
    let mut took: Vec<_> = (0..100).map(took).collect();
    took.sort();
    println!("registered after {:?} (median), {:?} at most", took[50], took[99]);
    assert!(
        took[50] <= 4 * LEG + Duration::from_millis(220) && took[99] < Duration::from_secs(5),
        "{took:?}"
    );
}

#[test]
fn a_session_that_begins_by_the_relay_finds_the_direct_way_in_seconds_whatever_is_lost() {
    let mut slow = 0;
    for seed in 0..100 {
        let mut internet = Internet::new(seed, [Kind::Restricted; 2], 0.15);
        internet.is_cut = true; // so it begins by the relay
        internet.join();
        assert!(internet.run_until(10_000, |internet| internet.guest.is_connected()), "seed {seed}");
        assert!(!internet.is_direct(), "seed {seed}");
        internet.is_cut = false;
        let is_soon = internet.run_until(10_000, Internet::is_direct);
        slow += u32::from(!is_soon);
        assert!(is_soon || internet.run_until(60_000, Internet::is_direct), "seed {seed}");
        assert!(internet.run_until(60_000, Internet::is_answered_directly), "seed {seed}");
        talk(&mut internet, 20);
        assert_eq!(internet.sessions.len(), 1, "seed {seed}");
    }
    println!("{slow} of 100 took more than 10 s");
    assert!(slow <= 3, "{slow} of 100");
}

#[test]
fn when_the_direct_way_dies_the_session_goes_on_by_the_relay_in_half_a_second_and_comes_back() {
    let mut silences = Vec::new();
    for seed in 0..40 {
        let (mut internet, _) = joined(seed, [Kind::Restricted; 2], 0.02);
        assert!(internet.run_until(10_000, Internet::is_answered_directly), "seed {seed}");
        talk(&mut internet, 20);
        internet.is_cut = true;
        silences.push(talk(&mut internet, 100));
        assert!(!internet.is_direct(), "seed {seed}");
        internet.is_cut = false;
        assert!(internet.run_until(60_000, Internet::is_direct), "seed {seed}");
        let silence = talk(&mut internet, 100);
        assert!(
            silence < Duration::from_millis(500),
            "nothing is lost on the way back, seed {seed}: {silence:?}"
        );
        assert_eq!(internet.sessions.len(), 1, "seed {seed}");
    }
    silences.sort();
    println!("silent for {:?} (median), {:?} at most", silences[20], silences[39]);
    assert!(
        silences[20] < Duration::from_millis(500) && silences[39] < Duration::from_millis(1500),
        "{silences:?}"
    );
}

#[test]
fn without_traffic_to_show_it_a_lossy_way_is_not_given_up() {
    for seed in 0..40 {
        let (mut internet, _) = joined(seed, [Kind::Restricted; 2], 0.05);
        assert!(internet.run_until(60_000, Internet::is_answered_directly), "seed {seed}");
        internet.run(1000);
        let moves = |internet: &Internet| internet.guest.connection().unwrap().stats().moves;
        let before = moves(&internet);
        internet.run(60_000);
        assert!(moves(&internet) <= before + 1, "seed {seed}: {before}, then {}", moves(&internet));
    }
}

#[test]
fn whoever_forges_answers_gains_a_silence_now_and_then_and_never_the_session() {
    let mut silences = Vec::new();
    for seed in 0..20 {
        let (mut internet, _) = joined(seed, [Kind::Cone; 2], 0.02);
        internet.is_observed = true;
        silences.push(talk(&mut internet, 600));
        assert_eq!(internet.sessions.len(), 1, "seed {seed}");
    }
    silences.sort();
    println!("silent for {:?} (median), {:?} at most", silences[10], silences[19]);
    assert!(silences[19] < Duration::from_secs(3), "{silences:?}");
}

#[test]
fn a_guest_connects_although_somebody_forges_answers_before_the_host() {
    for seed in 0..20 {
        let mut internet = Internet::new(seed, [Kind::Restricted; 2], 0.02);
        internet.is_observed = true;
        internet.join();
        assert!(internet.run_until(5000, |internet| internet.guest.is_connected()), "seed {seed}");
    }
}
