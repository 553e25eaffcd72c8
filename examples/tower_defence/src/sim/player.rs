//! Who plays, and what only he is told: his purse.

use super::order::Bonus;
use super::rules::{MONEY_MAX, PLAYERS, TOKENS_MAX};
use std::fmt;

/// A place at the table, below [`PLAYERS`].
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PlayerId(pub u8);

impl PlayerId {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..PLAYERS).map(Self)
    }

    /// As an index of a table of all players.
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

/// What a player does.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Role {
    /// A: builds turrets.
    #[default]
    Builder,
    /// B: steers a runner from the start to the exit.
    Runner,
}

/// The personal part: the server tells it to its owner only.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Purse {
    /// What its owner does.
    pub role: Role,
    /// Up to [`MONEY_MAX`].
    pub money: u16,
    /// Of a runner: lives left in this wave. Of a builder: what is left of the base.
    pub life: u16,
    /// Of a runner between two waves: the tick up to which it waits.
    pub waits_until: u32,
    /// Of a runner: the next event that gives money gives twice as much.
    pub doubles: bool,
    /// Of a builder: tokens, each for a bonus.
    pub tokens: u8,
    /// Of a builder: the bonuses that can be bought, a bit each.
    pub unlocked: u8,
    /// The number of the newest order that was decided, taken or refused: a client predicts those after it.
    pub decided: u16,
}

impl Purse {
    /// One of a player that comes now.
    #[must_use]
    pub fn new(role: Role) -> Self {
        Self { role, ..Self::default() }
    }

    /// Puts money in, and tells how much.
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
