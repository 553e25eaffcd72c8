//! The limits of bare KCP peers, what is counted of them, and why one is not registered.

use crate::config::{ConfigError, time_in_range};
use crate::kcp::{self, EnvelopeConfig};
use crate::seq::Conv;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How bare KCP peers are treated, and how many there are.
#[derive(Clone, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "made with `..PeersConfig::registered()` or `..PeersConfig::open()`"
)]
pub struct PeersConfig {
    /// The config of every control block.
    pub kcp: kcp::Config,
    /// What who is not [registered](super::Peers::register) can do.
    pub strangers: Strangers,
    /// Most strangers at a time, and as many who are registered; 1024 by default.
    pub max_peers: usize,
    /// Most strangers at a time from one address, whatever the port; 16 by default. An IPv6
    /// network of 64 bits counts as one address, because one host may use all of it.
    pub max_peers_per_address: usize,
    /// Strangers that one address may bring a second, in the long run; 4 by default.
    pub accepts_per_second: u32,
    /// Strangers that one address may bring at once; 16 by default.
    pub accept_burst: u32,
    /// Silence after which a peer is gone; 30 s by default, at least 1 ms. Bare KCP has no keep-alive, so
    /// both ends have to say something now and then.
    pub idle_timeout: Duration,
    /// How long a stranger that [`close`](super::Peers::close) sent away cannot come back with the same conv, so that what it
    /// sends again does not bring it back; 10 s by default.
    pub quarantine: Duration,
    /// Whether a peer with new datagrams or messages is flushed at once instead of after its
    /// interval: lower latency for more and smaller datagrams. Off by default.
    pub eager: bool,
    /// What is around KCP, as for peers that are kcp-go or kcptun; nothing by default. `kcp.mtu` is that of whole datagrams then.
    pub envelope: Option<Arc<dyn EnvelopeConfig>>,
}

/// What a peer can do that nobody has [registered](super::Peers::register). Bare KCP has no handshake, and a source address may be
/// forged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Strangers {
    /// Nothing: it is not answered.
    Refused,
    /// It is a peer by a good first datagram. Until it has shown that it receives what is sent to it, no more bytes are sent than have
    /// come, so that nobody can use us against others. A peer that waits for an answer longer than its question may wait for
    /// ever: it has to go on sending. What shows it is the timestamp of an acknowledgement: each peer has a clock of its own
    /// that starts anywhere, so a timestamp that was not seen is a guess of 1 in 2^32.
    Proven,
    /// It is a peer by a good first datagram, and is sent whatever the program sends.
    Trusted,
}

impl PeersConfig {
    /// For peers that the program registers, and nobody else.
    #[must_use]
    pub fn registered() -> Self {
        Self {
            kcp: kcp::Config::default(),
            strangers: Strangers::Refused,
            max_peers: 1024,
            max_peers_per_address: 16,
            accepts_per_second: 4,
            accept_burst: 16,
            idle_timeout: Duration::from_secs(30),
            quarantine: Duration::from_secs(10),
            eager: false,
            envelope: None,
        }
    }

    /// For everybody, under limits: [`Strangers::Trusted`]. The limits are for players, of whom few share an address. A server of tunnels, load
    /// tests or many clients behind one NAT raises `max_peers_per_address`, `accept_burst` and `accepts_per_second`.
    #[must_use]
    pub fn open() -> Self {
        Self { strangers: Strangers::Trusted, ..Self::registered() }
    }

    /// Checks every field against its range. Zero peers is a choice.
    ///
    /// # Errors
    ///
    /// Names the first field out of range, its value and the range.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.kcp.check()?;
        if let Some(envelope) = &self.envelope {
            envelope.inside(&self.kcp)?;
        }
        time_in_range("idle_timeout", self.idle_timeout, 1..=u64::MAX)
    }
}

stats! {
    /// What was accepted, ended and dropped, by kind.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct PeersStats {
        /// Datagrams taken in, of any kind.
        pub datagrams: u64 => "whitewater_listener_datagrams_received_total",
        /// Strangers that became peers.
        pub accepted: u64 => "whitewater_listener_accepted_total",
        /// Peers ended by silence.
        pub closed_idle: u64 => "whitewater_listener_closed_total" [reason: "idle", "Peers that are gone"],
        /// Peers ended by a dead link.
        pub closed_dead: u64 => "whitewater_listener_closed_total" [reason: "dead_link", "Peers that are gone"],
        /// Peers ended by [`close`](super::Peers::close).
        pub closed_here: u64 => "whitewater_listener_closed_total" [reason: "here", "Peers that are gone"],
        /// Datagrams of a peer that its control block rejected; the peer's own statistics say why.
        pub rejected: u64 => "whitewater_listener_rejected_total" [reason: "rejected", "Datagrams dropped"],
        /// Datagrams that are not KCP.
        pub garbage: u64 => "whitewater_listener_rejected_total" [reason: "garbage", "Datagrams dropped"],
        /// KCP datagrams of strangers that cannot open anything: no data, or from the middle of a
        /// conversation that is not here any more.
        pub strays: u64 => "whitewater_listener_rejected_total" [reason: "stray", "Datagrams dropped"],
        /// Datagrams of a peer that was closed here a moment ago.
        pub quarantined: u64 => "whitewater_listener_rejected_total" [reason: "quarantined", "Datagrams dropped"],
        /// Strangers refused because all are: [`Strangers::Refused`].
        pub refused_strangers: u64 => "whitewater_listener_rejected_total" [reason: "strangers", "Datagrams dropped"],
        /// Strangers refused because there are `max_peers`, or because nobody takes the events.
        pub refused_full: u64 => "whitewater_listener_rejected_total" [reason: "full", "Datagrams dropped"],
        /// Strangers refused because their address has `max_peers_per_address`.
        pub refused_per_address: u64 => "whitewater_listener_rejected_total" [reason: "per_address", "Datagrams dropped"],
        /// Strangers refused because their address brings too many a second.
        pub refused_rate: u64 => "whitewater_listener_rejected_total" [reason: "rate", "Datagrams dropped"],
    }
}

errors! {
    /// Why a peer is not registered.
    RegisterError {
        "conv {conv} of {address} is registered already" Taken { address: SocketAddr, conv: Conv },
        "there are {max} peers, which is the most" Full { max: usize },
    }
}
