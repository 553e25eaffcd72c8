//! A snapshot as bits: in full, or as the changes since one that the peer has.
//!
//! Input may come from anyone: a value out of range is an error, and the packet is not acknowledged.

use crate::world::{Entity, HEALTH_MAX, POSITION_MAX, Snapshot};
use whitewater::Message;
use whitewater::message::{BitReader, BitWriter, BitsError, shape};
use whitewater::packet::Seq16;

/// The header before the snapshot.
struct Head {
    /// The number of this snapshot.
    number: u16,
    /// How many snapshots ago its base was. `None`: it is a full snapshot.
    age: Option<u16>,
}

impl Message for Head {
    const SHAPE: u64 = shape("Head: u16, option of 1..=63", &[]);

    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        self.number.pack(to)?;
        to.option(self.age, |to, age| to.int(age, 1..=AGE_MAX))
    }

    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        Ok(Self { number: u16::unpack(from)?, age: from.option(|from| from.int(1..=AGE_MAX))? })
    }
}

/// Writes snapshot `number`, relative to `base` if there is one that is not too old.
pub(crate) fn write(
    number: Seq16,
    snapshot: &Snapshot,
    base: Option<(Seq16, &Snapshot)>,
) -> Result<Vec<u8>, BitsError> {
    let mut to = BitWriter::new(Vec::new());
    let age = base.map(|(base, _)| number.0.wrapping_sub(base.0));
    Head { number: number.0, age }.pack(&mut to)?;
    match base {
        None => snapshot.entities.pack(&mut to)?,
        Some((_, base)) => {
            let mut both = snapshot.entities.iter().zip(&base.entities);
            both.try_for_each(|(entity, base)| write_change(*entity, *base, &mut to))?;
        }
    }
    Ok(to.finish())
}

/// Reads a snapshot and its number. `find` returns known snapshots.
pub(crate) fn read<'a>(
    bytes: &[u8],
    find: impl FnOnce(Seq16) -> Option<&'a Snapshot>,
) -> Result<(Seq16, Snapshot), ReadError> {
    let mut from = BitReader::new(bytes);
    let Head { number, age } = Head::unpack(&mut from)?;
    let number = Seq16(number);
    let snapshot = match age {
        None => Snapshot { entities: Message::unpack(&mut from)? },
        Some(age) => {
            let mut snapshot = find(number.sub(age)).ok_or(ReadError::NoBase)?.clone();
            snapshot.entities.iter_mut().try_for_each(|entity| read_change(entity, &mut from))?;
            snapshot
        }
    };
    from.finish()?;
    Ok((number, snapshot))
}

/// Length of a full snapshot with its header, bytes.
pub(crate) fn full_len(snapshot: &Snapshot) -> Result<usize, BitsError> {
    Ok(write(Seq16(0), snapshot, None)?.len())
}

/// Why a snapshot was not read.
#[derive(Debug, PartialEq)]
pub(crate) enum ReadError {
    Bits(BitsError),
    /// The base is missing, or no longer stored.
    NoBase,
}

impl From<BitsError> for ReadError {
    fn from(error: BitsError) -> Self {
        Self::Bits(error)
    }
}

/// 12 + 12 + 8 + 7 bits.
impl Message for Entity {
    const SHAPE: u64 = shape("Entity: 0..=4095, 0..=4095, u8, 0..=100", &[]);

    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        to.int(self.x, 0..=POSITION_MAX)?;
        to.int(self.y, 0..=POSITION_MAX)?;
        self.heading.pack(to)?;
        to.int(self.health, 0..=HEALTH_MAX)
    }

    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        Ok(Self {
            x: from.int(0..=POSITION_MAX)?,
            y: from.int(0..=POSITION_MAX)?,
            heading: u8::unpack(from)?,
            health: from.int(0..=HEALTH_MAX)?,
        })
    }
}

/// Writes a single bit if nothing has changed.
fn write_change(entity: Entity, base: Entity, to: &mut BitWriter) -> Result<(), BitsError> {
    to.bool(entity != base)?;
    if entity == base {
        return Ok(());
    }
    write_move(entity.x, base.x, to)?;
    write_move(entity.y, base.y, to)?;
    let changed = |is: u8, was: u8| (is != was).then_some(is);
    to.option(changed(entity.heading, base.heading), |to, heading| heading.pack(to))?;
    to.option(changed(entity.health, base.health), |to, health| to.int(health, 0..=HEALTH_MAX))
}

/// Updates what has changed.
fn read_change(entity: &mut Entity, from: &mut BitReader<'_>) -> Result<(), BitsError> {
    if from.bool()? {
        entity.x = read_move(entity.x, from)?;
        entity.y = read_move(entity.y, from)?;
        entity.heading = from.option(u8::unpack)?.unwrap_or(entity.heading);
        entity.health = from.option(|from| from.int(0..=HEALTH_MAX))?.unwrap_or(entity.health);
    }
    Ok(())
}

