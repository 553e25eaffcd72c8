//! The memory that a connection owns and may use.

use super::Connection;
use super::lane::Lane;
use super::large::{Joined, Left};
use super::parts::FrameParts;
use crate::channel::{SendError, cure};
use crate::session::event::CloseReason;
use crate::time::Time;

/// The memory that a session may use.
#[derive(Debug)]
pub(super) struct Budget {
    /// Bytes that may be used until the owner counts again.
    pub(super) left: u64,
    /// Tables have grown since it counted.
    has_grown: bool,
    /// Channels in packets that found no room, one bit each.
    pub(super) awaits: u32,
    /// Channels in packets of which somebody asked whether everything had arrived, and it had not.
    pub(super) asked: u32,
    /// A channel found no room for its bytes, and waits for the event that reports some.
    pub(super) is_short: bool,
    /// The session may use the reserve of its owner, which one session has at a time.
    pub(super) holds_reserve: bool,
}

impl Budget {
    pub(super) const NONE_SET: Self =
        Self { left: u64::MAX, has_grown: false, awaits: 0, asked: 0, is_short: false, holds_reserve: false };

    pub(super) const fn has_room(&self, need: usize) -> bool {
        self.left > need as u64
    }

    pub(super) const fn spend(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes as u64);
    }

    /// Notes that long messages have grown, or that one is complete.
    pub(super) const fn on_joined(&mut self, joined: Joined) {
        self.spend(joined.bytes);
        self.holds_reserve &= !joined.is_whole;
    }

    /// Notes that something had `before` bytes and has `now`.
    pub(super) const fn grow(&mut self, before: usize, now: usize) {
        self.has_grown |= now > before;
    }
}

impl Connection {
    /// Frees the memory of everything empty. A session that is quiet for 5 s does so by itself.
    pub fn shrink(&mut self) {
        self.trim();
        self.datagrams.forget();
        if let Some(channels) = &mut self.packed {
            channels.shrink();
        }
        (self.sent, self.scratch) = (None, None);
    }

    /// Bytes of the heap that the session owns, used or not. Room reserved for the rest of messages that have begun to
    /// arrive counts as well.
    #[must_use]
    pub fn memory(&self) -> usize {
        let path = held(&self.path.moving, |moving| moving.memory())
            + held(&self.mtu.search, |_| 0)
            + held(&self.marks, |_| 0);
        let measured =
            held(&self.measured.in_use, |_| 0) + held(&self.observer, |observer| observer.log.memory());
        let repairs = held(&self.repairs, |repairs| repairs.memory());
        let data =
            self.lanes.memory() + held(&self.packed, |channels| channels.memory()) + self.parts.memory();
        let rest = self.seal.memory() + self.stats.memory() + self.peer.user.len();
        let rest = rest
            + self.ids.as_ref().map_or(0, |ids| ids.memory())
            + held(&self.scratch, |scratch| scratch.capacity());
        data + self.tables() + path + measured + repairs + rest
    }

    /// Sets how many more bytes the session may use.
    pub(in crate::session) const fn set_memory_left(&mut self, bytes: u64) {
        self.budget.left = bytes;
    }

    pub(in crate::session) const fn memory_left(&self) -> u64 {
        self.budget.left
    }

    /// Since when data has arrived that there is no memory for. Long messages that wait for another one of the session,
    /// which has the reserve, do not count.
    pub(in crate::session) fn starved(&self) -> Option<Time> {
        self.lanes.starved(self.budget.holds_reserve)
    }

    pub(in crate::session) const fn holds_reserve(&self) -> bool {
        self.budget.holds_reserve
    }

    /// Bytes that the session may use, and how many of them are for one long message alone.
    pub(super) fn left(&self) -> Left {
        let alone = if self.budget.holds_reserve { self.lanes.config.longest_message() } else { 0 };
        Left { bytes: self.budget.left, alone: alone.into() }
    }

    /// Lets the session use the reserve of its owner until a long message is complete. Data that has found no room
    /// starts its wait again.
    pub(in crate::session) fn take_reserve(&mut self, now: Time) {
        self.budget.holds_reserve = true;
        self.lanes.restart_starved(now);
    }

    /// The reserve is not needed any more.
    pub(in crate::session) const fn return_reserve(&mut self) {
        self.budget.holds_reserve = false;
    }

    /// The session has held the reserve, or waited for it, for too long. If it holds part of a long message, others may
    /// be waiting for that memory: it is freed, and the session ends.
    #[cold]
    pub(in crate::session) fn release_reserve(&mut self, now: Time) {
        (self.budget.holds_reserve, self.budget.has_grown) = (false, true);
        if self.lanes.drop_joining() {
            self.fail(now, CloseReason::NoMemory);
        }
    }

    /// Bytes that were acknowledged, read or joined: what no longer waits in a channel. It wraps.
    pub(in crate::session) fn moved(&self) -> u32 {
        self.lanes.moved().wrapping_add(self.packed.as_ref().map_or(0, |packed| packed.moved()))
    }

