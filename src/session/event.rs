//! What a session tells its owner, and can tell of itself event by event.

use super::connection::ConnectionState;
use super::wire::DenyReason;
use crate::events::{Field, Line, events};
use crate::kcp;
use std::fmt;
use std::net::SocketAddr;

/// Something that has happened. None carries data: read it when you are told that there is some.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// At a server that [asks](super::ServerConfig::ask): a client wants to come in. [`Server::request`](super::Server::request) says
    /// who; [`admit`](super::Server::admit) or [`reject`](super::Server::reject) it within 10 s. [`Connected`](Self::Connected)
    /// or [`Closed`](Self::Closed) follows, unless it is rejected.
    Requested,
    /// The session is up.
    Connected,
    /// Something can be read: read until nothing is left, then this comes again.
    Readable,
    /// A channel that was full has room again, or what one was [asked](super::Connection::is_delivered) about has arrived. Room for a message
    /// that was refused is kept for 20 ms.
    Writable,
    /// The server sends us to another one: [`take_redirect`](super::Client::take_redirect) has the token for it.
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

/// Why a session has ended. Displayed, it says so in words.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// We closed it, with this code.
    #[error("it was closed here, with code {0}")]
    Local(u16),
    /// The peer closed it, with this code: its application's, or one of [`code`].
    #[error("the peer closed it, with code {0}")]
    Peer(u16),
    /// The other end said nothing any more while connecting.
    #[error("nobody answers")]
    ConnectTimeout,
    /// The server said that it does not take us. Unless it is for the [shape](DenyReason::Shape), it need not have been the server who said so.
    #[error(transparent)]
    Denied(DenyReason),
    /// The server does not take us: its application's code, or one of [`code`].
    #[error("the server rejects us, with code {0}")]
    Rejected(u16),
    /// Nothing was received for too long.
    #[error("the peer has fallen silent")]
    Timeout,
    /// The server does not know the session any more.
    #[error("the server does not know the session any more")]
    ServerForgot,
    /// The peer broke the protocol.
    #[error("the peer broke the protocol")]
    Protocol,
    /// Nothing that KCP sent of a channel was acknowledged for too long.
    #[error("the peer acknowledges nothing any more")]
    DeadLink,
    /// The peer read nothing for too long.
    #[error("the peer reads nothing any more")]
    SlowPeer,
    /// The fragments of a message did not go on from each other.
    #[error("the fragments of a message do not belong together")]
    StreamCorrupt,
    /// The same client has connected again.
    #[error("the same client has connected again")]
    Replaced,
    /// All packet numbers are used up.
    #[error("all packet numbers are used up")]
    Exhausted,
}

impl CloseReason {
    /// What the peer is told.
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
    /// Both ends do not have the same channels.
    pub const SHAPE: u16 = 0xff07;
}

/// What was sent and is not known to have arrived when a session ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Undelivered {
    /// Segments of KCP: sent and not acknowledged, or waiting.
    pub segments: usize,
    /// Messages in packets, and long messages that are not all segments yet.
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

events! {
    /// Something that a session did, from [`Connection::poll_log`](super::Connection::poll_log). Displayed, it is the fields of its line:
    /// docs/EVENTS.md has them with their meaning.
    SessionEvent {
        /// The log begins here.
        "start" Start {
            end: &'static str = "Which end of the session this is: `client` or `server`.",
            channels: u16 = "How many channels there are.",
        },
        /// Something that KCP did for a channel.
        "" Kcp { channel: u16 = "Which channel.", event: kcp::Event = "What KCP did.", },
        /// Datagrams left.
        "out" Out {
            n: u64 = "How many.",
            bytes: u64 = "Their length in all.",
            pn: u64 = "The number of the last packet.",
            pings: u64 = "Of them, those with a ping: because nothing else was to be said, or nothing that is answered.",
        },
        /// A datagram came that is authentic and new.
        "in" In { pn: u64 = "The number of the packet.", bytes: u64 = "Its length.", },
        /// A datagram, or something in one, was refused.
        "reject" Reject { reason: &'static str = "The field of the statistics that counts it.", n: u64 = "How many.", },
        /// Of packets with unreliable data it is decided whether they got lost.
        "packets" Packets { n: u64 = "How many.", lost: u64 = "Of them, lost.", },
        /// Repairs left, or packets were rebuilt of them.
        "repairs" Repairs {
            sent: u64 = "Repairs that left.",
            rebuilt: u64 = "Packets of the peer that were rebuilt.",
            told: u64 = "Packets that the peer tells it has rebuilt.",
        },
        /// The round trip of the session is another one. Both in µs.
        "rtt" Rtt { srtt: u64 = "Smoothed.", rttvar: u64 = "Its mean deviation.", },
        /// What waits in the session is more or less than before.
        "queue" Queue {
            segments: u32 = "Segments of KCP, waiting or not acknowledged.",
            datagrams: u32 = "Unreliable datagrams that wait to leave.",
            messages: u32 = "Messages and slices of reliable channels that are not acknowledged.",
        },
        /// The session has got further.
        "state" State {
            state: ConnectionState = "How far.",
            reason: Option<CloseReason> = "Why it ends, if it does.",
        },
        /// The peer is at another address.
        "moved" Moved { peer: SocketAddr = "Where it is.", },
        /// Our keys were updated.
        "keys" Keys { updates: u64 = "How often so far.", },
        /// Datagrams may be longer from now on, or have to be shorter.
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
