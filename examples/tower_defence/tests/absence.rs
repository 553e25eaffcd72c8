//! A client that freezes for a while recovers, and a player who restarts gets their place back.

#![allow(clippy::unwrap_used, reason = "a test that panics has found something")]

mod common;

use std::time::Duration;
use tower_defence::client::Command;
use tower_defence::lab::{Lab, Transport};
use tower_defence::sim::PlayerId;
use tower_defence::wire::Wish;

fn lab(seed: u64) -> Lab {
    let mut lab = Lab::new(Transport::Sessions, &common::link("rtt=60ms,loss=5%"), seed);
    for number in 0..5 {
        lab.join(common::hello(number, Wish::Any), true);
    }
    lab.run_for(Duration::from_secs(8));
    lab
}

/// It is up to date, and its inputs arrive in time again.
fn plays(lab: &mut Lab, guest: usize, seed: u64) {
    let before = lab.server().counts();
    lab.run_for(Duration::from_secs(5));
    let counts = lab.server().counts();
    let client = lab.client(guest).unwrap();
    let (word, now) = (client.confirmed().unwrap().tick, lab.server().world().tick);
    assert!(now - word <= 6, "seed {seed}: it is {} ticks behind", now - word);
    let ahead = client.predicted().unwrap().tick;
    assert!((now..now + 12).contains(&ahead), "seed {seed}: predicted {ahead} at {now}");
    let guessed = counts.guessed - before.guessed;
    assert!(guessed < 20, "seed {seed}: {guessed} inputs were not there in five seconds");
    assert_eq!(client.unreadable(), 0);
}

#[test]
fn a_client_that_stands_still_for_ten_seconds_comes_back() {
    for seed in 1..=5 {
        let mut lab = lab(seed);
        let (you, money) =
            (lab.client(2).unwrap().you(), lab.server().world().purse(PlayerId(2)).unwrap().money);
        lab.freeze(2, true);
        lab.run_for(Duration::from_secs(10));
        assert!(!lab.is_over(2), "seed {seed}: the session is over");
        lab.freeze(2, false);
        lab.run_for(Duration::from_secs(1));
        assert_eq!(lab.client(2).unwrap().you(), you, "seed {seed}");
        assert!(lab.server().world().purse(PlayerId(2)).unwrap().money >= money / 2);
        plays(&mut lab, 2, seed);
    }
}

#[test]
fn a_client_that_is_started_again_has_its_place_again() {
    for seed in 1..=5 {
        let mut lab = lab(seed);
        let you = lab.client(1).unwrap().you().unwrap();
        let money = lab.server().world().purse(you).unwrap().money;
        lab.restart(1);
        lab.run_for(Duration::from_secs(2));
        assert_eq!(lab.client(1).unwrap().you(), Some(you), "seed {seed}");
        let purse = lab.server().world().purse(you).unwrap();
        assert!(purse.money >= money, "seed {seed}: the money is gone");
        assert_eq!(lab.server().peers().count(), 5, "seed {seed}: the old connection is still there");
        plays(&mut lab, 1, seed);
        // Its orders count from the start, and are decided.
        lab.command(1, Command::Chat("I am back".into()));
        lab.run_for(Duration::from_secs(1));
    }
}

#[test]
fn a_stranger_with_the_same_name_does_not_get_the_place() {
    let mut lab = lab(1);
    let (mut hello, before) = (common::hello(1, Wish::Any), lab.server().peers().count());
    hello.ticket ^= 1;
    let peer = lab.server_mut().connect(&hello.encode().unwrap()).unwrap();
    assert_ne!(lab.server().player(peer), lab.client(1).unwrap().you());
    assert_eq!(lab.server().peers().count(), before + 1);
}

#[test]
fn a_place_is_kept_for_a_minute() {
    let mut lab = lab(2);
    let peer = lab.server_mut().connect(&common::hello(9, Wish::Run).encode().unwrap()).unwrap();
    let player = lab.server().player(peer).unwrap();
    lab.server_mut().disconnect(peer);
    lab.run_for(Duration::from_secs(59));
    assert!(lab.server().world().purse(player).is_some());
    lab.run_for(Duration::from_secs(2));
    assert!(lab.server().world().purse(player).is_none());
}
