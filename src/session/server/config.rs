//! The knobs of a server: how sessions are protected, and how many there are. Each limit is for what a stranger can cause.

use crate::config::{ConfigError, in_range};
use crate::session::Suite;
use crate::session::config::SessionConfig;
use crate::session::shard::SHARDS_MAX;
use crate::session::wire::USER_MAX;
use std::fmt;

/// A server's sessions and limits.
#[derive(Clone)]
#[expect(clippy::exhaustive_structs, reason = "made for `ServerConfig { .., ..ServerConfig::default() }`")]
pub struct ServerConfig {
    /// What every session has.
    pub session: SessionConfig,
    /// The suites that clients may ask for, at least one: none by default. All but [`Suite::Checked`] take the feature `crypto`, and that
    /// one is no protection: see [`insecure`](Self::insecure).
    pub suites: Vec<Suite>,
    /// The secret that all clients know, for the suites that have one and connections without tokens.
    pub psk: Option<[u8; 32]>,
    /// The private half of the server's key, for the suites that have one: 32 random bytes, of which `session::public_key` makes
    /// the half that clients know.
    pub server_key: Option<[u8; 32]>,
    /// The key of reset tokens: with it, clients of sessions that the server does not know any more are told so at once. It has to
    /// outlive what is to be reset, a restart of the process for example. A client that has moved to another IP since it connected is not
    /// told.
    pub reset_key: Option<[u8; 16]>,
    /// What clients are told in the handshake, if the application is not asked: at most 256 bytes.
    pub user: Vec<u8>,
    /// Which one of the servers behind one address this is: 0 to 63. The top 6 bits of the session numbers have it, where
    /// [`shard_of`](crate::session::shard_of) finds it in a datagram.
    pub shard: u8,
    /// Sessions at a time: 1 to 16,384. Beyond that, clients are told that the server is busy.
    pub max_sessions: u16,
    /// Bytes that all sessions may hold together, 1 MiB to 2^40: what they are, what waits to be sent, to be acknowledged and to be
    /// read. A quarter is shared out evenly among `max_sessions`: so much each that is there always may. When the rest is used up nobody
    /// takes more than that, in either direction, and nobody comes in.
    pub memory: u64,
    /// Sessions at a time from one address, whatever the port: 1 to 16,384. An IPv6 network of 64 bits counts as one address.
    pub sessions_per_address: u16,
    /// Sessions that a client has asked for and not confirmed: 1 to 16,384. One more, and the oldest of them goes.
    pub half_open: u16,
    /// The same from one address.
    pub half_open_per_address: u16,
    /// Sessions that one address may ask for a second, in the long run: 1 to 1,000,000. Beyond, what it asks is dropped.
    pub accepts_per_second: u32,
    /// Sessions that one address may ask for at once.
    pub accept_burst: u32,
    /// Cookies that are given out a second, to all together: 1 to 1,000,000. Beyond, what is asked is dropped.
    pub challenges_per_second: u32,
    /// Answers a second that refuse a client, and as many that end a session which is not known: 1 to 1,000,000.
    pub refusals_per_second: u32,
    /// Whether clients of another protocol id are told so. Off by default: it tells a stranger that there is something.
    pub deny_protocol: bool,
    /// Whether the application is asked about each client that may come in: see
    /// [`Event::Requested`](crate::session::Event::Requested). Off by default.
    pub ask: bool,
    /// Whether the address of a client may change, which needs encryption. On by default.
    pub migration: bool,
}

impl Default for ServerConfig {
    /// No suites yet; 1024 sessions.
    fn default() -> Self {
        Self {
            session: SessionConfig::default(),
            suites: Vec::new(),
            psk: None,
            server_key: None,
            reset_key: None,
            user: Vec::new(),
            shard: 0,
            max_sessions: 1024,
            memory: 256 << 20,
            sessions_per_address: 16,
            half_open: 256,
            half_open_per_address: 8,
            accepts_per_second: 10,
            accept_burst: 20,
            challenges_per_second: 100_000,
            refusals_per_second: 100,
            deny_protocol: false,
            ask: false,
            migration: true,
        }
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
        let Self {
            session,
            suites,
            psk: _,
            server_key: _,
            reset_key: _,
            user,
            shard,
            max_sessions,
            memory,
            sessions_per_address,
            half_open,
            half_open_per_address,
            accepts_per_second,
            accept_burst,
            challenges_per_second,
            refusals_per_second,
            deny_protocol: _,
            ask: _,
            migration: _,
        } = self; // a new field fails to compile until it is handled
        session.check()?;
        in_range("suites", suites.len() as u64, 1..=SUITES_MAX)?;
        for suite in suites {
            in_range(
                "suites without the feature `crypto`",
                u16::from(!suite.is_built_in()) * suite.code(),
                0..=0,
            )?;
        }
        in_range("user", user.len() as u64, 0..=USER_MAX as u64)?;
        in_range("shard", u64::from(*shard), 0..=SHARDS_MAX as u64 - 1)?;
        in_range("memory", *memory, 1 << 20..=1 << 40)?;
        for (field, value) in [
            ("max_sessions", *max_sessions),
            ("sessions_per_address", *sessions_per_address),
            ("half_open", *half_open),
            ("half_open_per_address", *half_open_per_address),
        ] {
            in_range(field, value, 1..=SESSIONS_MAX)?;
        }
        for (field, value) in [
            ("accepts_per_second", *accepts_per_second),
            ("accept_burst", *accept_burst),
            ("challenges_per_second", *challenges_per_second),
            ("refusals_per_second", *refusals_per_second),
        ] {
            in_range(field, value, 1..=1_000_000)?;
        }
        Ok(())
    }
}

impl fmt::Debug for ServerConfig {
    /// Without keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfig")
            .field("session", &self.session)
            .field("suites", &self.suites)
            .field("max_sessions", &self.max_sessions)
            .finish_non_exhaustive()
    }
}

/// More suites than there are.
const SUITES_MAX: u64 = 64;
/// Slots of a shard.
const SESSIONS_MAX: u16 = 1 << 14;
