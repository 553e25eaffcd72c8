//! What an endpoint counts and measures.

use super::error::ReceiveError;
use crate::pace::PaceState;
use crate::time::Time;
use std::time::Duration;

stats! {
    /// Statistics of an endpoint: counters since it was created, and measurements as of its last call. From
    /// [`Endpoint::stats`](super::Endpoint::stats).
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub struct PacketStats {
        /// Round trip, smoothed by 10 %; zero before the first. It includes the time until the peer sends its
        /// next packet, since only packets carry acknowledgements.
        pub rtt: Duration => "whitewater_packet_rtt_seconds",
        /// Shortest round trip.
        pub rtt_min: Duration => "whitewater_packet_rtt_min_seconds",
        /// Longest round trip.
        pub rtt_max: Duration,
        /// Mean deviation from the smoothed round trip, smoothed by 10 %.
        pub jitter: Duration => "whitewater_packet_jitter_seconds",
        /// Share of packets not acknowledged in time, 0 to 1, over about the last 64.
        pub loss: f64 => "whitewater_packet_loss_ratio",
        /// Bytes of datagrams sent per second, smoothed over about one second. IP and UDP headers are not
        /// included.
        pub sent_bandwidth: f64 => "whitewater_packet_sent_bytes_per_second",
        /// Bytes of datagrams received and accepted per second, smoothed likewise.
        pub received_bandwidth: f64 => "whitewater_packet_received_bytes_per_second",
        /// Bytes of datagrams sent per second, counted when their packets become known to have arrived.
        pub acked_bandwidth: f64,
        /// Packets that were not acknowledged in time. A late acknowledgement still counts in `acked`, so a
        /// packet can be in both.
        pub lost: u64 => "whitewater_packet_lost_total",
        /// Packets dropped while some of their fragments were missing.
        pub abandoned: u64 => "whitewater_packet_abandoned_total",
        /// When a packet or a fragment was last received; `None` if never, or at least `forget_after` ago.
        pub heard: Option<Time>,
        /// The pace mode, since when, and how long conditions must be good for bad mode to end.
        pub pace: PaceState,
    }
    counted by #[derive(Copy)] Counts {
        /// Packets sent, including keepalives.
        pub sent: u64 => "whitewater_packet_sent_total",
        /// How many of these were keepalives.
        pub keepalives: u64,
        /// Datagrams sent: a fragmented packet takes several.
        pub datagrams_sent: u64 => "whitewater_packet_datagrams_sent_total",
        /// Complete packets received, including empty ones.
        pub received: u64 => "whitewater_packet_received_total",
        /// Packets sent that have arrived.
        pub acked: u64 => "whitewater_packet_acked_total",
        /// Acknowledged packets whose number was pushed out by newer ones before
        /// [`pop_acked`](super::Endpoint::pop_acked) returned it.
        pub acked_unread: u64,
        /// Packets presumed lost because one sent later arrived; see [`pop_lost`](super::Endpoint::pop_lost).
        /// Includes those that were only late.
        pub overtaken: u64,
        /// Datagrams rejected, by reason.
        pub rejected: RejectedPackets => "whitewater_packet_rejected_total",
    }
}

reasons! {
    /// Datagrams that [`Endpoint::receive`](super::Endpoint::receive) rejected, by [`ReceiveError`].
    pub struct RejectedPackets: u64, by ReceiveError {
        truncated: Truncated,
        protocol: Protocol,
        prefix: Prefix,
        not_shortest: NotShortest,
        fragment: Fragment,
        fragment_mismatch: FragmentMismatch,
        too_long: TooLong,
        ack_unsent: AckUnsent,
        stale: Stale,
        duplicate: Duplicate,
        refused: Refused,
    }
}

/// Bytes per second: the mean of the first ten [`SLOT`]s; after that, each slot moves it by 10 % of the
/// difference.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate {
    per_second: f64,
    /// Bytes in the current slot.
    bytes: u64,
    /// When the current slot began; `None` before the first byte.
    began: Option<Time>,
    /// Number of completed slots.
    slots: u64,
}

impl Rate {
    pub(super) fn add(&mut self, now: Time, bytes: u64) {
        self.update(now);
        self.began.get_or_insert(now);
        self.bytes += bytes;
    }

    /// Ends the slots that are over.
    pub(super) fn update(&mut self, now: Time) {
        let Some(mut began) = self.began else {
            return;
        };
        if now.since(began) >= FORGOTTEN {
            *self = Self::default();
            return;
        }
        while now.since(began) >= SLOT {
            self.slots += 1;
            let weight = 1.0 / self.slots.min(MEMORY) as f64;
            self.per_second += weight * (self.bytes as f64 / SLOT.as_secs_f64() - self.per_second);
            self.bytes = 0;
            began = began + SLOT;
        }
        self.began = Some(began);
    }

    pub(super) const fn per_second(&self) -> f64 {
        self.per_second
    }
}

const SLOT: Duration = Duration::from_millis(100);
/// Number of slots that the rate averages over.
const MEMORY: u64 = 10;
/// After this much silence the rate is practically zero: 0.9^600.
const FORGOTTEN: Duration = Duration::from_secs(60);
