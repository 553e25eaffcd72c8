//! What is around the KCP of a socket: put on what leaves, taken off what comes.

use super::config::{Config, Shards};
use super::datagram::{Inner, MOST, Shard, Useless};
use super::fec::{Code, Decoder, Encoder, code};
use super::shield::{self, Shield};
use super::stats::Stats;
use crate::arq;
use crate::config::ConfigError;
use crate::time::Time;
use crate::wire::{DatagramQueue, Output};

/// The protection of a socket, whose peers have all the same, and what is counted.
#[derive(Debug)]
pub(crate) struct Envelope {
    config: Config,
    shield: Shield,
    /// Of the shards, if there are any.
    code: Option<Code>,
    stats: Stats,
    /// The datagram being made.
    sealed: Vec<u8>,
    /// For the datagram being read.
    buffer: Vec<u8>,
}

/// What is around the KCP of one peer.
#[derive(Debug, Default)]
pub(crate) struct PeerEnvelope {
    shards: Option<Shards>,
    /// Made when the first datagram leaves.
    encoder: Option<Box<Encoder>>,
    /// Made when the first shard comes.
    decoder: Option<Box<Decoder>>,
    out: DatagramQueue,
}

impl Envelope {
    /// `seed`: random, and different for every socket.
    pub(crate) fn new(config: &Config, seed: [u8; 16]) -> Self {
        let shield = Shield::new(config, seed);
        Self {
            config: config.clone(),
            shield,
            code: config.shards.and_then(code),
            stats: Stats::default(),
            sealed: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// The config of a control block that it is to be around.
    ///
    /// # Errors
    ///
    /// A field of either is out of range.
    pub(crate) fn inside(&self, kcp: &arq::Config) -> Result<arq::Config, ConfigError> {
        self.config.inside(kcp)
    }

    /// What a new peer has.
    pub(crate) fn peer_envelope(&self, kcp: &arq::Config) -> PeerEnvelope {
        PeerEnvelope { shards: self.config.shards, encoder: None, decoder: None, out: kcp.datagram_queue() }
    }

    /// Whether what was sent, and what has come, is flushed at once; where nothing waits for a beat, that is so by itself.
    pub(crate) const fn flushes(&self) -> (bool, bool) {
        (!self.config.write_delay, self.config.ack_no_delay)
    }

    /// Bytes that are around every datagram, at least.
    pub(crate) const fn around(&self) -> u16 {
        shield::overhead(self.config.crypt)
    }

    pub(crate) const fn stats(&self) -> Stats {
        self.stats
    }

    /// Memory to [open](Self::open) datagrams in, to be given [back](Self::give_back).
    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buffer)
    }

    pub(crate) fn give_back(&mut self, buffer: Vec<u8>) {
        self.buffer = buffer;
    }

    /// Takes off what protects a datagram. `None`: it is none of ours, and counted.
    pub(crate) fn open<'a>(&mut self, datagram: &[u8], buffer: &'a mut Vec<u8>) -> Option<Inner<'a>> {
        if datagram.len() > MOST {
            self.stats.too_long += 1;
            return None;
        }
        buffer.clear();
        buffer.extend_from_slice(datagram);
        let Some(bytes) = self.shield.open(buffer) else {
            self.stats.unreadable += 1;
            return None;
        };
        match Inner::of(bytes) {
            Err(Useless::Malformed) => self.stats.malformed += 1,
            Err(Useless::OutOfBand) => self.stats.out_of_band += 1,
            Ok(inner) => {
                self.stats.parity_received += u64::from(matches!(inner, Inner::Parity(_)));
                return Some(inner);
            }
        }
        None
    }

    /// A parity shard of nobody known and proven.
    pub(crate) const fn count_unused(&mut self) {
        self.stats.parity_unused += 1;
    }

    /// Puts on what leaves what is around it, and the parity of a group behind its last datagram.
    pub(crate) fn wrap(&mut self, now: Time, peer_envelope: &mut PeerEnvelope, datagram: &[u8]) {
        if peer_envelope.encoder.is_none()
            && let (Some(shards), Some(code)) = (peer_envelope.shards, &self.code)
        {
            peer_envelope.encoder = Some(Box::new(Encoder::new(shards, code)));
        }
        let Some(encoder) = &mut peer_envelope.encoder else {
            return self.wrap_bare(peer_envelope, datagram);
        };
        let head = encoder.data(now, datagram);
        self.shield.seal([&head, datagram], &mut self.sealed);
        peer_envelope.out.output(&self.sealed);
        while let Some((head, parity)) = encoder.parity() {
            self.stats.parity_sent += 1;
            self.shield.seal([&head, parity], &mut self.sealed);
            peer_envelope.out.output(&self.sealed);
        }
    }

    /// The same without parity, which nobody needs to be told of.
    pub(crate) fn wrap_bare(&mut self, peer_envelope: &mut PeerEnvelope, datagram: &[u8]) {
        self.shield.seal([&[], datagram], &mut self.sealed);
        peer_envelope.out.output(&self.sealed);
    }

    /// Takes a shard of a peer, and gives what it makes possible to rebuild to `each`, which says whether it has taken it. Returns whether
    /// it has taken any.
    pub(crate) fn rebuild(
        &mut self,
        peer_envelope: &mut PeerEnvelope,
        shard: &Shard<'_>,
        mut each: impl FnMut(&[u8]) -> bool,
    ) -> bool {
        let (Some(shards), Some(code)) = (peer_envelope.shards, &self.code) else {
            self.stats.parity_unused += u64::from(shard.is_parity);
            return false;
        };
        let decoder = peer_envelope.decoder.get_or_insert_with(|| Box::new(Decoder::new(shards, code)));
        decoder.take(shard, &mut self.stats);
        let mut has_taken = false;
        while let Some(rebuilt) = decoder.pop(&mut self.stats) {
            let Some(datagram) = rebuilt else { continue };
            let is_taken = each(datagram);
            self.stats.refused += u64::from(!is_taken);
            has_taken |= is_taken;
        }
        has_taken
    }
}

impl PeerEnvelope {
    /// What is ready to leave.
    pub(crate) const fn out(&self) -> &DatagramQueue {
        &self.out
    }

    pub(crate) const fn out_mut(&mut self) -> &mut DatagramQueue {
        &mut self.out
    }

    /// Whether so much is ready that the rest had better wait where it is.
    pub(crate) fn is_full(&mut self) -> bool {
        self.out.is_full()
    }

    /// Gives memory back that is not needed before there is traffic again.
    pub(crate) fn shrink(&mut self) {
        self.out.shrink();
        if let Some(decoder) = &mut self.decoder {
            decoder.shrink();
        }
    }
}
