//! What repairs of packets have cost and brought.

use crate::code::RejectedRepairs;

/// What became of the repairs of a session, in both directions.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct RepairStats {
    /// Repairs sent.
    pub sent: u64,
    /// Of them, those that had a datagram of their own.
    pub sent_alone: u64,
    /// Bytes that they took in datagrams, with the whole of the datagrams that they had for themselves.
    pub bytes: u64,
    /// Packets that the peer says it has rebuilt: lost on the path, and counted as lost.
    pub rebuilt_by_peer: u64,
    /// Share of what we send that gets lost, of 255, as the peer has told last; 0: so little that no repairs are sent.
    pub loss_told: u8,
    /// Packets of the peer that were lost and rebuilt.
    pub rebuilt: u64,
    /// Repairs received of which nothing was missing.
    pub needless: u64,
    /// Of what was rebuilt, what had come meanwhile or was too old to tell.
    pub late: u64,
    /// What was rebuilt and is nothing that a peer sends, and repairs for which there was no memory.
    pub refused: u64,
    /// Repairs refused, by the reason.
    pub rejected: RejectedRepairs,
}

impl RepairStats {
    /// What was refused for any reason.
    #[must_use]
    pub fn refused_total(&self) -> u64 {
        self.refused + self.rejected.total()
    }
}
