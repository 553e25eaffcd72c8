//! A snapshot as bits: in full, or as what has changed since one that the peer has.
//!
//! Each function both writes and reads, by the stream that it is given; so the ends cannot disagree. What is read may come from anyone: a
//! value out of its bounds is an error, and the packet is then not acknowledged.

use crate::world::{Entity, HEALTH_MAX, POSITION_MAX, Snapshot};
use whitewater::message::{BitsError, Measure, Read, Serialize, Stream, Write};
use whitewater::packet::Seq16;

/// What comes before the snapshot.
#[derive(Default)]
struct Head {
    /// Which snapshot this is.
    number: u16,
    /// How many before it the base is, the one that it is told by; `None`: all of it is told.
    age: Option<u16>,
}

impl Serialize for Head {
    fn serialize<S: Stream>(&mut self, stream: &mut S) -> Result<(), BitsError> {
        stream.int(&mut self.number, 0..=u16::MAX)?;
        stream.option(&mut self.age, |stream, age| stream.int(age, 1..=AGE_MAX))
    }
}

/// Writes snapshot `number`, by `base` if there is one that is not too old; returns the bytes.
pub(crate) fn write(
    bytes: &mut [u8],
    number: Seq16,
    snapshot: &Snapshot,
    base: Option<(Seq16, &Snapshot)>,
) -> Result<usize, BitsError> {
    let mut stream = Write::new(bytes);
    let age = base.map(|(base, _)| number.0.wrapping_sub(base.0));
    Head { number: number.0, age }.serialize(&mut stream)?;
    serialize(&mut snapshot.clone(), base.map(|(_, base)| base), &mut stream)?;
    Ok(stream.finish())
}

/// Reads a snapshot and its number; `find` has those that are known.
pub(crate) fn read<'a>(
    bytes: &[u8],
    find: impl FnOnce(Seq16) -> Option<&'a Snapshot>,
) -> Result<(Seq16, Snapshot), ReadError> {
    let mut stream = Read::new(bytes);
    let mut head = Head::default();
    head.serialize(&mut stream)?;
    let number = Seq16(head.number);
    let base = match head.age {
        None => None,
        Some(age) => Some(find(number.sub(age)).ok_or(ReadError::NoBase)?),
    };
    let mut snapshot = base.cloned().unwrap_or_else(Snapshot::blank);
    serialize(&mut snapshot, base, &mut stream)?;
    stream.finish()?;
    Ok((number, snapshot))
}

/// Bytes of a snapshot in full, with its head.
pub(crate) fn full_len(snapshot: &Snapshot) -> Result<usize, BitsError> {
    let mut measure = Measure::default();
    Head::default().serialize(&mut measure)?;
    serialize(&mut snapshot.clone(), None, &mut measure)?;
    Ok(measure.bits().div_ceil(8))
}

/// Why a snapshot was not read.
#[derive(Debug, PartialEq)]
pub(crate) enum ReadError {
    Bits(BitsError),
    /// The base is not there, or not any more.
    NoBase,
}

impl From<BitsError> for ReadError {
    fn from(error: BitsError) -> Self {
        Self::Bits(error)
    }
}

fn serialize<S: Stream>(
    snapshot: &mut Snapshot,
    base: Option<&Snapshot>,
    stream: &mut S,
) -> Result<(), BitsError> {
    match base {
        None => snapshot.entities.iter_mut().try_for_each(|entity| entity.serialize(stream)),
        Some(base) => {
            let mut both = snapshot.entities.iter_mut().zip(&base.entities);
            both.try_for_each(|(entity, base)| serialize_change(entity, *base, stream))
        }
    }
}

impl Serialize for Entity {
    /// 12 + 12 + 8 + 7 bits.
    fn serialize<S: Stream>(&mut self, stream: &mut S) -> Result<(), BitsError> {
        stream.int(&mut self.x, 0..=POSITION_MAX)?;
        stream.int(&mut self.y, 0..=POSITION_MAX)?;
        stream.int(&mut self.heading, 0..=u8::MAX)?;
        stream.int(&mut self.health, 0..=HEALTH_MAX)
    }
}

