//! How a server verifies tokens and remembers which were used. No token counts twice, whatever the clock does and
//! however many arrive.

use super::sealed::{Head, NONCE_LEN};
use super::{Grant, LIFE_MAX, SEALED_LEN, SKEW, ServerKey, TokenError};
use crate::session::Suite;
use crate::session::cookie::ResetKey;
use crate::session::crypto::CRYPTO;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Verifies the tokens of clients, and remembers which were used.
///
/// Clones share their keys and memory: a token used at one server of a process cannot be used at another, and a key
/// that is [rotated](Self::rotate) in applies to all.
#[derive(Clone, Debug)]
pub struct Verifier(Arc<Mutex<Shared>>);

#[derive(Debug)]
struct Shared {
    key: Arc<ServerKey>,
    previous: Option<Arc<ServerKey>>,
    /// Since when used tokens are remembered, in seconds since 1970, and for how many seconds.
    since: (u64, u64),
    used: Used,
}

/// Two generations of used tokens: one that is being filled, and the one before. That is cleared as a whole when its
/// last token has expired.
#[derive(Clone, Debug, Default)]
struct Used {
    young: Generation,
    old: Generation,
    /// Tokens that expire no later than this may have been used and cleared.
    forgotten: u64,
}

#[derive(Clone, Debug, Default)]
struct Generation {
    nonces: BTreeSet<[u8; NONCE_LEN]>,
    /// When the last of them expires, in seconds since 1970.
    expires: u64,
}

impl Verifier {
    /// A verifier for the server that has `key`, or for several servers of one process.
    #[must_use]
    pub fn new(key: ServerKey) -> Self {
        let shared = Shared { key: Arc::new(key), previous: None, since: (0, 0), used: Used::default() };
        Self(Arc::new(Mutex::new(shared)))
    }

    /// Says that used tokens have been remembered for `age` seconds, and that it is `now`, in seconds since 1970. Tokens
    /// made earlier are refused, because it is unknown which of those were used.
    ///
    /// A server calls this whenever it is [told the time](crate::machine::Machine::set_unix_time), so that a clock that
    /// was wrong at first does no harm later. If servers share a verifier, the oldest of them counts.
    pub fn set_age(&self, now: u64, age: u64) {
        let mut shared = self.lock();
        let (since, oldest) = shared.since;
        if age >= oldest || now < since {
            shared.since = (now.saturating_sub(age), age);
        }
    }

    /// Expects tokens sealed with `key` from now on. Tokens of the previous key stay valid until they expire.
    pub fn rotate(&self, key: ServerKey) {
        let mut shared = self.lock();
        shared.previous = Some(std::mem::replace(&mut shared.key, Arc::new(key)));
    }

    /// Returns what a token of `protocol_id` grants to a client that asks for `suite`. The token does not count as used
    /// yet: call [`use_up`](Self::use_up) once the client has shown that it knows the pre-shared key. Otherwise anybody
    /// who sees a token could use it up.
    ///
    /// `now`: in seconds since 1970.
    ///
    /// # Errors
    ///
    /// The first [`TokenError`] that applies, in their order. Decryption comes after all cheap checks.
    pub fn open(&self, now: u64, protocol_id: u64, suite: Suite, sealed: &[u8]) -> Result<Grant, TokenError> {
        let have = sealed.len();
        let sealed: &[u8; SEALED_LEN] = sealed.try_into().map_err(|_| TokenError::Length { have })?;
        let (bytes, rest) = sealed.split_first_chunk().ok_or(TokenError::Length { have })?;
        let head = Head::decode(bytes)?;
        let (key, since) = {
            let shared = self.lock();
            (shared.key_of(&head)?, shared.since.0)
        };
        let expires = head.expires;
        if now >= expires.saturating_add(SKEW) {
            return Err(TokenError::Expired { expires });
        }
        if expires > now.saturating_add(LIFE_MAX + SKEW) {
            return Err(TokenError::TooLong { expires });
        }
        let content = key.open(protocol_id, bytes, rest, expires)?;
        if head.suite != suite.code() {
            return Err(TokenError::Suite { found: head.suite });
        }
        let grant = content?;
        if grant.created.saturating_add(SKEW) < since {
            return Err(TokenError::BeforeStart { created: grant.created });
        }
        self.lock().used.check(&grant.nonce, expires)?;
        Ok(grant)
    }

    /// Records that a token was used.
    ///
    /// # Errors
    ///
    /// It was used before, or no more can be recorded. The client must not be admitted then.
    pub fn use_up(&self, now: u64, grant: &Grant) -> Result<(), TokenError> {
        self.lock().used.insert(now, grant.nonce, grant.expires)
    }

    /// The key of a server's reset tokens, if it has no other. It changes when a key is rotated in.
    pub(in crate::session) fn reset_key(&self) -> Option<ResetKey> {
        let key = Arc::clone(&self.lock().key);
        CRYPTO?.derive(key.secret(), RESET_LABEL).map(ResetKey::new)
    }

    /// A token counts as unused again: its client did not join.
    pub(in crate::session) fn give_back(&self, nonce: &[u8; NONCE_LEN]) {
        let Used { young, old, .. } = &mut self.lock().used;
        let _ = young.nonces.remove(nonce) || old.nonces.remove(nonce);
    }

    /// Held for a look-up, once or twice per plausible CONNECT.
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn key_of(&self, head: &Head) -> Result<Arc<ServerKey>, TokenError> {
        let mut known = [Some(&self.key), self.previous.as_ref()].into_iter().flatten();
        if !known.clone().any(|key| key.server_id == head.server_id) {
            return Err(TokenError::Server { found: head.server_id });
        }
        let of = |key: &&Arc<ServerKey>| (key.server_id, key.key_id) == (head.server_id, head.key_id);
        known.find(of).cloned().ok_or(TokenError::Key { found: head.key_id })
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

/// Tells this key from the others that come from the key of a server.
const RESET_LABEL: &[u8] = b"ww/1 reset";
/// Tokens per generation: 200 KiB of nonces.
const GENERATION_MAX: usize = 8192;
