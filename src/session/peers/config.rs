//! The limits and statistics of bare KCP peers, and why one cannot be registered.

use crate::config::{ConfigError, in_range, time_in_range, unless};
use crate::kcp::{self, EnvelopeConfig};
use crate::seq::Conv;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Limits on bare KCP peers, and their settings.
#[derive(Clone, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "made with `..PeersConfig::default()` or `..PeersConfig::registered()`"
)]
pub struct PeersConfig {
    /// The config of every control block.
    pub kcp: kcp::Config,
    /// What peers can do that are not [registered](super::Peers::register).
    pub strangers: Strangers,
    /// Most strangers at a time, and most registered peers; 1024 each by default. The second half of the strangers'
    /// places is for networks (/24 of IPv4, /48 of IPv6) that have fewer than an eighth of all.
    pub max_peers: usize,
    /// Most strangers at a time from one address, whatever the port; 16 by default. An IPv6 network of 64 bits counts
    /// as one address, because one host may use all of it.
    pub max_peers_per_address: usize,
    /// New strangers per second from one address, in the long run; 4 by default. A network may have eight times as many.
    pub accepts_per_second: u32,
    /// New strangers at once from one address; 16 by default. A network may have eight times as many.
    pub accept_burst: u32,
    /// Most bytes that all peers may hold together, 1 MiB to 2^40: their state, and what waits to be sent, acknowledged
    /// and read; 256 MiB by default, at least 128 KiB for each of `max_peers`. Half is divided evenly among the most
    /// peers there may be, and each can always use its part. When the rest is used up, no peer gets more than its part:
    /// its window closes early, and [`SendError::Full`](kcp::SendError) refuses what is more or longer. The last datagrams
    /// of peers that you closed count until they have left; if memory is short, the oldest are dropped.
    pub memory: u64,
    /// Silence after which a peer is gone; 30 s by default, at least 1 ms. Bare KCP has no keep-alive, so both ends
    /// must send something now and then.
    pub idle_timeout: Duration,
    /// How long a stranger that was [closed](super::Peers::close) cannot return with the same conv, so that its resends
    /// do not bring it back; 10 s by default.
    pub quarantine: Duration,
    /// Whether a peer with new datagrams or messages is flushed at once instead of after its interval: lower latency
    /// for more and smaller datagrams. Off by default.
    pub eager: bool,
    /// What wraps KCP, for peers that are kcp-go or kcptun; nothing by default. `kcp.mtu` is then that of whole
    /// datagrams.
    pub envelope: Option<Arc<dyn EnvelopeConfig>>,
}

/// What peers can do that nobody has [registered](super::Peers::register). Bare KCP has no handshake, and source
/// addresses may be forged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Strangers {
    /// Nothing. They get no answer.
    Refused,
    /// They become peers once they have proven that they receive what is sent to their address, which takes one round
    /// trip. A good first datagram is answered with one that is not longer: a segment without data and with an old
    /// number, as if it had been delayed. Every KCP acknowledges such a segment, and a forger would have to guess 62
    /// bits of the acknowledgement. Until then, a stranger costs no memory but a place among the first datagrams of
    /// 128 strangers; in a flood of others theirs may be lost, and comes again.
    Proven,
    /// A good first datagram makes a peer, which is sent whatever the program sends. This lets anybody who can forge
    /// addresses fill the table of peers, and aim the program's answers at others. For networks where nobody can.
    Trusted,
}

impl Default for PeersConfig {
    /// For everybody who proves their address, within limits: [`Strangers::Proven`]. The limits suit players, few of whom
    /// share an address. For tunnels, load tests or many clients behind one NAT, raise `max_peers_per_address`,
    /// `accept_burst` and `accepts_per_second`.
    fn default() -> Self {
        Self {
            kcp: kcp::Config::default(),
            strangers: Strangers::Proven,
            max_peers: 1024,
            max_peers_per_address: 16,
            accepts_per_second: 4,
            accept_burst: 16,
            memory: 256 << 20,
            idle_timeout: Duration::from_secs(30),
            quarantine: Duration::from_secs(10),
            eager: false,
            envelope: None,
        }
    }
}