/// A bit where nothing has changed. A reader has the base in `entity`, too.
fn serialize_change<S: Stream>(entity: &mut Entity, base: Entity, stream: &mut S) -> Result<(), BitsError> {
    let mut has_changed = *entity != base;
    stream.bool(&mut has_changed)?;
    if !has_changed {
        return Ok(());
    }
    serialize_move(&mut entity.x, base.x, stream)?;
    serialize_move(&mut entity.y, base.y, stream)?;
    if differs(entity.heading != base.heading, stream)? {
        stream.int(&mut entity.heading, 0..=u8::MAX)?;
    }
    if differs(entity.health != base.health, stream)? {
        stream.int(&mut entity.health, 0..=HEALTH_MAX)?;
    }
    Ok(())
}

/// A bit that says whether a field differs from the base, and so follows.
fn differs<S: Stream>(mut differs: bool, stream: &mut S) -> Result<bool, BitsError> {
    stream.bool(&mut differs)?;
    Ok(differs)
}

/// How far it has moved if that is not far, else where it is: most things do not move far between two snapshots.
fn serialize_move<S: Stream>(value: &mut u16, base: u16, stream: &mut S) -> Result<(), BitsError> {
    let moved = i32::from(*value) - i32::from(base);
    let mut by = i16::try_from(moved).unwrap_or(i16::MAX);
    let mut is_near = (-NEAR..=NEAR).contains(&by);
    stream.bool(&mut is_near)?;
    if !is_near {
        return stream.int(value, 0..=POSITION_MAX);
    }
    stream.int(&mut by, -NEAR..=NEAR)?;
    // Beyond the edge only in what no honest peer has written.
    let mut to = base.checked_add_signed(by).ok_or(BitsError::Bounds)?;
    Measure::default().int(&mut to, 0..=POSITION_MAX)?;
    *value = to;
    Ok(())
}

/// How many snapshots before it the base of a snapshot may be.
pub(crate) const AGE_MAX: u16 = 63;
/// Steps that take few bits: 6 with the sign, as 1 + 6.
const NEAR: i16 = 31;

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

    /// Two worlds: in the second, some entities are as in the first, some have moved a bit, and some are anywhere.
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
        let mut bytes = [0; 600];
        let base = Some((Seq16(u16::MAX), world.snapshot()));
        assert_eq!(write(&mut bytes, Seq16(4), world.snapshot(), base), Ok(11), "16 + 1 + 6 + 64 bits");
        assert_eq!(write(&mut bytes, Seq16(4), world.snapshot(), None), Ok(315), "16 + 1 + 64 * 39");
        assert_eq!(full_len(world.snapshot()), Ok(315));
    }

    #[test]
    fn a_base_that_is_not_there_or_too_old_is_refused() {
        let (world, mut bytes) = (World::new(1), [0; 600]);
        let base = |number| Some((Seq16(number), world.snapshot()));
        let len = write(&mut bytes, Seq16(10), world.snapshot(), base(9)).unwrap();
        assert_eq!(read(&bytes[..len], |_| None), Err(ReadError::NoBase));
        assert!(write(&mut bytes, Seq16(100), world.snapshot(), base(100 - AGE_MAX)).is_ok());
        assert!(write(&mut bytes, Seq16(100), world.snapshot(), base(100 - AGE_MAX - 1)).is_err());
    }

    proptest! {
        #[test]
        fn any_world_comes_back_by_any_other(
            (base, world) in two_worlds(),
            number: u16,
            age in prop::option::of(1..=AGE_MAX),
        ) {
            let (number, mut bytes) = (Seq16(number), [0; 600]);
            let told_by = age.map(|age| number.sub(age));
            let len = write(&mut bytes, number, &world, told_by.map(|told_by| (told_by, &base))).unwrap();
            let read = read(&bytes[..len], |found| (Some(found) == told_by).then_some(&base));
            prop_assert_eq!(read, Ok((number, world)));
        }

        #[test]
        fn whatever_bits_are_flipped_or_cut_off_what_is_read_is_in_range(
            (base, world) in two_worlds(),
            is_delta: bool,
            flips in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
            cut in 0..4usize,
        ) {
            let mut bytes = [0; 600];
            let told_by = is_delta.then_some((Seq16(6), &base));
            let len = write(&mut bytes, Seq16(7), &world, told_by).unwrap() - cut;
            for flip in &flips {
                let bit = flip.index(8 * len);
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            if let Ok((_, snapshot)) = read(&bytes[..len], |_| Some(&base)) {
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
