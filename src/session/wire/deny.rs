//! Why a server refuses a client.

use crate::session::shape::Mismatch;

/// Why a server refuses a client. All but [`Shape`](Self::Shape) may be forged by anybody on the path.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DenyReason {
    /// The server does not speak this version of the protocol.
    #[error("the server speaks another version of the protocol")]
    Version,
    /// It does not support this suite.
    #[error("the server does not allow this suite")]
    Suite,
    /// It is a server of another game, or of another version of this one.
    #[error("the server has another `protocol_id`")]
    Protocol,
    /// It is full.
    #[error("the server is full")]
    Busy,
    /// It cannot read the client's first message.
    #[error("the server has another secret or another key")]
    Secret,
    /// It does not accept the connect token, or requires one.
    #[error("the server does not accept the connect token")]
    Token,
    /// The two ends do not have the same channels.
    #[error("{0}")]
    Shape(Mismatch),
}

impl DenyReason {
    /// The reasons that a DENY can give, by their numbers on the wire, from 1.
    pub const ALL: [Self; 6] =
        [Self::Version, Self::Suite, Self::Protocol, Self::Busy, Self::Secret, Self::Token];
}
