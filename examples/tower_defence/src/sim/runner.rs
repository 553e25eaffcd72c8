//! The runners that role B steers.

use super::board::{At, Board, Cell};
use super::keys::Keys;
use super::player::PlayerId;
use super::rules::{CELL, HALF, HEALTH, HEALTH_STEP, HEALTH_WAVE, SPEED, SPEED_STEP};
use super::turret::Colour;

/// A position on the board, units.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Point {
    /// From the left.
    pub x: i32,
    /// From the top.
    pub y: i32,
}

impl Point {
    /// The cell that it is in.
    #[must_use]
    pub fn cell(self) -> At {
        let cell = |at: i32| u8::try_from(at.div_euclid(CELL)).unwrap_or(u8::MAX);
        At { x: cell(self.x), y: cell(self.y) }
    }

    /// The square of the distance to another point, units².
    #[must_use]
    pub const fn distance_squared(self, other: Self) -> i32 {
        let (x, y) = (self.x - other.x, self.y - other.y);
        x * x + y * y
    }
}

/// The colours of a runner: turrets of these colours hurt it more.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Colours(u8);

impl Colours {
    /// Red, green and blue: the initial colours.
    pub const ALL: Self = Self(7);

    /// The lowest 3 bits.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 7)
    }

    /// Red, green, blue from the lowest bit.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether a colour is among them.
    #[must_use]
    pub const fn has(self, colour: Colour) -> bool {
        self.0 >> colour.code() & 1 == 1
    }

    /// The colours without one.
    #[must_use]
    pub const fn without(self, colour: Colour) -> Self {
        Self(self.0 & !(1 << colour.code()))
    }

    /// The number of colours.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }
}

/// A runner, steered by a player of role B.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Runner {
    /// The player who steers it.
    pub player: PlayerId,
    /// Whether it is on the board.
    pub alive: bool,
    /// Its position.
    pub at: Point,
    /// How far it walked by itself in the last tick, units: where it was pushed to does not count, because others see
    /// from this where it wants to go.
    pub velocity: Point,
    /// Its colours, which decide what hurts it most.
    pub colours: Colours,
    /// Zero if it is dead.
    pub health: u16,
    /// Levels of velocity that were bought.
    pub speed_level: u8,
    /// Levels of health that were bought.
    pub health_level: u8,
    /// The tick in which a dead runner returns; 0: not in this wave.
    pub returns: u32,
    /// It is slow until this tick.
    pub slow_until: u32,
}

impl Runner {
    /// A runner that waits.
    #[must_use]
    pub fn new(player: PlayerId, returns: u32) -> Self {
        Self {
            player,
            alive: false,
            at: Point::default(),
            velocity: Point::default(),
            colours: Colours::ALL,
            health: 0,
            speed_level: 0,
            health_level: 0,
            returns,
            slow_until: 0,
        }
    }

    /// Its health at the start of a life.
    #[must_use]
    pub fn full_health(&self, wave: u16) -> u16 {
        HEALTH + HEALTH_WAVE * wave + HEALTH_STEP * u16::from(self.health_level)
    }

    /// Units per tick.
    #[must_use]
    pub fn speed(&self, tick: u32) -> i32 {
        let speed = SPEED + SPEED_STEP * i32::from(self.speed_level);
        if tick < self.slow_until { speed / 2 } else { speed }
    }

    /// Puts it at the start; its player's number determines where in the cell.
    pub(super) fn enter(&mut self, board: &Board, wave: u16) {
        let middle = board.start().middle();
        let aside = i32::from(self.player.0 % 5) - 2;
        self.at = Point { x: middle.x, y: middle.y + aside * 16 };
        self.velocity = Point::default();
        self.health = self.full_health(wave);
        self.alive = true;
        self.returns = 0;
    }

    /// Takes it off the board until `returns`.
    pub(super) fn leave(&mut self, returns: u32) {
        self.alive = false;
        self.health = 0;
        self.velocity = Point::default();
        self.returns = returns;
        self.slow_until = 0;
    }

    /// Moves by a tick. It slides along walls.
    pub(super) fn walk(&mut self, tick: u32, keys: Keys, board: &Board) {
        let (x, y) = keys.direction();
        let speed = self.speed(tick);
        // 181 / 256 is the root of a half: the same speed in diagonal directions.
        let speed = if x != 0 && y != 0 { speed * 181 / 256 } else { speed };
        let before = self.at;
        self.slide(x * speed, y * speed, board);
        self.velocity = Point { x: self.at.x - before.x, y: self.at.y - before.y };
    }

    /// Moves by this much, but in neither direction into what is not open.
    pub(super) fn slide(&mut self, x: i32, y: i32, board: &Board) {
        let along = Point { x: self.at.x + x, y: self.at.y };
        if x != 0 && fits(board, along) {
            self.at = along;
        }
        let down = Point { x: self.at.x, y: self.at.y + y };
        if y != 0 && fits(board, down) {
            self.at = down;
        }
    }

    /// The keys that it continues with while nothing else is known.
    #[must_use]
    pub const fn keys(&self) -> Keys {
        Keys::towards(self.velocity.x, self.velocity.y)
    }
}

/// Whether a runner fits there.
fn fits(board: &Board, at: Point) -> bool {
    let corner = |x, y| {
        let (x, y) = (at.x + x, at.y + y);
        x >= 0 && y >= 0 && board.cell(Point { x, y }.cell()).is_open()
    };
    corner(-HALF, -HALF) && corner(HALF, -HALF) && corner(-HALF, HALF) && corner(HALF, HALF)
}

/// Whether a part of a runner is in a cell.
pub(super) fn touches(runner: &Runner, at: At) -> bool {
    let corner = |x, y| Point { x: runner.at.x + x, y: runner.at.y + y }.cell() == at;
    corner(-HALF, -HALF) || corner(HALF, -HALF) || corner(-HALF, HALF) || corner(HALF, HALF)
}

/// Whether it has come to the exit.
pub(super) fn has_arrived(runner: &Runner, board: &Board) -> bool {
    board.cell(runner.at.cell()) == Cell::Exit
}
