//! The events of a session, and its event log.

use super::connection::ConnectionState;
use super::wire::DenyReason;
use crate::events::{Field, Line, events};
use crate::kcp;
use std::fmt;
use std::net::SocketAddr;

/// Something that has happened in a session. Events carry no data: read it when one tells you that there is some.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// At a server that [asks](super::ServerConfig::ask): a client wants to join.
    /// [`Server::request`](super::Server::request) describes it; [`admit`](super::Server::admit) or
    /// [`reject`](super::Server::reject) it within 10 s. [`Connected`](Self::Connected) or [`Closed`](Self::Closed)
    /// follows, unless you reject it.
    Requested,
    /// The session is up.
    Connected,
    /// There is something to read: read until nothing is left. The next event comes with new data.
    Readable,
    /// A channel that was full has room again, or everything has arrived on one that you
    /// [asked](super::Connection::is_delivered) about. Room for a refused message is kept for 20 ms.
    Writable,
    /// The server sends us to another one; [`take_redirect`](super::Client::take_redirect) returns the token for it.
    Redirected,
    /// The peer is now at another address.
    Moved {
        /// Its old address.
        from: SocketAddr,
        /// Its new address.
        to: SocketAddr,
    },
    /// The session has ended, and nothing follows. What had arrived can still be read.
    Closed {
        /// Why.
        reason: CloseReason,
        /// What is not known to have arrived.
        undelivered: Undelivered,
    },
}

/// Why a session has ended. Its `Display` is a sentence.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// We closed it, with this code.
    #[error("it was closed here, with code {0}")]
    Local(u16),
    /// The peer closed it, with this code: one of its application, or one of [`code`]. The text that it gave is `close_text` of its
    /// [`Connection`](super::Connection::close_text), or of a client or server.
    #[error("the peer closed it, with code {0}")]
    Peer(u16),
    /// The server did not answer, or stopped answering, while we were connecting.
    #[error("nobody answers")]
    ConnectTimeout,
    /// The server refused us, or somebody on the path claims so: only [`DenyReason::Shape`] is authenticated.
    #[error(transparent)]
    Denied(DenyReason),
    /// The server rejected us, with a code of its application, or one of [`code`].
    #[error("the server rejects us, with code {0}")]
    Rejected(u16),
    /// The peer was silent for too long.
    #[error("the peer has fallen silent")]
    Timeout,
    /// The server does not know the session any more.
    #[error("the server does not know the session any more")]
    ServerForgot,
    /// The peer broke the protocol.
    #[error("the peer broke the protocol")]
    Protocol,
    /// For too long, nothing that KCP sent on a channel was acknowledged.
    #[error("the peer acknowledges nothing any more")]
    DeadLink,
    /// The peer read nothing for too long.
    #[error("the peer reads nothing any more")]
    SlowPeer,
    /// The fragments of a message did not fit together.
    #[error("the fragments of a message do not belong together")]
    StreamCorrupt,
    /// The same client has connected again.
    #[error("the same client has connected again")]
    Replaced,
    /// All packet numbers are used up.
    #[error("all packet numbers are used up")]
    Exhausted,
    /// The [memory](super::ServerConfig::memory) of the server is used up, and a long message of this session found no
    /// room in time, or took room that others waited for.
    #[error("the memory of the server is used up: a long message found no room in time")]
    NoMemory,
}

impl CloseReason {
    /// The code that the peer is told.
    pub(super) const fn code(self) -> u16 {
        self.told().0
    }

    /// The code that the peer is told, and the name in a log.
    const fn told(self) -> (u16, &'static str) {
        match self {
            Self::Local(code) => (code, "local"),
            Self::Peer(code) => (code, "peer"),
            Self::ConnectTimeout => (code::PROTOCOL, "connect_timeout"),
            Self::Denied(_) => (code::PROTOCOL, "denied"),
            Self::Rejected(code) => (code, "rejected"),
            Self::Timeout => (code::PROTOCOL, "timeout"),
            Self::ServerForgot => (code::PROTOCOL, "server_forgot"),
            Self::Protocol => (code::PROTOCOL, "protocol"),
            Self::DeadLink => (code::DEAD_LINK, "dead_link"),
            Self::SlowPeer => (code::SLOW_PEER, "slow_peer"),
            Self::StreamCorrupt => (code::STREAM_CORRUPT, "stream_corrupt"),
            Self::Replaced => (code::REPLACED, "replaced"),
            Self::Exhausted => (code::EXHAUSTED, "exhausted"),
            Self::NoMemory => (code::NO_MEMORY, "no_memory"),
        }
    }
}

