//! What a session can tell of itself, event by event.

use super::connection::ConnectionState;
use super::event::CloseReason;
use crate::arq::KcpEvent;
use crate::events::{Field, Line, events};
use std::fmt;
use std::net::SocketAddr;

events! {
    /// Something that a session did, from [`Connection::poll_log`](super::Connection::poll_log). Displayed, it is the fields of its line:
    /// docs/EVENTS.md has them with their meaning.
    SessionEvent {
        /// The log begins here.
        "start" Start {
            end: &'static str = "Which end of the session this is: `client` or `server`.",
            lanes: u16 = "How many lanes there are.",
        },
        /// Something that a lane did.
        "" Lane { lane: u16 = "Which.", event: KcpEvent = "What.", },
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
            segments: u32 = "Segments of lanes, waiting or not acknowledged.",
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
        let reason = match self {
            Self::Local(_) => "local",
            Self::Peer(_) => "peer",
            Self::ConnectTimeout => "connect_timeout",
            Self::Denied(_) => "denied",
            Self::Rejected(_) => "rejected",
            Self::Timeout => "timeout",
            Self::ServerForgot => "server_forgot",
            Self::Protocol => "protocol",
            Self::DeadLink => "dead_link",
            Self::SlowPeer => "slow_peer",
            Self::StreamCorrupt => "stream_corrupt",
            Self::Replaced => "replaced",
            Self::Exhausted => "exhausted",
        };
        line.quoted(name, reason)?;
        line.plain("code", self.code())
    }
}
