//! A snapshot: the world at a tick, as a delta to one that the client has. A full snapshot is a delta to a blank world,
//! which everybody has, so there is one way to write and read both.

use super::PACKET_MAX;
use super::codes::{MOMENT_MAX, at, differs, moment, player, role};
use super::fields::Fields;
use super::runners::runners;
use super::squares::{board, shots};
use crate::sim::rules::{BASE, BOARD_MAX, BOARD_MIN, KILLS_PER_TOKEN, MONEY_MAX, TOKENS_MAX, WAVES};
use crate::sim::{Board, Phase, PlayerId, Purse, World};
use thiserror::Error;
use whitewater::message::{BitReader, BitWriter, BitsError};

/// A snapshot that was read.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The header.
    pub head: Head,
    /// The world as its reader may see it.
    pub world: World,
}

/// The header before the world.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Head {
    /// The tick of the world.
    pub tick: u32,
    /// How many ticks ago the base was. `None`: the base is the blank world.
    pub age: Option<u8>,
    /// How many ticks the newest input that the server has from the reader is ahead of this tick. The client adjusts
    /// its clock by this. At most 63 either way. `None`: there is none.
    pub lead: Option<i8>,
    /// In a full snapshot: who the reader is. `None`: a spectator.
    pub you: Option<PlayerId>,
    /// In a full snapshot: the seed of the world.
    pub seed: u64,
    /// In a full snapshot: columns and rows.
    pub size: (u8, u8),
}

impl Head {
    fn pass<F: Fields>(&mut self, fields: &mut F) -> Result<(), BitsError> {
        fields.int(&mut self.tick, 0..=TICK_MAX)?;
        fields.option(&mut self.lead, |fields, lead| fields.int(lead, -63..=63))?;
        fields.option(&mut self.age, |fields, age| fields.int(age, 1..=AGE_MAX))?;
        if self.age.is_none() {
            fields.option(&mut self.you, player)?;
            fields.u64(&mut self.seed)?;
            fields.int(&mut self.size.0, BOARD_MIN.0..=BOARD_MAX.0)?;
            fields.int(&mut self.size.1, BOARD_MIN.1..=BOARD_MAX.1)?;
        }
        Ok(())
    }
}

/// Writes the world for a player into `bytes`, replacing their content. `base`: a world that the player has and that is
/// not too old.
///
/// # Errors
///
/// It does not fit. No world within the rules causes this.
pub fn write(
    bytes: &mut Vec<u8>,
    world: &World,
    you: Option<PlayerId>,
    base: Option<&World>,
    lead: Option<i8>,
) -> Result<(), BitsError> {
    let mut to = BitWriter::with_limit(std::mem::take(bytes), 8 * PACKET_MAX);
    let age = base.and_then(|base| u8::try_from(world.tick.checked_sub(base.tick)?).ok());
    let base = base.filter(|_| age.is_some_and(|age| (1..=AGE_MAX).contains(&age)));
    let size = (world.board.width(), world.board.height());
    let age = age.filter(|_| base.is_some());
    Head { tick: world.tick, age, lead, you, seed: world.seed, size }.pass(&mut to)?;
    let mut copy = world.clone();
    match base {
        Some(base) => change(&mut to, &mut copy, base, you)?,
        None => change(&mut to, &mut copy, &blank(world.seed, size), you)?,
    }
    *bytes = to.finish();
    Ok(())
}

/// Reads a snapshot for `you`. `find` returns the worlds of earlier ones by tick.
///
/// # Errors
///
/// It is not a snapshot, or its base is missing.
pub fn read<'a>(
    bytes: &[u8],
    you: Option<PlayerId>,
    find: impl FnOnce(u32) -> Option<&'a World>,
) -> Result<Snapshot, ReadError> {
    let (mut from, mut head) = (BitReader::new(bytes), Head::default());
    head.pass(&mut from)?;
    let made;
    let (base, you) = match head.age {
        None => {
            made = blank(head.seed, head.size);
            (&made, head.you)
        }
        Some(age) => {
            let tick = head.tick.checked_sub(age.into()).ok_or(ReadError::NoBase)?;
            (find(tick).ok_or(ReadError::NoBase)?, you)
        }
    };
    let mut world = World { tick: head.tick, ..base.clone() };
    change(&mut from, &mut world, base, you)?;
    from.finish()?;
    head.you = you;
    Ok(Snapshot { head, world })
}

