//! The part of a token that the client receives.

use super::{ADDRESSES_MAX, SEALED_LEN, TokenError};
use crate::session::wire::{ROUTING_TOKEN_MAX, Reader};
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
    /// What a proxy finds the server by; see [`ClientConfig::routing_token`](crate::ClientConfig::routing_token). Empty: there is none.
    pub routing_token: Vec<u8>,
    /// The part for the server.
    pub sealed: [u8; SEALED_LEN],
}

impl PublicToken {
    /// Its encoding, at most 577 bytes. Keep it secret.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let Self { protocol_id, suite, created, expires, psk, server_key, addresses, routing_token, sealed } =
            self;
        let routing_token = routing_token.get(..ROUTING_TOKEN_MAX).unwrap_or(routing_token);
        let mut bytes = Zeroizing::new(Vec::with_capacity(ENCODED_MAX));
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&protocol_id.to_le_bytes());
        bytes.extend_from_slice(&suite.code().to_le_bytes());
        let has_key = if server_key.is_some() { HAS_KEY } else { 0 };
        let is_routed = if routing_token.is_empty() { 0 } else { IS_ROUTED };
        bytes.push(has_key | is_routed);
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
        if !routing_token.is_empty() {
            bytes.push(u8::try_from(routing_token.len()).unwrap_or_default());
            bytes.extend_from_slice(routing_token);
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
        let has_key = if suite.needs_server_key() { HAS_KEY } else { 0 };
        let whole =
            flags & !IS_ROUTED == has_key && (1..=ADDRESSES_MAX).contains(&count.into()) && created < expires;
        if !whole {
            return Err(TokenError::Content);
        }
        let server_key = if suite.needs_server_key() { Some(reader.array()?) } else { None };
        let addresses = (0..count).map(|_| address(&mut reader)).collect::<Result<_, _>>()?;
        let routing_token = if flags & IS_ROUTED == 0 { Vec::new() } else { routing_token(&mut reader)? };
        let sealed = reader.array()?;
        reader.finish()?;
        Ok(Self { protocol_id, suite, created, expires, psk, server_key, addresses, routing_token, sealed })
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

fn routing_token(reader: &mut Reader<'_>) -> Result<Vec<u8>, TokenError> {
    let len = usize::from(reader.u8()?);
    if !(1..=ROUTING_TOKEN_MAX).contains(&len) {
        return Err(TokenError::Content);
    }
    Ok(reader.bytes(len)?.to_vec())
}

const MAGIC: &[u8; 4] = b"WWT1";
/// Flags.
const HAS_KEY: u8 = 1;
const IS_ROUTED: u8 = 2;
const IPV4: u8 = 4;
const IPV6: u8 = 6;
/// Length of the longest encoding: the fixed part, a key, IPv6 addresses, a routing token, the sealed part.
const ENCODED_MAX: usize = 64 + 32 + ADDRESSES_MAX * 19 + 1 + ROUTING_TOKEN_MAX + SEALED_LEN;
