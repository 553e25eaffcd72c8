//! Waves, and the time between them.

use super::event::EventKind;
use super::player::Role;
use super::rules::{BASE, LIVES, MONEY_RUN, MONEY_START, MONEY_WAVE, PAUSE, WAVE, WAVES};
use super::runner::Runner;
use super::world::World;

/// The phase of the game.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Phase {
    /// Runners run.
    Running,
    /// Runners wait, and are improved.
    #[default]
    Upgrading,
}

impl World {
    /// Moves to the next phase when it is time.
    pub(super) fn turn_phase(&mut self) {
        let is_over = match self.phase {
            Phase::Running => self.base == 0 || self.tick >= self.phase_ends || !self.anybody_runs(),
            Phase::Upgrading => self.tick >= self.phase_ends,
        };
        match self.phase {
            _ if !is_over => {}
            Phase::Upgrading => self.begin_wave(),
            Phase::Running if self.base == 0 => self.end_game(false),
            Phase::Running if self.wave >= WAVES => self.end_game(true),
            Phase::Running => self.begin_pause(),
        }
    }

    /// Whether a runner is on the board, or will be. A world without runners waits for some.
    fn anybody_runs(&self) -> bool {
        let mut runners = self.runners().peekable();
        runners.peek().is_none() || runners.any(|runner| runner.alive || runner.returns > 0)
    }

    fn begin_wave(&mut self) {
        (self.phase, self.phase_ends) = (Phase::Running, self.tick + WAVE);
        self.wave += 1;
        let (tick, wave) = (self.tick, self.wave);
        for runner in self.runners_mut() {
            // One after another, so that they do not all stand in the same place.
            let turn = u32::from(runner.player.0 % 8) * 6;
            runner.leave(tick + 1 + turn);
        }
        for purse in self.purses_mut() {
            purse.waits_until = 0;
            if purse.role == Role::Runner {
                purse.life = LIVES.into();
            } else {
                // Each of the first four waves unlocks a bonus.
                purse.unlocked |= 1 << (wave - 1).min(3);
            }
        }
        self.tell(EventKind::Wave, None, 0, wave);
    }

    fn begin_pause(&mut self) {
        (self.phase, self.phase_ends) = (Phase::Upgrading, self.tick + PAUSE);
        let (until, wave) = (self.phase_ends, self.wave);
        for runner in self.runners_mut() {
            runner.leave(0);
        }
        for purse in self.purses_mut() {
            let is_runner = purse.role == Role::Runner;
            purse.gather(if is_runner { MONEY_RUN } else { MONEY_WAVE });
            purse.waits_until = if is_runner { until } else { 0 };
        }
        self.tell(EventKind::Pause, None, 0, wave);
    }

    /// Starts again with the same players.
    fn end_game(&mut self, builders_win: bool) {
        self.tell(EventKind::Over, None, 0, builders_win.into());
        self.clear();
        (self.phase, self.phase_ends) = (Phase::Upgrading, self.tick + PAUSE);
        self.wave = 0;
        self.base = BASE;
        let until = self.phase_ends;
        for runner in self.runners_mut() {
            *runner = Runner::new(runner.player, 0);
        }
        for purse in self.purses_mut() {
            let is_runner = purse.role == Role::Runner;
            purse.money = if is_runner { 0 } else { MONEY_START };
            purse.life = if is_runner { LIVES.into() } else { BASE };
            purse.waits_until = if is_runner { until } else { 0 };
            (purse.doubles, purse.tokens, purse.unlocked) = (false, 0, 0);
        }
    }
}
