//! The protection of a datagram: random bytes, a checksum and a cipher; an authenticated cipher; or nothing.

use super::config::Config;
use super::crypt::{Cipher, Crypt, Gcm, gcm};
use super::nonce::Nonces;
use std::fmt;

/// Random bytes at the start of every datagram with a checksum.
const NONCE: usize = 16;
/// The checksum after them: CRC-32 of everything that follows, little-endian.
const SUM: usize = 4;

/// Protects the datagrams of a socket under one key, and opens those of its peers.
pub(super) struct Shield {
    kind: Kind,
    nonces: Nonces,
}

enum Kind {
    Null,
    Sum(Box<dyn Cipher>),
    Gcm(Box<Gcm>),
}

impl Shield {
    pub(super) fn new(config: &Config, seed: [u8; 16]) -> Self {
        let kind = match (config.crypt.cipher(&config.key), config.crypt) {
            (Some(cipher), _) => Kind::Sum(cipher),
            (None, Crypt::Aes128Gcm) => Kind::Gcm(Box::new(Gcm::new(&config.key))),
            (None, _) => Kind::Null,
        };
        Self { kind, nonces: Nonces::new(seed) }
    }

    /// Builds a datagram from the two parts.
    pub(super) fn seal(&mut self, parts: [&[u8]; 2], datagram: &mut Vec<u8>) {
        datagram.clear();
        match &self.kind {
            Kind::Null => parts.iter().for_each(|part| datagram.extend_from_slice(part)),
            Kind::Sum(cipher) => {
                datagram.extend_from_slice(&self.nonces.next());
                let mut sum = crc32fast::Hasher::new();
                parts.iter().for_each(|part| sum.update(part));
                datagram.extend_from_slice(&sum.finalize().to_le_bytes());
                parts.iter().for_each(|part| datagram.extend_from_slice(part));
                cipher.hide(datagram);
            }
            Kind::Gcm(gcm) => {
                let nonce = self.nonces.next();
                let nonce = *nonce.first_chunk::<{ gcm::NONCE }>().unwrap_or(&[0; gcm::NONCE]);
                datagram.extend_from_slice(&nonce);
                parts.iter().for_each(|part| datagram.extend_from_slice(part));
                let tag = gcm.seal(nonce, datagram.get_mut(gcm::NONCE..).unwrap_or_default());
                datagram.extend_from_slice(&tag);
            }
        }
    }

    /// Returns the content of a datagram; `None` if it was altered or made with another key. The datagram is
    /// garbage afterwards.
    pub(super) fn open<'a>(&self, datagram: &'a mut [u8]) -> Option<&'a [u8]> {
        match &self.kind {
            Kind::Null => Some(datagram),
            Kind::Sum(cipher) => {
                cipher.show(datagram);
                let (sum, inner) = datagram.get(NONCE..)?.split_first_chunk::<SUM>()?;
                (crc32fast::hash(inner) == u32::from_le_bytes(*sum)).then_some(inner)
            }
            Kind::Gcm(gcm) => gcm.open(datagram),
        }
    }
}

/// Bytes that the protection adds to a datagram.
pub(super) const fn overhead(crypt: Crypt) -> u16 {
    #[expect(clippy::cast_possible_truncation, reason = "28 at most")]
    match crypt {
        Crypt::Null => 0,
        Crypt::Aes128Gcm => (gcm::NONCE + gcm::TAG) as u16,
        _ => (NONCE + SUM) as u16,
    }
}

impl fmt::Debug for Shield {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shield(..)")
    }
}