/// Length of the same snapshot in full, bytes.
#[must_use]
pub fn full_len(world: &World, you: Option<PlayerId>) -> usize {
    let mut bytes = Vec::new();
    write(&mut bytes, world, you, None, None).map_or(0, |()| bytes.len())
}

/// Why a snapshot was not read.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum ReadError {
    /// Its bits are not a snapshot.
    #[error(transparent)]
    Bits(#[from] BitsError),
    /// The base is missing, or no longer stored.
    #[error("the world that the snapshot goes by is not there")]
    NoBase,
}

/// The blank world.
pub(super) fn blank(seed: u64, (width, height): (u8, u8)) -> World {
    World::on(Board::blank(width, height), seed)
}

/// Everything that differs from `base`, and a checksum over what its reader sees, which must be the same at both ends.
fn change<F: Fields>(
    fields: &mut F,
    world: &mut World,
    base: &World,
    you: Option<PlayerId>,
) -> Result<(), BitsError> {
    shared(fields, world, base)?;
    if let Some(you) = you {
        personal(fields, world, base, you)?;
    }
    check(fields, world.hash_for(you))
}

/// What everybody sees.
pub(super) fn shared<F: Fields>(fields: &mut F, world: &mut World, base: &World) -> Result<(), BitsError> {
    common(fields, world, base)?;
    board(fields, world, base)?;
    shots(fields, world, base)?;
    runners(fields, world, base)?;
    coins(fields, world, base)
}

/// The lower half of a hash that both ends know.
pub(super) fn check<F: Fields>(fields: &mut F, hash: u64) -> Result<(), BitsError> {
    fields.check(u32::try_from(hash & 0xffff_ffff).unwrap_or_default())
}

fn common<F: Fields>(fields: &mut F, world: &mut World, base: &World) -> Result<(), BitsError> {
    let all = |world: &World| {
        let World { phase, phase_ends, wave, base, kills, overcharge_until, bounty_until, .. } = world;
        (*phase, *phase_ends, *wave, *base, *kills, *overcharge_until, *bounty_until)
    };
    if !differs(all(world) != all(base), fields)? {
        return Ok(());
    }
    let now = world.tick;
    let mut is_running = world.phase == Phase::Running;
    fields.bool(&mut is_running)?;
    world.phase = if is_running { Phase::Running } else { Phase::Upgrading };
    moment(fields, &mut world.phase_ends, now)?;
    fields.int(&mut world.wave, 0..=WAVES)?;
    fields.int(&mut world.base, 0..=BASE)?;
    fields.int(&mut world.kills, 0..=KILLS_PER_TOKEN)?;
    moment(fields, &mut world.overcharge_until, now)?;
    moment(fields, &mut world.bounty_until, now)
}

fn coins<F: Fields>(fields: &mut F, world: &mut World, base: &World) -> Result<(), BitsError> {
    let World { coins, board, .. } = world;
    if !differs(*coins != base.coins, fields)? {
        return Ok(());
    }
    for (coin, before) in coins.iter_mut().zip(&base.coins) {
        if differs(coin != before, fields)? {
            fields.option(coin, |fields, coin| at(fields, coin, board))?;
        }
    }
    Ok(())
}

/// Life, money, waiting time, tokens and bonuses: only the reader's.
pub(super) fn personal<F: Fields>(
    fields: &mut F,
    world: &mut World,
    base: &World,
    you: PlayerId,
) -> Result<(), BitsError> {
    let (now, before) = (world.tick, base.purse(you));
    let is_other = world.purse(you) != before;
    let Some(place) = world.purses.get_mut(you.index()) else { return Err(BitsError::Bounds) };
    if !differs(is_other, fields)? {
        return Ok(());
    }
    fields.option(place, |fields, purse: &mut Purse| {
        role(fields, &mut purse.role)?;
        fields.int(&mut purse.money, 0..=MONEY_MAX)?;
        fields.int(&mut purse.life, 0..=BASE)?;
        moment(fields, &mut purse.waits_until, now)?;
        fields.bool(&mut purse.doubles)?;
        fields.int(&mut purse.tokens, 0..=TOKENS_MAX)?;
        fields.int(&mut purse.unlocked, 0..=15)?;
        fields.int(&mut purse.decided, 0..=u16::MAX)
    })
}

/// Most ticks between a base and its delta: two seconds.
pub const AGE_MAX: u8 = 63;
/// The last tick possible: after two years.
pub const TICK_MAX: u32 = MOMENT_MAX - 4096;
