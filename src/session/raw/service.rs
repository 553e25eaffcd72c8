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
        let due = self.check(now).map_or(idle_at, |at| at.min(idle_at));
        self.entry.due = if !self.shrunk && quiet_at > now { due.min(quiet_at) } else { due };
        None
    }
}

impl Peers {
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
