//! The settings of a server: how sessions are protected, and limits. Each limit bounds what strangers can cause.

use super::table::SHARDS_MAX;
use crate::config::{ConfigError, unless};
use crate::session::config::SessionConfig;
use crate::session::token::{ServerKey, Verifier};
use crate::session::wire::{ROUTING_TOKEN_MAX, USER_MAX};
use crate::session::{HostTicket, Secret, Suite};
use std::net::{IpAddr, SocketAddr};

settings! {
    /// A server's sessions and limits.
    ///
    /// Start with [`tokens`](Self::tokens), [`secret`](Self::secret) or [`insecure`](Self::insecure).
    #[derive(Clone)]
    pub struct ServerConfig without Default {
        /// The settings of every session.
        pub session: SessionConfig = SessionConfig::default();
        /// The suites that clients may use, at least one. All but [`Suite::Checked`] need the feature `crypto`, and
        /// that one does not encrypt: see [`insecure`](Self::insecure).
        pub suites: Vec<Suite> = Vec::new(), 0..=64;
        /// Whether clients whose datagrams come through TLS, as a browser's do ([`Underlay`](crate::machine::Underlay)), may also use
        /// [`Suite::Checked`], so that nothing is encrypted twice. Whoever ends the TLS, such as a proxy, can then read and change
        /// what they send. Such a client proves nothing but its address. Not for a server with `tokens`. Off by default.
        pub checked_in_tls: bool = false;
        /// Verifies connect tokens: only clients with a token that it accepts can join. If a client joins twice, the
        /// session with the newer token stays. Use a clone of the verifier to [rotate](Verifier::rotate) keys while the
        /// server runs. A driver of your own has to [tell the time](crate::machine::Machine::set_unix_time).
        pub tokens: Option<Verifier> = None;
        /// The secret that all clients know, for suites with a secret and without tokens.
        pub psk: Option<Secret> = None;
        /// The private half of the server's key, for suites with one: 32 random bytes. `session::public_key` computes
        /// the public half, which clients must know.
        pub server_key: Option<Secret> = None;
        /// The key of reset tokens. With it, clients of sessions that the server no longer knows are told at once. It
        /// must survive what makes the server lose its sessions, such as a restart of the process. A client whose
        /// address or port has changed since it was last told its token is not told. `None`: it follows from the key of
        /// [`tokens`](Self::tokens); without tokens, clients are told as long as the process runs.
        pub reset_key: Option<[u8; 16]> = None;
        /// What clients are told in the handshake if the application is not asked: at most 256 bytes.
        pub user: Vec<u8> = Vec::new(), 0..=USER_MAX as u64;
        /// Which of the servers behind one address this is: 0 to 63. It is in the top 6 bits of session ids, where
        /// [`shard_of`](crate::session::shard_of) finds it in a datagram.
        pub shard: u8 = 0, 0..=SHARDS_MAX as u64 - 1;
        /// Most sessions at a time: 1 to 16,384. Beyond that, clients are told that the server is full.
        /// Without [`tokens`](Self::tokens), a network (IPv4 /24, IPv6 /48) gets a place of the second half
        /// only while it has fewer than an eighth of all, or fewer than `sessions_per_address` if that is
        /// more.
        pub max_sessions: u16 = 1024, 1..=SESSIONS_MAX;
        /// Most bytes that all sessions may hold together, 1 MiB to 2^40: their state, and what waits to be sent,
        /// acknowledged and read. A quarter is divided evenly among `max_sessions`: each session has its share, which no
        /// other can take, and the rest is lent to whoever needs more. When an eighth of `memory` is left to lend, the
        /// session ends whose loan has not moved for longest, a second at least; when nothing is left, long messages
        /// arrive for one session at a time. At least four times the longest `max_message`, and 128 KiB for each of
        /// `max_sessions`.
        pub memory: u64 = 256 << 20, 1 << 20..=1 << 40;
        /// Most sessions at a time from one address, whatever the port: 1 to 16,384. An IPv6 network of 64 bits counts
        /// as one address.
        pub sessions_per_address: u16 = 16, 1..=SESSIONS_MAX;
        /// Most unconfirmed sessions: 1 to 16,384. When there is one more, some are chosen at random, and of
        /// those the one is removed whose network has most, the oldest if several are equal. When half of the
        /// places have been taken within half a second, networks take turns.
        pub half_open: u16 = 256, 1..=SESSIONS_MAX;
        /// The same for one address, whose oldest goes.
        pub half_open_per_address: u16 = 8, 1..=SESSIONS_MAX;
        /// Sessions per second that one address may ask for, in the long run: 1 to 1,000,000. A network, an IPv4 /24 or an
        /// IPv6 /48, may ask for 8 times as many, and all together for 200 times. Requests beyond that are dropped.
        pub accepts_per_second: u32 = 10, 1..=A_SECOND_MAX;
        /// Sessions that one address may ask for at once: 1 to 1,000,000. A network may ask for 8 times as many, and all
        /// together for 20 times.
        pub accept_burst: u32 = 20, 1..=A_SECOND_MAX;
        /// Most cookies sent per second, to all clients together: 1 to 1,000,000. Requests beyond that are dropped.
        pub challenges_per_second: u32 = 100_000, 1..=A_SECOND_MAX;
        /// Most replies per second that refuse a client, and as many that end an unknown session: 1 to 1,000,000.
        pub refusals_per_second: u32 = 100, 1..=A_SECOND_MAX;
        /// Whether to tell every client of another protocol id so. Off by default, because it tells strangers that
        /// there is a server. Clients on this host are always told, to help in development; a
        /// proxy on this host makes all of its clients look like that.
        pub deny_protocol: bool = false;
        /// Whether to ask the application about each client that may join; see
        /// [`Event::Requested`](crate::Event::Requested). Off by default.
        pub ask: bool = false;
        /// Proxies that tell where their clients are, by version 2 of the PROXY protocol: at most 64. Limits then count the clients' own addresses, and
        /// everything that names an address names theirs. The header has to be before each datagram: without one, nothing is taken from these addresses.
        /// Whoever can send from them can claim to be any client, so block them at the edge of your network. Empty, the default: nobody is believed.
        pub proxies: Vec<IpAddr> = Vec::new(), 0..=64;
        /// How many bytes of a [routing token](crate::ClientConfig::routing_token) follow each datagram, because the proxy leaves it there: 0 to 20. All clients
        /// then have one of that length.
        pub routing_token: u8 = 0, 0..=ROUTING_TOKEN_MAX as u64, "bytes";
        /// The relay by which guests come who cannot reach this server directly, and the ticket with which it registers there. Guests have a ticket as well, of
        /// 20 bytes, as their routing token, whether they come by the relay or not: `routing_token` is 20 then.
        pub relay: Option<(SocketAddr, HostTicket)> = None;
        /// Whether the address of a client may change. Needs encryption. On by default.
        pub migration: bool = true;
    }
}

