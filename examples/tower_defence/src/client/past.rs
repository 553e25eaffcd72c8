//! Where other runners were: they are drawn some ticks in the past, between two snapshots. Beyond the newest snapshot
//! they continue with their velocity, but not for long.

use super::clock::TICK;
use super::smooth::cells;
use crate::sim::{PlayerId, Runner, World};
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(super) struct Past {
    /// The runners of snapshots, the oldest first.
    frames: VecDeque<(u32, Vec<Runner>)>,
}

/// Where to draw a runner, cells.
pub(super) struct Drawn {
    pub(super) x: f32,
    pub(super) y: f32,
    pub(super) is_extrapolated: bool,
}

impl Past {
    /// Stores the runners of a snapshot, which may be older than others.
    pub(super) fn push(&mut self, world: &World) {
        let index = self.frames.partition_point(|(tick, _)| *tick < world.tick);
        if self.frames.get(index).is_some_and(|(tick, _)| *tick == world.tick) {
            return;
        }
        let runners = world.runners().filter(|runner| runner.alive).cloned().collect();
        self.frames.insert(index, (world.tick, runners));
        if self.frames.len() > FRAMES {
            self.frames.pop_front();
        }
    }

    /// All runners to draw at the server's time `time`, µs.
    pub(super) fn at(&self, time: i64) -> Vec<(Runner, Drawn)> {
        let index = self.frames.partition_point(|(tick, _)| i64::from(*tick) * TICK <= time);
        let Some((tick, runners)) = self.frames.get(index.saturating_sub(1)) else { return Vec::new() };
        let passed = time - i64::from(*tick) * TICK;
        let next = self.frames.get(index).filter(|_| index > 0);
        let draw = |runner: &Runner| match next {
            Some((next, runners)) => {
                let span = (i64::from(*next) - i64::from(*tick)) * TICK;
                between(runner, find(runners, runner.player), share(passed, span))
            }
            None => beyond(runner, passed),
        };
        runners.iter().map(|runner| (runner.clone(), draw(runner))).collect()
    }
}

fn find(runners: &[Runner], player: PlayerId) -> Option<&Runner> {
    runners.iter().find(|runner| runner.player == player)
}

/// On the straight line between two positions. A runner that is gone stays where it was.
fn between(from: &Runner, to: Option<&Runner>, share: f32) -> Drawn {
    let to = to.map_or(from.at, |to| to.at);
    let on = |from: i32, to: i32| cells(from) + cells(to - from) * share;
    Drawn { x: on(from.at.x, to.x), y: on(from.at.y, to.y), is_extrapolated: false }
}

/// Continues from the newest position, for at most a quarter of a second.
fn beyond(runner: &Runner, passed: i64) -> Drawn {
    let ticks = share(passed.clamp(0, BEYOND), TICK);
    let on = |at: i32, velocity: i32| cells(at) + cells(velocity) * ticks;
    let (x, y) = (on(runner.at.x, runner.velocity.x), on(runner.at.y, runner.velocity.y));
    Drawn { x, y, is_extrapolated: passed > TICK }
}

#[expect(clippy::cast_precision_loss, reason = "some seconds at most")]
fn share(passed: i64, span: i64) -> f32 {
    passed as f32 / span.max(1) as f32
}

/// Snapshots kept.
const FRAMES: usize = 32;
/// How long a runner continues with its velocity, µs.
const BEYOND: i64 = 250_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::{Inputs, Keys, Role};

    /// A runner that walks to the right, and its snapshots of each tick.
    fn past() -> (Past, World) {
        let (mut past, mut world) = (Past::default(), World::new(24, 14, 1));
        world.join(PlayerId(0), Role::Runner);
        let mut inputs = Inputs::default();
        inputs.set(PlayerId(0), Keys::RIGHT);
        while world.runners().all(|runner| runner.at.x < 400) {
            world.step(&inputs);
            past.push(&world);
        }
        (past, world)
    }

    fn x(past: &Past, time: i64) -> (f32, bool) {
        let drawn = past.at(time);
        let (_, drawn) = drawn.first().expect("there is one");
        (drawn.x, drawn.is_extrapolated)
    }

    #[test]
    fn between_two_snapshots_a_runner_is_between_both_even_if_one_is_missing() {
        let (mut past, world) = past();
        let now = i64::from(world.tick) * TICK;
        let whole = x(&past, now - 3 * TICK / 2);
        past.frames.retain(|(tick, _)| *tick != world.tick - 1);
        let without = x(&past, now - 3 * TICK / 2);
        assert!((whole.0 - without.0).abs() < 0.001 && !without.1, "{whole:?} {without:?}");
    }

    #[test]
    fn beyond_the_newest_it_goes_on_by_its_velocity_but_not_for_long() {
        let (past, world) = past();
        let now = i64::from(world.tick) * TICK;
        let [here, soon, bound, late] = [0, 2 * TICK, BEYOND, 100 * TICK].map(|later| x(&past, now + later));
        assert!(!here.1 && soon.1 && late.1);
        assert!((soon.0 - here.0 - 2.0 * 24.0 / 256.0).abs() < 0.001, "{here:?} {soon:?}");
        assert!(bound.0 > soon.0 && (late.0 - bound.0).abs() < f32::EPSILON, "{bound:?} {late:?}");
    }
}
