//! The part of a token that the client receives.

use super::{ADDRESSES_MAX, SEALED_LEN, TokenError};
use crate::session::wire::Reader;
use crate::session::{Secret, Suite};
use std::net::SocketAddr;
use zeroize::Zeroizing;

/// What a client receives from the matchmaker, over a connection that nobody else can read: whoever has it can join,
/// once.
#[derive(Clone, Eq, PartialEq)]
#[non_exhaustive]
pub struct PublicToken {
    /// The game and its version of its protocol.
    pub protocol_id: u64,
    /// The suite to ask for.
    pub suite: Suite,
    /// When it was made, in seconds since 1970.
    pub created: u64,
    /// When it expires, in seconds since 1970.
    pub expires: u64,
    /// The pre-shared key for the handshake.
    pub psk: Secret,
    /// The public half of the server's key, if the suite needs it.
    pub server_key: Option<[u8; 32]>,
    /// The addresses of the server, the best first.
    pub addresses: Vec<SocketAddr>,
    /// The part for the server.
    pub sealed: [u8; SEALED_LEN],
}

impl PublicToken {
    /// Its encoding, at most 556 bytes. Keep it secret.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let Self { protocol_id, suite, created, expires, psk, server_key, addresses, sealed } = self;
        let mut bytes = Zeroizing::new(Vec::with_capacity(ENCODED_MAX));
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&protocol_id.to_le_bytes());
        bytes.extend_from_slice(&suite.code().to_le_bytes());
        bytes.push(u8::from(server_key.is_some()));
        let addresses = addresses.get(..ADDRESSES_MAX).unwrap_or(addresses);
        bytes.push(u8::try_from(addresses.len()).unwrap_or_default());
        bytes.extend_from_slice(&created.to_le_bytes());
        bytes.extend_from_slice(&expires.to_le_bytes());
        bytes.extend_from_slice(&**psk);
        bytes.extend(server_key.iter().flatten());
        for address in addresses {
            match address {
                SocketAddr::V4(at) => {
                    bytes.push(IPV4);
                    bytes.extend_from_slice(&at.ip().octets());
                }
                SocketAddr::V6(at) => {
                    bytes.push(IPV6);
                    bytes.extend_from_slice(&at.ip().octets());
                }
            }
            bytes.extend_from_slice(&address.port().to_le_bytes());
        }
        bytes.extend_from_slice(sealed);
        bytes
    }

    /// Decodes a token.
    ///
    /// # Errors
    ///
    /// The bytes are not a token, or it is for an unknown suite.
    pub fn decode(bytes: &[u8]) -> Result<Self, TokenError> {
        let mut reader = Reader::new(bytes);
        if reader.array()? != *MAGIC {
            return Err(TokenError::Version { found: bytes.get(3).copied().unwrap_or_default() });
        }
        let (protocol_id, found) = (reader.u64()?, reader.u16()?);
        let suite = Suite::from_code(found).filter(|suite| suite.needs_psk());
        let suite = suite.ok_or(TokenError::Suite { found })?;
        let (flags, count) = (reader.u8()?, reader.u8()?);
        let (created, expires) = (reader.u64()?, reader.u64()?);
        let psk = Secret::from(reader.array::<32>()?);
        let whole = flags == u8::from(suite.needs_server_key())
            && (1..=ADDRESSES_MAX).contains(&count.into())
            && created < expires;
        if !whole {
            return Err(TokenError::Content);
        }
        let server_key = if suite.needs_server_key() { Some(reader.array()?) } else { None };
        let addresses = (0..count).map(|_| address(&mut reader)).collect::<Result<_, _>>()?;
        let sealed = reader.array()?;
        reader.finish()?;
        Ok(Self { protocol_id, suite, created, expires, psk, server_key, addresses, sealed })
    }
}

printed_without_secrets! { PublicToken { protocol_id, suite, created, expires, addresses } }

fn address(reader: &mut Reader<'_>) -> Result<SocketAddr, TokenError> {
    let address = match reader.u8()? {
        IPV4 => SocketAddr::from((reader.array::<4>()?, reader.u16()?)),
        IPV6 => SocketAddr::from((reader.array::<16>()?, reader.u16()?)),
        _ => return Err(TokenError::Content),
    };
    if address.port() == 0 { Err(TokenError::Content) } else { Ok(address) }
}

const MAGIC: &[u8; 4] = b"WWT1";
const IPV4: u8 = 4;
const IPV6: u8 = 6;
/// Length of the longest encoding: the fixed part, a key, IPv6 addresses, the sealed part.
const ENCODED_MAX: usize = 64 + 32 + ADDRESSES_MAX * 19 + SEALED_LEN;
