//! What is due for peers: their flushes, timers and events, and their end.

use super::Peers;
use super::peer::{CloseReason, Event, PeerId};
use crate::time::Time;
use std::time::Duration;

impl Peers {
    /// Updates the peers that have something to do.
    pub(super) fn service(&mut self, now: Time) {
        let mut touched = std::mem::take(&mut self.touched);
        for id in touched.drain(..) {
            let Some(peer) = self.peers.get_mut(&id) else { continue };
            peer.touched = false;
            let flush = std::mem::take(&mut peer.flush) || self.config.eager;
            peer.update(now, flush);
            if let Some(shared_envelope) = &mut self.shared_envelope {
                peer.wrap(now, shared_envelope);
            }
            self.settle(now, id);
        }
        self.touched = touched; // its memory, for the next time
    }

    /// After an update: is the peer gone, can it be written to, when does it need care again.
    fn settle(&mut self, now: Time, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
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
        if peer.may_send() && !std::mem::replace(&mut peer.sending, true) {
            self.outbox.push_back(id);
        }
        peer.due = peer.check(now).map_or(idle_at, |at| at.min(idle_at));
        if !peer.shrunk && quiet_at > now {
            peer.due = peer.due.min(quiet_at);
        }
        self.timers.arm(id, &mut peer.wake, peer.due);
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
