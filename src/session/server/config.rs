//! The knobs of a server: how sessions are protected, and how many there are. Each limit is for what a stranger can cause.

use super::table::SHARDS_MAX;
use crate::config::{ConfigError, in_range};
use crate::session::Suite;
use crate::session::config::SessionConfig;
use crate::session::wire::USER_MAX;

settings! {
    /// A server's sessions and limits.
    #[derive(Clone)]
    pub struct ServerConfig {
        /// What every session has.
        pub session: SessionConfig = SessionConfig::default();
        /// The suites that clients may ask for, at least one: none by default. All but [`Suite::Checked`] take the feature `crypto`, and that
        /// one is no protection: see [`insecure`](Self::insecure).
        pub suites: Vec<Suite> = Vec::new(), 1..=64;
        /// The secret that all clients know, for the suites that have one and connections without tokens.
        pub psk: Option<[u8; 32]> = None;
        /// The private half of the server's key, for the suites that have one: 32 random bytes, of which `session::public_key` makes
        /// the half that clients know.
        pub server_key: Option<[u8; 32]> = None;
        /// The key of reset tokens: with it, clients of sessions that the server does not know any more are told so at once. It has to
        /// outlive what is to be reset, a restart of the process for example. A client that has moved to another IP since it connected is not
        /// told.
        pub reset_key: Option<[u8; 16]> = None;
        /// What clients are told in the handshake, if the application is not asked: at most 256 bytes.
        pub user: Vec<u8> = Vec::new(), 0..=USER_MAX as u64;
        /// Which one of the servers behind one address this is: 0 to 63. The top 6 bits of the session numbers have it, where
        /// [`shard_of`](crate::session::shard_of) finds it in a datagram.
        pub shard: u8 = 0, 0..=SHARDS_MAX as u64 - 1;
        /// Sessions at a time: 1 to 16,384. Beyond that, clients are told that the server is busy.
        pub max_sessions: u16 = 1024, 1..=SESSIONS_MAX;
        /// Bytes that all sessions may hold together, 1 MiB to 2^40: what they are, what waits to be sent, to be acknowledged and to be
        /// read. A quarter is shared out evenly among `max_sessions`: so much each that is there always may. When the rest is used up nobody
        /// takes more than that, in either direction, and nobody comes in.
        pub memory: u64 = 256 << 20, 1 << 20..=1 << 40;
        /// Sessions at a time from one address, whatever the port: 1 to 16,384. An IPv6 network of 64 bits counts as one address.
        pub sessions_per_address: u16 = 16, 1..=SESSIONS_MAX;
        /// Sessions that a client has asked for and not confirmed: 1 to 16,384. One more, and the oldest of them goes.
        pub half_open: u16 = 256, 1..=SESSIONS_MAX;
        /// The same from one address.
        pub half_open_per_address: u16 = 8, 1..=SESSIONS_MAX;
        /// Sessions that one address may ask for a second, in the long run: 1 to 1,000,000. Beyond, what it asks is dropped.
        pub accepts_per_second: u32 = 10, 1..=A_SECOND_MAX;
        /// Sessions that one address may ask for at once.
        pub accept_burst: u32 = 20, 1..=A_SECOND_MAX;
        /// Cookies that are given out a second, to all together: 1 to 1,000,000. Beyond, what is asked is dropped.
        pub challenges_per_second: u32 = 100_000, 1..=A_SECOND_MAX;
        /// Answers a second that refuse a client, and as many that end a session which is not known: 1 to 1,000,000.
        pub refusals_per_second: u32 = 100, 1..=A_SECOND_MAX;
        /// Whether clients of another protocol id are told so. Off by default: it tells a stranger that there is something.
        pub deny_protocol: bool = false;
        /// Whether the application is asked about each client that may come in: see
        /// [`Event::Requested`](crate::session::Event::Requested). Off by default.
        pub ask: bool = false;
        /// Whether the address of a client may change, which needs encryption. On by default.
        pub migration: bool = true;
    }
}

impl ServerConfig {
    /// A server whose sessions are not encrypted, and open to anybody who sees a packet: for local networks and tests.
    #[must_use]
    pub fn insecure() -> Self {
        Self { suites: vec![Suite::Checked], ..Self::default() }
    }

    /// Checks every field against its range.
    ///
    /// # Errors
    ///
    /// Names the first field out of range, its value and the range.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.session.check()?;
        self.check_ranges()?;
        let without = self.suites.iter().find(|suite| !suite.is_built_in());
        in_range("suites without the feature `crypto`", without.map_or(0, |suite| suite.code()), 0..=0)
    }
}

printed_without_secrets! { ServerConfig { session, suites, max_sessions } }

/// Slots of a shard.
const SESSIONS_MAX: u64 = 1 << 14;
const A_SECOND_MAX: u64 = 1_000_000;
