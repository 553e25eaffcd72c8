//! The knobs of a client, and whom it connects to.

use crate::config::ConfigError;
use crate::session::Suite;
use crate::session::config::SessionConfig;
use crate::session::exchange::HandshakeError;
use crate::session::wire::{HELLO_MIN, TOKEN_MAX, USER_MAX};
use std::net::SocketAddr;
use std::time::Duration;

settings! {
    /// How a client connects, and its session.
    #[derive(Clone, Debug, Eq, PartialEq)]
    pub struct ClientConfig {
        /// The session.
        pub session: SessionConfig = SessionConfig::default();
        /// Bytes of a HELLO: 512 to 1200. A server answers with at most 0.07 of them, so that nobody can use it against others.
        pub hello: u16 = 1200, HELLO_MIN as u64..=1200;
        /// How long one address of a server is tried: 100 ms to 120 s.
        pub deadline: Duration = Duration::from_secs(10), 100..=120_000;
    }
}

impl ClientConfig {
    /// Checks every field against its range.
    ///
    /// # Errors
    ///
    /// Names the first field out of range, its value and the range.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.session.check()?;
        self.check_ranges()
    }
}

/// A server, and what a client has to know to connect to it.
#[derive(Clone, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "made for `Target { .., ..Target::insecure(address) }`")]
pub struct Target {
    /// Where it is: tried one after another, at least one.
    pub addresses: Vec<SocketAddr>,
    /// How the session is protected.
    pub suite: Suite,
    /// The secret that both ends know, if the suite has one.
    pub psk: Option<[u8; 32]>,
    /// The server's public key, if the suite has one: what `session::public_key` makes of its private half.
    pub server_key: Option<[u8; 32]>,
    /// A sealed connect token, or nothing: at most 512 bytes.
    pub token: Vec<u8>,
    /// What the server's application is told in the handshake: at most 256 bytes.
    pub user: Vec<u8>,
}

impl Target {
    /// A server at `address`, without encryption: for local networks and tests. The server has to allow it as well.
    #[must_use]
    pub fn insecure(address: SocketAddr) -> Self {
        let (addresses, suite) = (vec![address], Suite::Checked);
        Self { addresses, suite, psk: None, server_key: None, token: Vec::new(), user: Vec::new() }
    }

    /// The server that a connect token is for.
    #[must_use]
    pub fn of_token(token: &crate::session::token::PublicToken) -> Self {
        Self {
            addresses: token.addresses.clone(),
            suite: token.suite,
            psk: Some(*token.psk),
            server_key: token.server_key,
            token: token.sealed.to_vec(),
            user: Vec::new(),
        }
    }

    pub(super) fn check(&self) -> Result<(), ConnectError> {
        for (field, len, max) in [("token", self.token.len(), TOKEN_MAX), ("user", self.user.len(), USER_MAX)]
        {
            if len > max {
                return Err(ConnectError::TooLong { field, len, max });
            }
        }
        Ok(())
    }
}

printed_without_secrets! { Target { addresses, suite } }

/// Why a session does not begin to connect.
#[derive(Clone, Copy, Debug, Eq, thiserror::Error, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ConnectError {
    /// It was connected before, and its keys die with it. Make another one.
    #[error("a session connects once")]
    Used,
    /// There is no address to connect to.
    #[error("there is no address to connect to")]
    NoAddress,
    /// The token, or what the application says, is too long.
    #[error("{field} has {len} bytes, {max} is the most")]
    TooLong { field: &'static str, len: usize, max: usize },
    /// The suite cannot be had, or not with these keys.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
}
