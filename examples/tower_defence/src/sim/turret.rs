//! The turrets that role A builds, and whom they hit.

use super::board::{At, Board};
use super::player::PlayerId;
use super::rules::{CELL, FROST, OTHER_COLOUR};
use super::runner::Runner;

/// The number of a turret, counted from 0 in the order of building.
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

    /// Its number, which is also that of its bit.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The colour with this number.
    #[must_use]
    pub fn of(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|colour| colour.code() == code)
    }
}

/// The kind of a turret.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Kind {
    /// Fires often, at one runner.
    #[default]
    Gun,
    /// Hurts little, and slows down.
    Frost,
    /// Fires far and rarely, and hits all runners near its target.
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

    /// The kind with this number.
    #[must_use]
    pub fn of(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// The price of a new one. Each further level costs as much times the current level.
    #[must_use]
    pub const fn cost(self) -> u16 {
        match self {
            Self::Gun => 50,
            Self::Frost => 60,
            Self::Mortar => 90,
        }
    }

    /// Its range, units.
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
    /// Which runners it hurts most.
    pub colour: Colour,
    /// Its kind.
    pub kind: Kind,
    /// 1 to [`TURRET_LEVELS`](super::rules::TURRET_LEVELS).
    pub level: u8,
    /// The tick of its last shot; 0: it has not fired.
    pub fired: u32,
    /// The runner that it fired at.
    pub target: PlayerId,
}

impl Turret {
    /// The price of the next level.
    #[must_use]
    pub fn upgrade_cost(&self) -> u16 {
        self.kind.cost() * u16::from(self.level)
    }

    /// The damage to a runner.
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

    /// The runner it fires at: the one in range that is nearest to the exit.
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

    /// Whether a shot at `target` also hits `runner`.
    pub(super) const fn hits(&self, target: &Runner, runner: &Runner) -> bool {
        let is_near = target.at.distance_squared(runner.at) <= CELL * CELL;
        target.player.0 == runner.player.0 || (matches!(self.kind, Kind::Mortar) && is_near)
    }

    /// Hits a runner.
    pub(super) fn hit(&self, tick: u32, runner: &mut Runner) {
        runner.health = runner.health.saturating_sub(self.damage(runner));
        if self.kind == Kind::Frost {
            runner.slow_until = tick + FROST;
        }
    }
}
