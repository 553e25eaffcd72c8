//! The part of a token that only the server can read, the key that seals it, and how a matchmaker makes it.

use super::{ADDRESSES_MAX, LATEST, LIFE_MAX, PublicToken, TokenError};
use crate::session::concat;
use crate::session::crypto::CRYPTO;
use crate::session::wire::{ROUTING_TOKEN_MAX, Reader};
use crate::session::{Secret, Suite};
use std::net::SocketAddr;
use zeroize::Zeroizing;

/// The key of one server. Whoever has it can make and read tokens for this server.
pub struct ServerKey {
    pub(super) server_id: u64,
    pub(super) key_id: u8,
    key: Secret,
}

/// What a token should say.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "an order leaves nothing open")]
pub struct Order<'a> {
    /// The game and its version of its protocol.
    pub protocol_id: u64,
    /// A suite with a pre-shared key; these need the feature `crypto`.
    pub suite: Suite,
    /// The client.
    pub client_id: u64,
    /// The match, or anything else that the application chooses.
    pub match_id: [u8; 16],
    /// The current time, in seconds since 1970.
    pub created: u64,
    /// When the token expires: must be within [`LIFE_MAX`] s after `created`. 45 s is plenty.
    pub expires: u64,
    /// The addresses of the server, the best first: 1 to [`ADDRESSES_MAX`].
    pub addresses: &'a [SocketAddr],
    /// The public half of the server's key, if the suite needs it.
    pub server_key: Option<[u8; 32]>,
    /// What the client's datagrams end with, if a proxy finds the server by that: at most 20 bytes. Empty: there is no such proxy.
    pub routing_token: &'a [u8],
    /// The application's data, at most [`USER_MAX`](super::USER_MAX) bytes. The client cannot read it.
    pub user: &'a [u8],
}

impl ServerKey {
    /// A key that a server received from the matchmaker, or made from random bytes and gives to the matchmaker.
    #[must_use]
    pub fn new(server_id: u64, key_id: u8, key: [u8; 32]) -> Self {
        Self { server_id, key_id, key: key.into() }
    }

    /// The key itself, for the server and nobody else.
    #[must_use]
    pub fn secret(&self) -> &[u8; 32] {
        &self.key
    }

    /// Makes a token. `psk` and `nonce` are random bytes for this token only.
    ///
    /// # Errors
    ///
    /// [`TokenError::Order`]: no server would accept it.
    pub fn mint(
        &self,
        order: &Order<'_>,
        psk: [u8; 32],
        nonce: [u8; NONCE_LEN],
    ) -> Result<PublicToken, TokenError> {
        order.check()?;
        let &Order { protocol_id, suite, client_id, match_id, created, expires, addresses, .. } = order;
        let psk = Secret::from(psk);
        let user = order.user.to_vec();
        let grant = Grant { client_id, psk, created, expires, match_id, user, nonce };
        let head = Head { key_id: self.key_id, suite: suite.code(), server_id: self.server_id, expires };
        let sealed = self
            .seal(protocol_id, &head, &grant)
            .ok_or(TokenError::Order { field: "user", must: "must be 256 bytes or less" })?;
        Ok(PublicToken {
            protocol_id,
            suite,
            created,
            expires,
            psk: grant.psk,
            server_key: order.server_key,
            addresses: addresses.to_vec(),
            routing_token: order.routing_token.to_vec(),
            sealed,
        })
    }

    fn seal(&self, protocol_id: u64, head: &Head, grant: &Grant) -> Option<[u8; SEALED_LEN]> {
        let mut plain = grant.encode()?;
        let head = head.encode();
        let associated = Head::associated(&head, protocol_id);
        let tag = CRYPTO?.seal_token(&self.key, &grant.nonce, &associated, &mut *plain)?;
        Some(concat(&[&head, &grant.nonce, &*plain, &tag]))
    }

    pub(super) fn open(
        &self,
        protocol_id: u64,
        head: &[u8; HEAD_LEN],
        rest: &[u8],
        expires: u64,
    ) -> Result<Result<Grant, TokenError>, TokenError> {
        let cipher = CRYPTO.ok_or(TokenError::NotBuiltIn)?;
        let (nonce, rest) = rest.split_first_chunk::<NONCE_LEN>().ok_or(TokenError::Forged)?;
        let (plain, tag) = rest.split_first_chunk::<PLAIN_LEN>().ok_or(TokenError::Forged)?;
        let tag: &[u8; 16] = tag.try_into().map_err(|_| TokenError::Forged)?;
        let mut plain = Zeroizing::new(*plain);
        let associated = Head::associated(head, protocol_id);
        if !cipher.open_token(&self.key, nonce, &associated, &mut *plain, tag) {
            return Err(TokenError::Forged);
        }
        Ok(Grant::decode(&plain, expires, *nonce))
    }
}

impl Order<'_> {
    fn check(&self) -> Result<(), TokenError> {
        let wrong = |field, must| Err(TokenError::Order { field, must });
        if !self.suite.needs_psk() {
            return wrong("suite", "must have a pre-shared key, as Suite::TOKEN does");
        }
        if !self.suite.is_built_in() {
            return wrong("suite", self.suite.missing());
        }
        if self.server_key.is_some() != self.suite.needs_server_key() {
            return wrong("server_key", "must be set if the suite has the server's key, and only then");
        }
        if self.created > LATEST {
            return wrong("created", "must be in seconds since 1970");
        }
        if self.expires <= self.created || self.expires - self.created > LIFE_MAX {
            return wrong("expires", "must be within 600 s after `created`");
        }
        let addresses = self.addresses;
        if !(1..=ADDRESSES_MAX).contains(&addresses.len()) {
            return wrong("addresses", "must be 1 to 4");
        }
        if addresses.iter().any(|at| at.port() == 0) {
            return wrong("addresses", "must have a port");
        }
        if self.routing_token.len() > ROUTING_TOKEN_MAX {
            return wrong("routing_token", "must be 20 bytes or less");
        }
        Ok(())
    }
}

