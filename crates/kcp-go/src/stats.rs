//! Counters of what is around KCP.

use crate::envelope::Envelope;
use std::any::Any;
use whitewater::kcp;

/// Counters of a socket for what is around KCP, over all peers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Datagrams that were altered, truncated, or made with another key or cipher.
    pub unreadable: u64,
    /// Datagrams of more than 1500 bytes.
    pub too_long: u64,
    /// Datagrams with something other than KCP, which is not used here.
    pub out_of_band: u64,
    /// Parity shards sent.
    pub parity_sent: u64,
    /// Parity shards received.
    pub parity_received: u64,
    /// Parity shards not from a known and proven peer, or received where none are expected.
    pub parity_unused: u64,
    /// Datagrams rebuilt from parity.
    pub recovered: u64,
    /// How many of these the control block refused, for example because of another conv.
    pub refused: u64,
    /// Rebuilt shards that were not valid datagrams.
    pub not_recovered: u64,
    /// Datagrams that were not rebuilt because the shards so far have not paid for the work.
    pub too_much_work: u64,
    /// Shards whose number does not match their kind: the peer is configured for other shards, so nothing is
    /// rebuilt; or somebody else sent them.
    pub misplaced: u64,
    /// Shards that could rebuild nothing because a recent one was misplaced.
    pub doubted: u64,
    /// Data shards that claim to be longer than they are.
    pub malformed: u64,
    /// Shards of a group that is no longer kept.
    pub late: u64,
    /// Shards received before.
    pub duplicates: u64,
}

impl Stats {
    /// The counters of the envelope of a socket or listener; `None` if it has none, or one of another crate.
    #[must_use]
    pub fn of(envelope: Option<&dyn kcp::Envelope>) -> Option<Self> {
        let envelope: &dyn Any = envelope?;
        envelope.downcast_ref().map(Envelope::stats)
    }
}
