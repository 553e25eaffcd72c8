//! Which tokens were used: none counts twice, however the clock goes and however many come.

use super::sealed::NONCE_LEN;
use super::{SKEW, TokenError};
use std::collections::BTreeSet;

/// Two generations of used tokens: one that is filled, and the one before, which is forgotten as a whole when the last of its
/// tokens is over.
#[derive(Clone, Debug, Default)]
pub(super) struct Used {
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

impl Used {
    /// Whether a token may be used.
    pub(super) fn check(&self, nonce: &[u8; NONCE_LEN], expires: u64) -> Result<(), TokenError> {
        let known = |generation: &Generation| generation.nonces.contains(nonce);
        if expires <= self.forgotten || known(&self.young) || known(&self.old) {
            return Err(TokenError::Used);
        }
        Ok(())
    }

    /// Remembers that a token was used.
    pub(super) fn insert(
        &mut self,
        now: u64,
        nonce: [u8; NONCE_LEN],
        expires: u64,
    ) -> Result<(), TokenError> {
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

/// Tokens of a generation: 200 KiB of nonces.
const GENERATION_MAX: usize = 8192;
