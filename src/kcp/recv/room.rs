//! Limits the bytes held for a peer.

use super::{Rare, Receiver};
use crate::seq::Sn;

/// A limit on the bytes of segments held, headers included.
///
/// A segment that arrives early also needs room for those before it, and the first fragments of a message need room for
/// the rest. Otherwise what is held could fill all the room and never become readable. So room is reserved for missing
/// segments, and a segment that arrives for reserved room is always stored.
#[derive(Clone, Copy, Debug)]
pub(in crate::kcp) struct Room {
    pub(in crate::kcp) limit: u32,
    /// Bytes of the longest segment, header included.
    pub(in crate::kcp) segment_max: u16,
    /// The number after the last fragment of the messages that have begun. `None`: none has.
    promised: Option<Sn>,
}

impl Receiver {
    /// Limits the bytes held from now on.
    pub(in crate::kcp) fn set_room(&mut self, limit: u32, segment_max: u16) {
        let promised = self.room().and_then(|room| room.promised);
        self.rare().room = Some(Room { limit, segment_max, promised });
    }

    /// Whether this limit is in force already.
    pub(in crate::kcp) fn has_limit(&self, limit: u32, segment_max: u16) -> bool {
        self.room().is_some_and(|room| (room.limit, room.segment_max) == (limit, segment_max))
    }

    /// Bytes held and reserved.
    pub(in crate::kcp) fn reserved(&self) -> u32 {
        self.log.len().saturating_add(self.promised())
    }

    /// Bytes held, headers included.
    #[inline]
    pub(in crate::kcp) const fn held(&self) -> u32 {
        self.log.len()
    }

    /// Bytes that were read, headers included. It wraps.
    pub(in crate::kcp) const fn bytes_read(&self) -> u32 {
        self.log.start()
    }

    /// The reserved part of those bytes.
    pub(in crate::kcp) fn promised(&self) -> u32 {
        let Some(room) = self.room() else { return 0 };
        self.missing(self.end(room)).saturating_mul(room.segment_max.into())
    }

    /// Number of full segments that there is room for.
    #[inline]
    pub(super) fn room_for_full(&self) -> u16 {
        let Some(room) = self.room() else { return u16::MAX };
        let left = room.limit.saturating_sub(self.log.len()) / u32::from(room.segment_max.max(1));
        u16::try_from(left).unwrap_or(u16::MAX)
    }

    /// Whether there is room for a segment in order, when nothing is missing or reserved.
    #[inline]
    pub(super) fn has_room_in_turn(&self, len: usize) -> bool {
        self.room().is_none_or(|room| self.log.len() as usize + len <= room.limit as usize)
    }

    /// Reserves room for the segment `sn`, which has not arrived before. `false`: there is none.
    pub(super) fn reserve(&mut self, sn: Sn, frg: u8, len: usize) -> bool {
        let Some(room) = self.room() else { return true };
        let (segment_max, end) = (u64::from(room.segment_max), self.end(room));
        let own = sn.add(1).add(frg.into());
        let new_end = if end.is_before(own) { own } else { end };
        let held = u64::from(self.log.len());
        let before = held + u64::from(self.missing(end)) * segment_max;
        let missing = u64::from(self.missing(new_end).saturating_sub(1));
        let after = held + len as u64 + missing * segment_max;
        if after > before && after > u64::from(room.limit) {
            return false;
        }
        if let Some(room) = &mut self.rare().room
            && room.promised.is_none_or(|promised| promised.is_before(own))
        {
            room.promised = Some(own);
        }
        true
    }

    /// Every message that has begun is complete. The number after it would seem to lie ahead after half of all numbers.
    pub(super) fn keep_promises(&mut self) {
        if let Some(Rare { room: Some(room), .. }) = self.rare.as_deref_mut() {
            room.promised = None;
        }
    }

    /// The number after the last that is held or reserved.
    fn end(&self, room: &Room) -> Sn {
        let last = |one: Sn, other: Sn| if one.is_before(other) { other } else { one };
        let held = last(self.nxt, self.index.end());
        room.promised.map_or(held, |promised| last(held, promised))
    }

