//! Why a client cannot start to connect.

use whitewater::{ConfigError, session};

/// Why a client cannot start to connect.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// A URL of the target is for something else.
    #[error(
        "{0:?} is not a URL of a server: it has to be https://host:port/, and wss:// or ws:// for a WebSocket"
    )]
    Url(String),
    /// The browser has none of the transports that the target allows.
    #[error("this browser has none of the transports that are allowed")]
    NoTransport,
    /// There is no `crypto.getRandomValues`.
    #[error("there are no random bytes: `crypto.getRandomValues` is missing")]
    NoRandom,
    /// A setting is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The session cannot start.
    #[error(transparent)]
    Session(#[from] session::ConnectError),
}
