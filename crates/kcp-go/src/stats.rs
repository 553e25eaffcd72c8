//! What is counted around KCP.

use crate::envelope::Envelope;
use std::any::Any;
use whitewater::kcp;

/// What was counted on a socket of what is around KCP, of all peers together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Datagrams that were changed, cut, or made with another key or cipher.
    pub unreadable: u64,
    /// Datagrams of more than 1500 bytes.
    pub too_long: u64,
    /// Datagrams with something beside KCP, which is not used here.
    pub out_of_band: u64,
    /// Parity shards sent.
    pub parity_sent: u64,
    /// Parity shards that came.
    pub parity_received: u64,
    /// Parity shards of nobody known and proven, or where none are expected.
    pub parity_unused: u64,
    /// Datagrams rebuilt from parity.
    pub recovered: u64,
    /// Of them, those that the control block refused, as of another conv.
    pub refused: u64,
    /// Shards rebuilt that are no datagram.
    pub not_recovered: u64,
    /// Shards whose number does not fit their kind: the other has other shards than the config says, and nothing is rebuilt.
    pub misplaced: u64,
    /// Shards not kept because one not long before was misplaced.
    pub doubted: u64,
    /// Data shards that say they are longer than they are.
    pub malformed: u64,
    /// Shards of a group that is not kept any more.
    pub late: u64,
    /// Shards that had come before.
    pub duplicates: u64,
}

impl Stats {
    /// Those of the envelope of a socket or listener; `None`: it has none, or that of another crate.
    #[must_use]
    pub fn of(envelope: Option<&dyn kcp::Envelope>) -> Option<Self> {
        let envelope: &dyn Any = envelope?;
        envelope.downcast_ref().map(Envelope::stats)
    }
}