    /// Segments before `end` that have not arrived.
    fn missing(&self, end: Sn) -> u32 {
        end.0.wrapping_sub(self.nxt.0).saturating_sub(self.parked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kcp::recv::Stored;
    use crate::seq::Conv;
    use crate::time::Millis;
    use crate::wire::{Command, Header};
    use proptest::prelude::*;

    fn segment(sn: u32, frg: u8, len: usize) -> Vec<u8> {
        let (cmd, ts) = (Command::Push, Millis(0));
        let header = Header { conv: Conv(1), cmd, frg, wnd: 0, ts, sn: Sn(sn), una: Sn(0) };
        let mut bytes = header.to_bytes(u32::try_from(len).unwrap()).to_vec();
        bytes.resize(bytes.len() + len, 7);
        bytes
    }

    #[test]
    fn what_was_reserved_long_ago_takes_no_room_however_many_segments_came_since() {
        for passed in [1 << 10, 1 << 31, u32::MAX - 10] {
            let mut receiver = Receiver::new(Sn(0));
            receiver.set_room(10_000, 124);
            for (sn, frg) in [(1, 0), (0, 1)] {
                assert_eq!(receiver.store(&segment(sn, frg, 100), None, 128), Stored::New);
            }
            receiver.read(&mut [0; 200]);
            // As if so many more had come, each in its turn, and been read.
            let next = Sn(2).add(passed);
            (receiver.nxt, receiver.index) = (next, crate::ring::Ring::new(next));
            assert_eq!(receiver.reserved(), 0, "{passed}");
            assert!(receiver.reserve(next, 0, 124), "{passed}");
        }
    }

    #[test]
    fn a_segment_that_is_shared_long_after_another_can_be_read() {
        for passed in [1 << 10, (1 << 31) - 1, 1 << 31, u32::MAX - 10] {
            let mut receiver = Receiver::new(Sn(u32::MAX));
            let share = |receiver: &mut Receiver, sn: Sn| {
                let datagram = bytes::Bytes::from(segment(sn.0, 0, 1000));
                assert_eq!(receiver.store(&datagram, Some(&datagram), 128), Stored::New);
                assert_eq!(receiver.peek_size(), Some(1000), "{passed}");
                assert_eq!(receiver.read_bytes(1000).len(), 1000);
            };
            share(&mut receiver, Sn(u32::MAX));
            // As if so many more had come, each in its turn, and been read.
            let next = Sn(passed);
            (receiver.nxt, receiver.index) = (next, crate::ring::Ring::new(next));
            share(&mut receiver, next);
        }
    }

    proptest! {
        /// Segments arrive in any order: the limit holds, and in the end everything has been read.
        #[test]
        fn what_is_held_stays_below_the_limit_and_never_gets_stuck(
            limit in 3000..40_000u32,
            lengths in prop::collection::vec((1..8u8, 0..=100usize), 60..150),
            order in prop::collection::vec((0..40usize, 0..4usize), 4000),
        ) {
            let mut segments = Vec::new();
            for (fragments, len) in lengths {
                for frg in (0..fragments).rev() {
                    segments.push(segment(u32::try_from(segments.len()).unwrap(), frg, len));
                }
            }
            let mut receiver = Receiver::new(Sn(0));
            receiver.set_room(limit, 124);
            let mut buf = vec![0; 8 * 100];
            for (ahead, reads) in order {
                let next = receiver.nxt.0 as usize + ahead;
                if let Some(segment) = segments.get(next) {
                    receiver.store(segment, None, 128);
                }
                prop_assert!(receiver.log.len() <= limit && receiver.reserved() <= limit.max(8 * 124));
                for _ in 0..reads {
                    if let Some(len) = receiver.peek_size() {
                        receiver.read(&mut buf[..len]);
                        receiver.deliver(128);
                    }
                }
            }
            // The rest arrives in order, as an honest peer would resend it.
            while (receiver.nxt.0 as usize) < segments.len() {
                let stored = receiver.store(&segments[receiver.nxt.0 as usize], None, 128);
                while let Some(len) = receiver.peek_size() {
                    receiver.read(&mut buf[..len]);
                    receiver.deliver(128);
                }
                prop_assert_eq!(stored, Stored::New);
            }
            prop_assert_eq!((receiver.log.len(), receiver.parked, receiver.queued()), (0, 0, 0));
        }
    }
}
