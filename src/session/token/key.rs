//! The key that seals the tokens of one server, and how a matchmaker makes one.

use super::sealed::{Grant, HEAD_LEN, Head, NONCE_LEN, PLAIN_LEN, SEALED_LEN, concat};
use super::{ADDRESSES_MAX, LIFE_MAX, MintError, PublicToken, TokenError};
use crate::session::Suite;
use crate::session::crypto::CRYPTO;
use std::net::SocketAddr;
use zeroize::Zeroizing;

/// The key of one server: who has it can make and read tokens for this server.
pub struct ServerKey {
    server_id: u64,
    key_id: u8,
    key: Zeroizing<[u8; 32]>,
}

/// What a token shall say.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "an order leaves nothing open")]
pub struct Order<'a> {
    /// The game and its own version of its protocol.
    pub protocol_id: u64,
    /// One of the suites with a pre-shared key, which take the feature `crypto`.
    pub suite: Suite,
    /// The client.
    pub client_id: u64,
    /// The match, or whatever the application likes.
    pub match_id: [u8; 16],
    /// Now, seconds since 1970.
    pub created: u64,
    /// When the token ends: after `created`, at most [`LIFE_MAX`] later. 45 s is plenty.
    pub expires: u64,
    /// Where the server is, the best address first; 1 to [`ADDRESSES_MAX`].
    pub addresses: &'a [SocketAddr],
    /// The public half of the server's own key, if the suite needs it.
    pub server_key: Option<[u8; 32]>,
    /// The application's own, at most [`USER_MAX`](super::USER_MAX) bytes. The client cannot read it.
    pub user: &'a [u8],
}

impl ServerKey {
    /// A key as a server gets it from the matchmaker, or as it makes it of random bytes for the matchmaker.
    #[must_use]
    pub fn new(server_id: u64, key_id: u8, key: [u8; 32]) -> Self {
        Self { server_id, key_id, key: Zeroizing::new(key) }
    }

    /// The key itself, to be handed to the server, and to nobody else.
    #[must_use]
    pub fn secret(&self) -> &[u8; 32] {
        &self.key
    }

    pub(super) const fn server_id(&self) -> u64 {
        self.server_id
    }

    pub(super) const fn key_id(&self) -> u8 {
        self.key_id
    }

    /// Makes a token. `psk` and `nonce` are random bytes for this token alone.
    ///
    /// # Errors
    ///
    /// When no server would take it.
    pub fn mint(
        &self,
        order: &Order<'_>,
        psk: [u8; 32],
        nonce: [u8; NONCE_LEN],
    ) -> Result<PublicToken, MintError> {
        order.check()?;
        let &Order { protocol_id, suite, client_id, match_id, created, expires, addresses, .. } = order;
        let psk = Zeroizing::new(psk);
        let user = order.user.to_vec();
        let grant = Grant { client_id, psk, created, expires, match_id, user, nonce };
        let head = Head { key_id: self.key_id, suite: suite.code(), server_id: self.server_id, expires };
        let sealed = self.seal(protocol_id, &head, &grant).ok_or(MintError { field: "user" })?;
        Ok(PublicToken {
            protocol_id,
            suite,
            created,
            expires,
            psk: grant.psk,
            server_key: order.server_key,
            addresses: addresses.to_vec(),
            sealed,
        })
    }

    fn seal(&self, protocol_id: u64, head: &Head, grant: &Grant) -> Option<[u8; SEALED_LEN]> {
        let mut plain = grant.encode()?;
        let head = head.encode();
        let associated = Head::associated(&head, protocol_id);
        let tag = CRYPTO?.tokens.seal(&self.key, &grant.nonce, &associated, &mut *plain)?;
        Some(concat(&[&head, &grant.nonce, &*plain, &tag]))
    }

    /// The grant in a sealed token, whose head is looked at by the caller.
    pub(super) fn open(
        &self,
        protocol_id: u64,
        head: &[u8; HEAD_LEN],
        rest: &[u8],
        expires: u64,
    ) -> Result<Result<Grant, TokenError>, TokenError> {
        let tokens = CRYPTO.ok_or(TokenError::NotBuiltIn)?.tokens;
        let (nonce, rest) = rest.split_first_chunk::<NONCE_LEN>().ok_or(TokenError::Forged)?;
        let (plain, tag) = rest.split_first_chunk::<PLAIN_LEN>().ok_or(TokenError::Forged)?;
        let tag: &[u8; 16] = tag.try_into().map_err(|_| TokenError::Forged)?;
        let mut plain = Zeroizing::new(*plain);
        let associated = Head::associated(head, protocol_id);
        if !tokens.open(&self.key, nonce, &associated, &mut *plain, tag) {
            return Err(TokenError::Forged);
        }
        Ok(Grant::decode(&plain, expires, *nonce))
    }
}

impl Order<'_> {
    fn check(&self) -> Result<(), MintError> {
        let wrong = |field| Err(MintError { field });
        if !self.suite.needs_psk() || !self.suite.is_built_in() {
            return wrong("suite");
        }
        if self.server_key.is_some() != self.suite.needs_server_key() {
            return wrong("server_key");
        }
        if self.expires <= self.created || self.expires - self.created > LIFE_MAX {
            return wrong("expires");
        }
        let addresses = self.addresses;
        if !(1..=ADDRESSES_MAX).contains(&addresses.len()) || addresses.iter().any(|at| at.port() == 0) {
            return wrong("addresses");
        }
        Ok(())
    }
}

impl std::fmt::Debug for ServerKey {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { server_id, key_id, .. } = self;
        f.debug_struct("ServerKey")
            .field("server_id", server_id)
            .field("key_id", key_id)
            .finish_non_exhaustive()
    }
}
