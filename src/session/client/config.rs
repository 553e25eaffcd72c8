//! The settings of a client: its session, and how it proves that it may join.

use crate::config::{ConfigError, unless};
use crate::session::config::SessionConfig;
use crate::session::exchange::HandshakeError;
use crate::session::token::{LATEST, PublicToken};
use crate::session::wire::{DATAGRAM_MAX, HELLO_MIN, ROUTING_TOKEN_MAX, USER_MAX};
use crate::session::{Secret, Suite};
use std::time::Duration;

settings! {
    /// How a client connects, and the settings of its session.
    ///
    /// Start with [`token`](Self::token), [`secret`](Self::secret) or [`insecure`](Self::insecure), whichever the
    /// server uses.
    #[derive(Clone, Eq, PartialEq)]
    pub struct ClientConfig without Default {
        /// The settings of the session.
        pub session: SessionConfig = SessionConfig::default();
        /// How the session is protected: one of the server's suites.
        pub suite: Suite = Suite::Checked;
        /// The secret that both ends know, if the suite needs one.
        pub psk: Option<Secret> = None;
        /// The server's public key, if the suite needs one: `session::public_key` computes it from the private half.
        pub server_key: Option<[u8; 32]> = None;
        /// The connect token, if the server requires one. With one address, or a routing token, the client is up after one round trip instead of two. A client
        /// that gives up can use its token again 10 s later.
        pub token: Option<PublicToken> = None;
        /// What [`Connection::ticket`](crate::session::Connection::ticket) returned in the last session with this server:
        /// at most 64 bytes. It saves a round trip if this client comes from the same IP address within 12 h, and the
        /// server still runs; otherwise it does no harm. With a [token](Self::token) that saves one, it is not sent. It serves once: each session brings another one. Whoever
        /// watches can tell by it that the client was there before. Empty, the default: none.
        pub ticket: Vec<u8> = Vec::new(), 0..=TICKET_MAX;
        /// What to tell the server's application in the handshake: at most 256 bytes.
        pub user: Vec<u8> = Vec::new(), 0..=USER_MAX as u64;
        /// Length of a HELLO, bytes: 512 to 1200, and no more than `max_datagram` of `session`. A server answers with at most 0.07 times as many bytes, so that
        /// nobody can use it to amplify traffic. With fewer than 1200, connecting with a connect token takes a round trip longer.
        pub hello: u16 = 1200, HELLO_MIN as u64..=1200, "bytes";
        /// What the client appends to each datagram, so that a proxy finds the server by it: at most 20 bytes, as many as the proxy takes. The proxy
        /// removes it, or the server does, by [`ServerConfig::routing_token`](crate::ServerConfig::routing_token). `max_datagram` does not count it: 1200 bytes with
        /// it still fit into the 1280 of IPv6. `path_mtu` does. A connect token brings it along. It is sent in the clear, and should be the same for all
        /// clients of a server. Empty, the default: none.
        pub routing_token: Vec<u8> = Vec::new(), 0..=ROUTING_TOKEN_MAX as u64;
        /// How long to try the addresses of a server, four at a time: 100 ms to 120 s.
        pub deadline: Duration = Duration::from_secs(10), 100..=120_000;
    }
}

impl ClientConfig {
    /// A client with a connect token, for a server made with `ServerConfig::tokens`. The token contains the server's
    /// addresses, and the routing token where a proxy wants one.
    #[must_use]
    pub fn token(session: SessionConfig, token: &PublicToken) -> Self {
        let (suite, psk, server_key) = (token.suite, Some(token.psk.clone()), token.server_key);
        let routing_token = token.routing_token.clone();
        Self { session, suite, psk, server_key, token: Some(token.clone()), routing_token, ..Self::base() }
    }

    /// A client that knows the server's secret, for a server made with `ServerConfig::secret`: 32 random bytes, not a
    /// password, because an eavesdropper can try out words.
    #[must_use]
    pub fn secret(session: SessionConfig, psk: impl Into<Secret>) -> Self {
        Self { session, suite: Suite::TOKEN, psk: Some(psk.into()), ..Self::base() }
    }

    /// A client without encryption, for local networks and tests. The server must allow it as well.
    #[must_use]
    pub fn insecure(session: SessionConfig) -> Self {
        Self { session, ..Self::base() }
    }

    /// Whether all addresses lead to one server: whoever gets a routing token there knows where it is.
    pub(super) const fn is_routed(&self) -> bool {
        !self.routing_token.is_empty()
    }

    /// Whether a server may take the first datagram for the whole attempt: it is as long as a CONNECT without a proof.
    pub(super) fn may_begin(&self) -> bool {
        let is_whole = usize::from(self.hello_len()) == DATAGRAM_MAX;
        self.token.is_some() && !self.suite.is_hybrid() && is_whole
    }

    /// Bytes of a HELLO: a narrow path carries none that is longer than its datagrams.
    pub(super) fn hello_len(&self) -> u16 {
        self.hello.min(self.session.max_datagram)
    }

    /// The part of the token for the server.
    pub(super) fn sealed(&self) -> &[u8] {
        self.token.as_ref().map_or(&[], |token| &token.sealed)
    }

    /// Checks every field against its range and against the others.
    ///
    /// # Errors
    ///
    /// The first field that is wrong, and the cure.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.session.check()?;
        self.check_ranges()?;
        let Self { suite, psk, server_key, token, .. } = self;
        unless(!suite.is_built_in(), "suite", suite.missing())?;
        self.session.check_suite(*suite)?;
        let (has_psk, has_key) = (psk.is_some(), server_key.is_some());
        unless(
            suite.needs_psk() && !has_psk,
            "psk",
            "is missing: use ClientConfig::secret(..) or ::token(..)",
        )?;
        unless(has_psk && !suite.needs_psk(), "psk", "is not used by `suite`: use Suite::TOKEN")?;
        unless(
            suite.needs_server_key() && !has_key,
            "server_key",
            "is missing: `suite` takes the server's public key",
        )?;
        unless(has_key && !suite.needs_server_key(), "server_key", "is not used by `suite`")?;
        let Some(token) = token else { return Ok(()) };
        unless(token.suite != *suite, "suite", "is not that of `token`")?;
        unless(
            token.protocol_id != self.session.protocol_id,
            "token",
            "is for another `protocol_id` than that of `session`",
        )?;
        unless(token.created >= token.expires, "token", "expires before it was made")?;
        unless(token.expires > LATEST, "token", "is not in seconds since 1970")
    }
}

printed_without_secrets! { ClientConfig { session, suite, hello, deadline } }

/// Most bytes of what may be a ticket. Only those of our length are sent.
const TICKET_MAX: u64 = 64;

/// Why a client cannot start to connect.
#[derive(Clone, Copy, Debug, Eq, thiserror::Error, PartialEq)]
#[non_exhaustive]
pub enum ConnectError {
    /// It was connected before, and its keys cannot be used again. Make another client.
    #[error("a session connects once")]
    Used,
    /// There is no address to connect to.
    #[error("there is no address to connect to")]
    NoAddress,
    /// The server's public key is invalid.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
}
