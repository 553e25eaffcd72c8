//! Why a server does not take a client.

use crate::session::shape::Mismatch;

/// Why a server does not take a client. All but [`Shape`](Self::Shape) may have been said by anybody on the way.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DenyReason {
    /// The server does not speak this version of the protocol.
    #[error("the server speaks another version of the protocol")]
    Version,
    /// It does not have this suite.
    #[error("the server does not allow this suite")]
    Suite,
    /// It is a server of another game, or of another version of it.
    #[error("the server has another `protocol_id`")]
    Protocol,
    /// It has no room.
    #[error("the server is full")]
    Busy,
    /// It cannot read the client's first message.
    #[error("the server has another secret or another key")]
    Secret,
    /// It does not accept the connect token, or wants one.
    #[error("the server does not accept the connect token")]
    Token,
    /// Both ends do not have the same channels.
    #[error("{0}")]
    Shape(Mismatch),
}

impl DenyReason {
    /// What a DENY can say, by its number on the wire, from 1.
    pub const ALL: [Self; 6] =
        [Self::Version, Self::Suite, Self::Protocol, Self::Busy, Self::Secret, Self::Token];
}
