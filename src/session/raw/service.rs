//! What is due for a peer: its flush, timer and events, and its end.

use super::peer::{CloseReason, Event, Peer, PeerId};
use super::{Config, Peers};
use crate::arq::Envelope;
use crate::time::Time;
use std::collections::VecDeque;
use std::time::Duration;

impl Peer {
    /// Does what is due: is it gone, and why, can it be written to, when does it need care again?
    pub(super) fn serve(
        &mut self,
        now: Time,
        id: PeerId,
        config: &Config,
        mut envelope: Option<&mut dyn Envelope>,
        events: &mut VecDeque<Event>,
    ) -> Option<CloseReason> {
        let flush = std::mem::take(&mut self.flush) || config.eager;
        self.update(now, flush);
        if let Some(envelope) = &mut envelope {
            self.wrap(now, id, &mut **envelope);
        }
        let idle_at = self.heard + config.idle_timeout;
        if self.kcp().is_dead() {
            return Some(CloseReason::DeadLink);
        }
        if now >= idle_at {
            return Some(CloseReason::Idle);
        }
        if self.take_writable() && !std::mem::replace(&mut self.told_writable, true) {
            events.push_back(Event::Writable(id));
        }
        let quiet_at = self.heard + QUIET;
        if !self.shrunk && now >= quiet_at && self.kcp().is_idle() {
            self.shrink();
            if let Some(envelope) = envelope {
                envelope.shrink(id.0);
            }
        }
        let due = [self.check(now), self.leaves_by].into_iter().flatten().fold(idle_at, Time::min);
        self.entry.due = if !self.shrunk && quiet_at > now { due.min(quiet_at) } else { due };
        None
    }
}

impl Peers {
    /// Closes a peer that is to leave and has nothing more to send, or no more time.
    pub(super) fn has_left(&mut self, now: Time, id: PeerId) -> bool {
        let leaves = |peer: &Peer| peer.leaves_by.is_some_and(|by| now >= by || peer.kcp().wait_snd() == 0);
        self.peers.get(&id).is_some_and(|peer| leaves(peer)) && self.close(now, id)
    }

    pub(super) fn end(&mut self, id: PeerId, reason: CloseReason) {
        let Some(peer) = self.remove(id) else { return };
        if let Some(envelope) = &mut self.envelope {
            envelope.forget(id.0);
        }
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
