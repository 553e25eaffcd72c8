//! What role A builds, and whom it hits.

use super::board::{At, Board};
use super::player::PlayerId;
use super::rules::{CELL, FROST, OTHER_COLOUR};
use super::runner::Runner;

/// The number of a turret: they are numbered from 0 as they are built.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TurretId(pub u8);

/// Which runners a turret hurts most.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Colour {
    /// Those that are red.
    #[default]
    Red,
    /// Those that are green.
    Green,
    /// Those that are blue.
    Blue,
}

impl Colour {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Red, Self::Green, Self::Blue];

    /// Its number, which is that of its bit.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The colour of a number.
    #[must_use]
    pub fn of(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|colour| colour.code() == code)
    }
}

/// What a turret does.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Kind {
    /// Fires often, at one.
    #[default]
    Gun,
    /// Hurts little, and slows.
    Frost,
    /// Fires far and seldom, and hits all that are near.
    Mortar,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Gun, Self::Frost, Self::Mortar];

    /// Its number.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The kind of a number.
    #[must_use]
    pub fn of(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// What one costs; each level more costs as much again, times the level that it has.
    #[must_use]
    pub const fn cost(self) -> u16 {
        match self {
            Self::Gun => 50,
            Self::Frost => 60,
            Self::Mortar => 90,
        }
    }

    /// Units that it reaches.
    #[must_use]
    pub const fn range(self) -> i32 {
        match self {
            Self::Gun => 3 * CELL,
            Self::Frost => 5 * CELL / 2,
            Self::Mortar => 9 * CELL / 2,
        }
    }

    /// Ticks from one shot to the next.
    #[must_use]
    pub const fn reload(self) -> u32 {
        match self {
            Self::Gun => 12,
            Self::Frost => 20,
            Self::Mortar => 45,
        }
    }

    const fn damage(self) -> u16 {
        match self {
            Self::Gun => 8,
            Self::Frost => 4,
            Self::Mortar => 16,
        }
    }
}

/// A turret.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Turret {
    /// Where it is.
    pub at: At,
    /// Whom it hurts most.
    pub colour: Colour,
    /// What it does.
    pub kind: Kind,
    /// 1 to [`TURRET_LEVELS`](super::rules::TURRET_LEVELS).
    pub level: u8,
    /// The tick of its last shot; 0: it has not fired.
    pub fired: u32,
    /// At whom.
    pub target: PlayerId,
}

impl Turret {
    /// What it costs to raise it by a level.
    #[must_use]
    pub fn upgrade_cost(&self) -> u16 {
        self.kind.cost() * u16::from(self.level)
    }

    /// What it takes off a runner.
    #[must_use]
    pub fn damage(&self, runner: &Runner) -> u16 {
        let damage = self.kind.damage() * (1 + u16::from(self.level)) / 2;
        if runner.colours.has(self.colour) { damage } else { damage / OTHER_COLOUR }
    }

    /// Whether it can fire.
    pub(super) const fn is_ready(&self, tick: u32, is_overcharged: bool) -> bool {
        let reload = self.kind.reload();
        let reload = if is_overcharged { reload / 2 } else { reload };
        self.fired == 0 || tick >= self.fired + reload
    }

    /// Whom it fires at: the one in range who is nearest to the exit.
    pub(super) fn aim<'a>(
        &self,
        board: &Board,
        runners: impl Iterator<Item = &'a Runner>,
    ) -> Option<PlayerId> {
        let (middle, range) = (self.at.middle(), self.kind.range());
        let seen = runners.filter(|runner| runner.at.distance_squared(middle) <= range * range);
        seen.min_by_key(|runner| (board.distance(runner.at.cell()), runner.player))
            .map(|runner| runner.player)
    }

    /// Whether a shot at `target` hits a runner, too.
    pub(super) const fn hits(&self, target: &Runner, runner: &Runner) -> bool {
        let is_near = target.at.distance_squared(runner.at) <= CELL * CELL;
        target.player.0 == runner.player.0 || (matches!(self.kind, Kind::Mortar) && is_near)
    }

    /// Hits a runner; the damage done.
    pub(super) fn hit(&self, tick: u32, runner: &mut Runner) {
        runner.health = runner.health.saturating_sub(self.damage(runner));
        if self.kind == Kind::Frost {
            runner.slow_until = tick + FROST;
        }
    }
}
