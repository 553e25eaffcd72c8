//! What a session tells its owner.

use super::wire::DenyReason;
use std::fmt;
use std::net::SocketAddr;

/// Something that has happened. None carries data: read it when you are told that there is some.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// At a server that [asks](super::ServerConfig::ask): a client wants to come in. [`Server::request`](super::Server::request) says
    /// who; [`accept`](super::Server::accept) or [`reject`](super::Server::reject) it within 10 s. [`Connected`](Self::Connected)
    /// or [`Closed`](Self::Closed) follows, unless it is rejected.
    Requested,
    /// The session is up.
    Connected,
    /// Something can be read: read until nothing is left, then this comes again.
    Readable,
    /// A lane that was full has room again, or what a lane was [asked](super::Connection::is_delivered) about has arrived. Room for a message
    /// that was refused is kept for 20 ms.
    Writable,
    /// The server sends us to another one: [`take_redirect`](super::Session::take_redirect) has the token for it.
    Redirected,
    /// The peer is now at another address.
    Moved {
        /// Where it was.
        from: SocketAddr,
        /// Where it is.
        to: SocketAddr,
    },
    /// The session has ended; nothing follows. What had arrived can still be read.
    Closed {
        /// Why.
        reason: CloseReason,
        /// What is not known to have arrived.
        undelivered: Undelivered,
    },
}

/// Why a session has ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CloseReason {
    /// We closed it, with this code.
    Local(u16),
    /// The peer closed it, with this code: its application's, or one of [`code`].
    Peer(u16),
    /// The other end said nothing any more while connecting.
    ConnectTimeout,
    /// The server said that it does not take us; it need not have been the server who said so.
    Denied(DenyReason),
    /// The server does not take us: its application's code, or one of [`code`].
    Rejected(u16),
    /// Nothing was received for too long.
    Timeout,
    /// The server does not know the session any more.
    ServerForgot,
    /// The peer broke the protocol.
    Protocol,
    /// Nothing that a lane sent was acknowledged for too long.
    DeadLink,
    /// The peer read nothing for too long.
    SlowPeer,
    /// The fragments of a message did not go on from each other.
    StreamCorrupt,
    /// The same client has connected again.
    Replaced,
    /// All packet numbers are used up.
    Exhausted,
}

impl CloseReason {
    /// What the peer is told.
    pub(super) const fn code(self) -> u16 {
        match self {
            Self::Local(code) | Self::Peer(code) | Self::Rejected(code) => code,
            Self::DeadLink => code::DEAD_LINK,
            Self::SlowPeer => code::SLOW_PEER,
            Self::StreamCorrupt => code::STREAM_CORRUPT,
            Self::Replaced => code::REPLACED,
            Self::Exhausted => code::EXHAUSTED,
            Self::Protocol | Self::ConnectTimeout | Self::Denied(_) | Self::Timeout | Self::ServerForgot => {
                code::PROTOCOL
            }
        }
    }
}

/// Codes of a close that are not the application's. Its own are below [`RESERVED`](code::RESERVED).
pub mod code {
    /// The first that no application has.
    pub const RESERVED: u16 = 0xff00;
    /// The peer broke the protocol.
    pub const PROTOCOL: u16 = 0xff01;
    /// Nothing was acknowledged.
    pub const DEAD_LINK: u16 = 0xff02;
    /// Nothing was read.
    pub const SLOW_PEER: u16 = 0xff03;
    /// A message could not be put together.
    pub const STREAM_CORRUPT: u16 = 0xff04;
    /// The same client has connected again.
    pub const REPLACED: u16 = 0xff05;
    /// All packet numbers are used up.
    pub const EXHAUSTED: u16 = 0xff06;
}

/// What was sent and is not known to have arrived when a session ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Undelivered {
    /// Segments of lanes: sent and not acknowledged, or waiting.
    pub segments: usize,
    /// Messages and slices of reliable channels.
    pub messages: usize,
    /// Unreliable datagrams that never left.
    pub datagrams: usize,
    /// A token that sends the client to another server.
    pub redirect: bool,
}

impl Undelivered {
    /// Whether there is nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.segments == 0 && self.messages == 0 && self.datagrams == 0 && !self.redirect
    }
}

/// An unreliable datagram that was sent: they are numbered from 0.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[expect(clippy::exhaustive_structs, reason = "a number with a name")]
pub struct DatagramId(pub u64);

impl fmt::Display for DatagramId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
