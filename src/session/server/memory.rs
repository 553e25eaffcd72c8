//! The memory of all sessions together, counted whenever one may have changed, and which session goes on when it is
//! used up.

use super::ServerConfig;
use super::seat::Peer;
use crate::time::Time;
use std::time::Duration;

/// Bytes that sessions hold, and their limit. A quarter is divided evenly among the most sessions there may be: each
/// session has its part, which no other can take, and of the rest what the others have left.
///
/// Long messages that arrive for many sessions at once could use up all of it, each waiting for its own rest. So room
/// for the longest is a reserve that one session at a time may use.
#[derive(Debug)]
pub(super) struct Memory {
    limit: u64,
    /// Bytes of the limit that only the holder may take.
    reserve: u64,
    /// The session that may use the reserve, and since when.
    holder: Option<(u32, Time)>,
    pub(super) used: u64,
    own: u64,
    /// Bytes taken: what is used, and the unused rest of each part.
    taken: u64,
}

impl Memory {
    pub(super) fn new(config: &ServerConfig) -> Self {
        let &ServerConfig { memory: limit, max_sessions, .. } = config;
        let reserve = config.session.longest_message().into();
        Self {
            limit,
            reserve,
            holder: None,
            used: 0,
            own: limit / 4 / u64::from(max_sessions.max(1)),
            taken: 0,
        }
    }

    const fn left(&self) -> u64 {
        self.limit.saturating_sub(self.taken + self.reserve)
    }

    pub(super) const fn has_room(&self) -> bool {
        self.left() > self.own
    }

    pub(super) fn admit(&mut self, peer: &mut Peer) {
        self.replace(None, Some(0));
        self.count(peer);
    }

    pub(super) fn dismiss(&mut self, id: u32, peer: &Peer) {
        self.replace(Some(peer.counted), None);
        self.holder.take_if(|(holder, _)| *holder == id);
    }

    /// Returns how much a session may take before it is [counted](Self::spend).
    pub(super) fn grant(&self, peer: &mut Peer) -> u64 {
        let reserve = if peer.connection.holds_reserve() { 0 } else { self.reserve };
        let left = self.limit.saturating_sub(self.taken + reserve) + self.own.saturating_sub(peer.counted);
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
    /// freed, and a session may have to give up the reserve or its long messages: returns which.
    pub(super) fn recount(&mut self, now: Time, id: u32, peer: &mut Peer) -> Option<u32> {
        let is_short = self.left() <= self.limit / 8;
        if is_short {
            peer.connection.trim();
        } else if std::mem::take(&mut peer.took) && peer.taken < RECOUNT && !peer.connection.clear_grown() {
            return None; // it remains, and counts as what it holds in the meantime
        }
        self.count(peer);
        if !peer.connection.holds_reserve() {
            self.holder.take_if(|(holder, _)| *holder == id);
        }
        if is_short {
            return self.reserve_for(now, id, peer);
        }
        if self.holder.take_if(|(holder, _)| *holder == id).is_some() {
            peer.connection.return_reserve(); // there is room for all again
        }
        None
    }

    /// If this session receives something that there is no memory for, it gets the reserve, unless another session holds
    /// it. Returns the session that has held it, or waited for it, for too long.
    fn reserve_for(&mut self, now: Time, id: u32, peer: &mut Peer) -> Option<u32> {
        let starved = peer.connection.starved()?;
        match self.holder {
            Some((holder, since)) if holder != id => {
                if now.since(since) >= HELD {
                    return Some(holder);
                }
            }
            Some(_) => {}
            None => {
                self.holder = Some((id, now));
                peer.connection.take_reserve(now);
                return None;
            }
        }
        (now.since(starved) >= STARVED).then_some(id)
    }

    fn count(&mut self, peer: &mut Peer) {
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
/// How long a session may hold the reserve while others wait for it.
const HELD: Duration = Duration::from_secs(5);
/// How long received data may find no room. The peer, which sends it again and again, would soon give up.
const STARVED: Duration = Duration::from_secs(8);
