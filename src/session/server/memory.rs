//! What all sessions hold together, counted when each of them may have changed.

use super::Server;
use super::peer::Peer;

/// Bytes that sessions hold, and how many they may. A quarter is shared out among as many sessions as there may be: each that is there
/// has its part of it, which no other can take, and of the rest what the others have left.
#[derive(Debug)]
pub(super) struct Memory {
    limit: u64,
    used: u64,
    /// The part of each session.
    own: u64,
    /// What is used, and of parts the rest.
    taken: u64,
    /// The session that the application was given last, or that a datagram came for, and how much it may take.
    lent: Option<(u32, u64)>,
}

impl Memory {
    pub(super) fn new(limit: u64, max_sessions: u16) -> Self {
        Self { limit, used: 0, own: limit / 4 / u64::from(max_sessions.max(1)), taken: 0, lent: None }
    }

    pub(super) const fn used(&self) -> u64 {
        self.used
    }

    /// Bytes that are left when each session has its part.
    const fn left(&self) -> u64 {
        self.limit.saturating_sub(self.taken)
    }

    /// Bytes that may still be taken by a session that holds so many.
    const fn left_to(&self, held: u64) -> u64 {
        self.left() + self.own.saturating_sub(held)
    }

    /// Whether there is the part of one more session.
    pub(super) const fn has_room(&self) -> bool {
        self.left() > self.own
    }

    /// A session has come.
    pub(super) fn admit(&mut self) {
        self.replace(None, Some(0));
    }

    /// Whether no more than an eighth is left.
    const fn is_short(&self) -> bool {
        self.left() <= self.limit / 8
    }

    /// A session comes, goes, or holds more or less than it did.
    fn replace(&mut self, before: Option<u64>, after: Option<u64>) {
        let own = self.own;
        let [used_before, used] = [before, after].map(Option::unwrap_or_default);
        let [taken_before, taken] = [before, after].map(|held| held.map_or(0, |held| held.max(own)));
        self.used = self.used.saturating_sub(used_before).saturating_add(used);
        self.taken = self.taken.saturating_sub(taken_before).saturating_add(taken);
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
            self.memory.replace(Some(before), Some(now));
        }
    }

    /// Counts what the session has taken that was lent last.
    pub(super) fn count_lent(&mut self) {
        let Some((id, left)) = self.memory.lent.take() else { return };
        if let Some(peer) = self.sessions.get_mut(id) {
            let taken = left.saturating_sub(peer.connection.memory_left());
            let before = peer.counted;
            peer.counted += taken;
            peer.taken += taken;
            peer.took |= taken > 0;
            self.memory.replace(Some(before), Some(before + taken));
        }
    }

    /// The session goes to the application, which may send and read, or gets a datagram. It counts down itself what it takes; what it
    /// gives back is seen when it is counted anew, which is when it has been polled.
    pub(super) fn lend(&mut self, id: u32) {
        if self.memory.lent.is_some_and(|(lent, _)| lent == id) {
            return;
        }
        self.count_lent();
        if let Some(peer) = self.sessions.get_mut(id) {
            let left = self.memory.left_to(peer.counted);
            peer.connection.set_memory_left(left);
            self.memory.lent = Some((id, left));
        }
    }

    /// A session is no more.
    pub(super) fn uncount(&mut self, peer: &Peer<M>) {
        self.memory.replace(Some(peer.counted), None);
    }
}

/// A session that takes memory is counted anew when it has taken so many bytes, and when it is polled and has taken none.
const RECOUNT: u64 = 1024;

fn bytes(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
