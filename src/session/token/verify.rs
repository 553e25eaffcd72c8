//! How a server looks at a token, and which ones were used: none counts twice, however the clock goes and however many come.

use super::sealed::{Head, NONCE_LEN};
use super::{Grant, LIFE_MAX, SEALED_LEN, SKEW, ServerKey, TokenError};
use crate::session::Suite;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Looks at the tokens that clients bring, and remembers which were used.
#[derive(Debug)]
pub struct Verifier {
    protocol_id: u64,
    key: Arc<ServerKey>,
    previous: Option<Arc<ServerKey>>,
    started: u64,
    used: Arc<Mutex<Used>>,
}

/// Two generations of used tokens: one that is filled, and the one before, which is forgotten as a whole when the last of its
/// tokens is over.
#[derive(Clone, Debug, Default)]
struct Used {
    young: Generation,
    old: Generation,
    /// Tokens that end no later than this may have been used and forgotten.
    forgotten: u64,
}

#[derive(Clone, Debug, Default)]
struct Generation {
    nonces: BTreeSet<[u8; NONCE_LEN]>,
    /// When the last of them ends, seconds since 1970.
    expires: u64,
}

impl Verifier {
    /// For a server that was started at `started`, seconds since 1970: what was used before is not known, so no token from before
    /// holds.
    #[must_use]
    pub fn new(protocol_id: u64, key: ServerKey, started: u64) -> Self {
        Self { protocol_id, key: Arc::new(key), previous: None, started, used: Arc::default() }
    }

    /// Another one with the same keys and the same memory, for another server of this process: what was used at either cannot be used again.
    /// A key that one of them [rotates](Self::rotate) in afterwards is not the others'.
    #[must_use]
    pub fn share(&self) -> Self {
        let (key, previous, used) = (Arc::clone(&self.key), self.previous.clone(), Arc::clone(&self.used));
        Self { key, previous, used, ..*self }
    }

    /// From now on tokens are sealed with `key`; those of the last key hold for as long as they hold.
    pub fn rotate(&mut self, key: ServerKey) {
        self.previous = Some(std::mem::replace(&mut self.key, Arc::new(key)));
    }

    /// What a token grants, now, for a client that asks for `suite`. It still counts as not used: only when the client has shown
    /// that it knows the pre-shared key, [`use_up`](Self::use_up) it. Otherwise whoever saw it could use it up.
    ///
    /// `now`: seconds since 1970.
    ///
    /// # Errors
    ///
    /// The first of [`TokenError`], in its order. The cipher comes after all that costs nothing.
    pub fn open(&self, now: u64, suite: Suite, sealed: &[u8]) -> Result<Grant, TokenError> {
        let have = sealed.len();
        let sealed: &[u8; SEALED_LEN] = sealed.try_into().map_err(|_| TokenError::Length { have })?;
        let (bytes, rest) = sealed.split_first_chunk().ok_or(TokenError::Length { have })?;
        let head = Head::decode(bytes)?;
        let key = self.key_of(&head)?;
        let expires = head.expires;
        if now >= expires.saturating_add(SKEW) {
            return Err(TokenError::Expired { expires });
        }
        if expires > now.saturating_add(LIFE_MAX + SKEW) {
            return Err(TokenError::TooLong { expires });
        }
        let content = key.open(self.protocol_id, bytes, rest, expires)?;
        if head.suite != suite.code() {
            return Err(TokenError::Suite { found: head.suite });
        }
        let grant = content?;
        if grant.created.saturating_add(SKEW) < self.started {
            return Err(TokenError::BeforeStart { created: grant.created });
        }
        lock(&self.used).check(&grant.nonce, expires)?;
        Ok(grant)
    }

    /// Remembers that a token was used.
    ///
    /// # Errors
    ///
    /// When it was used before, or no more can be remembered. Then nobody may come in by it.
    pub fn use_up(&mut self, now: u64, grant: &Grant) -> Result<(), TokenError> {
        lock(&self.used).insert(now, grant.nonce, grant.expires)
    }

    fn key_of(&self, head: &Head) -> Result<&ServerKey, TokenError> {
        let mut known = [Some(&*self.key), self.previous.as_deref()].into_iter().flatten();
        if !known.clone().any(|key| key.server_id == head.server_id) {
            return Err(TokenError::Server { found: head.server_id });
        }
        let of = |key: &&ServerKey| (key.server_id, key.key_id) == (head.server_id, head.key_id);
        known.find(of).ok_or(TokenError::Key { found: head.key_id })
    }
}

impl Used {
    fn check(&self, nonce: &[u8; NONCE_LEN], expires: u64) -> Result<(), TokenError> {
        let known = |generation: &Generation| generation.nonces.contains(nonce);
        if expires <= self.forgotten || known(&self.young) || known(&self.old) {
            return Err(TokenError::Used);
        }
        Ok(())
    }

    fn insert(&mut self, now: u64, nonce: [u8; NONCE_LEN], expires: u64) -> Result<(), TokenError> {
        self.check(&nonce, expires)?;
        if self.young.nonces.len() >= GENERATION_MAX {
            if !self.old.nonces.is_empty() && now < self.old.expires.saturating_add(SKEW) {
                return Err(TokenError::Full);
            }
            self.forgotten = self.forgotten.max(self.old.expires);
            self.old = std::mem::take(&mut self.young);
        }
        self.young.nonces.insert(nonce);
        self.young.expires = self.young.expires.max(expires);
        Ok(())
    }
}

/// Held for a look-up, once a CONNECT that is worth one.
fn lock(used: &Mutex<Used>) -> MutexGuard<'_, Used> {
    used.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tokens of a generation: 200 KiB of nonces.
const GENERATION_MAX: usize = 8192;
