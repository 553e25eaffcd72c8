//! The numbers of a session in packets to the server. The first is the session's id. Others are sent to the
//! client inside the session. They are random, so whoever has seen one cannot tell which others belong to the
//! same session.

use crate::hash::Keyed;
use crate::session::connection::SPARE;
use std::collections::HashMap;

/// The numbers of one session, 0 where there is none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Names {
    pub(super) in_use: u32,
    /// The number before the one in use. Packets with it may still be under way.
    before: u32,
    spare: [u32; SPARE],
}

/// The sessions by all numbers but their ids.
#[derive(Debug)]
pub(super) struct ByName(HashMap<u32, u32, Keyed>);

impl Names {
    pub(super) fn of(id: u32) -> Self {
        Self { in_use: id, ..Self::default() }
    }

    /// Whether packets with this number are accepted, if it is the session's.
    #[inline]
    pub(super) const fn has_used(&self, sid: u32) -> bool {
        sid == self.in_use || sid == self.before
    }

    /// Adds a spare number. Returns whether there was a place for one.
    pub(super) fn add(&mut self, sid: u32) -> bool {
        let place = self.spare.iter_mut().find(|spare| **spare == 0);
        place.map(|place| *place = sid).is_some()
    }

    /// Switches to a number, if it is a spare one. Returns the number that is retired, or 0; `None`: it was
    /// not a spare one.
    pub(super) fn take(&mut self, sid: u32) -> Option<u32> {
        let spare = self.spare.iter_mut().find(|spare| **spare == sid)?;
        *spare = 0;
        let before = std::mem::replace(&mut self.in_use, sid);
        Some(std::mem::replace(&mut self.before, before))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = u32> {
        self.spare.into_iter().chain([self.in_use, self.before]).filter(|sid| *sid != 0)
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

/// Bytes of memory for the numbers of a session: a list, and a place for each in the map, half of which may be empty.
pub(super) const NAMES_MEMORY: u64 = size_of::<Names>() as u64 + 2 * (2 + SPARE as u64) * 9;
