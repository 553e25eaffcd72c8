//! What all sessions hold together, counted when each of them may have changed.

use super::Server;
use super::peer::Peer;

/// Bytes that sessions hold, and how many they may.
#[derive(Debug)]
pub(super) struct Memory {
    limit: u64,
    used: u64,
    /// The session that the application was given last, or that a datagram came for, and how much it may take.
    lent: Option<(u32, u64)>,
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
            } else if std::mem::take(&mut peer.took) && peer.taken < RECOUNT && !peer.connection.take_grown()
            {
                return; // it goes on, and counts for about what it holds meanwhile
            }
            let now = bytes(size_of::<Peer<M>>() + peer.connection.memory());
            peer.taken = 0;
            let before = std::mem::replace(&mut peer.counted, now);
            self.memory.replace(before, now);
        }
    }

    /// Counts what the session has taken that was lent last.
    pub(super) fn count_lent(&mut self) {
        let Some((id, left)) = self.memory.lent.take() else { return };
        if let Some(peer) = self.sessions.get_mut(id) {
            let taken = left.saturating_sub(peer.connection.memory_left());
            peer.counted += taken;
            peer.taken += taken;
            peer.took |= taken > 0;
            self.memory.used += taken;
        }
    }

    /// The session goes to the application, which may send and read, or gets a datagram. It counts down itself what it takes; what it
    /// gives back is seen when it is counted anew, which is when it has been polled.
    pub(super) fn lend(&mut self, id: u32) {
        if self.memory.lent.is_some_and(|(lent, _)| lent == id) {
            return;
        }
        self.count_lent();
        let left = self.memory.left();
        if let Some(peer) = self.sessions.get_mut(id) {
            peer.connection.set_memory_left(left);
            self.memory.lent = Some((id, left));
        }
    }

    /// A session is no more.
    pub(super) fn uncount(&mut self, peer: &Peer<M>) {
        self.memory.replace(peer.counted, 0);
    }
}

/// A session that takes memory is counted anew when it has taken so many bytes, and when it is polled and has taken none.
const RECOUNT: u64 = 1024;

fn bytes(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
