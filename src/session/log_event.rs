//! What a session can tell of itself, event by event.

use super::connection::ConnectionState;
use super::event::CloseReason;
use crate::arq::KcpEvent;
use crate::events::{Lost, VERSION};
use std::fmt;
use std::net::SocketAddr;

/// Something that a session did, from [`Connection::poll_log`](super::Connection::poll_log). Displayed, it is the fields of its line:
/// docs/EVENTS.md has them with their meaning.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SessionEvent {
    /// The log begins here.
    #[non_exhaustive]
    Start {
        /// Whether this end is the client.
        is_client: bool,
        /// How many lanes there are.
        lanes: u16,
    },
    /// Something that a lane did.
    #[non_exhaustive]
    Lane {
        /// Which.
        lane: u16,
        /// What.
        event: KcpEvent,
    },
    /// Datagrams left.
    #[non_exhaustive]
    Out {
        /// How many.
        n: u64,
        /// Their length in all.
        bytes: u64,
        /// The number of the last packet.
        pn: u64,
        /// Of them, those with a ping: because nothing else was to be said, or nothing that is answered.
        pings: u64,
    },
    /// A datagram came that is authentic and new.
    #[non_exhaustive]
    In {
        /// The number of the packet.
        pn: u64,
        /// Its length.
        bytes: u64,
    },
    /// A datagram, or something in one, was refused.
    #[non_exhaustive]
    Reject {
        /// The field of the statistics that counts it.
        reason: &'static str,
        /// How many.
        n: u64,
    },
    /// Of packets with unreliable data it is decided whether they got lost.
    #[non_exhaustive]
    Packets {
        /// How many.
        n: u64,
        /// Of them, lost.
        lost: u64,
    },
    /// Repairs left, or packets were rebuilt of them.
    #[non_exhaustive]
    Repairs {
        /// Repairs that left.
        sent: u64,
        /// Packets of the peer that were rebuilt.
        rebuilt: u64,
        /// Packets that the peer tells it has rebuilt.
        told: u64,
    },
    /// The round trip of the session is another one. Both in µs.
    #[non_exhaustive]
    Rtt {
        /// Smoothed.
        srtt: u64,
        /// Its mean deviation.
        rttvar: u64,
    },
    /// What waits in the session is more or less than before.
    #[non_exhaustive]
    Queue {
        /// Segments of lanes, waiting or not acknowledged.
        segments: u32,
        /// Unreliable datagrams that wait to leave.
        datagrams: u32,
        /// Messages and slices of reliable channels that are not acknowledged.
        messages: u32,
    },
    /// The session has got further.
    #[non_exhaustive]
    State {
        /// How far.
        state: ConnectionState,
        /// Why it ends, if it does.
        reason: Option<CloseReason>,
    },
    /// The peer is at another address.
    #[non_exhaustive]
    Moved {
        /// Where it is.
        peer: SocketAddr,
    },
    /// Our keys were updated.
    #[non_exhaustive]
    Keys {
        /// How often so far.
        updates: u64,
    },
    /// Datagrams may be longer from now on, or have to be shorter.
    #[non_exhaustive]
    Mtu {
        /// The longest, bytes.
        mtu: u16,
    },
    /// The log was full, and older events were forgotten.
    #[non_exhaustive]
    Lost {
        /// How many.
        n: u64,
    },
}

impl CloseReason {
    const fn name(self) -> &'static str {
        match self {
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
        }
    }
}

impl From<Lost> for SessionEvent {
    fn from(Lost(n): Lost) -> Self {
        Self::Lost { n }
    }
}

impl fmt::Display for SessionEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Start { is_client, lanes } => {
                let end = if is_client { "client" } else { "server" };
                write!(f, r#""e":"start","version":{VERSION},"end":"{end}","lanes":{lanes}"#)
            }
            Self::Lane { lane, event } => write!(f, r#""lane":{lane},{event}"#),
            Self::Out { n, bytes, pn, pings } => {
                write!(f, r#""e":"out","n":{n},"bytes":{bytes},"pn":{pn},"pings":{pings}"#)
            }
            Self::In { pn, bytes } => write!(f, r#""e":"in","pn":{pn},"bytes":{bytes}"#),
            Self::Reject { reason, n } => write!(f, r#""e":"reject","reason":"{reason}","n":{n}"#),
            Self::Packets { n, lost } => write!(f, r#""e":"packets","n":{n},"lost":{lost}"#),
            Self::Repairs { sent, rebuilt, told } => {
                write!(f, r#""e":"repairs","sent":{sent},"rebuilt":{rebuilt},"told":{told}"#)
            }
            Self::Rtt { srtt, rttvar } => write!(f, r#""e":"rtt","srtt":{srtt},"rttvar":{rttvar}"#),
            Self::Queue { segments, datagrams, messages } => {
                write!(
                    f,
                    r#""e":"queue","segments":{segments},"datagrams":{datagrams},"messages":{messages}"#
                )
            }
            Self::State { state, reason } => {
                write!(f, r#""e":"state","state":"{state}""#)?;
                let Some(reason) = reason else { return Ok(()) };
                write!(f, r#","reason":"{}","code":{}"#, reason.name(), reason.code())
            }
            Self::Moved { peer } => write!(f, r#""e":"moved","peer":"{peer}""#),
            Self::Keys { updates } => write!(f, r#""e":"keys","updates":{updates}"#),
            Self::Mtu { mtu } => write!(f, r#""e":"mtu","mtu":{mtu}"#),
            Self::Lost { n } => write!(f, r#""e":"lost","n":{n}"#),
        }
    }
}
