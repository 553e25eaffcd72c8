//! The part of a token that only the server can read: bytes and values.

use super::TokenError;
use crate::session::wire::Reader;
use zeroize::Zeroizing;

/// What a matchmaker grants a client.
#[derive(Clone, Eq, PartialEq)]
#[non_exhaustive]
pub struct Grant {
    /// The client, as the matchmaker calls it.
    pub client_id: u64,
    /// What the client has to know; for the handshake.
    pub psk: Zeroizing<[u8; 32]>,
    /// When the token was made, seconds since 1970. Of two of one client the newer holds.
    pub created: u64,
    /// When it ends, seconds since 1970.
    pub expires: u64,
    /// The match, or whatever the application likes.
    pub match_id: [u8; 16],
    /// The application's own, at most [`USER_MAX`] bytes.
    pub user: Vec<u8>,
    /// What tells this token from all others.
    pub(super) nonce: [u8; NONCE_LEN],
}

/// What stands before the ciphertext, for all to read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Head {
    pub(super) key_id: u8,
    pub(super) suite: u16,
    pub(super) server_id: u64,
    pub(super) expires: u64,
}

impl Head {
    pub(super) fn encode(&self) -> [u8; HEAD_LEN] {
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

    /// What the tag is over beside the ciphertext.
    pub(super) fn associated(head: &[u8; HEAD_LEN], protocol_id: u64) -> [u8; LABEL.len() + 8 + HEAD_LEN] {
        concat(&[LABEL, &protocol_id.to_le_bytes(), head])
    }
}

impl Grant {
    /// The bytes that are sealed. `None`: `user` is too long.
    pub(super) fn encode(&self) -> Option<Zeroizing<[u8; PLAIN_LEN]>> {
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

    pub(super) fn decode(
        bytes: &[u8; PLAIN_LEN],
        expires: u64,
        nonce: [u8; NONCE_LEN],
    ) -> Result<Self, TokenError> {
        let mut reader = Reader::new(bytes);
        let (client_id, psk, created) = (reader.u64()?, Zeroizing::new(reader.array()?), reader.u64()?);
        let (match_id, flags, user_len) = (reader.array()?, reader.u16()?, reader.u16()?);
        let user = reader.bytes(user_len).map_err(|_| TokenError::Content)?.to_vec();
        if flags != 0 || reader.rest().iter().any(|byte| *byte != 0) || created >= expires {
            return Err(TokenError::Content);
        }
        Ok(Self { client_id, psk, created, expires, match_id, user, nonce })
    }
}

impl std::fmt::Debug for Grant {
    /// Without the pre-shared key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grant")
            .field("client_id", &self.client_id)
            .field("created", &self.created)
            .field("expires", &self.expires)
            .field("match_id", &self.match_id)
            .field("user_len", &self.user.len())
            .finish_non_exhaustive()
    }
}

/// The parts one after another, and zeros behind.
pub(super) fn concat<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut bytes = [0; N];
    for (to, from) in bytes.iter_mut().zip(parts.iter().copied().flatten()) {
        *to = *from;
    }
    bytes
}

/// Bytes of a sealed token: head, nonce, ciphertext, tag.
pub const SEALED_LEN: usize = HEAD_LEN + NONCE_LEN + PLAIN_LEN + 16;
/// Most bytes that the application may have in a token.
pub const USER_MAX: usize = 256;
/// The version of tokens.
const VERSION: u8 = 1;
/// Keeps the keys and tags of tokens apart from all others.
pub(in crate::session) const LABEL: &[u8; 10] = b"ww/1 token";
pub(super) const HEAD_LEN: usize = 20;
pub(super) const NONCE_LEN: usize = 24;
pub(super) const PLAIN_LEN: usize = 8 + 32 + 8 + 16 + 2 + 2 + USER_MAX;
