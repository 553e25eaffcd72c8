//! The ends of peers: closed here, silent, or dead.

use super::peer::{Peer, PeerCloseReason, PeerEvent, PeerId};
use super::{Peers, name};
use crate::rate::{host, network};
use crate::time::Time;
use std::time::Duration;

impl Peers {
    /// Removes a peer after a last flush, without an event. Bare KCP cannot tell the peer. Returns whether there was
    /// one.
    pub fn close(&mut self, now: Time, id: PeerId) -> bool {
        self.now = now;
        let Some(mut peer) = self.remove(id) else { return false };
        peer.update(now, true);
        if let Some(envelope) = &mut self.envelope {
            peer.wrap(now, id, &mut **envelope);
            envelope.forget(id.0);
        }
        let address = peer.peer_addr();
        self.quarantine.insert(now, name(address, peer.conv()), host(address), ());
        self.stats.closed_here += 1;
        log::debug!("peer {id} at {} closed here", peer.peer_addr());
        self.memory.dismiss(&mut peer);
        let mut last_words = peer.into_last_words();
        last_words.shrink();
        self.memory.keep(last_words.memory());
        self.last_words.push_back((address, last_words));
        while self.last_words.len() > LAST_WORDS_MAX || self.memory.has_too_much_kept() {
            self.forget_last_words();
        }
        true
    }

    /// Drops what the peer is still to be sent that was closed first.
    pub(super) fn forget_last_words(&mut self) {
        let gone = self.last_words.pop_front();
        self.memory.release(gone.map_or(0, |(_, datagrams)| datagrams.memory()));
    }

    /// The same, but only when everything sent to it has arrived, or after this time.
    pub fn close_within(&mut self, now: Time, id: PeerId, within: Duration) {
        if let Some(peer) = self.peer(id) {
            peer.flush();
            peer.leaves_by = Some(now + within);
        }
    }

    fn remove(&mut self, id: PeerId) -> Option<Peer> {
        let mut peer = *self.peers.remove(&id)?;
        self.by_name.remove(&name(peer.peer_addr(), peer.conv()));
        self.last = None;
        self.agenda.leave(&mut peer.entry);
        match peer.host {
            Some(host) => {
                self.hosts.leave(host);
                self.networks.leave(network(peer.peer_addr()));
            }
            None => self.registered -= 1,
        }
        Some(peer)
    }

    pub(super) fn end(&mut self, id: PeerId, reason: PeerCloseReason) {
        let Some(peer) = self.remove(id) else { return };
        if let Some(envelope) = &mut self.envelope {
            envelope.forget(id.0);
        }
        match reason {
            PeerCloseReason::Idle => self.stats.closed_idle += 1,
            PeerCloseReason::DeadLink => self.stats.closed_dead += 1,
        }
        self.events.push_back(PeerEvent::Closed { id, reason });
        log::debug!("peer {id} at {} gone: {reason:?}", peer.peer_addr());
        self.ended.push_back(peer);
    }
}

/// Most closed peers whose last datagrams wait. Beyond that, or if memory is short, those of the oldest are dropped.
const LAST_WORDS_MAX: usize = 256;
