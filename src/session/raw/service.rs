//! What is due for a peer: its flush, timer and events, and its end.

use super::Peers;
use super::peer::{CloseReason, Event, PeerId};
use crate::time::Time;
use std::time::Duration;

impl Peers {
    /// Does what is due for a peer: is it gone, can it be written to, when does it need care again?
    pub(super) fn update(&mut self, now: Time, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let flush = std::mem::take(&mut peer.flush) || self.config.eager;
        peer.update(now, flush);
        if let Some(shared_envelope) = &mut self.shared_envelope {
            peer.wrap(now, shared_envelope);
        }
        let idle_at = peer.heard + self.config.idle_timeout;
        if peer.kcp().is_dead() {
            return self.end(id, CloseReason::DeadLink);
        }
        if now >= idle_at {
            return self.end(id, CloseReason::Idle);
        }
        if peer.take_writable() && !std::mem::replace(&mut peer.told_writable, true) {
            self.events.push_back(Event::Writable(id));
        }
        let quiet_at = peer.heard + QUIET;
        if !peer.shrunk && now >= quiet_at && peer.kcp().is_idle() {
            peer.shrink();
        }
        let due = peer.check(now).map_or(idle_at, |at| at.min(idle_at));
        peer.entry.due = if !peer.shrunk && quiet_at > now { due.min(quiet_at) } else { due };
    }

    fn end(&mut self, id: PeerId, reason: CloseReason) {
        let Some(peer) = self.remove(id) else { return };
        match reason {
            CloseReason::Idle => self.stats.closed_idle += 1,
            CloseReason::DeadLink => self.stats.closed_dead += 1,
        }
        self.events.push_back(Event::Closed { id, reason });
        log::debug!("peer {id} at {} gone: {reason:?}", peer.address());
        self.ended.push_back(peer);
    }
}

/// Quiet after which a peer gives memory back.
const QUIET: Duration = Duration::from_secs(2);
