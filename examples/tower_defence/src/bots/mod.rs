//! Players without a keyboard. They see what a client sees, and do what a player could do.

mod builder;
mod runner;
mod way;

use crate::client::{Client, Command};
use crate::sim::Role;
use builder::Builder;
use runner::RunnerBot;
use whitewater_sim::SimRng;

/// A bot for either role.
#[derive(Debug)]
pub struct Bot {
    rng: SimRng,
    builder: Builder,
    runner: RunnerBot,
    /// The tick of its last decision.
    thought: u32,
}

impl Bot {
    /// A bot with its own random numbers.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let (builder, runner) = (Builder::default(), RunnerBot::default());
        Self { rng: SimRng::new(seed, 77), builder, runner, thought: 0 }
    }

    /// Call this once per frame: acts for the player.
    pub fn play(&mut self, client: &mut Client) {
        let (Some(world), Some(you)) = (client.predicted(), client.you()) else { return };
        let Some(role) = world.purse(you).map(|purse| purse.role) else { return };
        let pause = if role == Role::Runner { 3 } else { 20 };
        if world.tick.abs_diff(self.thought) < pause {
            return;
        }
        self.thought = world.tick;
        let command = match role {
            Role::Runner => self.runner.think(world, you),
            Role::Builder => self.builder.think(world, you, &mut self.rng).map(Command::Order),
        };
        if let Some(command) = command {
            client.command(command);
        }
    }
}
