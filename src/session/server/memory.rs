//! The memory of all sessions together, counted whenever one may have changed.

use super::seat::Peer;

/// Bytes that sessions hold, and their limit. A quarter is divided evenly among the most sessions there may be: each
/// session has its part, which no other can take, and of the rest what the others have left.
#[derive(Debug)]
pub(super) struct Memory {
    limit: u64,
    pub(super) used: u64,
    own: u64,
    /// Bytes taken: what is used, and the unused rest of each part.
    taken: u64,
}

impl Memory {
    pub(super) fn new(limit: u64, max_sessions: u16) -> Self {
        Self { limit, used: 0, own: limit / 4 / u64::from(max_sessions.max(1)), taken: 0 }
    }

    const fn left(&self) -> u64 {
        self.limit.saturating_sub(self.taken)
    }

    pub(super) const fn has_room(&self) -> bool {
        self.left() > self.own
    }

    pub(super) fn admit(&mut self, peer: &mut Peer) {
        self.replace(None, Some(0));
        self.recount(peer);
    }

    pub(super) fn dismiss(&mut self, peer: &Peer) {
        self.replace(Some(peer.counted), None);
    }

    /// Returns how much a session may take before it is [counted](Self::spend).
    pub(super) fn grant(&self, peer: &mut Peer) -> u64 {
        let left = self.left() + self.own.saturating_sub(peer.counted);
        peer.connection.set_memory_left(left);
        left
    }

    pub(super) fn spend(&mut self, peer: &mut Peer, granted: u64) {
        let taken = granted.saturating_sub(peer.connection.memory_left());
        if taken == 0 {
            return;
        }
        let before = peer.counted;
        peer.counted += taken;
        peer.taken += taken;
        peer.took = true;
        self.replace(Some(before), Some(peer.counted));
    }

    /// Counts a session anew. Looks at its channels, not at their contents. If memory is short, empty buffers are
    /// freed.
    pub(super) fn recount(&mut self, peer: &mut Peer) {
        if self.left() <= self.limit / 8 {
            peer.connection.trim();
        } else if std::mem::take(&mut peer.took) && peer.taken < RECOUNT && !peer.connection.clear_grown() {
            return; // it remains, and counts as what it holds in the meantime
        }
        let held = (size_of::<Peer>() + peer.connection.memory()) as u64;
        peer.taken = 0;
        let before = std::mem::replace(&mut peer.counted, held);
        self.replace(Some(before), Some(held));
    }

    /// A session was added, removed, or holds more or less than before.
    fn replace(&mut self, before: Option<u64>, after: Option<u64>) {
        let own = self.own;
        let [used_before, used] = [before, after].map(Option::unwrap_or_default);
        let [taken_before, taken] = [before, after].map(|held| held.map_or(0, |held| held.max(own)));
        self.used = self.used.saturating_sub(used_before).saturating_add(used);
        self.taken = self.taken.saturating_sub(taken_before).saturating_add(taken);
    }
}

/// A session is counted anew after it has taken this many bytes, and when it is polled without having taken any.
const RECOUNT: u64 = 1024;
