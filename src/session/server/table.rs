//! Sessions by id: an index and no search. An outdated id finds nothing.

use super::names::{ByName, Names};
use super::shuffle::Shuffle;
use crate::session::wire::{Packet, is_reserved_conv};
use std::collections::VecDeque;
use std::fmt;

/// A session of a server. The id of a session that is gone finds nothing.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SessionId(pub(super) u32);

impl SessionId {
    /// The id with this number, for programs that can only keep numbers; from [`to_bits`](Self::to_bits). Any other
    /// number finds nothing, or another session.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// A number that no other session of this server has, until a few thousand more have used its place.
    #[must_use]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// Which of the servers that share a port it belongs to; see [`ServerConfig::shard`](super::ServerConfig::shard).
    #[must_use]
    pub const fn shard(self) -> u8 {
        (self.0 >> SHARD_SHIFT) as u8 // the top 6 bits fit
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// The shard that owns the session of a client's datagram: the top 6 bits of the session's id, from
/// [`ServerConfig::shard`](super::ServerConfig::shard). `None`: it belongs to no session, and whoever receives it
/// answers it.
///
/// It is read but not verified: a sender can write any value.
///
/// ```
/// use whitewater::session::shard_of;
///
/// let mut datagram = [0; 40];
/// datagram[..5].copy_from_slice(&[0xa6, 7, 0, 0, 3 << 2]); // DATA of session 7 of shard 3
/// assert_eq!(shard_of(&datagram), Some(3));
/// assert_eq!(shard_of(b"hello"), None);
/// ```
#[must_use]
pub fn shard_of(datagram: &[u8]) -> Option<u8> {
    let sid = Packet::decode(datagram).ok()?.sid()?;
    Some(SessionId(sid).shard())
}

/// Values in slots. An id is `shard (6 bits) | slot (14) | generation (12)`, with the last two shuffled under a key
/// drawn once per server. So a socket can tell shards apart without keys, and a stranger learns nothing else from an
/// id, nor from all that it has had what the next one will be.
#[derive(Debug)]
pub(super) struct Table<T> {
    slots: Vec<Slot<T>>,
    /// Empty slots, the longest empty first.
    free: VecDeque<u32>,
    shard: u32,
    shuffle: Shuffle,
    by_name: ByName,
    limit: usize,
}

#[derive(Debug)]
struct Slot<T> {
    /// The last id that used it, and its generation. Before the first, 0, which is no id.
    id: u32,
    generation: u16,
    /// `None`: only its id.
    names: Option<Box<Names>>,
    value: Option<T>,
}

impl<T> Table<T> {
    pub(super) fn new(limit: usize, shard: u8, key: [u64; 2]) -> Self {
        let (slots, free, shuffle) = (Vec::new(), VecDeque::new(), Shuffle::new(key));
        let (shard, by_name) = (u32::from(shard) << SHARD_SHIFT, ByName::new(key));
        Self { slots, free, shard, shuffle, by_name, limit }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() >= self.limit
    }

    /// An id to [`insert`](Self::insert) a value at or to [give back](Self::give_back). `None`: all slots are taken.
    pub(super) fn next_id(&mut self) -> Option<u32> {
        if self.is_full() {
            return None;
        }
        if self.free.is_empty() {
            self.free.push_back(u32::try_from(self.slots.len()).ok()?);
            self.slots.push(Slot { id: 0, generation: 0, names: None, value: None });
        }
        let index = self.free.pop_front()?;
        let slot = self.slots.get_mut(usize::try_from(index).ok()?)?;
        loop {
            slot.generation = slot.generation.wrapping_add(1);
            slot.id = self.shard | self.shuffle.mix(index, slot.generation);
            // An id is also the conv of KCP segments.
            if slot.id != 0 && !is_reserved_conv(slot.id) && self.by_name.get(slot.id).is_none() {
                return Some(slot.id);
            }
        }
    }

    /// Stores `value` at an id from [`next_id`](Self::next_id).
    pub(super) fn insert(&mut self, id: u32, value: T) {
        if let Some(slot) = self.slot(id) {
            *slot = Some(value);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.slots.iter().filter_map(|slot| Some((slot.id, slot.value.as_ref()?)))
    }

    pub(super) fn get(&self, id: u32) -> Option<&T> {
        self.slots.get(self.shuffle.slot(id)).filter(|slot| slot.id == id)?.value.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        self.slot(id)?.as_mut()
    }

    pub(super) fn lift(&mut self, id: u32) -> Option<T> {
        self.slot(id)?.take()
    }

    pub(super) fn give_back(&mut self, id: u32) {
        let index = self.shuffle.slot(id);
        if let Some(slot) = self.slots.get_mut(index).filter(|slot| slot.id == id) {
            slot.names.take().iter().flat_map(|names| names.all()).for_each(|sid| self.by_name.remove(sid));
        }
        debug_assert!(!self.free.iter().any(|free| *free as usize == index), "given back twice");
        if let (Some(slot), Ok(index)) = (self.slot(id), u32::try_from(index)) {
            *slot = None;
            self.free.push_back(index);
        }
    }

    /// The id of the session that packets with this number are for.
    #[inline]
    pub(super) fn id_of(&self, sid: u32) -> Option<u32> {
        match self.slots.get(self.shuffle.slot(sid)) {
            Some(slot) if slot.id == sid => {
                slot.names.as_ref().is_none_or(|names| names.has_used(sid)).then_some(sid)
            }
            _ => self.by_name.get(sid),
        }
    }

    /// Gives the session `id` spare numbers made of random ones. Returns them.
    pub(super) fn add_names(&mut self, id: u32, mut random: impl FnMut() -> u32) -> Vec<u32> {
        let mut added = Vec::new();
        for _ in 0..TRIES {
            let sid = self.shard | random() & (u32::MAX >> (u32::BITS - SHARD_SHIFT));
            let is_taken = self.slots.get(self.shuffle.slot(sid)).is_some_and(|slot| slot.id == sid);
            if sid == 0 || is_taken || self.by_name.get(sid).is_some() {
                continue;
            }
            let slot = self.slots.get_mut(self.shuffle.slot(id)).filter(|slot| slot.id == id);
            let names = slot.map(|slot| slot.names.get_or_insert_with(|| Box::new(Names::of(id))));
            if !names.is_some_and(|names| names.add(sid)) {
                break;
            }
            self.by_name.insert(sid, id);
            added.push(sid);
        }
        added
    }

    /// The client of the session `id` uses this number. If it was a spare one, returns those that are unknown from now on:
    /// all before the last one.
    pub(super) fn use_name(&mut self, id: u32, sid: u32) -> Option<impl Iterator<Item = u32> + use<T>> {
        let slot = self.slots.get_mut(self.shuffle.slot(id)).filter(|slot| slot.id == id);
        let retired = slot.and_then(|slot| slot.names.as_mut()?.take(sid))?;
        retired.iter().for_each(|sid| self.by_name.remove(*sid));
        Some(retired.into_iter().filter(|sid| *sid != 0))
    }

    /// The number that the client of a session uses.
    pub(super) fn name_in_use(&self, id: u32) -> Option<u32> {
        let slot = self.slots.get(self.shuffle.slot(id)).filter(|slot| slot.id == id)?;
        Some(slot.names.as_ref().map_or(id, |names| names.in_use()))
    }

    /// The number that it used before.
    pub(super) fn name_before(&self, id: u32) -> Option<u32> {
        let slot = self.slots.get(self.shuffle.slot(id)).filter(|slot| slot.id == id)?;
        slot.names.as_ref()?.before()
    }

    fn slot(&mut self, id: u32) -> Option<&mut Option<T>> {
        let slot = self.slots.get_mut(self.shuffle.slot(id))?;
        (slot.id == id).then_some(&mut slot.value)
    }
}

/// Random numbers that are tried for spare ones.
const TRIES: usize = 8;
const SHARD_SHIFT: u32 = Shuffle::BITS;
/// Most shards on one port: as many as 6 bits of a session's id can distinguish.
pub const SHARDS_MAX: usize = 1 << (u32::BITS - SHARD_SHIFT);

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn an_id_is_legal_and_finds_its_value_until_that_is_removed() {
        for key in [0, 5, 0xa5] {
            let (mut table, mut seen) = (Table::new(3, 5, [key, 7]), HashSet::new());
            for round in 0..3500 {
                let id = table.next_id().unwrap();
                assert!(id != 0 && !is_reserved_conv(id) && seen.insert(id), "{id:#x} in round {round}");
                assert_eq!(id >> 26, 5, "the shard, whatever the key");
                table.insert(id, round);
                assert_eq!((table.get(id), table.len()), (Some(&round), 1));
                assert!(table.iter().eq([(id, &round)]));
                assert_eq!(table.get(id ^ 1 << 31), None, "another shard");
                assert_eq!(table.lift(id), Some(round));
                assert_eq!((table.len(), table.lift(id)), (1, None), "the id is still taken");
                table.give_back(id);
                assert!(table.get(id).is_none() && table.len() == 0);
            }
        }
    }
    /// Of each supply of spare numbers, the client uses any, or comes back to older ones.
    #[test]
    fn a_session_has_four_numbers_at_most_whichever_its_client_uses() {
        let (mut table, mut draws, mut told) = (Table::new(3, 5, [1, 7]), 1_u32, Vec::new());
        let ids = [0, 1].map(|value| {
            let id = table.next_id().unwrap();
            table.insert(id, value);
            id
        });
        for round in 0..5_000 {
            let mut draw = || {
                draws = draws.wrapping_mul(0x915f_77f5).wrapping_add(0xdead_beef);
                draws
            };
            let spare = table.add_names(ids[0], &mut draw);
            let before = table.name_in_use(ids[0]);
            told.extend(&spare);
            let tried = told[draw() as usize % told.len()];
            let is_next = table.use_name(ids[0], tried).is_some();
            assert_eq!(
                table.name_in_use(ids[0]),
                if is_next { Some(tried) } else { before },
                "round {round}"
            );
            let known = told.iter().chain(&ids).filter(|sid| table.id_of(**sid) == Some(ids[0])).count();
            assert!(known <= 4 && table.by_name.0.len() <= 4, "{known} in round {round}");
            told.drain(..told.len().saturating_sub(8));
        }
        assert_eq!(table.id_of(ids[1]), Some(ids[1]));
        assert_eq!(table.lift(ids[0]), Some(0));
        table.give_back(ids[0]);
        assert!(table.by_name.0.is_empty());
    }

    #[test]
    fn a_number_left_out_is_the_one_before_and_the_first_is_unknown_then() {
        let (mut table, mut next) = (Table::new(1, 0, [1, 7]), 0x0100_0000);
        let id = table.next_id().unwrap();
        table.insert(id, ());
        let mut supply = |table: &mut Table<()>| {
            table.add_names(id, || {
                next += 1;
                next
            })
        };
        let first = supply(&mut table);
        assert!(table.use_name(id, first[1]).is_some());
        assert_eq!((table.id_of(id), table.id_of(first[0])), (None, Some(id)));
        assert!(table.use_name(id, first[0]).is_none() && table.name_in_use(id) == Some(first[1]), "late");
        let second = supply(&mut table);
        assert_eq!(second.len(), 2);
        assert!(table.use_name(id, second[0]).is_some());
        assert_eq!([first[0], first[1], second[1]].map(|sid| table.id_of(sid)), [None, Some(id), Some(id)]);
    }
}
