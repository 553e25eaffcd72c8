//! The knobs of an endpoint.

use super::fragment::FRAGMENTS_MAX;
use super::header::HEADER_MAX;
use crate::config::{ConfigError, in_range};
use crate::pace::PaceConfig;
use std::time::Duration;

settings! {
    /// What an [`Endpoint`](super::Endpoint) is made from: plain fields, checked once. Nothing is clamped:
    /// a value out of range is a [`ConfigError`]. The default is for 256 packets a second at most: with more, raise `sent`.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct PacketConfig {
        /// Both ends have the same; datagrams with another are refused. Draw it once for a game and a
        /// version of its protocol.
        pub protocol_id: u32 = 0;
        /// Longest payload of one datagram, bytes: 1 to 65,492. A longer one is sent in fragments of this
        /// many. The header adds 7 to 13 bytes, and 2 more to a fragment.
        pub fragment_above: u16 = 1200 - HEADER_MAX, 1..=(DATAGRAM_MAX - HEADER_MAX).into();
        /// Longest payload sent and taken, bytes: `fragment_above` to 256 times that.
        pub payload_max: u32 = 16 << 10;
        /// Of so many packets, those with the newest numbers, fragments are kept while others are
        /// missing: 1 to 256. With `payload_max` it bounds the memory that a peer can fill.
        pub reassemblies: u16 = 16, 1..=256;
        /// Packets sent that can still be acknowledged, the newest ones: 64 to 32,768. They should last
        /// longer than `lost_after`.
        pub sent: u16 = 256, 64..=1 << 15;
        /// Packets received that are told apart from their copies, the newest ones: 64 to 32,768.
        pub received: u16 = 256, 64..=1 << 15;
        /// A packet not acknowledged for this long counts as lost: 1 ms to 60 s.
        pub lost_after: Duration = Duration::from_secs(1), 1..=60_000;
        /// When nothing has been received for this long, what was is no longer acknowledged and any number
        /// is taken: 1 to 60 s. The peer must send fewer than 32,768 packets in that time.
        pub forget_after: Duration = Duration::from_secs(10), 1000..=60_000;
        /// When nothing has been sent for this long, an empty packet tells what has arrived: 1 ms to 60 s.
        /// `None`: never.
        pub keepalive: Option<Duration> = Some(Duration::from_millis(100)), 1..=60_000;
        /// When to send less.
        pub pace: PaceConfig = PaceConfig::default();
    }
}

impl PacketConfig {
    /// Checks every field against its range.
    ///
    /// # Errors
    ///
    /// Names the first field out of range, its value and the range.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_ranges()?;
        let one = u32::from(self.fragment_above);
        in_range("payload_max", self.payload_max, one..=one * FRAGMENTS_MAX)?;
        self.pace.check()
    }
}

/// Largest UDP payload over IPv4, bytes.
const DATAGRAM_MAX: u16 = 65_507;
