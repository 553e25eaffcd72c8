//! What players buy, and why an order is refused. Each order is checked as a whole before it changes anything.

use super::board::{At, Cell};
use super::event::EventKind;
use super::phase::Phase;
use super::player::{PlayerId, Role};
use super::rules::{BASE, BONUS, LEVELS, REPAIR, TURRET_LEVELS, TURRETS};
use super::runner::touches;
use super::turret::{Colour, Kind, Turret, TurretId};
use super::world::World;

/// What a player wants to buy.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Order {
    /// Role A: a turret.
    Place {
        /// Where.
        at: At,
        /// Which runners it hurts most.
        colour: Colour,
        /// What it does.
        kind: Kind,
    },
    /// Role A: raise a turret by a level.
    Upgrade {
        /// Which one.
        turret: TurretId,
    },
    /// Role A: a bonus, for a token.
    Buy {
        /// Which one.
        bonus: Bonus,
    },
    /// Role B, between two waves: improve the runner.
    Improve(Improvements),
}

/// Six bits, one for each improvement of a runner.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Improvements(u8);

impl Improvements {
    /// The runner loses red, so turrets of that colour hurt it less. Only one colour at a time, and the last colour
    /// stays.
    pub const NO_RED: Self = Self(1);
    /// The same for green.
    pub const NO_GREEN: Self = Self(2);
    /// The same for blue.
    pub const NO_BLUE: Self = Self(4);
    /// The runner is faster.
    pub const VELOCITY: Self = Self(8);
    /// The runner has more health.
    pub const HEALTH: Self = Self(16);
    /// The next event that pays money pays twice as much.
    pub const MONEY: Self = Self(32);

    /// The lowest 6 bits.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 63)
    }

    /// From the lowest bit: no red, no green, no blue, velocity, health, money.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Both sets of improvements.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` are among them.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The improvement that removes a colour.
    #[must_use]
    pub const fn without(colour: Colour) -> Self {
        Self(1 << colour.code())
    }

    /// The price of all of them.
    #[must_use]
    pub const fn cost(self) -> u16 {
        let [red, green, blue, velocity, health, money] = COSTS;
        self.bit(0) * red
            + self.bit(1) * green
            + self.bit(2) * blue
            + self.bit(3) * velocity
            + self.bit(4) * health
            + self.bit(5) * money
    }

    const fn bit(self, bit: u8) -> u16 {
        (self.0 >> bit & 1) as u16
    }

    /// The colour that is removed. An error if there are several.
    fn colour(self) -> Result<Option<Colour>, Refusal> {
        let mut colours = Colour::ALL.into_iter().filter(|colour| self.has(Self::without(*colour)));
        let colour = colours.next();
        if colours.next().is_some() { Err(Refusal::Contradiction) } else { Ok(colour) }
    }
}

/// The price of each of the six.
const COSTS: [u16; 6] = [60, 60, 60, 40, 40, 15];

/// What role A buys with tokens. Each bonus is unlocked by a wave.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Bonus {
    /// All runners are slow for some seconds.
    #[default]
    Blizzard,
    /// All turrets fire twice as often for some seconds.
    Overcharge,
    /// Runners that die in the next seconds pay twice as much.
    Bounty,
    /// The base is repaired.
    Repair,
}

impl Bonus {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Blizzard, Self::Overcharge, Self::Bounty, Self::Repair];

    /// Its number.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The bonus with this number.
    #[must_use]
    pub fn of(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// Its price in tokens.
    #[must_use]
    pub const fn cost(self) -> u8 {
        match self {
            Self::Blizzard | Self::Bounty => 1,
            Self::Overcharge | Self::Repair => 2,
        }
    }
}

/// Why an order or an input was refused.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Refusal {
    /// Players of this role cannot do this.
    Role,
    /// This is not possible in the current phase.
    Phase,
    /// The cell is occupied.
    Taken,
    /// Some runner would have no way to the exit.
    Blocks,
    /// There is not enough money, or there are not enough tokens.
    Money,
    /// There is no such turret.
    NoTurret,
    /// It has the highest level, or there are as many as possible.
    Most,
    /// The bonus is not unlocked yet.
    Locked,
    /// Bits that contradict each other, or that ask for nothing.
    Contradiction,
    /// Inputs for a tick too far ahead.
    Future,
    /// More packets or orders than a player can need.
    Flood,
    /// Bytes that are not part of this game.
    Malformed,
}

