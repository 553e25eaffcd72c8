//! The knobs of a server: how sessions are protected, and how many there are. Each limit is for what a stranger can cause.

use super::table::SHARDS_MAX;
use crate::config::{ConfigError, unless};
use crate::session::Suite;
use crate::session::config::SessionConfig;
use crate::session::token::{LATEST, ServerKey, Verifier};
use crate::session::wire::USER_MAX;
use crate::time::Time;

settings! {
    /// A server's sessions and limits.
    ///
    /// Begin with [`tokens`](Self::tokens), [`secret`](Self::secret) or [`insecure`](Self::insecure).
    #[derive(Clone)]
    pub struct ServerConfig without Default {
        /// What every session has.
        pub session: SessionConfig = SessionConfig::default();
        /// The suites that clients may ask for, at least one. All but [`Suite::Checked`] take the feature `crypto`, and that one is no
        /// protection: see [`insecure`](Self::insecure).
        pub suites: Vec<Suite> = Vec::new(), 0..=64;
        /// What looks at connect tokens: only clients with a token that it accepts come in. Of two sessions of one client the one by the
        /// newer token stays. A clone of it [rotates](Verifier::rotate) keys while the server runs.
        pub tokens: Option<Verifier> = None;
        /// When the server is made: by the clock that its calls go by, and in seconds since 1970. Tokens need it. Drivers with a socket ask the
        /// system if it is `None`.
        pub started: Option<(Time, u64)> = None;
        /// The secret that all clients know, for suites that have one and no tokens.
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
        /// Whether clients of another protocol id are told so, wherever they are. Off by default: it tells a stranger that there is something.
        /// Those on this host and in private networks are told so at once, as in development.
        pub deny_protocol: bool = false;
        /// Whether the application is asked about each client that may come in: see
        /// [`Event::Requested`](crate::Event::Requested). Off by default.
        pub ask: bool = false;
        /// Whether the address of a client may change, which needs encryption. On by default.
        pub migration: bool = true;
    }
}

impl ServerConfig {
    /// A server for clients with connect tokens, which a matchmaker seals with `key`: for games with a backend.
    #[must_use]
    pub fn tokens(session: SessionConfig, key: ServerKey) -> Self {
        Self { session, suites: vec![Suite::TOKEN], tokens: Some(Verifier::new(key)), ..Self::base() }
    }

    /// A server for clients that know its secret, 32 random bytes. No password: whoever listens can try words.
    #[must_use]
    pub fn secret(session: SessionConfig, psk: [u8; 32]) -> Self {
        Self { session, suites: vec![Suite::TOKEN], psk: Some(psk), ..Self::base() }
    }

    /// A server whose sessions are not encrypted, and open to anybody who sees a packet: for local networks and tests.
    #[must_use]
    pub fn insecure(session: SessionConfig) -> Self {
        Self { session, suites: vec![Suite::Checked], ..Self::base() }
    }

    /// Checks every field against its range, and against the others: a server that some of its clients could not join is wrong.
    ///
    /// # Errors
    ///
    /// Names the first field that is wrong, and what to do.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.session.check()?;
        self.check_ranges()?;
        let (has_tokens, has_psk, has_key) =
            (self.tokens.is_some(), self.psk.is_some(), self.server_key.is_some());
        let any = |is: fn(Suite) -> bool| self.suites.iter().any(|suite| is(*suite));
        unless(self.suites.is_empty(), "suites", "is empty: use ServerConfig::insecure(..) or ::tokens(..)")?;
        let is_missing = any(|suite| !suite.is_built_in());
        unless(is_missing, "suites", "takes the feature `crypto`, which this program was built without")?;
        let is_open = has_tokens && any(|suite| !suite.needs_psk());
        unless(
            is_open,
            "suites",
            "has one without a pre-shared key, which no connect token is for: use Suite::TOKEN",
        )?;
        unless(has_tokens && has_psk, "psk", "is not used beside `tokens`, which have their own")?;
        let lacks_psk = !has_psk && !has_tokens && any(Suite::needs_psk);
        unless(lacks_psk, "psk", "is missing: use ServerConfig::secret(..) or ::tokens(..)")?;
        let is_idle = has_psk && !any(Suite::needs_psk);
        unless(is_idle, "psk", "is not used by any of `suites`: use Suite::TOKEN")?;
        let lacks_key = !has_key && any(Suite::needs_server_key);
        unless(lacks_key, "server_key", "is missing: one of `suites` takes the server's private key")?;
        unless(has_key && !any(Suite::needs_server_key), "server_key", "is not used by any of `suites`")?;
        let is_late = self.started.is_some_and(|(_, unix)| unix > LATEST);
        unless(is_late, "started", "is not in seconds since 1970")
    }
}

printed_without_secrets! { ServerConfig { session, suites, max_sessions } }

/// Slots of a shard.
const SESSIONS_MAX: u64 = 1 << 14;
const A_SECOND_MAX: u64 = 1_000_000;
