//! What the drivers add to std's I/O errors.

use crate::config::ConfigError;
use crate::kcp::{self, RecvError};
use crate::session::{CloseReason, ConnectError};
use std::io;
use std::time::Duration;
use thiserror::Error;

/// The error inside an [`io::Error`] that this module returns.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum Error {
    /// A segment was sent as often as `dead_link` allows and never acknowledged. The session is over: make a new one.
    /// Kind `TimedOut`.
    #[error("the link is dead: no acknowledgement after {sends} sends of one segment")]
    DeadLink { sends: u16 },
    /// Data is in flight and the peer has been silent for this long. You may continue with the session; the error stops
    /// when the peer is heard again. Kind `TimedOut`.
    #[error("the peer is silent: {} ms without a datagram while data is in flight", waited.as_millis())]
    PeerSilent { waited: Duration },
    /// The message cannot be sent, now or later. Kind `InvalidInput`.
    #[error(transparent)]
    Send(#[from] kcp::SendError),
    /// The message does not fit into the buffer. It stays queued: call again with a larger buffer. Kind `InvalidInput`.
    #[error(transparent)]
    Recv(#[from] RecvError),
    /// A field of the config is out of range. Kind `InvalidInput`.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The session is over. Kind `TimedOut` if the peer was silent or acknowledged nothing, `ConnectionRefused` if the
    /// server refused us, `NotConnected` if it was closed here, otherwise `ConnectionReset`.
    #[error("the session has ended: {reason}")]
    Closed { reason: CloseReason },
    /// The server's application rejected this client, with this code and these bytes for its application. Kind `ConnectionRefused`.
    #[error("the server rejects us, with code {code}")]
    Rejected { code: u16, user: Vec<u8> },
    /// There is no address to connect to, or the client was used before. Kind `InvalidInput`.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

impl Error {
    /// The error of this module inside `error`, if there is one.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error {
            Error::DeadLink { .. } | Error::PeerSilent { .. } => io::ErrorKind::TimedOut,
            Error::Rejected { .. } => io::ErrorKind::ConnectionRefused,
            Error::Closed { reason } => match reason {
                CloseReason::ConnectTimeout
                | CloseReason::Timeout
                | CloseReason::DeadLink
                | CloseReason::SlowPeer => io::ErrorKind::TimedOut,
                CloseReason::Denied(_) | CloseReason::Rejected(_) => io::ErrorKind::ConnectionRefused,
                CloseReason::Local(_) => io::ErrorKind::NotConnected,
                _ => io::ErrorKind::ConnectionReset,
            },
            Error::Send(kcp::SendError::Full { .. }) | Error::Recv(RecvError::NoMessage) => {
                return io::ErrorKind::WouldBlock.into(); // the common case: nothing is allocated
            }
            Error::Send(_) | Error::Recv(_) | Error::Config(_) | Error::Connect(_) => {
                io::ErrorKind::InvalidInput
            }
        };
        Self::new(kind, error)
    }
}

/// Lets `?` convert errors of bare KCP in functions that return [`io::Error`].
macro_rules! inside {
    ($($error:ty)*) => {$(
        impl From<$error> for io::Error {
            fn from(error: $error) -> Self {
                Error::from(error).into()
            }
        }
    )*};
}
inside! { kcp::SendError RecvError }
