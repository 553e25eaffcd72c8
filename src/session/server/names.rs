//! The numbers of a session in packets to the server. The first is the session's id. Others are sent to the
//! client inside the session. They are random, so whoever has seen one cannot tell which others belong to the
//! same session.

use crate::hash::Keyed;
use crate::session::connection::SPARE;
use crate::time::Time;
use std::collections::HashMap;
use std::time::Duration;

/// The numbers of one session, 0 where there is none. The client uses them in the order in which it was told them: the
/// one before the one in use, of which packets may still be under way, the one in use, and the spare ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names([u32; USED + SPARE]);

/// The sessions by all numbers but their ids.
#[derive(Debug)]
pub(super) struct ByName(pub(super) HashMap<u32, u32, Keyed>);

impl Names {
    pub(super) fn of(id: u32) -> Self {
        let mut names = [0; USED + SPARE];
        names[USED - 1] = id;
        Self(names)
    }

    pub(super) const fn in_use(&self) -> u32 {
        self.0[USED - 1]
    }

    /// The number before it, if there was one.
    pub(super) fn before(&self) -> Option<u32> {
        self.0.first().copied().filter(|sid| *sid != 0)
    }

    /// Whether packets with this number are accepted, if it is the session's.
    #[inline]
    pub(super) fn has_used(&self, sid: u32) -> bool {
        self.0.iter().take(USED).any(|used| *used == sid)
    }

    /// Adds a spare number. Returns whether there was a place for one.
    pub(super) fn add(&mut self, sid: u32) -> bool {
        let place = self.0.iter_mut().skip(USED).find(|spare| **spare == 0);
        place.map(|place| *place = sid).is_some()
    }

    /// Switches to a number, if it is a spare one; a late packet with an older one changes nothing. Returns the numbers
    /// that are retired, and zeros: all before the one before it, whether they were used or not.
    pub(super) fn take(&mut self, sid: u32) -> Option<[u32; SPARE]> {
        let steps = self.0.iter().skip(USED).position(|spare| *spare == sid)? + 1;
        let mut retired = [0; SPARE];
        self.0.iter_mut().zip(&mut retired).take(steps).for_each(|(old, to)| *to = std::mem::take(old));
        self.0.rotate_left(steps);
        Some(retired)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = u32> {
        self.0.into_iter().filter(|sid| *sid != 0)
    }
}

/// Numbers that sessions no longer have. For a while each is answered with silence, as when it was in use: otherwise
/// whoever probes it would learn when the client moved on, and look for it in other networks.
#[derive(Debug)]
pub(super) struct Retired {
    until: HashMap<u32, Time, Keyed>,
    most: usize,
}

impl Retired {
    pub(super) fn new(key: [u64; 2], sessions: usize) -> Self {
        Self { until: HashMap::with_hasher(Keyed(key)), most: RETIRED_EACH * sessions }
    }

    /// `random` says for how long.
    pub(super) fn insert(&mut self, now: Time, sid: u32, random: [u8; 2]) {
        let until = &mut self.until;
        if until.len() == until.capacity() || until.len() >= self.most {
            until.retain(|_, until| *until > now);
        }
        if until.len() < self.most {
            until.insert(sid, now + SILENCE * u32::from(u16::from_le_bytes(random)));
        }
    }

    pub(super) fn has(&self, now: Time, sid: u32) -> bool {
        self.until.get(&sid).is_some_and(|until| *until > now)
    }
}

impl ByName {
    pub(super) fn new(key: [u64; 2]) -> Self {
        Self(HashMap::with_hasher(Keyed(key)))
    }

    #[inline]
    pub(super) fn get(&self, sid: u32) -> Option<u32> {
        self.0.get(&sid).copied()
    }

    pub(super) fn insert(&mut self, sid: u32, id: u32) {
        self.0.insert(sid, id);
    }

    pub(super) fn remove(&mut self, sid: u32) {
        self.0.remove(&sid);
    }
}

/// A 65,536th of the longest silence, which is more than four minutes.
const SILENCE: Duration = Duration::from_millis(4);
/// Retired numbers that are remembered, per possible session.
const RETIRED_EACH: usize = 8;
/// Numbers that packets may have: the one in use, and the one before.
const USED: usize = 2;
/// Bytes of memory for the numbers of a session: a list, and a place for each in the map, half of which may be empty.
pub(super) const NAMES_MEMORY: u64 = size_of::<Names>() as u64 + 2 * (USED + SPARE) as u64 * 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_numbers_are_silent_for_a_while_and_few_are_remembered() {
        let mut retired = Retired::new([1, 2], 2);
        let at = Time::from_millis;
        let silent = |retired: &Retired, ms| (0..40).filter(|sid| retired.has(at(ms), *sid)).count();
        (0..40).for_each(|sid| retired.insert(at(0), sid, [0, 1])); // 1024 ms
        assert_eq!([0, 1_023, 1_024].map(|ms| silent(&retired, ms)), [16, 16, 0]);
        (0..10).for_each(|sid| retired.insert(at(2_000), sid, [255, 255]));
        assert_eq!([2_000, 264_139, 264_140].map(|ms| silent(&retired, ms)), [10, 10, 0]);
        assert_eq!(retired.until.len(), 10);
    }
}
