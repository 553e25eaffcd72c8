//! The memory of all peers together, counted whenever one may have changed, and what each may take of it.

use super::{Peer, PeerId, PeersConfig, Strangers};
use crate::kcp::Envelope;

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
    /// How many of the taken ones are datagrams of peers that were closed.
    last_words: u64,
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
        Self { own, shared, taken: 0, last_words: 0, used: 0, limited: 0 }
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

    /// Counts the datagrams that a closed peer is still to be sent: they are in no part.
    pub(super) const fn keep(&mut self, bytes: usize) {
        let bytes = bytes as u64;
        (self.used, self.taken, self.last_words) =
            (self.used + bytes, self.taken + bytes, self.last_words + bytes);
    }

    /// Those datagrams have left, or were dropped.
    pub(super) const fn release(&mut self, bytes: usize) {
        let bytes = bytes as u64;
        self.used = self.used.saturating_sub(bytes);
        self.taken = self.taken.saturating_sub(bytes);
        self.last_words = self.last_words.saturating_sub(bytes);
    }

    /// Whether closed peers hold too much: what is taken is more than there is, and they have more than an eighth of that,
    /// which other peers leave.
    pub(super) const fn has_too_much_kept(&self) -> bool {
        self.taken > self.shared && self.last_words > self.shared / 8
    }

    const fn replace(&mut self, before: u64, now: u64) {
        let own = self.own;
        self.used = (self.used + now).saturating_sub(before);
        self.taken = (self.taken + now.saturating_sub(own)).saturating_sub(before.saturating_sub(own));
    }
}

impl Peer {
    /// Bytes of memory that it holds, used or not. It counts for these from now on.
    pub(super) fn count(&mut self) -> u64 {
        let wrapped = self.wrapped.as_deref().map_or(0, |queue| size_of_val(queue) + queue.memory());
        let held = size_of::<Self>() + self.kcp.memory() + self.kcp.output().memory() + wrapped;
        let held = (held + self.enveloped) as u64;
        (self.counted, self.uncounted) = (held, 0);
        held
    }

    /// Notes that it may take about as much for this many bytes of a message or a datagram.
    #[inline]
    pub(super) fn take(&mut self, bytes: usize) {
        self.uncounted += (bytes + SEGMENT) as u64;
    }

    pub(super) fn note_envelope(&mut self, id: PeerId, envelope: &dyn Envelope) {
        self.enveloped = envelope.memory(id.0);
    }

    /// Whether it may hold no more than its part.
    #[inline]
    pub(super) const fn is_confined(&self) -> bool {
        matches!(self.allowance, Allowance::Part(_))
    }

    /// Whether it has to be counted: it may have taken much, or there is little left.
    #[inline]
    pub(super) const fn is_to_count(&self) -> bool {
        self.uncounted >= RECOUNT
    }

    /// Whether it holds more than it counts for: few bytes of a segment that is far ahead take places for all before it.
    #[inline]
    pub(super) fn has_outgrown(&self) -> bool {
        self.kcp.has_gaps() && self.kcp.memory() as u64 > self.counted + self.uncounted
    }

    /// Sets how much it may hold from now on. Returns whether that has become its part.
    #[inline]
    pub(super) fn allow(&mut self, allowance: Allowance) -> bool {
        let before = std::mem::replace(&mut self.allowance, allowance);
        let room = match (before, allowance) {
            (Allowance::Ample(_), Allowance::Ample(_)) => return false,
            (_, Allowance::Part(bytes)) => {
                self.uncounted = self.uncounted.max(RECOUNT);
                u32::try_from(bytes / TO_READ).unwrap_or(u32::MAX)
            }
            (Allowance::Part(_), Allowance::Ample(_)) => u32::MAX,
        };
        self.kcp.set_receive_room(room);
        matches!((before, allowance), (Allowance::Ample(_), Allowance::Part(_)))
    }

    /// Frees the memory of datagrams that have left, if it has no more than its part.
    #[inline]
    pub(super) fn trim(&mut self) -> bool {
        if !self.is_confined() {
            return false;
        }
        self.kcp.output_mut().shrink();
        if let Some(wrapped) = &mut self.wrapped {
            wrapped.shrink();
        }
        true
    }

    /// Whether a message of `len` bytes may be queued.
    #[inline]
    pub(super) fn has_memory(&self, len: usize) -> bool {
        match self.allowance {
            Allowance::Ample(bytes) => {
                let most = self.counted + self.uncounted;
                most + len as u64 <= bytes || (self.kcp.memory() + len) as u64 <= bytes
            }
            Allowance::Part(bytes) => (self.kcp.send_held() + len) as u64 <= bytes / TO_SEND,
        }
    }
}

/// Which share of its part a peer can fill with what waits to be read, and with what waits to be sent or acknowledged.
/// The rest is for buffers, which double, and for datagrams.
const TO_READ: u64 = 4;
const TO_SEND: u64 = 8;
/// About what a message takes beside its bytes.
const SEGMENT: usize = 32;
/// A peer is counted again when it may have taken this many bytes since the last count, a sixteenth of the
/// least part. Between two counts, nothing shows that it holds less.
const RECOUNT: u64 = 2048;
/// What it may have taken is not known.
pub(super) const UNKNOWN: u64 = 1 << 40;
