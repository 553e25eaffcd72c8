//! What a link counts.

use std::time::Duration;

/// What became of the datagrams given to a link, since it was made.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct LinkStats {
    /// Datagrams given to the link.
    pub sent: u64,
    /// Their bytes, without IP and UDP headers.
    pub bytes: u64,
    /// Lost by [`LinkConfig::loss`](super::LinkConfig::loss).
    pub lost: u64,
    /// Dropped because the queue of the bottleneck was full.
    pub dropped: u64,
    /// Marked, for a queue was filling: see [`EcnPath`](super::EcnPath).
    pub marked: u64,
    /// Vanished because they were larger than the mtu.
    pub too_large: u64,
    /// Lost in an outage.
    pub cut_off: u64,
    /// Arrived, copies included.
    pub delivered: u64,
    /// Come twice.
    pub duplicated: u64,
    /// Come late by [`LinkConfig::reorder`](super::LinkConfig::reorder).
    pub late: u64,
    /// Were damaged on their way; copies are not counted.
    pub corrupted: u64,
    /// Found room in the queue of the bottleneck.
    pub queued: u64,
    /// Time spent in the bottleneck, of all of them together.
    pub queue_delay: Duration,
    /// The longest of these times.
    pub queue_delay_max: Duration,
}

impl LinkStats {
    /// Bytes given to the link, with [`IP_AND_UDP`] for each datagram.
    #[must_use]
    pub const fn wire_bytes(&self) -> u64 {
        self.bytes + self.sent * IP_AND_UDP as u64
    }

    /// Datagrams that never arrive, for whatever reason.
    #[must_use]
    pub const fn lost_in_all(&self) -> u64 {
        self.lost + self.dropped + self.too_large + self.cut_off
    }

    /// Mean time of a datagram in the bottleneck, its own transmission included.
    #[must_use]
    pub fn queue_delay_mean(&self) -> Duration {
        self.queue_delay / u32::try_from(self.queued).unwrap_or(u32::MAX).max(1)
    }
}

/// Bytes of the IPv4 and UDP headers of a datagram.
pub const IP_AND_UDP: usize = 28;
