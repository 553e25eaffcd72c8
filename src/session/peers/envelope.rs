//! Datagrams that come in an envelope, and what can be rebuilt from them.

use super::peer::PeerId;
use super::{Peers, changed};
use crate::kcp::Opened;
use crate::time::Time;
use std::net::SocketAddr;

impl Peers {
    /// Takes a datagram and unwraps it, if there is an envelope.
    #[inline]
    pub(super) fn open(&mut self, now: Time, from: SocketAddr, datagram: &mut [u8]) {
        let Some(envelope) = &mut self.envelope else {
            self.route(now, from, datagram);
            return;
        };
        let Some(Opened { kcp, shard }) = envelope.open(datagram) else {
            return log::trace!("dropped a datagram from {from}: the envelope refuses it");
        };
        let taken_by = kcp.and_then(|datagram| self.route(now, from, datagram));
        if let Some(shard) = shard
            && (taken_by.is_some() || kcp.is_none())
        {
            self.rebuild(now, from, taken_by, shard);
        }
    }

    /// Gives a peer what a shard makes it possible to rebuild.
    fn rebuild(&mut self, now: Time, from: SocketAddr, taken_by: Option<PeerId>, shard: &[u8]) {
        let Some(envelope) = &mut self.envelope else { return };
        let Some(id) = envelope.handle_shard(from, taken_by.map(|id| id.0), shard).map(PeerId) else {
            return;
        };
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if peer.rebuild(now, id, &mut **envelope) {
            changed(&mut self.agenda, &mut self.events, id, peer);
        }
        peer.take(shard.len());
        peer.note_envelope(id, &**envelope);
        if peer.is_to_count() {
            self.memory.count(peer);
        }
        if peer.is_confined() {
            envelope.shrink(id.0); // repairs are a luxury
            peer.note_envelope(id, &**envelope);
            self.memory.count(peer);
        }
    }
}
