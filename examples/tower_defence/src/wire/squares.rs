//! The board: n x m cells of k bits, as a delta.

use super::codes::{colour, differs, kind, moment, player, turret};
use super::fields::Fields;
use crate::sim::rules::{TURRET_LEVELS, TURRETS};
use crate::sim::{At, Cell, Colour, Kind, Turret, TurretId, World};
use whitewater::message::BitsError;

/// The content of a cell: 3 bits, and 12 more for a turret.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Square {
    cell: Cell,
    colour: Colour,
    kind: Kind,
    level: u8,
}

impl Square {
    fn of(world: &World, at: At) -> Self {
        let cell = world.board.cell(at);
        let turret = if let Cell::Turret(id) = cell { world.turrets.get(usize::from(id.0)) } else { None };
        match turret {
            Some(Turret { colour, kind, level, .. }) => {
                Self { cell, colour: *colour, kind: *kind, level: *level }
            }
            None => Self { cell, ..Self::default() },
        }
    }

    fn pass<F: Fields>(&mut self, fields: &mut F) -> Result<(), BitsError> {
        let mut what = match self.cell {
            Cell::Free => 0,
            Cell::Rock => 1,
            Cell::Start => 2,
            Cell::Exit => 3,
            Cell::Turret(_) => 4_u8,
        };
        fields.int(&mut what, 0..=4)?;
        let mut id = if let Cell::Turret(id) = self.cell { id } else { TurretId::default() };
        if what == 4 {
            turret(fields, &mut id)?;
            colour(fields, &mut self.colour)?;
            kind(fields, &mut self.kind)?;
            fields.int(&mut self.level, 1..=TURRET_LEVELS)?;
        }
        self.cell = match what {
            0 => Cell::Free,
            1 => Cell::Rock,
            2 => Cell::Start,
            3 => Cell::Exit,
            _ => Cell::Turret(id),
        };
        Ok(())
    }
}

/// The cells that differ from those of `base`: a bit if none does, a bit for each row without any, a bit for each cell
/// of the other rows.
pub(super) fn board<F: Fields>(fields: &mut F, world: &mut World, base: &World) -> Result<(), BitsError> {
    let is_other = |world: &World, at: At| Square::of(world, at) != Square::of(base, at);
    let any = world.board.places().any(|at| is_other(world, at));
    if !differs(any, fields)? {
        return Ok(());
    }
    let mut read = Vec::new();
    for y in 0..world.board.height() {
        let row = || (0..base.board.width()).map(move |x| At { x, y });
        let any = row().any(|at| is_other(world, at));
        if !differs(any, fields)? {
            continue;
        }
        for at in row() {
            if differs(is_other(world, at), fields)? {
                let mut square = Square::of(world, at);
                square.pass(fields)?;
                read.push((at, square));
            }
        }
    }
    if F::READS { build(world, &read) } else { Ok(()) }
}

/// Puts squares that were read on the board. Turrets must have consecutive numbers.
fn build(world: &mut World, squares: &[(At, Square)]) -> Result<(), BitsError> {
    let mut turrets: Vec<Option<Turret>> = world.turrets.drain(..).map(Some).collect();
    turrets.resize(TURRETS.into(), None);
    for (at, _) in squares {
        if let Cell::Turret(id) = world.board.cell(*at)
            && let Some(place) = turrets.get_mut(usize::from(id.0))
        {
            *place = None;
        }
    }
    for (at, Square { cell, colour, kind, level }) in squares {
        world.board.set(*at, *cell);
        if let Cell::Turret(id) = cell {
            let place = turrets.get_mut(usize::from(id.0)).filter(|place| place.is_none());
            let (at, colour, kind, level) = (*at, *colour, *kind, *level);
            *place.ok_or(BitsError::Bounds)? = Some(Turret { at, colour, kind, level, ..Turret::default() });
        }
    }
    let count = turrets.iter().take_while(|turret| turret.is_some()).count();
    if turrets.iter().flatten().count() != count {
        return Err(BitsError::Bounds);
    }
    world.turrets.extend(turrets.into_iter().flatten());
    world.board.measure();
    Ok(())
}

/// Which turret has fired when and at whom, if it differs from `base`: a bit for none, otherwise a bit for each.
pub(super) fn shots<F: Fields>(fields: &mut F, world: &mut World, base: &World) -> Result<(), BitsError> {
    let now = world.tick;
    let before = |index: usize| base.turrets.get(index).map_or((0, Default::default()), shot);
    let any = world.turrets.iter().enumerate().any(|(index, turret)| shot(turret) != before(index));
    if F::READS {
        for (index, turret) in world.turrets.iter_mut().enumerate() {
            (turret.fired, turret.target) = before(index);
        }
    }
    if !differs(any, fields)? {
        return Ok(());
    }
    for (index, turret) in world.turrets.iter_mut().enumerate() {
        if differs(shot(turret) != before(index), fields)? {
            moment(fields, &mut turret.fired, now)?;
            player(fields, &mut turret.target)?;
        }
    }
    Ok(())
}

fn shot(turret: &Turret) -> (u32, crate::sim::PlayerId) {
    (turret.fired, turret.target)
}