/// Codes for closing that are not the application's. Those are below [`RESERVED`](code::RESERVED).
pub mod code {
    /// The first code that no application may use.
    pub const RESERVED: u16 = 0xff00;
    /// The peer broke the protocol.
    pub const PROTOCOL: u16 = 0xff01;
    /// Nothing was acknowledged for too long.
    pub const DEAD_LINK: u16 = 0xff02;
    /// The peer read nothing for too long.
    pub const SLOW_PEER: u16 = 0xff03;
    /// A message could not be reassembled.
    pub const STREAM_CORRUPT: u16 = 0xff04;
    /// The same client has connected again.
    pub const REPLACED: u16 = 0xff05;
    /// All packet numbers are used up.
    pub const EXHAUSTED: u16 = 0xff06;
    /// The two ends do not have the same channels.
    pub const SHAPE: u16 = 0xff07;
    /// The memory of the server is used up.
    pub const NO_MEMORY: u16 = 0xff08;
}

/// What was sent but is not known to have arrived when a session ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Undelivered {
    /// Segments of KCP: unacknowledged, or waiting to be sent.
    pub segments: usize,
    /// Messages in packets, and long messages that KCP does not hold completely yet.
    pub messages: usize,
    /// Unreliable datagrams that were never sent.
    pub datagrams: usize,
    /// A token that sends the client to another server.
    pub redirect: bool,
}

impl Undelivered {
    /// Whether there is nothing undelivered.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.segments == 0 && self.messages == 0 && self.datagrams == 0 && !self.redirect
    }
}

/// The number of an unreliable datagram that was sent, from 0.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[expect(clippy::exhaustive_structs, reason = "a number with a name")]
pub struct DatagramId(pub u64);

impl fmt::Display for DatagramId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

events! {
    /// Something that a session did, from [`Connection::poll_log`](super::Connection::poll_log). Its `Display` is the
    /// fields of its line, which docs/EVENTS.md explains.
    SessionEvent {
        /// The log begins here.
        "start" Start {
            end: &'static str = "Which end of the session this is: `client` or `server`.",
            channels: u16 = "How many channels there are.",
        },
        /// Something that KCP did for a channel.
        "" Kcp { channel: u16 = "Which channel.", event: kcp::Event = "What KCP did.", },
        /// Datagrams were sent.
        "out" Out {
            n: u64 = "How many.",
            bytes: u64 = "Their total length.",
            pn: u64 = "The number of the last packet.",
            pings: u64 = "How many of them had a ping.",
        },
        /// An authentic new datagram arrived.
        "in" In { pn: u64 = "The number of the packet.", bytes: u64 = "Its length.", },
        /// A datagram, or something in one, was refused.
        "reject" Reject { reason: &'static str = "The field of the statistics that counts it.", n: u64 = "How many.", },
        /// Packets were acknowledged or declared lost.
        "packets" Packets { n: u64 = "How many.", lost: u64 = "How many of them were lost.", },
        /// Repairs were sent, or packets were rebuilt from them.
        "repairs" Repairs {
            sent: u64 = "Repairs sent.",
            rebuilt: u64 = "Packets of the peer rebuilt here.",
            told: u64 = "Packets that the peer reports as rebuilt.",
        },
        /// The round trip of the session has changed. Both in µs.
        "rtt" Rtt { srtt: u64 = "Smoothed round trip.", rttvar: u64 = "Its mean deviation.", },
        /// The amount of waiting data has changed.
        "queue" Queue {
            segments: u32 = "Segments of KCP, waiting or unacknowledged.",
            datagrams: u32 = "Unreliable datagrams that wait to be sent.",
            messages: u32 = "Unacknowledged messages and slices of reliable channels.",
        },
        /// The session enters its next state.
        "state" State {
            state: ConnectionState = "Which state.",
            reason: Option<CloseReason> = "Why it ends, if it does.",
        },
        /// The peer has another address.
        "moved" Moved { peer: SocketAddr = "The new address.", },
        /// Our keys were updated.
        "keys" Keys { updates: u64 = "How many updates so far.", },
        /// Datagrams may be longer from now on, or must be shorter.
        "mtu" Mtu { mtu: u16 = "The longest, bytes.", },
    }
}

impl Field for ConnectionState {
    fn write(&self, name: &str, line: &mut Line<'_, '_>) -> fmt::Result {
        line.quoted(name, self)
    }
}

impl Field for CloseReason {
    fn write(&self, name: &str, line: &mut Line<'_, '_>) -> fmt::Result {
        let (code, reason) = self.told();
        line.quoted(name, reason)?;
        line.plain("code", code)
    }
}
