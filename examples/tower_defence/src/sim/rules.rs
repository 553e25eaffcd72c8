//! The numbers of the game. Places are in units of 1/256 cell, times in ticks of 1/30 s.

/// Ticks a second.
pub const HZ: u32 = 30;
/// Units in a cell.
pub const CELL: i32 = 256;
/// Columns and rows of the usual board.
pub const BOARD: (u8, u8) = (24, 14);
/// Most columns and rows: all of it fits into one snapshot.
pub const BOARD_MAX: (u8, u8) = (32, 18);
/// Least columns and rows.
pub const BOARD_MIN: (u8, u8) = (8, 6);
/// Most players of both roles, spectators not counted.
pub const PLAYERS: u8 = 24;
/// Most turrets.
pub const TURRETS: u8 = 64;
/// Coins that lie on the board.
pub const COINS: u8 = 8;

/// Ticks of a wave.
pub const WAVE: u32 = 30 * HZ;
/// Ticks between two waves, for upgrades.
pub const PAUSE: u32 = 10 * HZ;
/// Waves that role A has to survive.
pub const WAVES: u16 = 10;
/// Runners that may reach the exit before role A has lost.
pub const BASE: u16 = 40;
/// Lives of a runner in a wave.
pub const LIVES: u8 = 3;
/// Ticks until a runner is back at the start, after it died and after it has reached the exit.
pub const RESPAWN: u32 = 3 * HZ;
/// See [`RESPAWN`].
pub const RETURN: u32 = HZ;

/// Units a tick of a runner without improvements: 2.8 cells a second.
pub const SPEED: i32 = 24;
/// What a level of velocity adds.
pub const SPEED_STEP: i32 = 3;
/// Fastest, whatever was bought.
pub const SPEED_MAX: i32 = SPEED + SPEED_STEP * LEVELS as i32;
/// Half of a runner's width: one passes between two turrets.
pub const HALF: i32 = 88;
/// Health of a runner in the first wave, what each wave adds, and what each level of health does.
pub const HEALTH: u16 = 60;
/// See [`HEALTH`].
pub const HEALTH_WAVE: u16 = 20;
/// See [`HEALTH`].
pub const HEALTH_STEP: u16 = 25;
/// Most health there can be.
pub const HEALTH_MAX: u16 = HEALTH + HEALTH_WAVE * WAVES + HEALTH_STEP * LEVELS as u16;
/// Most levels of velocity and health, each.
pub const LEVELS: u8 = 6;

/// Levels of a turret: 1 to 4.
pub const TURRET_LEVELS: u8 = 4;
/// What a turret of another colour does to a runner: one of so many parts.
pub const OTHER_COLOUR: u16 = 4;
/// Ticks for which a frost turret slows who it hits.
pub const FROST: u32 = HZ;

/// Most money.
pub const MONEY_MAX: u16 = 9999;
/// Money of role A in the beginning, and for each wave.
pub const MONEY_START: u16 = 320;
/// See [`MONEY_START`].
pub const MONEY_WAVE: u16 = 140;
/// Money of role A for a runner that died, shared by nobody: each of them gets it.
pub const MONEY_KILL: u16 = 15;
/// Money of role B for a coin, for the exit, and for each wave.
pub const MONEY_COIN: u16 = 10;
/// See [`MONEY_COIN`].
pub const MONEY_EXIT: u16 = 35;
/// See [`MONEY_COIN`].
pub const MONEY_RUN: u16 = 25;
/// Money of who comes late, for each wave that he has missed.
pub const MONEY_LATE: u16 = 40;
/// Runners that have to die until role A gets a token for a bonus.
pub const KILLS_PER_TOKEN: u16 = 4;
/// Most tokens.
pub const TOKENS_MAX: u8 = 15;
/// Ticks that a bonus lasts.
pub const BONUS: u32 = 5 * HZ;
/// What `Bonus::Repair` gives back.
pub const REPAIR: u16 = 3;