    /// Bytes that the application could read now, about as much as they take. Walks over what has arrived.
    pub(in crate::session) fn unread(&self) -> usize {
        let unread = |channel| {
            let packed = self.packed.as_ref().filter(|_| self.next_len(channel).is_some());
            let lane = self.lanes.get(channel).filter(|_| self.is_next_in_lane(channel));
            packed.map_or(0, |packed| packed.unread(channel)) + lane.map_or(0, Lane::unread)
        };
        let channels = (0..).take(self.lanes.config.channels.len());
        self.datagrams.unread() + channels.map(unread).sum::<usize>()
    }

    /// Ends the session, because what it holds waits for the peer while others need the memory, and frees it.
    #[cold]
    pub(in crate::session) fn evict(&mut self, now: Time) {
        self.fail(now, CloseReason::NoMemory);
        (self.budget.holds_reserve, self.budget.has_grown) = (false, true);
        (self.packed, self.lanes.lanes) = (None, Vec::new());
        self.parts = FrameParts::default();
    }

    /// As much of a message as its channel has room for in `send_memory`: all of it, or part of a stream.
    pub(super) fn within_memory<'a>(&self, channel: u8, message: &'a [u8]) -> Result<&'a [u8], SendError> {
        let is_stream = self.lanes.is_stream(channel);
        let (len, (held, max)) = (message.len(), self.lanes.send_share(channel));
        let part = |most: usize| message.get(..most).filter(|_| is_stream && most > 0);
        let room = max.saturating_sub(held);
        let fits = if len <= room { Some(message) } else { part(room) };
        let fits = fits.ok_or_else(|| match self.lanes.send_most() {
            most if !is_stream && len > most => {
                SendError::TooLong { channel, len, max: most, cure: cure::SEND_MEMORY }
            }
            _ => SendError::Full { channel },
        })?;
        let left = usize::try_from(self.budget.left.saturating_sub(1)).unwrap_or(usize::MAX);
        let is_short = left < fits.len() || self.budget.left == 0;
        if is_short { part(left).ok_or(SendError::Full { channel }) } else { Ok(fits) }
    }

    /// Whether there is room again where a send found none. Says so once.
    #[inline]
    pub(super) fn regains_room(&mut self) -> bool {
        let Budget { awaits, asked, is_short, .. } = self.budget;
        (is_short || awaits | asked != 0) && self.regains()
    }

    fn regains(&mut self) -> bool {
        let has_places =
            (self.budget.awaits != 0 && self.has_places()) | (self.budget.asked != 0 && self.is_told());
        if !self.budget.is_short {
            return has_places;
        }
        if self.lanes.lanes.is_empty() {
            self.budget.is_short = self.budget.left == 0;
            return !self.budget.is_short || has_places;
        }
        let is_roomy = self.lanes.regain_room(self.keepalive.now, self.budget.left);
        self.budget.is_short = self.lanes.is_waiting();
        is_roomy || has_places
    }

    /// Whether a channel in packets that found no room has some now. Says so once.
    fn has_places(&mut self) -> bool {
        if !self.budget.has_room(self.mtu.least().into()) {
            return false;
        }
        let (Some(packed), awaits) = (&self.packed, &mut self.budget.awaits) else { return false };
        let has_room = |channel: &u8| *awaits & (1 << channel) != 0 && packed.has_half_room(*channel);
        let free = (0..32).filter(has_room).fold(0, |free, channel| free | 1 << channel);
        *awaits &= !free;
        free != 0
    }

    /// Whether everything has arrived on a channel in packets that was asked about. Says so once.
    fn is_told(&mut self) -> bool {
        let (Some(packed), asked) = (&self.packed, &mut self.budget.asked) else { return false };
        let has_arrived = |channel: &u8| *asked & (1 << channel) != 0 && !packed.waits(*channel);
        let arrived = (0..32).filter(has_arrived).fold(0, |arrived, channel| arrived | 1 << channel);
        *asked &= !arrived;
        // Channels with data in KCP report it when that has arrived.
        (0..32)
            .filter(|channel| arrived & (1 << channel) != 0)
            .fold(false, |any, channel| self.lanes.is_delivered(channel) | any)
    }

    /// Bytes of the tables that remember packets: most of what a session owns, created for the first packet.
    pub(super) fn tables(&self) -> usize {
        self.datagrams.memory() + held(&self.sent, |sent| sent.memory())
    }

    /// Whether it has grown since its owner counted. Says so once.
    pub(in crate::session) const fn clear_grown(&mut self) -> bool {
        std::mem::replace(&mut self.budget.has_grown, false)
    }

    /// Frees what can be allocated again at once.
    pub(in crate::session) fn trim(&mut self) {
        self.lanes.shrink();
        self.parts.shrink();
        self.datagrams.shrink();
        if let Some(packed) = &mut self.packed {
            packed.trim();
        }
        self.shrink_repairs();
    }
}

/// Bytes of something that is created on first use, and of what it owns.
pub(super) fn held<T>(made: &Option<Box<T>>, owned: impl Fn(&T) -> usize) -> usize {
    made.as_deref().map_or(0, |value| size_of::<T>() + owned(value))
}

/// About what a message takes beside its bytes.
pub(super) const SEGMENT: usize = 32;
