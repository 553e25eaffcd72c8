//! The settings of an endpoint.

use super::fragment::FRAGMENTS_MAX;
use super::header::HEADER_MAX;
use crate::config::{ConfigError, in_range};
use crate::pace::MaxRate;
use std::time::Duration;

settings! {
    /// Settings of an [`Endpoint`](super::Endpoint): plain fields, checked once. Nothing is clamped: a value
    /// out of range is a [`ConfigError`]. The default suits up to 256 packets per second; for more, raise
    /// `sent`.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct PacketConfig {
        /// Must be the same at both ends; datagrams with another id are refused. Pick a random number for
        /// your game and each version of its protocol.
        pub protocol_id: u32 = 0;
        /// Longest payload of one datagram, bytes: 1 to 65,492. A longer payload is sent in fragments of this
        /// size. The header adds 7 to 13 bytes, plus 2 in a fragment.
        pub fragment_above: u16 = 1200 - HEADER_MAX, 1..=(DATAGRAM_MAX - HEADER_MAX).into();
        /// Longest payload to send and accept, bytes: `fragment_above` to 256 times that.
        pub payload_max: u32 = 16 << 10;
        /// For how many packets, the ones with the newest numbers, fragments are kept while others are
        /// missing: 1 to 256. Together with `payload_max` this limits the memory that a peer can occupy.
        pub reassemblies: u16 = 16, 1..=256;
        /// For how many sent packets, the newest ones, acknowledgements are accepted: 64 to 32,768. Choose
        /// enough to cover more than `lost_after`.
        pub sent: u16 = 256, 64..=1 << 15;
        /// For how many received packets, the newest ones, duplicates are detected: 64 to 32,768.
        pub received: u16 = 256, 64..=1 << 15;
        /// A packet that is not acknowledged for this long counts as lost: 1 ms to 60 s.
        pub lost_after: Duration = Duration::from_secs(1), 1..=60_000;
        /// After nothing has been received for this long, earlier packets are no longer acknowledged and any
        /// packet number is accepted: 1 to 60 s. The peer must send fewer than 32,768 packets in that time.
        pub forget_after: Duration = Duration::from_secs(10), 1000..=60_000;
        /// After nothing has been sent for this long, an empty packet carries the acknowledgements: 1 ms to
        /// 60 s. `None`: never.
        pub keepalive: Option<Duration> = Some(Duration::from_millis(100)), 1..=60_000;
        /// What [`Endpoint::rate`](super::Endpoint::rate) recommends. The endpoint itself holds nothing back.
        pub max_rate: MaxRate = MaxRate::new(30);
    }
}

impl PacketConfig {
    /// Checks every field against its range.
    ///
    /// # Errors
    ///
    /// If a field is out of range. The error names the field, its value and the range.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_ranges()?;
        let one = u32::from(self.fragment_above);
        in_range("payload_max", self.payload_max, one..=one * FRAGMENTS_MAX)?;
        self.max_rate.check()
    }
}

/// Largest UDP payload over IPv4, bytes.
const DATAGRAM_MAX: u16 = 65_507;
