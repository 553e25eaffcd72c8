//! What a connection counts and measures.

use crate::pace::Mode;
use std::time::Duration;

/// What one end of a session has counted since it was made, and how it stands.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Round trip, smoothed; zero before the first.
    pub rtt: Duration,
    /// The mode of `pacing`, if there is.
    pub mode: Option<Mode>,
    /// Datagrams sent.
    pub sent: u64,
    /// Bytes of them.
    pub bytes_sent: u64,
    /// Datagrams received that were authentic and new.
    pub received: u64,
    /// Bytes of them.
    pub bytes_received: u64,
    /// Of those sent, pings because nothing else was to be said.
    pub pings: u64,
    /// Times that the peer has moved to another address.
    pub moves: u64,
    /// Times that our keys were updated.
    pub key_updates: u64,
    /// Unreliable datagrams that found no room, because too little was read.
    pub datagrams_refused: u64,
    /// Payloads of channels that were refused: no room, or not what a peer of the same channels sends.
    pub messages_refused: u64,
    /// Tokens by which the server has sent us to another one, each counted once.
    pub redirects: u64,
    /// REDIRECTs that had no token, or one that was out of date.
    pub redirects_refused: u64,
    /// Datagrams dropped.
    pub rejected: RejectedDatagrams,
}

/// Datagrams that changed nothing, by what was wrong.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct RejectedDatagrams {
    /// No packet of the protocol, or one that has no place here.
    pub malformed: u64,
    /// Another session, attempt, suite or address.
    pub stranger: u64,
    /// Not authentic.
    pub forged: u64,
    /// Received before.
    pub duplicate: u64,
    /// Older than what can be told apart.
    pub stale: u64,
    /// After the end.
    pub late: u64,
}

impl RejectedDatagrams {
    /// All of them together.
    #[must_use]
    pub const fn total(&self) -> u64 {
        let Self { malformed, stranger, forged, duplicate, stale, late } = *self;
        malformed + stranger + forged + duplicate + stale + late
    }
}
