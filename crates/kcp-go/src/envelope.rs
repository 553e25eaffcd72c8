//! Wraps outgoing KCP datagrams and unwraps incoming ones.

use crate::config::{Config, Shards};
use crate::datagram::{Inner, MOST, Useless};
use crate::fec::{Code, Decoder, Encoder};
use crate::shield::{self, Shield};
use crate::stats::Stats;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use whitewater::Time;
use whitewater::kcp::{self, Opened};
use whitewater::machine::{DatagramQueue, Output};

/// The protection of a socket, which is the same for all peers, and its counters.
#[derive(Debug)]
pub(crate) struct Envelope {
    config: Config,
    shield: Shield,
    parity: Option<Parity>,
    stats: Stats,
    /// The datagram that is being sealed.
    sealed: Vec<u8>,
}

/// The shards of all peers.
#[derive(Debug)]
struct Parity {
    shards: Shards,
    code: Arc<Code>,
    peers: BTreeMap<u64, Peer>,
    /// The peer that last sent data shards from an address.
    by_address: BTreeMap<SocketAddr, u64>,
}

/// The shards of one peer.
#[derive(Debug, Default)]
struct Peer {
    /// Allocated when the first datagram leaves.
    encoder: Option<Box<Encoder>>,
    /// Allocated when the first shard arrives.
    decoder: Option<Box<Decoder>>,
    /// Where the last data shard came from.
    address: Option<SocketAddr>,
}

impl Envelope {
    /// `seed` must be random and different for every socket.
    pub(crate) fn new(config: &Config, seed: [u8; 16]) -> Self {
        let parity = config.shards.map(|shards| {
            let code = Arc::new(Code::new(shards));
            Parity { shards, code, peers: BTreeMap::new(), by_address: BTreeMap::new() }
        });
        Self {
            config: config.clone(),
            shield: Shield::new(config, seed),
            parity,
            stats: Stats::default(),
            sealed: Vec::new(),
        }
    }

    pub(crate) const fn stats(&self) -> Stats {
        self.stats
    }
}

impl kcp::Envelope for Envelope {
    fn overhead(&self) -> u16 {
        shield::overhead(self.config.crypt)
    }

    fn flushes_sends(&self) -> bool {
        !self.config.write_delay
    }

    fn flushes_acks(&self) -> bool {
        self.config.ack_no_delay
    }

    /// The parity of a group follows its last datagram.
    fn wrap(&mut self, now: Time, peer: u64, is_proven: bool, datagram: &[u8], out: &mut DatagramQueue) {
        let Self { shield, parity, stats, sealed, .. } = self;
        let mut put = |head: &[u8], bytes: &[u8]| {
            shield.seal([head, bytes], sealed);
            out.output(sealed);
        };
        // A stranger gets no parity: they must not be sent more than they have sent. Parity is optional, so they need
        // not know.
        let Some(parity) = parity.as_mut().filter(|_| is_proven) else { return put(&[], datagram) };
        let encoder = parity.encoder(peer);
        put(&encoder.data(now, datagram), datagram);
        while let Some((head, bytes)) = encoder.parity() {
            stats.parity_sent += 1;
            put(&head, bytes);
        }
    }

    fn open<'a>(&mut self, datagram: &'a mut [u8]) -> Option<Opened<'a>> {
        if datagram.len() > MOST {
            self.stats.too_long += 1;
            return None;
        }
        let Some(inner) = self.shield.open(datagram) else {
            self.stats.unreadable += 1;
            return None;
        };
        match Inner::of(inner) {
            Err(Useless::Malformed) => self.stats.malformed += 1,
            Err(Useless::OutOfBand) => self.stats.out_of_band += 1,
            Ok(Inner::Kcp(kcp)) => return Some(Opened { kcp: Some(kcp), shard: None }),
            Ok(Inner::Data { kcp, .. }) => return Some(Opened { kcp: Some(kcp), shard: Some(inner) }),
            Ok(Inner::Parity(_)) => {
                self.stats.parity_received += 1;
                return Some(Opened { kcp: None, shard: Some(inner) });
            }
        }
        None
    }

    /// Parity has no conv: it belongs to the peer that last sent data shards from that address.
    fn handle_shard(&mut self, from: SocketAddr, peer: Option<u64>, shard: &[u8]) -> Option<u64> {
        let Ok(Inner::Data { shard, .. } | Inner::Parity(shard)) = Inner::of(shard) else { return None };
        let found = self.parity.as_mut().and_then(|parity| Some((parity.whose(from, peer)?, parity)));
        let Some((peer, parity)) = found else {
            self.stats.parity_unused += u64::from(shard.is_parity);
            return None;
        };
        parity.decoder(peer).take(&shard, &mut self.stats);
        Some(peer)
    }

    fn poll_rebuilt(&mut self, peer: u64) -> Option<&[u8]> {
        let decoder = self.parity.as_mut()?.peers.get_mut(&peer)?.decoder.as_mut()?;
        decoder.pop(&mut self.stats)
    }

    fn count_refused(&mut self) {
        self.stats.refused += 1;
    }

    fn memory(&self, peer: u64) -> usize {
        self.parity.as_ref().and_then(|parity| parity.peers.get(&peer)).map_or(0, Peer::memory)
    }

    fn shrink(&mut self, peer: u64) {
        let peer = self.parity.as_mut().and_then(|parity| parity.peers.get_mut(&peer));
        if let Some(decoder) = peer.and_then(|peer| peer.decoder.as_mut()) {
            decoder.shrink();
        }
    }

    fn forget(&mut self, peer: u64) {
        let Some(parity) = &mut self.parity else { return };
        if let Some(address) = parity.peers.remove(&peer).and_then(|gone| gone.address)
            && parity.by_address.get(&address) == Some(&peer)
        {
            parity.by_address.remove(&address);
        }
    }
}

impl Peer {
    fn memory(&self) -> usize {
        let encoder = self.encoder.as_ref().map_or(0, |encoder| size_of::<Encoder>() + encoder.memory());
        let decoder = self.decoder.as_ref().map_or(0, |decoder| size_of::<Decoder>() + decoder.memory());
        encoder + decoder
    }
}

impl Parity {
    fn whose(&mut self, from: SocketAddr, told: Option<u64>) -> Option<u64> {
        let Some(peer) = told else { return self.by_address.get(&from).copied() };
        if self.by_address.insert(from, peer) != Some(peer) {
            self.peers.entry(peer).or_default().address = Some(from);
        }
        told
    }

    fn encoder(&mut self, peer: u64) -> &mut Encoder {
        let encoder = &mut self.peers.entry(peer).or_default().encoder;
        encoder.get_or_insert_with(|| Box::new(Encoder::new(self.shards, &self.code)))
    }

    fn decoder(&mut self, peer: u64) -> &mut Decoder {
        let decoder = &mut self.peers.entry(peer).or_default().decoder;
        decoder.get_or_insert_with(|| Box::new(Decoder::new(self.shards)))
    }
}
