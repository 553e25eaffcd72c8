//! Role B: walks to the exit on the least dangerous way, and takes a coin now and then.

use super::way::Way;
use crate::client::Command;
use crate::sim::{At, Colour, Improvements, Keys, Order, Phase, PlayerId, Point, Refusal, Runner, World};

#[derive(Debug, Default)]
pub(super) struct RunnerBot {
    way: Way,
    goal: Option<At>,
    /// When the way was found.
    found: u32,
    /// The wave after which it last bought something.
    bought: Option<u16>,
}

impl RunnerBot {
    pub(super) fn think(&mut self, world: &World, you: PlayerId) -> Option<Command> {
        let runner = world.runner(you)?;
        if world.phase == Phase::Upgrading {
            return self.buy(world, you, runner);
        }
        if !runner.alive {
            return Some(Command::Steer(Keys::default()));
        }
        let goal = goal(world, runner);
        if self.goal != Some(goal) || world.tick >= self.found + AGAIN || world.tick < self.found {
            self.way = Way::to(&world.board, goal, |at| 10 + danger(world, runner, at));
            (self.goal, self.found) = (Some(goal), world.tick);
        }
        let here = runner.at.cell();
        let next = self.way.next(&world.board, here).unwrap_or(goal);
        Some(Command::Steer(steer(runner.at, here, next)))
    }

    /// In each pause, buys the best improvement that it can afford.
    fn buy(&mut self, world: &World, you: PlayerId, runner: &Runner) -> Option<Command> {
        if self.bought == Some(world.wave) || world.phase_ends < world.tick + 30 {
            return None;
        }
        let worst =
            Colour::ALL.into_iter().filter(|colour| runner.colours.has(*colour)).max_by_key(|colour| {
                world
                    .turrets
                    .iter()
                    .filter(|turret| turret.colour == *colour)
                    .map(|turret| turret.level)
                    .sum::<u8>()
            })?;
        let (velocity, health) = (Improvements::VELOCITY, Improvements::HEALTH);
        let wishes = [
            Improvements::without(worst).and(velocity).and(health),
            Improvements::without(worst),
            velocity.and(health),
            if you.0.is_multiple_of(2) { velocity } else { health },
            Improvements::MONEY,
        ];
        self.bought = Some(world.wave);
        let is_possible =
            |wish: &Improvements| world.clone().order(you, Order::Improve(*wish)) != Err(Refusal::Money);
        let wish = wishes.into_iter().find(is_possible)?;
        Some(Command::Order(Order::Improve(wish)))
    }
}

/// A nearby coin, or the exit.
fn goal(world: &World, runner: &Runner) -> At {
    let here = runner.at.cell();
    let near = world.coins.iter().flatten().filter(|coin| coin.distance(here) <= DETOUR);
    let coin = near.min_by_key(|coin| (coin.distance(here), **coin));
    coin.copied().unwrap_or(world.board.exit())
}

/// How dangerous a cell is: roughly the damage per second from turrets that reach it.
fn danger(world: &World, runner: &Runner, at: At) -> u32 {
    let middle = at.middle();
    let reaches = |turret: &&crate::sim::Turret| {
        let range = turret.kind.range();
        turret.at.middle().distance_squared(middle) <= range * range
    };
    let reaching = world.turrets.iter().filter(reaches);
    reaching.map(|turret| u32::from(turret.damage(runner)) * 30 / turret.kind.reload()).sum::<u32>() / 6
}

/// Steers to the next cell along its middle, because there is little room between turrets.
fn steer(from: Point, here: At, next: At) -> Keys {
    let to = next.middle();
    let (x, y) = (to.x - from.x, to.y - from.y);
    let aside = |off: i32| if off.abs() > SLACK { off } else { 0 };
    if next.x == here.x {
        let is_aligned = x.abs() <= ROOM;
        Keys::towards(aside(x), if is_aligned { y } else { 0 })
    } else {
        let is_aligned = y.abs() <= ROOM;
        Keys::towards(if is_aligned { x } else { 0 }, aside(y))
    }
}

/// Ticks until it searches for a way again.
const AGAIN: u32 = 20;
/// Longest distance to a coin, cells.
const DETOUR: u8 = 3;
/// Distance from the middle that does not matter, and that still leaves room to move on, units.
const SLACK: i32 = 22;
/// See [`SLACK`].
const ROOM: i32 = 38;
