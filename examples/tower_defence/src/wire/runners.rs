//! Every runner as a delta: alive or dead, position, velocity, colours, health.

use super::codes::{differs, moment};
use super::fields::Fields;
use crate::sim::rules::{CELL, HEALTH_MAX, LEVELS};
use crate::sim::{Board, Colours, PlayerId, Point, Runner, World};
use whitewater::message::BitsError;

/// A bit for each place whose runner is as in `base`, or that has none.
pub(super) fn runners<F: Fields>(fields: &mut F, world: &mut World, base: &World) -> Result<(), BitsError> {
    let World { tick, board, runners, .. } = world;
    for ((player, runner), before) in PlayerId::all().zip(runners).zip(&base.runners) {
        if !differs(runner != before, fields)? {
            continue;
        }
        if !differs(runner.is_some(), fields)? {
            *runner = None;
            continue;
        }
        let blank = Runner::new(player, 0);
        let before = before.as_ref().unwrap_or(&blank);
        change(fields, runner.get_or_insert_with(|| blank.clone()), before, *tick, board)?;
    }
    Ok(())
}

fn change<F: Fields>(
    fields: &mut F,
    runner: &mut Runner,
    before: &Runner,
    now: u32,
    board: &Board,
) -> Result<(), BitsError> {
    fields.bool(&mut runner.alive)?;
    if differs(runner.at != before.at, fields)? {
        place(fields, &mut runner.at, before.at, board)?;
    }
    if differs(runner.velocity != before.velocity, fields)? {
        fields.int(&mut runner.velocity.x, -VELOCITY_MAX..=VELOCITY_MAX)?;
        fields.int(&mut runner.velocity.y, -VELOCITY_MAX..=VELOCITY_MAX)?;
    }
    if differs(runner.health != before.health, fields)? {
        fields.int(&mut runner.health, 0..=HEALTH_MAX)?;
    }
    if differs(runner.slow_until != before.slow_until, fields)? {
        moment(fields, &mut runner.slow_until, now)?;
    }
    if differs(runner.returns != before.returns, fields)? {
        moment(fields, &mut runner.returns, now)?;
    }
    // This only changes between two waves.
    let bought = |runner: &Runner| (runner.colours, runner.speed_level, runner.health_level);
    if differs(bought(runner) != bought(before), fields)? {
        let mut bits = runner.colours.bits();
        fields.int(&mut bits, 0..=7)?;
        runner.colours = Colours::from_bits(bits);
        fields.int(&mut runner.speed_level, 0..=LEVELS)?;
        fields.int(&mut runner.health_level, 0..=LEVELS)?;
    }
    Ok(())
}

/// The distance if it is short, otherwise the position.
fn place<F: Fields>(fields: &mut F, at: &mut Point, before: Point, board: &Board) -> Result<(), BitsError> {
    for (at, before, cells) in [(&mut at.x, before.x, board.width()), (&mut at.y, before.y, board.height())] {
        let near = -NEAR..=NEAR - 1;
        let mut moved = if F::READS { 0 } else { *at - before };
        let whole = 0..=i32::from(cells) * CELL - 1;
        if differs(near.contains(&moved), fields)? {
            fields.int(&mut moved, near)?;
            *at = before + moved;
        } else {
            fields.int(at, whole.clone())?;
        }
        if !whole.contains(at) {
            return Err(BitsError::Bounds);
        }
    }
    Ok(())
}

/// Units per tick, faster than any runner.
const VELOCITY_MAX: i32 = 63;
/// Distances up to this take 9 bits, units: five ticks at full speed.
const NEAR: i32 = 256;
