//! The numbers of the game. Positions are in units of 1/256 cell, times in ticks of 1/30 s.

/// Ticks per second.
pub const HZ: u32 = 30;
/// Units per cell.
pub const CELL: i32 = 256;
/// Columns and rows of the default board.
pub const BOARD: (u8, u8) = (24, 14);
/// Most columns and rows, so that the board fits into one snapshot.
pub const BOARD_MAX: (u8, u8) = (32, 18);
/// Fewest columns and rows.
pub const BOARD_MIN: (u8, u8) = (8, 6);
/// Most players of both roles, without spectators.
pub const PLAYERS: u8 = 24;
/// Most turrets.
pub const TURRETS: u8 = 64;
/// Coins on the board.
pub const COINS: u8 = 8;

/// Ticks of a wave.
pub const WAVE: u32 = 30 * HZ;
/// Ticks between two waves, for improvements.
pub const PAUSE: u32 = 10 * HZ;
/// Waves that role A must survive.
pub const WAVES: u16 = 10;
/// Runners that may reach the exit until role A loses.
pub const BASE: u16 = 40;
/// Lives of a runner in a wave.
pub const LIVES: u8 = 3;
/// Ticks until a runner is back at the start after dying, and after reaching the exit.
pub const RESPAWN: u32 = 3 * HZ;
/// See [`RESPAWN`].
pub const RETURN: u32 = HZ;

/// Speed of a runner without improvements, units per tick: 2.8 cells per second.
pub const SPEED: i32 = 24;
/// What a level of velocity adds.
pub const SPEED_STEP: i32 = 3;
/// Highest speed, with all improvements.
pub const SPEED_MAX: i32 = SPEED + SPEED_STEP * LEVELS as i32;
/// Half the width of a runner, so that one fits between two turrets.
pub const HALF: i32 = 88;
/// Runners that are nearer than this push each other, units.
pub const PUSH_REACH: i32 = 2 * HALF;
/// How hard: this part of the distance that is missing, in each tick.
pub const PUSH_PART: i32 = 16;
/// The hardest push, units per tick: so that even a slowed runner gets past.
pub const PUSH_MAX: i32 = 8;
/// Health of a runner in the first wave, the increase per wave, and the increase per level.
pub const HEALTH: u16 = 60;
/// See [`HEALTH`].
pub const HEALTH_WAVE: u16 = 20;
/// See [`HEALTH`].
pub const HEALTH_STEP: u16 = 25;
/// Highest health possible.
pub const HEALTH_MAX: u16 = HEALTH + HEALTH_WAVE * WAVES + HEALTH_STEP * LEVELS as u16;
/// Highest level of velocity and of health.
pub const LEVELS: u8 = 6;

/// Levels of a turret: 1 to 4.
pub const TURRET_LEVELS: u8 = 4;
/// A turret does this fraction of its damage to runners without its colour: one part in this many.
pub const OTHER_COLOUR: u16 = 4;
/// Ticks for which a frost turret slows a runner down.
pub const FROST: u32 = HZ;

/// Most money.
pub const MONEY_MAX: u16 = 9999;
/// Money of role A at the start, and for each wave.
pub const MONEY_START: u16 = 320;
/// See [`MONEY_START`].
pub const MONEY_WAVE: u16 = 140;
/// Money of role A for a runner that died. Every builder gets all of it.
pub const MONEY_KILL: u16 = 15;
/// Money of role B for a coin, for the exit, and for each wave.
pub const MONEY_COIN: u16 = 10;
/// See [`MONEY_COIN`].
pub const MONEY_EXIT: u16 = 35;
/// See [`MONEY_COIN`].
pub const MONEY_RUN: u16 = 25;
/// Money for a player who joins late, for each wave that they have missed.
pub const MONEY_LATE: u16 = 40;
/// Runners that must die until role A gets a token.
pub const KILLS_PER_TOKEN: u16 = 4;
/// Most tokens.
pub const TOKENS_MAX: u8 = 15;
/// Ticks that a bonus lasts.
pub const BONUS: u32 = 5 * HZ;
/// What `Bonus::Repair` restores.
pub const REPAIR: u16 = 3;
