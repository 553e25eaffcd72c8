//! What a connection owns, and may take.

use super::ecn::Marks;
use super::{Connection, InUse, Observer, Repairs};
use crate::arq;
use crate::message::Message;
use crate::message::channel::Channels;
use crate::session::error::SendError;

impl<M: Message> Connection<M> {
    /// Gives back the memory of what is empty, which a session that is quiet for 5 s does by itself.
    pub fn shrink(&mut self) {
        self.trim();
        self.datagrams.forget();
        if let Some(channels) = &mut self.channels {
            channels.shrink();
        }
        self.sent.forget_sent();
    }

    /// Bytes of the heap that the session owns, used or not; what messages of channels own is taken for as much as they have bits.
    /// Room that is kept for the rest of what has begun to come counts as well.
    #[must_use]
    pub fn memory(&self) -> usize {
        let channels =
            self.channels.as_deref().map_or(0, |channels| size_of::<Channels<M>>() + channels.memory());
        let in_use = if self.in_use.is_some() { size_of::<InUse>() } else { 0 };
        let marks = if self.marks.is_some() { size_of::<Marks>() } else { 0 };
        let repairs = self.repairs.as_deref().map_or(0, Repairs::memory);
        let path = self.path.memory() + self.parts.memory() + self.mtu.memory() + marks;
        let observer = self.observer.as_deref().map_or(0, Observer::memory);
        let rest = self.seal.memory() + self.stats.memory() + self.user.len() + observer;
        self.lanes.memory() + channels + self.tables() + in_use + path + repairs + rest
    }

    /// How many more bytes the session may take.
    pub(in crate::session) const fn set_memory_left(&mut self, bytes: u64) {
        self.memory_left = bytes;
    }

    pub(in crate::session) const fn memory_left(&self) -> u64 {
        self.memory_left
    }

    /// As much of a message as its lane has room for in `send_memory`: all of it, or of a stream a part.
    pub(super) fn within_memory<'a>(
        &self,
        lane: usize,
        message: &'a [u8],
        is_stream: bool,
    ) -> Result<&'a [u8], SendError> {
        let (len, (held, max), most) = (message.len(), self.lanes.send_share(lane), self.lanes.send_most());
        if !is_stream && len > most {
            return Err(arq::SendError::TooLong { len, max: most }.into());
        }
        let part = |most: usize| message.get(..most).filter(|_| is_stream && most > 0);
        let room = max.saturating_sub(held);
        let fits = if len <= room { Some(message) } else { part(room) };
        let fits = fits.ok_or(SendError::Full { held, max })?;
        let left = self.memory_left.saturating_sub(1);
        match usize::try_from(left) {
            Ok(left) if left < fits.len() => part(left).ok_or(SendError::NoMemory),
            _ if self.memory_left == 0 => Err(SendError::NoMemory),
            _ => Ok(fits),
        }
    }

    pub(super) fn check_memory(&self, need: usize) -> Result<(), SendError> {
        if self.memory_left > need as u64 { Ok(()) } else { Err(SendError::NoMemory) }
    }

    /// Whether there is room again where a send found none, once.
    pub(super) fn take_roomy(&mut self) -> bool {
        if !self.is_short {
            return false;
        }
        if !self.lanes.is_used() {
            self.is_short = self.memory_left == 0;
            return !self.is_short;
        }
        let is_roomy = self.lanes.take_roomy(self.now, self.memory_left);
        self.is_short = self.lanes.is_waiting();
        is_roomy
    }

    /// So many bytes were taken; they are counted anew when the owner looks.
    pub(super) const fn take_memory(&mut self, bytes: usize) {
        self.memory_left = self.memory_left.saturating_sub(bytes as u64);
    }

    /// Bytes of what packets are remembered in: most of what a session owns, made for the first of them.
    pub(super) fn tables(&self) -> usize {
        self.datagrams.memory() + self.sent.memory()
    }

    /// Whether it owns much more than it did, and than it was said to take, once.
    pub(in crate::session) const fn take_grown(&mut self) -> bool {
        std::mem::replace(&mut self.has_grown, false)
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

/// What a message takes beside its bytes, about.
pub(super) const SEGMENT: usize = 32;
