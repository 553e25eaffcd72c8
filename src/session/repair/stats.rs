//! What repairs of packets have cost and brought.

use crate::code::RejectedRepairs;
use crate::counters::stats;

stats! {
    /// What became of the repairs of a session, in both directions.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct RepairStats {
        /// Repairs of packets sent.
        pub sent: u64 => "whitewater_session_packet_repairs_sent_total",
        /// Of them, those that had a datagram of their own.
        pub sent_alone: u64,
        /// Bytes that repairs of packets took in datagrams, with the whole of the datagrams that they had for themselves.
        pub bytes: u64 => "whitewater_session_packet_repairs_bytes_total",
        /// Packets that the peer says it has rebuilt: lost on the path, and counted as lost.
        pub rebuilt_by_peer: u64 => "whitewater_session_packets_rebuilt_total" [by: "peer", "Packets lost and rebuilt"],
        /// Share of what we send that gets lost, of 255, as the peer has told last; 0: so little that no repairs are sent.
        pub loss_told: u8,
        /// Packets of the peer that were lost and rebuilt.
        pub rebuilt: u64 => "whitewater_session_packets_rebuilt_total" [by: "here", "Packets lost and rebuilt"],
        /// Repairs received of which nothing was missing.
        pub needless: u64 => "whitewater_session_packet_repairs_unused_total" [reason: "needless", "Repairs received for nothing"],
        /// Of what was rebuilt, what had come meanwhile or was too old to tell.
        pub late: u64 => "whitewater_session_packet_repairs_unused_total" [reason: "late", "Repairs received for nothing"],
        /// What was rebuilt and is nothing that a peer sends, and repairs for which there was no memory.
        pub refused: u64 => "whitewater_session_packet_repairs_unused_total" [reason: "refused", "Repairs received for nothing"] by refused_total,
        /// Repairs refused, by the reason.
        pub rejected: RejectedRepairs,
    }
}

impl RepairStats {
    /// What was refused for any reason.
    #[must_use]
    pub fn refused_total(&self) -> u64 {
        self.refused + self.rejected.total()
    }
}
