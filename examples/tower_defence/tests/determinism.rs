//! The same inputs give the same world, wherever it is played.

#![allow(clippy::unwrap_used, reason = "a test that panics has found something")]

mod common;

use common::Game;
use std::time::Duration;
use tower_defence::lab::{Lab, Transport};
use tower_defence::sim::{At, Colour, Kind};
use tower_defence::sim::{Inputs, Keys, Order, PlayerId, Role, World};
use tower_defence::wire::{self, Wish};

#[test]
fn a_hundred_thousand_ticks_of_anything_are_the_same_twice() {
    let seed = 11;
    let (mut one, mut other) = (Game::new(seed), Game::new(seed));
    let (mut turrets, mut waves, mut digest) = (0, 0, 0_u64);
    for tick in 0..100_000 {
        let wave = one.world.wave;
        one.step();
        other.step();
        assert_eq!(one.world.hash(), other.world.hash(), "seed {seed}: tick {tick}");
        turrets = turrets.max(one.world.turrets.len());
        waves += u32::from(one.world.wave > wave);
        digest = digest.rotate_left(1) ^ one.world.hash();
    }
    assert_eq!(one.world, other.world);
    assert!(
        turrets > 20 && waves > 50,
        "seed {seed}: {turrets} turrets, {waves} waves: too little has happened"
    );
    println!("seed {seed}: {digest:016x} after {waves} waves"); // the same on every machine
}

#[test]
fn a_copy_from_the_wire_goes_on_as_the_server_does() {
    let (builder, runner) = (PlayerId(0), PlayerId(1));
    for seed in 1..=20 {
        let mut world = World::new(24, 14, seed);
        world.join(builder, Role::Builder);
        world.join(runner, Role::Runner);
        for x in 0..4 {
            let (at, colour, kind) = (At { x: 4 + 3 * x, y: 6 }, Colour::Red, Kind::Gun);
            let _ = world.order(builder, Order::Place { at, colour, kind }); // if there is no rock
        }
        let mut bytes = Vec::new();
        wire::write(&mut bytes, &world, Some(runner), None, None).unwrap();
        let mut copy = wire::read(&bytes, None, |_| None).unwrap().world;
        let mut rng = whitewater_sim::SimRng::new(seed, 1);
        let mut inputs = Inputs::default();
        for tick in 0..5000 {
            if tick % 7 == 0 {
                inputs.set(runner, Keys::from_bits(8 | common::below(&mut rng, 4)));
            }
            world.step(&inputs);
            copy.step(&inputs);
            assert_eq!(copy.hash_for(Some(runner)), world.hash_for(Some(runner)), "seed {seed}: tick {tick}");
        }
        assert!(world.wave > 1, "seed {seed}: nothing has happened");
    }
}

#[test]
fn a_whole_game_over_a_bad_network_is_the_same_twice() {
    let digest = |seed| {
        let mut lab = Lab::new(Transport::Sessions, &common::link("rtt=80ms,loss=8%,jitter=20ms"), seed);
        for number in 0..6 {
            lab.join(common::hello(number, Wish::Any), true);
        }
        lab.run_for(Duration::from_secs(40));
        let bytes: Vec<u64> = (0..6).map(|guest| lab.traffic(guest).unwrap().1.bytes).collect();
        (lab.server().world().hash(), bytes)
    };
    assert_eq!(digest(5), digest(5));
    assert_ne!(digest(5), digest(6));
}
