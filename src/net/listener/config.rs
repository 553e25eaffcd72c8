//! The limits of a listener and what it counts.

use crate::arq::Config;
use crate::net::error::Error;
use std::time::Duration;

/// How a listener treats its sessions, and how many it has.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "made with `..ListenerConfig::default()`")]
pub struct ListenerConfig {
    /// The config of every session.
    pub kcp: Config,
    /// Most sessions at a time; 1024 by default.
    pub max_sessions: usize,
    /// Most sessions at a time from one address, whatever the port; 16 by default. An IPv6
    /// network of 64 bits counts as one address, because one host may use all of it.
    pub max_sessions_per_address: usize,
    /// Sessions that one address may open a second, in the long run; 4 by default.
    pub accepts_per_second: u32,
    /// Sessions that one address may open at once; 16 by default.
    pub accept_burst: u32,
    /// Silence after which a session is closed; 30 s by default. Bare KCP has no keep-alive, so
    /// both ends have to say something now and then.
    pub idle_timeout: Duration,
    /// How long the address and conv of a session that [`close`](super::KcpListener::close) ended
    /// cannot open another one, so that what its peer sends again does not; 10 s by default.
    pub quarantine: Duration,
    /// Most datagrams that one pump reads; 512 by default.
    pub datagrams_per_pump: usize,
    /// Whether a session with new datagrams or messages is flushed by the next pump instead of
    /// after its interval: lower latency for more and smaller datagrams. Off by default.
    pub eager: bool,
}

impl Default for ListenerConfig {
    fn default() -> Self {
        Self {
            kcp: Config::default(),
            max_sessions: 1024,
            max_sessions_per_address: 16,
            accepts_per_second: 4,
            accept_burst: 16,
            idle_timeout: Duration::from_secs(30),
            quarantine: Duration::from_secs(10),
            datagrams_per_pump: 512,
            eager: false,
        }
    }
}

impl ListenerConfig {
    /// Refuses what would make a listener that never works. Zero sessions is a choice.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.datagrams_per_pump == 0 {
            return Err(Error::Zero { field: "datagrams_per_pump" });
        }
        if self.idle_timeout.is_zero() {
            return Err(Error::Zero { field: "idle_timeout" });
        }
        Ok(())
    }
}

/// What a listener has accepted, ended and dropped, by kind.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ListenerStats {
    /// Datagrams read, of any kind.
    pub datagrams_received: u64,
    /// Sessions opened.
    pub accepted: u64,
    /// Sessions ended by silence.
    pub closed_idle: u64,
    /// Sessions ended by a dead link.
    pub closed_dead: u64,
    /// Sessions ended by [`close`](super::KcpListener::close).
    pub closed_here: u64,
    /// Datagrams to a session that its control block rejected; the session's `Stats` say why.
    pub rejected: u64,
    /// Datagrams that are not KCP.
    pub garbage: u64,
    /// KCP datagrams without a session that cannot open one: no data, or from the middle of a
    /// session that is not here any more.
    pub strays: u64,
    /// Datagrams to a session that was closed here a moment ago.
    pub quarantined: u64,
    /// New sessions refused because there are `max_sessions`, or because nobody takes the events.
    pub refused_full: u64,
    /// New sessions refused because their address has `max_sessions_per_address`.
    pub refused_per_address: u64,
    /// New sessions refused because their address opens too many a second.
    pub refused_rate: u64,
}