impl PeersConfig {
    /// For registered peers only: [`Strangers::Refused`].
    #[must_use]
    pub fn registered() -> Self {
        Self { strangers: Strangers::Refused, ..Self::default() }
    }

    /// For one registered peer, which may hold whatever its control block allows.
    #[cfg(feature = "tokio")]
    pub(crate) fn for_one(&self) -> Self {
        Self { strangers: Strangers::Refused, max_peers: 1, memory: MEMORY_MAX, ..self.clone() }
    }

    /// Checks every field against its range. Zero peers is allowed.
    ///
    /// # Errors
    ///
    /// The first field out of range, with its value and its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.kcp.check()?;
        if let Some(envelope) = &self.envelope {
            envelope.inside(&self.kcp)?;
        }
        in_range("memory", self.memory, 1 << 20..=MEMORY_MAX)?;
        unless(
            self.memory < PEER_MIN.saturating_mul(self.max_peers as u64),
            "memory",
            "has to be at least 128 KiB for each of `max_peers`: raise it, or lower `max_peers`",
        )?;
        time_in_range("idle_timeout", self.idle_timeout, 1..=u64::MAX)
    }
}

/// Most memory, bytes: more than any machine has.
const MEMORY_MAX: u64 = 1 << 40;
/// Least memory for each of `max_peers`, bytes: a quarter of it is the part of a peer, of which a quarter, five datagrams,
/// can wait to be read.
const PEER_MIN: u64 = 128 << 10;

stats! {
    /// What was accepted, ended and dropped, by kind.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct PeersStats {
        /// Datagrams received, of any kind.
        pub datagrams: u64 => "whitewater_listener_datagrams_received_total",
        /// Strangers that became peers.
        pub accepted: u64 => "whitewater_listener_accepted_total",
        /// Strangers asked to prove their address, as often as they were asked.
        pub asked: u64 => "whitewater_listener_asked_total",
        /// Bytes that all peers hold.
        pub memory: u64 => "whitewater_listener_memory_bytes",
        /// Times that a peer had to make do with its part of the memory.
        pub limited: u64 => "whitewater_listener_limited_total",
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
        /// KCP datagrams of strangers that cannot start a conversation: they have no data, or are from the middle of a
        /// conversation that no longer exists here.
        pub strays: u64 => "whitewater_listener_rejected_total" [reason: "stray", "Datagrams dropped"],
        /// Datagrams of a peer that was closed here a moment ago.
        pub quarantined: u64 => "whitewater_listener_rejected_total" [reason: "quarantined", "Datagrams dropped"],
        /// Strangers refused because all are; see [`Strangers::Refused`].
        pub refused_strangers: u64 => "whitewater_listener_rejected_total" [reason: "strangers", "Datagrams dropped"],
        /// Strangers not asked because too many were at once.
        pub refused_questions: u64 => "whitewater_listener_rejected_total" [reason: "questions", "Datagrams dropped"],
        /// Strangers refused because there are `max_peers`, or because nobody takes the events.
        pub refused_full: u64 => "whitewater_listener_rejected_total" [reason: "full", "Datagrams dropped"],
        /// Strangers refused because their address has `max_peers_per_address`.
        pub refused_per_address: u64 => "whitewater_listener_rejected_total" [reason: "per_address", "Datagrams dropped"],
        /// Strangers refused because half of `max_peers` are taken, and an eighth by their network.
        pub refused_per_network: u64 => "whitewater_listener_rejected_total" [reason: "per_network", "Datagrams dropped"],
        /// Strangers refused because too many per second come from their address, or from their network.
        pub refused_rate: u64 => "whitewater_listener_rejected_total" [reason: "rate", "Datagrams dropped"],
    }
}

errors! {
    /// Why a peer cannot be registered.
    RegisterError {
        "conv {conv} of {address} is already registered" Taken { address: SocketAddr, conv: Conv },
        "there are already {max} peers, the maximum" Full { max: usize },
    }
}
