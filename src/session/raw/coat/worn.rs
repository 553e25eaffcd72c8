//! What kcp-go puts around KCP, on peers and sockets.

use super::super::admission::Key;
use super::super::{Config, PeerId, Peers};
use crate::arq::{self, InputError, Kcp};
use crate::config::ConfigError;
use crate::hash::Keyed;
pub(crate) use crate::kcp_go::Lining;
use crate::kcp_go::{self, Coat, Inner, Shard, Stats};
use crate::session::Random;
use crate::time::Time;
use crate::wire::{DatagramQueue, conv_of};
use std::collections::HashMap;
use std::net::SocketAddr;

/// What all peers of a socket have around them, and who of them a shard without a conv is of.
#[derive(Debug)]
pub(crate) struct Wardrobe {
    coat: Coat,
    /// Whose data shards came last from an address.
    by_address: HashMap<SocketAddr, PeerId, Keyed>,
}

impl Wardrobe {
    /// `None`: the config has nothing around KCP.
    pub(crate) fn new(config: &Config, random: &mut Random) -> Option<Box<Self>> {
        let coat = Coat::new(config.kcp_go.as_ref()?, random.array());
        Some(Box::new(Self { coat, by_address: HashMap::with_hasher(Keyed([random.u64(), random.u64()])) }))
    }

    /// The config of a control block that it is to be around.
    pub(crate) fn inside(&self, kcp: &arq::Config) -> Result<arq::Config, ConfigError> {
        self.coat.inside(kcp)
    }

    /// What a new peer has.
    pub(crate) fn lining(&self, kcp: &arq::Config) -> Box<Lining> {
        Box::new(self.coat.lining(kcp))
    }

    /// Whether what was sent, and what has come, is flushed at once.
    pub(crate) const fn flushes(&self) -> (bool, bool) {
        self.coat.flushes()
    }

    /// Puts on what is around a datagram. `is_proven`: whoever it goes to has shown to be there.
    pub(crate) fn wrap(&mut self, now: Time, lining: &mut Lining, datagram: &[u8], is_proven: bool) {
        if is_proven {
            self.coat.wrap(now, lining, datagram);
        } else {
            self.coat.wrap_bare(lining, datagram); // parity would be more than has come
        }
    }

    /// A peer is gone.
    pub(crate) fn forget(&mut self, address: SocketAddr, id: PeerId) {
        if self.by_address.get(&address) == Some(&id) {
            self.by_address.remove(&address);
        }
    }

    pub(crate) const fn stats(&self) -> Stats {
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
            Some(Inner::Kcp(kcp)) => self.route(now, from, kcp),
            Some(Inner::Data { kcp, shard }) => {
                self.route(now, from, kcp);
                let key = conv_of(kcp).map(|conv| Key { address: from, conv });
                if let Some(id) = key.and_then(|key| self.by_key.get(&key).copied()) {
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
        if let Some(id) = id {
            by_address.insert(from, id);
        }
        let Some(&id) = by_address.get(&from) else { return coat.count_unused() };
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let Some(mut lining) = peer.lining.take() else { return };
        let mut has_changed = false;
        coat.rebuild(&mut lining, shard, |datagram| has_changed |= peer.input_rebuilt(now, datagram));
        peer.lining = Some(lining);
        if has_changed {
            self.changed(id);
        }
    }
}

/// What a socket with one peer has around it.
#[derive(Debug)]
pub(crate) struct Suit {
    coat: Coat,
    lining: Lining,
}

impl Suit {
    /// With the config of the control block that it is to be around.
    pub(crate) fn new(
        wire: &kcp_go::Config,
        kcp: &arq::Config,
        random: &mut Random,
    ) -> Result<(Self, arq::Config), ConfigError> {
        let coat = Coat::new(wire, random.array());
        let inside = coat.inside(kcp)?;
        Ok((Self { lining: coat.lining(&inside), coat }, inside))
    }

    /// Takes a datagram with what is around it. `None`: it is not for KCP.
    pub(crate) fn input(
        &mut self,
        now: Time,
        kcp: &mut Kcp<DatagramQueue>,
        datagram: &[u8],
    ) -> Option<Result<(), InputError>> {
        let mut buffer = self.coat.buffer();
        let (taken, shard) = match self.coat.open(datagram, &mut buffer) {
            None => (None, None),
            Some(Inner::Kcp(bytes)) => (Some(kcp.input(now, bytes)), None),
            Some(Inner::Data { kcp: bytes, shard }) => {
                let taken = kcp.input(now, bytes);
                let shard = taken.is_ok().then_some(shard);
                (Some(taken), shard)
            }
            Some(Inner::Parity(shard)) => (Some(Ok(())), Some(shard)),
        };
        if let Some(shard) = shard {
            self.coat.rebuild(&mut self.lining, &shard, |datagram| {
                if let Err(error) = kcp.input_rebuilt(now, datagram) {
                    log::trace!("rejected what was rebuilt: {error}");
                }
            });
        }
        self.coat.give_back(buffer);
        taken
    }

    /// Puts on what is around the datagrams that are ready, and returns all that can leave.
    pub(crate) fn wrap(&mut self, now: Time, kcp: &mut Kcp<DatagramQueue>) -> &mut DatagramQueue {
        while !self.lining.is_full()
            && let Some(datagram) = kcp.output_mut().pop()
        {
            self.coat.wrap(now, &mut self.lining, datagram);
        }
        self.lining.out_mut()
    }

    /// Whether what was sent, and what has come, is flushed at once.
    pub(crate) const fn flushes(&self) -> (bool, bool) {
        self.coat.flushes()
    }

    pub(crate) const fn stats(&self) -> Stats {
        self.coat.stats()
    }
}
