//! The memory of all peers together, counted whenever one may have changed, and what each may take of it.

use super::{Peer, PeersConfig, Strangers};

/// Bytes that peers hold, and their limit.
///
/// Half of the limit is divided evenly among the most peers there may be. Each has its part, which no other can take. Of
/// the other half, a peer may take as much as it leaves to others. Source: Choudhury and Hahne, Dynamic Queue Length
/// Thresholds for Shared-Memory Packet Switches, 1998.
#[derive(Debug)]
pub(super) struct Memory {
    /// The part of each peer.
    own: u64,
    /// Bytes that are no peer's part, and how many of them are taken.
    shared: u64,
    taken: u64,
    pub(super) used: u64,
    /// How often a peer was confined to its part.
    pub(super) limited: u64,
}

/// How much a peer may hold, bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Allowance {
    /// There is enough: so much in all, before its buffers double.
    Ample(u64),
    /// No more than its part.
    Part(u64),
}

impl Memory {
    pub(super) fn new(config: &PeersConfig) -> Self {
        let kinds = if config.strangers == Strangers::Refused { 1 } else { 2 }; // `max_peers` of each
        let shared = config.memory / 2;
        let own = shared / kinds / (config.max_peers.max(1) as u64);
        Self { own, shared, taken: 0, used: 0, limited: 0 }
    }

    /// Counts a peer anew, and tells it how much it may hold.
    #[inline]
    pub(super) fn count(&mut self, peer: &mut Peer) {
        let before = peer.counted;
        self.replace(before, peer.count());
        self.grant(peer);
    }

    /// Tells a peer how much it may hold.
    #[inline]
    pub(super) fn grant(&mut self, peer: &mut Peer) {
        let left = self.shared.saturating_sub(self.taken);
        let beyond = peer.counted.saturating_sub(self.own);
        let allowance = if left <= beyond.max(self.shared / 8) {
            Allowance::Part(self.own)
        } else {
            Allowance::Ample(self.own + beyond + (left - beyond) / 2)
        };
        self.limited += u64::from(peer.allow(allowance));
    }

    pub(super) const fn dismiss(&mut self, peer: &mut Peer) {
        self.replace(peer.counted, 0);
        peer.counted = 0;
    }

    const fn replace(&mut self, before: u64, now: u64) {
        let own = self.own;
        self.used = (self.used + now).saturating_sub(before);
        self.taken = (self.taken + now.saturating_sub(own)).saturating_sub(before.saturating_sub(own));
    }
}
