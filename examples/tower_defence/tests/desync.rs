//! What a client is told is what the server has, as long as they play.

#![allow(clippy::unwrap_used, reason = "a test that panics has found something")]

mod common;

use std::time::Duration;
use tower_defence::lab::{Lab, Transport};
use tower_defence::wire::Wish;

/// Ten minutes at 20 % loss: each snapshot that a client has read is the world of that tick, and none was unreadable.
#[test]
fn ten_minutes_at_a_fifth_lost_without_one_desync() {
    let seed = 21;
    let mut lab = Lab::new(Transport::Sessions, &common::link("rtt=80ms,loss=20%,jitter=15ms"), seed);
    for number in 0..6 {
        lab.join(common::hello(number, Wish::Any), true);
    }
    lab.join(common::hello(6, Wish::Watch), false);
    let (mut compared, mut last) = (0_u64, [0; 7]);
    for _ in 0..600 * 30 {
        lab.run_tick();
        for (guest, last) in last.iter_mut().enumerate() {
            let client = lab.client(guest).unwrap();
            let Some(word) = client.confirmed().filter(|word| word.tick > *last) else { continue };
            let Some(truth) = lab.server().world_at(word.tick) else { continue };
            assert_eq!(
                word.hash_for(client.you()),
                truth.hash_for(client.you()),
                "seed {seed}: guest {guest}, tick {}",
                word.tick
            );
            (*last, compared) = (word.tick, compared + 1);
        }
    }
    let unreadable: u64 = (0..7).map(|guest| lab.client(guest).unwrap().unreadable()).sum();
    let counts = lab.server().counts();
    println!("seed {seed}: {compared} snapshots compared; {counts:?}");
    assert_eq!(unreadable, 0, "seed {seed}");
    assert!(compared > 7 * 600 * 30 * 6 / 10, "seed {seed}: only {compared} compared");
    assert!(counts.deltas > 50 * counts.full && counts.dropped == 0, "seed {seed}: {counts:?}");
    // The price: inputs are repeated in the next packets, so few are missing.
    assert!(counts.guessed * 20 < counts.in_time, "seed {seed}: {counts:?}");
}

/// The same game over a reliable stream: nothing differs either, only later.
#[test]
fn kcp_alone_carries_the_same_game() {
    let mut lab = Lab::new(Transport::Kcp, &common::link("rtt=60ms,loss=5%"), 4);
    for number in 0..4 {
        lab.join(common::hello(number, Wish::Any), true);
    }
    lab.run_for(Duration::from_secs(30));
    for guest in 0..4 {
        let client = lab.client(guest).unwrap();
        let word = client.confirmed().unwrap();
        assert_eq!(client.unreadable(), 0);
        let truth = lab.server().world_at(word.tick).unwrap();
        assert_eq!(word.hash_for(client.you()), truth.hash_for(client.you()));
    }
}
