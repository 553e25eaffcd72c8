//! What kcp-go puts around KCP, on the peers of a socket.

use super::super::{Config, PeerId, Peers, changed};
use crate::arq;
use crate::config::ConfigError;
use crate::hash::Keyed;
pub(in super::super) use crate::kcp_go::PeerEnvelope;
use crate::kcp_go::{Envelope, Inner, Shard, Stats};
use crate::session::random::{hash_key, random};
use crate::time::Time;
use rand_core::CryptoRng;
use std::collections::HashMap;
use std::net::SocketAddr;

/// What all peers of a socket have around them, and who of them a shard without a conv is of.
#[derive(Debug)]
pub(in super::super) struct SharedEnvelope {
    envelope: Envelope,
    /// Whose data shards came last from an address, of those who are proven.
    by_address: HashMap<SocketAddr, PeerId, Keyed>,
}

impl SharedEnvelope {
    /// `None`: the config has nothing around KCP.
    pub(in super::super) fn new(config: &Config, rng: &mut dyn CryptoRng) -> Option<Box<Self>> {
        let envelope = Envelope::new(config.kcp_go.as_ref()?, random(rng));
        Some(Box::new(Self { envelope, by_address: HashMap::with_hasher(Keyed(hash_key(rng))) }))
    }

    /// The config of a control block that it is to be around.
    pub(in super::super) fn inside(&self, kcp: &arq::Config) -> Result<arq::Config, ConfigError> {
        self.envelope.inside(kcp)
    }

    /// What a new peer has.
    pub(in super::super) fn peer_envelope(&self, kcp: &arq::Config) -> Box<PeerEnvelope> {
        Box::new(self.envelope.peer_envelope(kcp))
    }

    /// Whether what was sent, and what has come, is flushed at once.
    pub(in super::super) const fn flushes(&self) -> (bool, bool) {
        self.envelope.flushes()
    }

    /// Bytes that are around every datagram, at least.
    pub(in super::super) const fn around(&self) -> u16 {
        self.envelope.around()
    }

    /// Puts on what is around a datagram. `is_proven`: whoever it goes to has shown to be there.
    pub(in super::super) fn wrap(
        &mut self,
        now: Time,
        peer_envelope: &mut PeerEnvelope,
        datagram: &[u8],
        is_proven: bool,
    ) {
        if is_proven {
            self.envelope.wrap(now, peer_envelope, datagram);
        } else {
            self.envelope.wrap_bare(peer_envelope, datagram); // parity would be more than has come
        }
    }

    /// A peer is gone.
    pub(in super::super) fn forget(&mut self, address: SocketAddr, id: PeerId) {
        if self.by_address.get(&address) == Some(&id) {
            self.by_address.remove(&address);
        }
    }

    pub(in super::super) const fn stats(&self) -> Stats {
        self.envelope.stats()
    }
}

impl Peers {
    /// Takes a datagram with what is around it.
    pub(in super::super) fn input_wrapped(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) {
        let Some(shared_envelope) = &mut self.shared_envelope else { return };
        let mut buffer = shared_envelope.envelope.buffer();
        match shared_envelope.envelope.open(datagram, &mut buffer) {
            None => log::trace!("dropped {} bytes from {from}: not of ours", datagram.len()),
            Some(Inner::Kcp(kcp)) => drop(self.route(now, from, kcp)),
            Some(Inner::Data { kcp, shard }) => {
                if let Some(id) = self.route(now, from, kcp) {
                    self.rebuild(now, from, Some(id), &shard);
                }
            }
            Some(Inner::Parity(shard)) => self.rebuild(now, from, None, &shard),
        }
        if let Some(shared_envelope) = &mut self.shared_envelope {
            shared_envelope.envelope.give_back(buffer);
        }
    }

    /// Gives a peer what a shard makes possible to rebuild; where nobody knows whose it is, that of the last data shard from there.
    fn rebuild(&mut self, now: Time, from: SocketAddr, id: Option<PeerId>, shard: &Shard<'_>) {
        let Some(SharedEnvelope { envelope, by_address }) = self.shared_envelope.as_deref_mut() else {
            return;
        };
        let is_told = id.is_some();
        let Some(id) = id.or_else(|| by_address.get(&from).copied()) else { return envelope.count_unused() };
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if !peer.is_proven() {
            // Few bytes of shards can take much memory and work, and who sends them is not known to be there.
            return;
        }
        if is_told {
            by_address.insert(from, id);
        }
        let Some(mut peer_envelope) = peer.peer_envelope.take() else { return };
        let has_changed =
            envelope.rebuild(&mut peer_envelope, shard, |datagram| peer.input_rebuilt(now, datagram));
        peer.peer_envelope = Some(peer_envelope);
        if has_changed {
            changed(&mut self.agenda, &mut self.events, id, peer);
        }
    }
}