/// Writes the distance if it is short, otherwise the position: most things move little between two snapshots.
fn write_move(is: u16, was: u16, to: &mut BitWriter) -> Result<(), BitsError> {
    let by = i32::from(is) - i32::from(was);
    let is_near = (-NEAR..=NEAR).contains(&by);
    to.bool(is_near)?;
    if is_near { to.int(by, -NEAR..=NEAR) } else { to.int(is, 0..=POSITION_MAX) }
}

fn read_move(was: u16, from: &mut BitReader<'_>) -> Result<u16, BitsError> {
    if !from.bool()? {
        return from.int(0..=POSITION_MAX);
    }
    let is = u16::try_from(i32::from(was) + from.int(-NEAR..=NEAR)?);
    // Out of range only if no honest peer wrote it.
    is.ok().filter(|is| *is <= POSITION_MAX).ok_or(BitsError::Bounds)
}

/// How many snapshots ago the base of a snapshot may be.
pub(crate) const AGE_MAX: u16 = 63;
/// Steps that take few bits: 6 with the sign, as 1 + 6.
const NEAR: i32 = 31;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{ENTITIES, World};
    use proptest::prelude::*;

    fn entity() -> impl Strategy<Value = Entity> {
        let place = || prop_oneof![Just(0), Just(POSITION_MAX), 0..=POSITION_MAX];
        (place(), place(), any::<u8>(), 0..=HEALTH_MAX).prop_map(|(x, y, heading, health)| Entity {
            x,
            y,
            heading,
            health,
        })
    }

    /// Two worlds. In the second, some entities are unchanged, some have moved a bit, and some are anywhere.
    fn two_worlds() -> impl Strategy<Value = (Snapshot, Snapshot)> {
        let near = (-40..=40i16, -40..=40i16);
        let one = (entity(), entity(), near, 0..4u8).prop_map(|(base, other, (dx, dy), how)| {
            let to = |place: u16, by| place.saturating_add_signed(by).min(POSITION_MAX);
            let moved = Entity { x: to(base.x, dx), y: to(base.y, dy), ..base };
            (base, [base, moved, other, Entity { health: other.health, ..base }][usize::from(how)])
        });
        prop::collection::vec(one, ENTITIES).prop_map(|both| {
            let world = |of: fn(&(Entity, Entity)) -> Entity| Snapshot {
                entities: std::array::from_fn(|index| of(&both[index])),
            };
            (world(|both| both.0), world(|both| both.1))
        })
    }

    fn is_in_range(snapshot: &Snapshot) -> bool {
        let mut entities = snapshot.entities.iter();
        entities.all(|e| e.x <= POSITION_MAX && e.y <= POSITION_MAX && e.health <= HEALTH_MAX)
    }

    #[test]
    fn what_stands_still_takes_a_bit() {
        let world = World::new(1);
        let base = Some((Seq16(u16::MAX), world.snapshot()));
        let len = |base| write(Seq16(4), world.snapshot(), base).unwrap().len();
        assert_eq!(len(base), 11, "16 + 1 + 6 + 64 bits");
        assert_eq!(len(None), 315, "16 + 1 + 64 * 39");
        assert_eq!(full_len(world.snapshot()), Ok(315));
    }

    #[test]
    fn a_base_that_is_not_there_or_too_old_is_refused() {
        let world = World::new(1);
        let base = |number| Some((Seq16(number), world.snapshot()));
        let bytes = write(Seq16(10), world.snapshot(), base(9)).unwrap();
        assert_eq!(read(&bytes, |_| None), Err(ReadError::NoBase));
        assert!(write(Seq16(100), world.snapshot(), base(100 - AGE_MAX)).is_ok());
        assert!(write(Seq16(100), world.snapshot(), base(100 - AGE_MAX - 1)).is_err());
    }

    proptest! {
        #[test]
        fn any_world_comes_back_by_any_other(
            (base, world) in two_worlds(),
            number: u16,
            age in prop::option::of(1..=AGE_MAX),
        ) {
            let number = Seq16(number);
            let told_by = age.map(|age| number.sub(age));
            let bytes = write(number, &world, told_by.map(|told_by| (told_by, &base))).unwrap();
            let read = read(&bytes, |found| (Some(found) == told_by).then_some(&base));
            prop_assert_eq!(read, Ok((number, world)));
        }

        #[test]
        fn whatever_bits_are_flipped_or_cut_off_what_is_read_is_in_range(
            (base, world) in two_worlds(),
            is_delta: bool,
            flips in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
            cut in 0..4usize,
        ) {
            let told_by = is_delta.then_some((Seq16(6), &base));
            let mut bytes = write(Seq16(7), &world, told_by).unwrap();
            bytes.truncate(bytes.len() - cut);
            for flip in &flips {
                let bit = flip.index(8 * bytes.len());
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            if let Ok((_, snapshot)) = read(&bytes, |_| Some(&base)) {
                prop_assert!(is_in_range(&snapshot));
            }
        }

        #[test]
        fn any_bytes_are_refused_or_in_range(bytes in prop::collection::vec(any::<u8>(), 0..400), base in two_worlds()) {
            if let Ok((_, snapshot)) = read(&bytes, |_| Some(&base.0)) {
                prop_assert!(is_in_range(&snapshot));
            }
        }
    }
}