impl ServerConfig {
    /// A server for clients with connect tokens, which a matchmaker seals with `key`. For games with a backend.
    #[must_use]
    pub fn tokens(session: SessionConfig, key: ServerKey) -> Self {
        Self { session, suites: vec![Suite::TOKEN], tokens: Some(Verifier::new(key)), ..Self::base() }
    }

    /// A server for clients that know its secret: 32 random bytes, not a password, because an eavesdropper can try out
    /// words.
    #[must_use]
    pub fn secret(session: SessionConfig, psk: impl Into<Secret>) -> Self {
        Self { session, suites: vec![Suite::TOKEN], psk: Some(psk.into()), ..Self::base() }
    }

    /// A server without encryption, open to anybody who sees a packet. For local networks and tests.
    #[must_use]
    pub fn insecure(session: SessionConfig) -> Self {
        Self { session, suites: vec![Suite::Checked], ..Self::base() }
    }

    /// Checks every field against its range and against the others. A server that some of its clients could not join is
    /// an error.
    ///
    /// # Errors
    ///
    /// The first field that is wrong, and the cure.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.session.check()?;
        self.check_ranges()?;
        let (has_tokens, has_psk, has_key) =
            (self.tokens.is_some(), self.psk.is_some(), self.server_key.is_some());
        let any = |is: fn(Suite) -> bool| self.suites.iter().any(|suite| is(*suite));
        unless(self.suites.is_empty(), "suites", "is empty: use ServerConfig::insecure(..) or ::tokens(..)")?;
        for suite in &self.suites {
            unless(!suite.is_built_in(), "suites", suite.missing())?;
            self.session.check_suite(*suite)?;
        }
        let is_open = has_tokens && any(|suite| !suite.needs_psk());
        unless(
            is_open,
            "suites",
            "has one without a pre-shared key, which no connect token is for: use Suite::TOKEN",
        )?;
        unless(
            has_tokens && self.checked_in_tls,
            "checked_in_tls",
            "lets clients in without a token: leave it off beside `tokens`",
        )?;
        unless(has_tokens && has_psk, "psk", "is not used beside `tokens`, which have their own")?;
        let lacks_psk = !has_psk && !has_tokens && any(Suite::needs_psk);
        unless(lacks_psk, "psk", "is missing: use ServerConfig::secret(..) or ::tokens(..)")?;
        let is_idle = has_psk && !any(Suite::needs_psk);
        unless(is_idle, "psk", "is not used by any of `suites`: use Suite::TOKEN")?;
        let lacks_key = !has_key && any(Suite::needs_server_key);
        unless(lacks_key, "server_key", "is missing: one of `suites` takes the server's private key")?;
        unless(has_key && !any(Suite::needs_server_key), "server_key", "is not used by any of `suites`")?;
        unless(
            self.relay.is_some() && usize::from(self.routing_token) != ROUTING_TOKEN_MAX,
            "routing_token",
            "has to be 20 with `relay`: each datagram of a guest ends with its ticket",
        )?;
        unless(
            self.share() < SHARE_MIN,
            "memory",
            "has to be at least 128 KiB for each of `max_sessions`: raise it, or lower `max_sessions`",
        )?;
        unless(
            self.memory < MESSAGES_MIN * u64::from(self.session.longest_message()),
            "memory",
            "has to be at least four times the longest `max_message`: raise it, or lower `max_message` of that channel",
        )
    }
}

impl ServerConfig {
    /// Bytes of `memory` that each session has for itself.
    pub(super) fn share(&self) -> u64 {
        self.memory / SHARED / u64::from(self.max_sessions.max(1))
    }
}

printed_without_secrets! { ServerConfig { session, suites, max_sessions } }

/// One part of so many of the memory is divided into the shares of sessions.
const SHARED: u64 = 4;
/// Least share of a session, bytes. A game at 60 Hz with several channels takes about 20 KiB.
const SHARE_MIN: u64 = 32 << 10;
/// In so many times the longest message there is room for one that arrives and one that is sent, beside the parts of
/// all sessions and the reserve for one of them.
const MESSAGES_MIN: u64 = 4;
/// Slots per shard.
const SESSIONS_MAX: u64 = 1 << 14;
const A_SECOND_MAX: u64 = 1_000_000;
