//! Why a datagram makes no session: counted each time, and in the log once in a while.

use super::Server;
use super::stats::RejectedRequests;
use crate::message::Message;
use crate::time::Time;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// What is wrong with a datagram, or with who sent it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(super) enum Refusal {
    Malformed,
    Version,
    Protocol,
    Suite,
    ChallengeRate,
    Cookie,
    Repeated,
    Rate,
    PerAddress,
    Full,
    Token,
    Outdated,
    Handshake,
    Declined,
    Unanswered,
    Unknown,
    Replies,
}

/// When each kind may be logged again: a flood must not fill a disk.
#[derive(Debug, Default)]
pub(super) struct Quiet([Time; KINDS]);

impl Quiet {
    /// Whether a line about it may be written now.
    fn take(&mut self, now: Time, refusal: Refusal) -> bool {
        let Some(from) = self.0.get_mut(usize::from(refusal as u8)).filter(|from| **from <= now) else {
            return false;
        };
        *from = now + LINE_EACH;
        true
    }
}

impl<M: Message> Server<M> {
    pub(super) fn count(&mut self, now: Time, from: SocketAddr, refusal: Refusal) {
        let counter = refusal.counter(&mut self.stats.rejected);
        *counter += 1;
        if log::log_enabled!(log::Level::Debug) && self.quiet.take(now, refusal) {
            log::debug!("dropped a datagram from {from}: {refusal}, {counter} so far");
        }
    }
}

impl Refusal {
    const fn counter(self, rejected: &mut RejectedRequests) -> &mut u64 {
        match self {
            Self::Malformed => &mut rejected.malformed,
            Self::Version => &mut rejected.version,
            Self::Protocol => &mut rejected.protocol,
            Self::Suite => &mut rejected.suite,
            Self::ChallengeRate => &mut rejected.challenge_rate,
            Self::Cookie => &mut rejected.cookie,
            Self::Repeated => &mut rejected.repeated,
            Self::Rate => &mut rejected.accept_rate,
            Self::PerAddress => &mut rejected.per_address,
            Self::Full => &mut rejected.full,
            Self::Token => &mut rejected.token,
            Self::Outdated => &mut rejected.outdated,
            Self::Handshake => &mut rejected.handshake,
            Self::Declined => &mut rejected.declined,
            Self::Unanswered => &mut rejected.unanswered,
            Self::Unknown => &mut rejected.unknown,
            Self::Replies => &mut rejected.replies,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "it is no packet of a client",
            Self::Version => "another version",
            Self::Protocol => "another protocol id",
            Self::Suite => "a suite that is not allowed here",
            Self::ChallengeRate => "too many ask for cookies",
            Self::Cookie => "the cookie is too old or not ours",
            Self::Repeated => "its attempt is known",
            Self::Rate => "its address asks for sessions too often",
            Self::PerAddress => "its address has too many sessions",
            Self::Full => "there is no room for another session",
            Self::Token => "its connect token is not good, not any more, or not wanted",
            Self::Outdated => "its client is in by a newer token",
            Self::Handshake => "its handshake is not authentic",
            Self::Declined => "the application said no",
            Self::Unanswered => "the application has said nothing",
            Self::Unknown => "there is no such session",
            Self::Replies => "there is no room for the answer",
        })
    }
}

const KINDS: usize = Refusal::Replies as usize + 1;
/// Least time between two lines about one kind.
const LINE_EACH: Duration = Duration::from_secs(2);
