//! The small types in packets.

use super::fields::Fields;
use crate::sim::rules::{BOARD_MAX, MONEY_MAX, PLAYERS, TURRETS};
use crate::sim::{
    At, Board, Bonus, Colour, Event, EventKind, Improvements, Keys, Kind, Order, PlayerId, Role, TurretId,
};
use whitewater::message::BitsError;

/// One of a few values, by number.
fn code<F: Fields, T>(
    fields: &mut F,
    value: &mut T,
    code: impl Fn(&T) -> u8,
    of: impl Fn(u8) -> Option<T>,
    last: u8,
) -> Result<(), BitsError> {
    let mut number = code(value);
    fields.int(&mut number, 0..=last)?;
    *value = of(number).ok_or(BitsError::Bounds)?;
    Ok(())
}

pub(super) fn colour<F: Fields>(fields: &mut F, value: &mut Colour) -> Result<(), BitsError> {
    code(fields, value, |colour| colour.code(), Colour::of, 2)
}

pub(super) fn kind<F: Fields>(fields: &mut F, value: &mut Kind) -> Result<(), BitsError> {
    code(fields, value, |kind| kind.code(), Kind::of, 2)
}

pub(super) fn bonus<F: Fields>(fields: &mut F, value: &mut Bonus) -> Result<(), BitsError> {
    code(fields, value, |bonus| bonus.code(), Bonus::of, 3)
}

pub(super) fn role<F: Fields>(fields: &mut F, value: &mut Role) -> Result<(), BitsError> {
    let mut is_runner = *value == Role::Runner;
    fields.bool(&mut is_runner)?;
    *value = if is_runner { Role::Runner } else { Role::Builder };
    Ok(())
}

pub(super) fn keys<F: Fields>(fields: &mut F, value: &mut Keys) -> Result<(), BitsError> {
    let mut bits = value.bits();
    fields.int(&mut bits, 0..=15)?;
    *value = Keys::from_bits(bits);
    Ok(())
}

pub(super) fn player<F: Fields>(fields: &mut F, value: &mut PlayerId) -> Result<(), BitsError> {
    fields.int(&mut value.0, 0..=PLAYERS - 1)
}

pub(super) fn turret<F: Fields>(fields: &mut F, value: &mut TurretId) -> Result<(), BitsError> {
    fields.int(&mut value.0, 0..=TURRETS - 1)
}

/// A cell of any board.
pub(super) fn any_at<F: Fields>(fields: &mut F, at: &mut At) -> Result<(), BitsError> {
    fields.int(&mut at.x, 0..=BOARD_MAX.0 - 1)?;
    fields.int(&mut at.y, 0..=BOARD_MAX.1 - 1)
}

/// A cell of this board.
pub(super) fn at<F: Fields>(fields: &mut F, at: &mut At, board: &Board) -> Result<(), BitsError> {
    fields.int(&mut at.x, 0..=board.width() - 1)?;
    fields.int(&mut at.y, 0..=board.height() - 1)
}

/// A tick: few bits if it is near `now`, or zero.
pub(super) fn moment<F: Fields>(fields: &mut F, value: &mut u32, now: u32) -> Result<(), BitsError> {
    if !differs(*value != 0, fields)? {
        *value = 0;
        return Ok(());
    }
    let near = -64..=959_i64;
    let mut distance = if F::READS { 0 } else { i64::from(*value) - i64::from(now) };
    if differs(!near.contains(&distance), fields)? {
        return fields.int(value, 1..=MOMENT_MAX);
    }
    fields.int(&mut distance, near)?;
    *value = u32::try_from(i64::from(now) + distance).map_err(|_| BitsError::Bounds)?;
    Ok(())
}

/// A bit that says whether something differs and therefore follows.
pub(super) fn differs<F: Fields>(mut differs: bool, fields: &mut F) -> Result<bool, BitsError> {
    fields.bool(&mut differs)?;
    Ok(differs)
}

pub(super) fn order<F: Fields>(fields: &mut F, value: &mut Order) -> Result<(), BitsError> {
    let mut which = match value {
        Order::Place { .. } => 0,
        Order::Upgrade { .. } => 1,
        Order::Buy { .. } => 2,
        Order::Improve(_) => 3,
    };
    fields.int(&mut which, 0..=3_u8)?;
    if F::READS {
        *value = match which {
            0 => Order::Place { at: At::default(), colour: Colour::default(), kind: Kind::default() },
            1 => Order::Upgrade { turret: TurretId::default() },
            2 => Order::Buy { bonus: Bonus::default() },
            _ => Order::Improve(Improvements::default()),
        };
    }
    match value {
        Order::Place { at, colour: of, kind: what } => {
            any_at(fields, at)?;
            colour(fields, of)?;
            kind(fields, what)
        }
        Order::Upgrade { turret: id } => turret(fields, id),
        Order::Buy { bonus: which } => bonus(fields, which),
        Order::Improve(improvements) => {
            let mut bits = improvements.bits();
            fields.int(&mut bits, 0..=63)?;
            *improvements = Improvements::from_bits(bits);
            Ok(())
        }
    }
}

pub(super) fn event<F: Fields>(fields: &mut F, value: &mut Event) -> Result<(), BitsError> {
    fields.int(&mut value.tick, 0..=MOMENT_MAX)?;
    code(fields, &mut value.kind, |kind| kind.code(), EventKind::of, 13)?;
    fields.bool(&mut value.running)?;
    fields.int(&mut value.money, 0..=MONEY_MAX)?;
    player(fields, &mut value.id)?;
    fields.int(&mut value.data, 0..=DATA_MAX)
}

/// Later than any tick, so that sums of ticks do not overflow.
pub(super) const MOMENT_MAX: u32 = 1 << 31;
/// Largest data of an event. No health of a base, number of a turret or set of six bits is larger.
const DATA_MAX: u16 = 255;
