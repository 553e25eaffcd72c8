//! Connect tokens: who may come in, and who is in already.

use super::Suite;
use crate::session::token::{Grant, TokenError, Verifier};
use crate::time::Time;
use std::collections::BTreeMap;

/// What looks at tokens, and which clients are in: when the token of each was made, and its session.
#[derive(Debug)]
pub(super) struct Tokens {
    verifier: Verifier,
    /// A moment, by our clock and in seconds since 1970.
    epoch: (Time, u64),
    clients: BTreeMap<u64, (u64, u32)>,
}

/// What a matchmaker has said of the client of a session, in its connect token.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Pass {
    /// The client.
    pub client_id: u64,
    /// The match, or whatever the application likes.
    pub match_id: [u8; 16],
    /// When the token was made, seconds since 1970.
    pub created: u64,
    /// The application's own.
    pub user: Vec<u8>,
}

impl Tokens {
    pub(super) const fn new(verifier: Verifier, now: Time, unix: u64) -> Self {
        Self { verifier, epoch: (now, unix), clients: BTreeMap::new() }
    }

    pub(super) fn open(&self, now: Time, suite: Suite, token: &[u8]) -> Result<Grant, TokenError> {
        self.verifier.open(self.unix(now), suite, token)
    }

    /// The client has shown that the token is its own: nobody comes in by it again.
    pub(super) fn use_up(&mut self, now: Time, grant: &Grant) -> Result<(), TokenError> {
        self.verifier.use_up(self.unix(now), grant)
    }

    /// Whether a client is in by a token newer than the one made at `created`.
    pub(super) fn is_outdated(&self, client_id: u64, created: u64) -> bool {
        self.clients.get(&client_id).is_some_and(|(other, _)| *other > created)
    }

    /// The client is in; returns the session that it has left thereby.
    pub(super) fn enter(&mut self, pass: &Pass, session: u32) -> Option<u32> {
        let (_, left) = self.clients.insert(pass.client_id, (pass.created, session))?;
        (left != session).then_some(left)
    }

    pub(super) fn leave(&mut self, pass: &Pass, session: u32) {
        if self.clients.get(&pass.client_id).is_some_and(|(_, known)| *known == session) {
            self.clients.remove(&pass.client_id);
        }
    }

    fn unix(&self, now: Time) -> u64 {
        let (then, unix) = self.epoch;
        unix.saturating_add(now.since(then).as_secs())
    }
}

impl From<Grant> for Pass {
    fn from(grant: Grant) -> Self {
        let Grant { client_id, match_id, created, user, .. } = grant;
        Self { client_id, match_id, created, user }
    }
}
