//! What kcp-go puts around KCP, on the peers of a socket.

use super::super::{Config, PeerId, Peers};
use crate::arq;
use crate::config::ConfigError;
use crate::hash::Keyed;
pub(in super::super) use crate::kcp_go::Lining;
use crate::kcp_go::{Coat, Inner, Shard, Stats};
use crate::session::Random;
use crate::time::Time;
use std::collections::HashMap;
use std::net::SocketAddr;

/// What all peers of a socket have around them, and who of them a shard without a conv is of.
#[derive(Debug)]
pub(in super::super) struct Wardrobe {
    coat: Coat,
    /// Whose data shards came last from an address, of those who are proven.
    by_address: HashMap<SocketAddr, PeerId, Keyed>,
}

impl Wardrobe {
    /// `None`: the config has nothing around KCP.
    pub(in super::super) fn new(config: &Config, random: &mut Random) -> Option<Box<Self>> {
        let coat = Coat::new(config.kcp_go.as_ref()?, random.array());
        Some(Box::new(Self { coat, by_address: HashMap::with_hasher(Keyed([random.u64(), random.u64()])) }))
    }

    /// The config of a control block that it is to be around.
    pub(in super::super) fn inside(&self, kcp: &arq::Config) -> Result<arq::Config, ConfigError> {
        self.coat.inside(kcp)
    }

    /// What a new peer has.
    pub(in super::super) fn lining(&self, kcp: &arq::Config) -> Box<Lining> {
        Box::new(self.coat.lining(kcp))
    }

    /// Whether what was sent, and what has come, is flushed at once.
    pub(in super::super) const fn flushes(&self) -> (bool, bool) {
        self.coat.flushes()
    }

    /// Bytes that are around every datagram, at least.
    pub(in super::super) const fn around(&self) -> u16 {
        self.coat.around()
    }

    /// Puts on what is around a datagram. `is_proven`: whoever it goes to has shown to be there.
    pub(in super::super) fn wrap(
        &mut self,
        now: Time,
        lining: &mut Lining,
        datagram: &[u8],
        is_proven: bool,
    ) {
        if is_proven {
            self.coat.wrap(now, lining, datagram);
        } else {
            self.coat.wrap_bare(lining, datagram); // parity would be more than has come
        }
    }

    /// A peer is gone.
    pub(in super::super) fn forget(&mut self, address: SocketAddr, id: PeerId) {
        if self.by_address.get(&address) == Some(&id) {
            self.by_address.remove(&address);
        }
    }

    pub(in super::super) const fn stats(&self) -> Stats {
        self.coat.stats()
    }
}

impl Peers {
    /// Takes a datagram with what is around it.
    pub(in super::super) fn unwrap(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) {
        let Some(wardrobe) = &mut self.wardrobe else { return };
        let mut buffer = wardrobe.coat.buffer();
        match wardrobe.coat.open(datagram, &mut buffer) {
            None => log::trace!("dropped {} bytes from {from}: not of ours", datagram.len()),
            Some(Inner::Kcp(kcp)) => drop(self.route(now, from, kcp)),
            Some(Inner::Data { kcp, shard }) => {
                if let Some(id) = self.route(now, from, kcp) {
                    self.rebuild(now, from, Some(id), &shard);
                }
            }
            Some(Inner::Parity(shard)) => self.rebuild(now, from, None, &shard),
        }
        if let Some(wardrobe) = &mut self.wardrobe {
            wardrobe.coat.give_back(buffer);
        }
    }

    /// Gives a peer what a shard makes possible to rebuild; where nobody knows whose it is, that of the last data shard from there.
    fn rebuild(&mut self, now: Time, from: SocketAddr, id: Option<PeerId>, shard: &Shard<'_>) {
        let Some(Wardrobe { coat, by_address }) = self.wardrobe.as_deref_mut() else { return };
        let is_told = id.is_some();
        let Some(id) = id.or_else(|| by_address.get(&from).copied()) else { return coat.count_unused() };
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if !peer.is_proven() {
            // Few bytes of shards can take much memory and work, and who sends them is not known to be there.
            return;
        }
        if is_told {
            by_address.insert(from, id);
        }
        let Some(mut lining) = peer.lining.take() else { return };
        let has_changed = coat.rebuild(&mut lining, shard, |datagram| peer.input_rebuilt(now, datagram));
        peer.lining = Some(lining);
        if has_changed {
            self.changed(id);
        }
    }
}