printed_without_secrets! { ServerKey { server_id, key_id } }

/// What a matchmaker grants a client.
#[derive(Clone, Eq, PartialEq)]
#[non_exhaustive]
pub struct Grant {
    /// The client, by the matchmaker's number.
    pub client_id: u64,
    /// The key for the handshake, which the client must know.
    pub psk: Secret,
    /// When the token was made, in seconds since 1970. Of two tokens of one client, the newer wins.
    pub created: u64,
    /// When it expires, in seconds since 1970.
    pub expires: u64,
    /// The match, or anything else that the application chose.
    pub match_id: [u8; 16],
    /// The application's data, at most [`USER_MAX`] bytes.
    pub user: Vec<u8>,
    /// Distinguishes this token from all others.
    pub(in crate::session) nonce: [u8; NONCE_LEN],
}

/// Which token it is. No two tokens have the same, and only whoever has the key of the server can make one.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct TokenId {
    /// The server that it is for, or the servers, if several share this number and the key.
    pub server_id: u64,
    /// Random bytes that no other token has.
    pub nonce: [u8; NONCE_LEN],
    /// When it expires, in seconds since 1970. A server accepts it for [`SKEW`](super::SKEW) s longer.
    pub expires: u64,
}

impl TokenId {
    /// The id of a token that has been opened: what it is read from was authentic then.
    pub(in crate::session) fn of(sealed: &[u8]) -> Option<Self> {
        let (head, rest) = sealed.split_first_chunk()?;
        let Head { server_id, expires, .. } = Head::decode(head).ok()?;
        Some(Self { server_id, nonce: *rest.first_chunk()?, expires })
    }
}

/// The part before the ciphertext, which is not encrypted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Head {
    pub(super) key_id: u8,
    pub(super) suite: u16,
    pub(super) server_id: u64,
    pub(super) expires: u64,
}

impl Head {
    fn encode(&self) -> [u8; HEAD_LEN] {
        let Self { key_id, suite, server_id, expires } = *self;
        concat(&[&[VERSION, key_id], &suite.to_le_bytes(), &server_id.to_le_bytes(), &expires.to_le_bytes()])
    }

    pub(super) fn decode(bytes: &[u8; HEAD_LEN]) -> Result<Self, TokenError> {
        let mut reader = Reader::new(bytes);
        let found = reader.u8()?;
        if found != VERSION {
            return Err(TokenError::Version { found });
        }
        let (key_id, suite) = (reader.u8()?, reader.u16()?);
        let (server_id, expires) = (reader.u64()?, reader.u64()?);
        Ok(Self { key_id, suite, server_id, expires })
    }

    /// What the tag authenticates besides the ciphertext.
    fn associated(head: &[u8; HEAD_LEN], protocol_id: u64) -> [u8; LABEL.len() + 8 + HEAD_LEN] {
        concat(&[LABEL, &protocol_id.to_le_bytes(), head])
    }
}

impl Grant {
    /// The bytes to seal. `None`: `user` is too long.
    fn encode(&self) -> Option<Zeroizing<[u8; PLAIN_LEN]>> {
        let Self { client_id, psk, created, expires: _, match_id, user, nonce: _ } = self;
        let user_len = u16::try_from(user.len()).ok().filter(|_| user.len() <= USER_MAX)?;
        let [client_id, created] = [client_id, created].map(|number| number.to_le_bytes());
        Some(Zeroizing::new(concat(&[
            &client_id,
            &**psk,
            &created,
            match_id,
            &[0; 2],
            &user_len.to_le_bytes(),
            user,
        ])))
    }

    fn decode(bytes: &[u8; PLAIN_LEN], expires: u64, nonce: [u8; NONCE_LEN]) -> Result<Self, TokenError> {
        let mut reader = Reader::new(bytes);
        let (client_id, psk, created) = (reader.u64()?, Secret::from(reader.array::<32>()?), reader.u64()?);
        let (match_id, flags, user_len) = (reader.array()?, reader.u16()?, reader.u16()?);
        let user = reader.bytes(user_len).map_err(|_| TokenError::Content)?.to_vec();
        if flags != 0 || reader.rest().iter().any(|byte| *byte != 0) || created >= expires {
            return Err(TokenError::Content);
        }
        Ok(Self { client_id, psk, created, expires, match_id, user, nonce })
    }
}

printed_without_secrets! { Grant { client_id, created, expires, match_id } }

/// Bytes of a sealed token: head, nonce, ciphertext, tag.
pub const SEALED_LEN: usize = HEAD_LEN + NONCE_LEN + PLAIN_LEN + 16;
/// Most bytes of application data in a token.
pub const USER_MAX: usize = 256;
const VERSION: u8 = 1;
/// Separates the keys and tags of tokens from all others.
pub(in crate::session) const LABEL: &[u8; 10] = b"ww/1 token";
const HEAD_LEN: usize = 20;
pub(in crate::session) const NONCE_LEN: usize = 24;
const PLAIN_LEN: usize = 8 + 32 + 8 + 16 + 2 + 2 + USER_MAX;
