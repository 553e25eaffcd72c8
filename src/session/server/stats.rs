//! What a server counts.

use super::Server;
use crate::session::HandshakeError;
use crate::session::shape::Mismatch;
use crate::session::token::TokenError;
use crate::session::wire::PacketError;
use crate::time::Time;
use std::net::SocketAddr;
use std::time::Duration;

stats! {
    /// What a server has accepted, ended and dropped, by kind. Each [connection](crate::session::Connection::stats) has
    /// statistics of its own.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct ServerStats: AddAssign {
        /// Current sessions: asked for, not confirmed, up, and just over.
        pub sessions: usize => "whitewater_server_sessions",
        /// Datagrams received.
        pub datagrams: u64 => "whitewater_server_datagrams_received_total",
        /// Bytes of datagrams received.
        pub bytes_received: u64 => "whitewater_server_bytes_received_total",
        /// Datagrams sent: of sessions, and to strangers.
        pub datagrams_sent: u64 => "whitewater_server_datagrams_sent_total",
        /// Bytes of datagrams sent.
        pub bytes_sent: u64 => "whitewater_server_bytes_sent_total",
        /// Datagrams that their session dropped: not authentic, not new, from another address, or too late.
        pub dropped: u64 => "whitewater_server_dropped_total",
        /// Cookies sent.
        pub challenges: u64 => "whitewater_server_challenges_total",
        /// Attempts that came with a good ticket, which saved asking for a cookie.
        pub tickets: u64 => "whitewater_server_tickets_total",
        /// Sessions begun with the first datagram of a client with a connect token, which saved asking for a cookie.
        pub early: u64 => "whitewater_server_early_total",
        /// Clients that the application was asked about.
        pub requested: u64 => "whitewater_server_requested_total",
        /// Sessions begun, confirmed or not.
        pub accepted: u64 => "whitewater_server_accepted_total",
        /// ACCEPTs sent again, including rejections.
        pub accepts_repeated: u64 => "whitewater_server_accepts_repeated_total",
        /// Sessions whose client was heard from.
        pub confirmed: u64 => "whitewater_server_confirmed_total",
        /// Sessions that were never confirmed, and made room or timed out.
        pub unconfirmed: u64 => "whitewater_server_unconfirmed_total",
        /// RESETs sent.
        pub resets: u64 => "whitewater_server_resets_total",
        /// DENYs sent.
        pub denials: u64 => "whitewater_server_denials_total",
        /// Bytes that all sessions hold.
        pub memory: u64 => "whitewater_server_memory_bytes",
        /// What was dropped without a session, by reason.
        pub rejected: RejectedRequests => "whitewater_server_rejected_total",
    }
}

reasons! {
    /// What a server has dropped without a session, by reason.
    pub struct RejectedRequests: u64, each a Refusal {
        /// Not a packet of the protocol, or one that servers do not get.
        malformed: Malformed,
        /// From a proxy: no header that says who the client is.
        proxy: Proxy,
        /// Another version of the protocol.
        version: Version,
        /// A suite that the server does not support.
        suite: Suite,
        /// A client of another application.
        protocol: Protocol,
        /// Cookies requested too often.
        challenge_rate: ChallengeRate,
        /// A cookie that is too old, not ours, or for another client.
        cookie: Cookie,
        /// A ticket that is too old, used, not ours, or for another address. Answered with a cookie.
        ticket: Ticket,
        /// A CONNECT that came before its client's address was proven, and was not let in at once. Answered with a cookie.
        unproven: Unproven,
        /// A CONNECT of a known attempt: confirmed, over, changed, or answered a moment ago.
        repeated: Repeated,
        /// Too many sessions per second from one address or network.
        accept_rate: AcceptRate,
        /// Too many handshakes per second from all together, while other networks have waited longer.
        handshake_rate: HandshakeRate,
        /// Too many sessions from one address.
        per_address: PerAddress,
        /// Too many sessions from one network, while more than half of the places are taken.
        per_network: PerNetwork,
        /// No room for another session.
        full: Full,
        /// A connect token that is not valid, or no longer valid.
        token: Token,
        /// A connect token older than the one that its client is connected with.
        outdated: Outdated,
        /// The first message of a handshake is not authentic.
        handshake: Handshake,
        /// The client does not have the same channels.
        shape: Shape,
        /// The application rejected the client.
        declined: Declined,
        /// The application did not answer within 10 s, or before others needed the room.
        unanswered: Unanswered,
        /// DATA for an unknown session.
        unknown: Unknown,
        /// A KEM ciphertext for a session that is unknown or has its keys, or one that is not authentic.
        ciphertext: Ciphertext,
        /// What was to be sent to a client whose proxy is no longer known: too many others have come since.
        way: Way,
        /// Replies without room: drain `poll_transmit` after each call.
        replies: Replies,
    }
}

/// When each reason may be logged again: a flood must not fill a disk.
#[derive(Debug, Default)]
pub(super) struct Quiet([Time; Refusal::Replies as usize + 1]);

/// A refusal, with details for the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refused {
    pub(super) refusal: Refusal,
    pub(super) why: Option<Why>,
}

/// The details of a reason, without secrets.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(super) enum Why {
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    #[error(transparent)]
    Said(#[from] PacketError),
    #[error(transparent)]
    Shape(#[from] Mismatch),
    #[error("`protocol_id` is {found:#x} there and {ours:#x} here")]
    Protocol { found: u64, ours: u64 },
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, why: None }
    }
}

impl Refusal {
    pub(super) fn because(self, why: impl Into<Why>) -> Refused {
        Refused { refusal: self, why: Some(why.into()) }
    }
}

impl Server {
    pub(super) fn count(&mut self, now: Time, from: SocketAddr, refused: impl Into<Refused>) {
        let Refused { refusal, why } = refused.into();
        let counter = self.stats.rejected.counter(refusal);
        *counter += 1;
        if log::log_enabled!(log::Level::Debug)
            && let Some(quiet_until) = self.quiet.0.get_mut(refusal as usize).filter(|until| **until <= now)
        {
            *quiet_until = now + LINE_EACH;
            match why {
                Some(why) => {
                    log::debug!("dropped a datagram from {from}: {refusal:?}, {counter} so far: {why}")
                }
                None => log::debug!("dropped a datagram from {from}: {refusal:?}, {counter} so far"),
            }
        }
    }
}

const LINE_EACH: Duration = Duration::from_secs(2);
