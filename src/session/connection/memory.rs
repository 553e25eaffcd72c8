//! What a connection owns, and may take.

use super::Connection;
use crate::kcp;
use crate::message::Message;
use crate::session::error::SendError;

/// What a session may take.
#[derive(Debug)]
pub(super) struct Budget {
    /// Bytes until its owner counts again.
    pub(super) left: u64,
    /// Tables were made since it counted.
    has_grown: bool,
    /// A lane found no room for its bytes, and waits for the event that there is some.
    pub(super) is_short: bool,
}

impl Budget {
    pub(super) const NONE_SET: Self = Self { left: u64::MAX, has_grown: false, is_short: false };

    pub(super) fn check(&self, need: usize) -> Result<(), SendError> {
        if self.left > need as u64 { Ok(()) } else { Err(SendError::NoMemory) }
    }

    pub(super) const fn spend(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes as u64);
    }

    /// What has `before` bytes no more has `now`.
    pub(super) const fn grow(&mut self, before: usize, now: usize) {
        self.has_grown |= now > before;
    }
}

impl<M: Message> Connection<M> {
    /// Gives back the memory of what is empty, which a session that is quiet for 5 s does by itself.
    pub fn shrink(&mut self) {
        self.trim();
        self.datagrams.forget();
        if let Some(channels) = &mut self.channels {
            channels.shrink();
        }
        self.sent = None;
    }

    /// Bytes of the heap that the session owns, used or not; what messages of channels own is taken for as much as they have bits.
    /// Room that is kept for the rest of what has begun to come counts as well.
    #[must_use]
    pub fn memory(&self) -> usize {
        let path = held(&self.path.moving, |_| 0) + held(&self.mtu.search, |_| 0) + held(&self.marks, |_| 0);
        let measured =
            held(&self.measured.in_use, |_| 0) + held(&self.observer, |observer| observer.log.memory());
        let repairs = held(&self.repairs, |repairs| repairs.memory());
        let data =
            self.lanes.memory() + held(&self.channels, |channels| channels.memory()) + self.parts.memory();
        let rest = self.seal.memory() + self.stats.memory() + self.peer.user.len();
        data + self.tables() + path + measured + repairs + rest
    }

    /// How many more bytes the session may take.
    pub(in crate::session) const fn set_memory_left(&mut self, bytes: u64) {
        self.budget.left = bytes;
    }

    pub(in crate::session) const fn memory_left(&self) -> u64 {
        self.budget.left
    }

    /// As much of a message as its lane has room for in `send_memory`: all of it, or of a stream a part.
    pub(super) fn within_memory<'a>(&self, lane: usize, message: &'a [u8]) -> Result<&'a [u8], SendError> {
        let is_stream = self.lanes.is_stream(lane)?;
        let (len, (held, max)) = (message.len(), self.lanes.send_share(lane));
        let part = |most: usize| message.get(..most).filter(|_| is_stream && most > 0);
        let room = max.saturating_sub(held);
        let fits = if len <= room { Some(message) } else { part(room) };
        let fits = fits.ok_or_else(|| match self.lanes.send_most() {
            most if !is_stream && len > most => kcp::SendError::TooLong { len, max: most }.into(),
            _ => SendError::Full { held, max },
        })?;
        let left = usize::try_from(self.budget.left.saturating_sub(1)).unwrap_or(usize::MAX);
        let is_short = left < fits.len() || self.budget.left == 0;
        if is_short { part(left).ok_or(SendError::NoMemory) } else { Ok(fits) }
    }

    /// Whether there is room again where a send found none, once.
    pub(super) fn regains_room(&mut self) -> bool {
        if !self.budget.is_short {
            return false;
        }
        if self.lanes.lanes.is_empty() {
            self.budget.is_short = self.budget.left == 0;
            return !self.budget.is_short;
        }
        let is_roomy = self.lanes.regain_room(self.keepalive.now, self.budget.left);
        self.budget.is_short = self.lanes.is_waiting();
        is_roomy
    }

    /// Bytes of what packets are remembered in: most of what a session owns, made for the first of them.
    pub(super) fn tables(&self) -> usize {
        self.datagrams.memory() + held(&self.sent, |sent| sent.memory())
    }

    /// Whether it owns much more than it did, and than it was said to take, once.
    pub(in crate::session) const fn clear_grown(&mut self) -> bool {
        std::mem::replace(&mut self.budget.has_grown, false)
    }

    /// Gives back what can be had at once again.
    pub(in crate::session) fn trim(&mut self) {
        self.lanes.shrink();
        self.parts.shrink();
        self.datagrams.shrink();
        if let Some(repairs) = &mut self.repairs {
            repairs.shrink();
        }
    }
}

/// Bytes of what is made when it is first used, and what it owns.
pub(super) fn held<T>(made: &Option<Box<T>>, owned: impl Fn(&T) -> usize) -> usize {
    made.as_deref().map_or(0, |value| size_of::<T>() + owned(value))
}

/// What a message takes beside its bytes, about.
pub(super) const SEGMENT: usize = 32;
