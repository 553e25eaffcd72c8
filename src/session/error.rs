//! What can go wrong, and what to do then.

use crate::{kcp, message};
use thiserror::Error;

errors! {
    /// Why a client is not sent to another server. Nothing has changed.
    RedirectError {
        /// It does not fit into one datagram of the session: give it fewer addresses.
        "a token of {len} bytes, where {max} is the most" TooLong { len: usize, max: usize },
        /// It is not what `PublicToken::encode` gives, or it is empty.
        "these bytes are no connect token" NoToken,
        /// There is no such session, or it is closing.
        "the session is closed" Closed,
    }

    /// Why a client that asks to come in is neither accepted nor rejected. Nothing has changed.
    DecisionError {
        /// There is no such request: it was answered, or not for too long, or others needed its room.
        "nobody asks to come in by this number any more" NoRequest,
        "{len} bytes for the client, where {max} is the most" TooLong { len: usize, max: usize },
    }

    /// Why a session is not closed with a text. Nothing has changed.
    CloseTextError {
        "a text of {len} bytes, where {max} is the most" TooLong { len: usize, max: usize },
        "the text has control characters" Control,
    }
}

/// Why a session did not take what was to be sent.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum SendError {
    /// As much waits as the config of the lane allows: send again later. Or the message is too long.
    #[error(transparent)]
    Lane(#[from] kcp::SendError),
    /// The channel refuses the message or the block.
    #[error(transparent)]
    Channel(#[from] message::ChannelSendError),
    /// There is no such lane.
    #[error("there is no lane {lane}, only {count}")]
    NoLane { lane: usize, count: usize },
    /// As many bytes of the lane and its segments are not acknowledged as `send_memory` leaves to it now, while others hold or asked before for
    /// what they do: send again later.
    #[error("{held} bytes of the lane are held for the peer, of at most {max}")]
    Full { held: usize, max: usize },
    /// The datagram does not fit into one of the session: send it on a lane, or as a block of a channel.
    #[error("a datagram of {len} bytes, where {max} is the most")]
    TooLong { len: usize, max: usize },
    /// As many bytes of datagrams wait as the config allows. They leave whenever the session is polled.
    #[error("{waiting} datagrams wait, and there is no room for more")]
    QueueFull { waiting: usize },
    /// All sessions of the server hold as much as its `memory` allows, and this one its share: send again later.
    #[error("the server has no memory left")]
    NoMemory,
    /// The session is closing or closed.
    #[error("the session is closed")]
    Closed,
    /// The client is still connecting: send after [`Event::Connected`](super::Event::Connected).
    #[error("the session is not connected yet")]
    NotConnected,
}

impl SendError {
    /// Whether there may be room for the same later: back-pressure, not a failure.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        match self {
            Self::Lane(error) => matches!(error, kcp::SendError::Full { .. }),
            Self::Channel(error) => {
                matches!(
                    error,
                    message::ChannelSendError::Full { .. } | message::ChannelSendError::BlockUnderWay
                )
            }
            Self::Full { .. } | Self::QueueFull { .. } | Self::NoMemory => true,
            Self::NoLane { .. } | Self::TooLong { .. } | Self::Closed | Self::NotConnected => false,
        }
    }
}
