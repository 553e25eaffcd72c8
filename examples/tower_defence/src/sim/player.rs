//! Players, and their purses, which only they see.

use super::order::Bonus;
use super::rules::{MONEY_MAX, PLAYERS, TOKENS_MAX};
use std::fmt;

/// A place in the game, below [`PLAYERS`].
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PlayerId(pub u8);

impl PlayerId {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..PLAYERS).map(Self)
    }

    /// The index into a table of all players.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for PlayerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The role of a player.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Role {
    /// A: builds turrets.
    #[default]
    Builder,
    /// B: steers a runner from the start to the exit.
    Runner,
}

/// The personal state: the server only tells its owner.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Purse {
    /// The role of its owner.
    pub role: Role,
    /// Up to [`MONEY_MAX`].
    pub money: u16,
    /// For a runner: lives left in this wave. For a builder: remaining health of the base.
    pub life: u16,
    /// For a runner between two waves: the tick until which it waits.
    pub waits_until: u32,
    /// For a runner: whether the next event that pays money pays twice as much.
    pub doubles: bool,
    /// For a builder: tokens, which buy bonuses.
    pub tokens: u8,
    /// For a builder: the bonuses that can be bought, one bit each.
    pub unlocked: u8,
    /// The number of the newest order that was decided, either way. A client predicts the orders after it.
    pub decided: u16,
}

impl Purse {
    /// The purse of a player who joins now.
    #[must_use]
    pub fn new(role: Role) -> Self {
        Self { role, ..Self::default() }
    }

    /// Adds money, and returns how much.
    pub(super) fn gather(&mut self, money: u16) -> u16 {
        let money = if std::mem::take(&mut self.doubles) { money * 2 } else { money };
        self.money = (self.money + money).min(MONEY_MAX);
        money
    }

    pub(super) fn gather_token(&mut self) {
        self.tokens = (self.tokens + 1).min(TOKENS_MAX);
    }

    /// Whether a bonus can be bought.
    #[must_use]
    pub fn has_unlocked(&self, bonus: Bonus) -> bool {
        self.unlocked >> bonus.code() & 1 == 1
    }
}
