//! What a link counts.

use std::time::Duration;

/// What happened to the datagrams sent over a link since it was created.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct LinkStats {
    /// Datagrams sent over the link.
    pub sent: u64,
    /// Their size without IP and UDP headers, bytes.
    pub bytes: u64,
    /// Lost through [`LinkConfig::loss`](super::LinkConfig::loss).
    pub lost: u64,
    /// Dropped by the queue of the bottleneck.
    pub dropped: u64,
    /// Marked because a queue was filling up: see [`EcnPath`](super::EcnPath).
    pub marked: u64,
    /// Vanished because they were larger than the mtu.
    pub too_large: u64,
    /// Lost in an outage.
    pub cut_off: u64,
    /// Arrived, including copies.
    pub delivered: u64,
    /// Duplicated.
    pub duplicated: u64,
    /// Delayed by [`LinkConfig::reorder`](super::LinkConfig::reorder).
    pub late: u64,
    /// Damaged; copies do not count.
    pub corrupted: u64,
    /// Left the bottleneck.
    pub queued: u64,
    /// Total time that all of them spent in the bottleneck.
    pub queue_delay: Duration,
    /// The longest time that one of them spent there.
    pub queue_delay_max: Duration,
}

impl LinkStats {
    /// Bytes sent over the link, plus [`IP_AND_UDP`] for each datagram.
    #[must_use]
    pub const fn wire_bytes(&self) -> u64 {
        self.bytes + self.sent * IP_AND_UDP as u64
    }

    /// Datagrams that never arrive, for any reason.
    #[must_use]
    pub const fn lost_in_all(&self) -> u64 {
        self.lost + self.dropped + self.too_large + self.cut_off
    }

    /// A datagram has left the bottleneck after `delay`.
    pub(super) fn count_queued(&mut self, delay: Duration) {
        self.queued += 1;
        self.queue_delay = self.queue_delay.saturating_add(delay);
        self.queue_delay_max = self.queue_delay_max.max(delay);
    }

    /// Mean time of a datagram in the bottleneck, including its own transmission.
    #[must_use]
    pub fn queue_delay_mean(&self) -> Duration {
        self.queue_delay / u32::try_from(self.queued).unwrap_or(u32::MAX).max(1)
    }
}

/// Bytes of the IPv4 and UDP headers of a datagram.
pub const IP_AND_UDP: usize = 28;
