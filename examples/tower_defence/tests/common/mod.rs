//! What several tests need: games that anything happens in, by a seed.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]
#![allow(dead_code, reason = "no test needs all of it")]

use rand::Rng;
use tower_defence::lab::LinkSpec;
use tower_defence::sim::rules::TURRETS;
use tower_defence::sim::{
    At, Bonus, Colour, Improvements, Inputs, Keys, Kind, Order, PlayerId, Role, TurretId, World,
};
use tower_defence::wire::{Hello, Wish};
use whitewater_sim::SimRng;

pub(crate) fn below(rng: &mut SimRng, count: u64) -> u8 {
    u8::try_from(rng.next_u64() % count).unwrap()
}

pub(crate) fn link(text: &str) -> LinkSpec {
    text.parse().unwrap()
}

pub(crate) fn hello(number: u8, wish: Wish) -> Hello {
    Hello { name: format!("player {number}"), wish, ticket: number.into() }
}

/// An order that may make sense or not.
pub(crate) fn any_order(rng: &mut SimRng) -> Order {
    match rng.next_u64() % 5 {
        0 => Order::Upgrade { turret: TurretId(below(rng, TURRETS.into())) },
        1 => Order::Buy { bonus: Bonus::of(below(rng, 4)).unwrap() },
        2 => Order::Improve(Improvements::from_bits(below(rng, 64))),
        _ => Order::Place {
            at: At { x: below(rng, 24), y: below(rng, 14) },
            colour: Colour::of(below(rng, 3)).unwrap(),
            kind: Kind::of(below(rng, 3)).unwrap(),
        },
    }
}

/// A game without network in which anything happens.
pub(crate) struct Game {
    pub(crate) world: World,
    pub(crate) inputs: Inputs,
    rng: SimRng,
}

impl Game {
    pub(crate) fn new(seed: u64) -> Self {
        let mut world = World::new(24, 14, seed);
        world.join(PlayerId(0), Role::Builder);
        world.join(PlayerId(1), Role::Runner);
        Self { world, inputs: Inputs::default(), rng: SimRng::new(seed, 3) }
    }

    /// A tick, before which somebody comes, goes, turns or orders something.
    pub(crate) fn step(&mut self) {
        let Self { world, inputs, rng } = self;
        let player = PlayerId(below(rng, 12));
        match rng.next_u64() % 400 {
            0 if world.purse(player).is_some() => world.leave(player),
            1 if world.purse(player).is_none() => {
                world.join(player, if player.0.is_multiple_of(3) { Role::Builder } else { Role::Runner });
            }
            2..60 => drop(world.order(player, any_order(rng))),
            60..140 => {
                // More to the right than elsewhere: so some arrive.
                let keys = [1, 2, 4, 8, 8, 8, 9, 10][usize::from(below(rng, 8))];
                inputs.set(player, Keys::from_bits(keys));
            }
            _ => {}
        }
        world.step(inputs);
        world.take_events();
    }
}
