//! What all sessions hold together, counted when each of them may have changed.

use super::Server;
use super::peer::Peer;

/// Bytes that sessions hold, and how many they may.
#[derive(Debug)]
pub(super) struct Memory {
    limit: u64,
    used: u64,
    /// The session that the application was given last: it may have sent or read since.
    lent: Option<u32>,
}

impl Memory {
    pub(super) const fn new(limit: u64) -> Self {
        Self { limit, used: 0, lent: None }
    }

    pub(super) const fn used(&self) -> u64 {
        self.used
    }

    /// Bytes that may still be taken.
    pub(super) const fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    /// Whether no more than an eighth is left.
    const fn is_short(&self) -> bool {
        self.left() <= self.limit / 8
    }

    /// Whether the session is counted anew before another one is, or before anything is sent.
    pub(super) fn is_lent(&self, id: u32) -> bool {
        self.lent == Some(id)
    }

    /// A session held `before` bytes, and holds `after` now.
    const fn replace(&mut self, before: u64, after: u64) {
        self.used = self.used.saturating_sub(before).saturating_add(after);
    }
}

impl<M: crate::message::Message> Server<M> {
    /// Counts a session anew. Looks at its lanes and channels, and not at what they hold. Where memory is short, buffers do not stay
    /// when they are empty.
    pub(super) fn recount(&mut self, id: u32) {
        let is_short = self.memory.is_short();
        if let Some(peer) = self.sessions.get_mut(id) {
            if is_short {
                peer.connection.trim();
            }
            let now = bytes(size_of::<Peer<M>>() + peer.connection.memory());
            let before = std::mem::replace(&mut peer.counted, now);
            self.memory.replace(before, now);
        }
    }

    /// Counts what the application did with the session that it was given last.
    pub(super) fn recount_lent(&mut self) {
        if let Some(id) = self.memory.lent.take() {
            self.recount(id);
        }
    }

    /// The session goes to the application, which may send and read, or gets a datagram. It counts down itself what it takes; what it
    /// gives back is seen when it is counted anew.
    pub(super) fn lend(&mut self, id: u32) {
        if self.memory.is_lent(id) {
            return;
        }
        self.recount_lent();
        let left = self.memory.left();
        if let Some(peer) = self.sessions.get_mut(id) {
            peer.connection.set_memory_left(left);
            self.memory.lent = Some(id);
        }
    }

    /// A session is no more.
    pub(super) fn uncount(&mut self, peer: &Peer<M>) {
        self.memory.replace(peer.counted, 0);
    }
}

fn bytes(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