impl Refusal {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 12] = [
        Self::Role,
        Self::Phase,
        Self::Taken,
        Self::Blocks,
        Self::Money,
        Self::NoTurret,
        Self::Most,
        Self::Locked,
        Self::Contradiction,
        Self::Future,
        Self::Flood,
        Self::Malformed,
    ];

    /// Its number.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The refusal with this number.
    #[must_use]
    pub fn of(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

impl World {
    /// Carries out a player's order.
    ///
    /// # Errors
    ///
    /// The reason for the refusal. Nothing has changed then.
    pub fn order(&mut self, player: PlayerId, order: Order) -> Result<(), Refusal> {
        match order {
            Order::Place { at, colour, kind } => self.place(player, at, colour, kind),
            Order::Upgrade { turret } => self.upgrade(player, turret),
            Order::Buy { bonus } => self.buy(player, bonus),
            Order::Improve(improvements) => self.improve(player, improvements),
        }
    }

    fn place(&mut self, player: PlayerId, at: At, colour: Colour, kind: Kind) -> Result<(), Refusal> {
        self.check(player, Role::Builder, kind.cost())?;
        let id = u8::try_from(self.turrets.len()).ok().filter(|id| *id < TURRETS).ok_or(Refusal::Most)?;
        let is_near = at.distance(self.board.start()) <= 1 || at.distance(self.board.exit()) <= 1;
        let on_board = || self.runners().filter(|runner| runner.alive);
        if is_near || self.board.cell(at) != Cell::Free || on_board().any(|runner| touches(runner, at)) {
            return Err(Refusal::Taken);
        }
        let runners: Vec<At> = on_board().map(|runner| runner.at.cell()).collect();
        if self.board.would_block(at, &runners) {
            return Err(Refusal::Blocks);
        }
        self.pay(player, kind.cost());
        self.turrets.push(Turret { at, colour, kind, level: 1, ..Turret::default() });
        self.board.set(at, Cell::Turret(TurretId(id)));
        self.board.measure();
        self.tell(EventKind::Built, Some(player), 0, id.into());
        Ok(())
    }

    fn upgrade(&mut self, player: PlayerId, id: TurretId) -> Result<(), Refusal> {
        self.check(player, Role::Builder, 0)?;
        let turret = self.turrets.get_mut(usize::from(id.0)).ok_or(Refusal::NoTurret)?;
        if turret.level >= TURRET_LEVELS {
            return Err(Refusal::Most);
        }
        let cost = turret.upgrade_cost();
        let purse = self.purse(player).filter(|purse| purse.money >= cost);
        if purse.is_none() {
            return Err(Refusal::Money);
        }
        if let Some(turret) = self.turrets.get_mut(usize::from(id.0)) {
            turret.level += 1;
        }
        self.pay(player, cost);
        self.tell(EventKind::Raised, Some(player), 0, id.0.into());
        Ok(())
    }

    fn buy(&mut self, player: PlayerId, bonus: Bonus) -> Result<(), Refusal> {
        self.check(player, Role::Builder, 0)?;
        let purse = self.purse(player).ok_or(Refusal::Role)?;
        if !purse.has_unlocked(bonus) {
            return Err(Refusal::Locked);
        }
        if purse.tokens < bonus.cost() {
            return Err(Refusal::Money);
        }
        if let Some(purse) = self.purse_mut(player) {
            purse.tokens -= bonus.cost();
        }
        let until = self.tick + BONUS;
        match bonus {
            Bonus::Blizzard => self.runners_mut().for_each(|runner| {
                runner.slow_until = if runner.alive { until } else { 0 };
            }),
            Bonus::Overcharge => self.overcharge_until = until,
            Bonus::Bounty => self.bounty_until = until,
            Bonus::Repair => self.set_base((self.base + REPAIR).min(BASE)),
        }
        self.tell(EventKind::Bonus, Some(player), 0, bonus.code().into());
        Ok(())
    }

    fn improve(&mut self, player: PlayerId, improvements: Improvements) -> Result<(), Refusal> {
        self.check(player, Role::Runner, 0)?;
        if self.phase != Phase::Upgrading {
            return Err(Refusal::Phase);
        }
        let colour = improvements.colour()?;
        let runner = self.runner(player).ok_or(Refusal::Role)?;
        if improvements.bits() == 0 || colour.is_some_and(|colour| !runner.colours.has(colour)) {
            return Err(Refusal::Contradiction);
        }
        let is_most = |bit, level| improvements.has(bit) && level >= LEVELS;
        if is_most(Improvements::VELOCITY, runner.speed_level)
            || is_most(Improvements::HEALTH, runner.health_level)
            || (colour.is_some() && runner.colours.count() == 1)
        {
            return Err(Refusal::Most);
        }
        self.check(player, Role::Runner, improvements.cost())?;
        self.pay(player, improvements.cost());
        if let Some(runner) = self.runner_mut(player) {
            runner.speed_level += u8::from(improvements.has(Improvements::VELOCITY));
            runner.health_level += u8::from(improvements.has(Improvements::HEALTH));
            runner.colours = colour.map_or(runner.colours, |colour| runner.colours.without(colour));
        }
        if let Some(purse) = self.purse_mut(player) {
            purse.doubles |= improvements.has(Improvements::MONEY);
        }
        self.tell(EventKind::Improved, Some(player), 0, improvements.bits().into());
        Ok(())
    }

    fn check(&self, player: PlayerId, role: Role, cost: u16) -> Result<(), Refusal> {
        let purse = self.purse(player).filter(|purse| purse.role == role).ok_or(Refusal::Role)?;
        if purse.money >= cost { Ok(()) } else { Err(Refusal::Money) }
    }

    fn pay(&mut self, player: PlayerId, cost: u16) {
        if let Some(purse) = self.purse_mut(player) {
            purse.money = purse.money.saturating_sub(cost);
        }
    }
}
