//! The ciphers of kcp-go by name, and what each does to a datagram.

mod feedback;
pub(crate) mod gcm;
mod salsa;
mod xor;
mod xtea;

use super::key::Key;
use aes::{Aes128, Aes192, Aes256};
use blowfish::Blowfish;
use cast5::Cast5;
use cfb_mode::cipher::KeyInit;
use des::TdesEde3;
use feedback::Feedback;
pub(super) use gcm::Gcm;
use salsa::Salsa;
use sm4::Sm4;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;
use twofish::Twofish;
use xor::Xor;
use xtea::Xtea;

/// How datagrams are protected, by kcptun's names. Both ends must choose the same.
///
/// Only [`Aes128Gcm`](Self::Aes128Gcm) detects forged datagrams. All others with a key hide the content from everyone
/// without the key, but let anyone alter it: the checksum inside needs no key. None of them detects replays. A key is good
/// for 2^32 datagrams in total, over everyone who uses it: nonces are random and have 12 bytes for `aes-128-gcm` (NIST SP
/// 800-38D, section 8.3) and 8 for `salsa20`. Sessions of whitewater ([`session`](whitewater::session)) solve all of that.
///
/// | | key, bytes | bytes added | what it is |
/// |---|---:|---:|---|
/// | `null` | | 0 | the datagram itself |
/// | `none` | | 20 | random bytes and a checksum before it, in the clear |
/// | `xor` | 32 | 20 | the same bytes over every datagram: no protection at all |
/// | `aes`, `aes-192`, `aes-128` | 32, 24, 16 | 20 | AES in CFB mode |
/// | `sm4` | 16 | 20 | SM4 in CFB mode |
/// | `twofish` | 32 | 20 | Twofish in CFB mode; the crate takes 0.6 ms for a datagram, valid or not, a hundred times what AES takes |
/// | `blowfish`, `cast5`, `3des`, `xtea` | 32, 16, 24, 16 | 20 | blocks of 8 bytes in CFB mode |
/// | `salsa20` | 32 | 20 | Salsa20, whose nonce is the first 8 bytes |
/// | `aes-128-gcm` | 16 | 28 | AES-GCM, authenticated; kcp-go since 2025 |
///
/// kcptun's `tea` is missing: no maintained crate has TEA, let alone with the 8 rounds of kcp-go.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Crypt {
    /// No wrapping: bare KCP. The default, like kcp-go without a block cipher.
    #[default]
    Null,
    /// Only a checksum.
    None,
    /// The same bytes XORed over every datagram.
    Xor,
    /// AES-256, kcptun's default.
    Aes,
    /// AES-128.
    Aes128,
    /// AES-192.
    Aes192,
    /// Salsa20.
    Salsa20,
    /// SM4, the Chinese standard.
    Sm4,
    /// Twofish with a key of 256 bits.
    Twofish,
    /// Blowfish with a key of 256 bits.
    Blowfish,
    /// CAST-128.
    Cast5,
    /// Triple DES.
    TripleDes,
    /// XTEA.
    Xtea,
    /// AES-128-GCM, the only authenticated one.
    Aes128Gcm,
}

/// A name that is not in [`Crypt::ALL`].
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("unknown cipher {name:?}, not one of {}", Crypt::ALL.map(Crypt::name).join(" "))]
#[non_exhaustive]
pub struct UnknownCrypt {
    /// The name.
    pub name: String,
}

impl Crypt {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Null,
        Self::None,
        Self::Xor,
        Self::Aes,
        Self::Aes128,
        Self::Aes192,
        Self::Salsa20,
        Self::Sm4,
        Self::Twofish,
        Self::Blowfish,
        Self::Cast5,
        Self::TripleDes,
        Self::Xtea,
        Self::Aes128Gcm,
    ];

    /// kcptun's name for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::None => "none",
            Self::Xor => "xor",
            Self::Aes => "aes",
            Self::Aes128 => "aes-128",
            Self::Aes192 => "aes-192",
            Self::Salsa20 => "salsa20",
            Self::Sm4 => "sm4",
            Self::Twofish => "twofish",
            Self::Blowfish => "blowfish",
            Self::Cast5 => "cast5",
            Self::TripleDes => "3des",
            Self::Xtea => "xtea",
            Self::Aes128Gcm => "aes-128-gcm",
        }
    }

    /// The cipher with its key, for the kinds that put a checksum before what is encrypted.
    pub(super) fn cipher(self, key: &Key) -> Option<Box<dyn Cipher>> {
        Some(match self {
            Self::Null | Self::Aes128Gcm => return None,
            Self::None => Box::new(Clear),
            Self::Xor => Box::new(Xor::new(key)),
            Self::Aes => Box::new(Feedback::of(Aes256::new(&key.first().into()))),
            Self::Aes192 => Box::new(Feedback::of(Aes192::new(&key.first().into()))),
            Self::Aes128 => Box::new(Feedback::of(Aes128::new(&key.first().into()))),
            Self::Salsa20 => Box::new(Salsa::new(key)),
            Self::Sm4 => Box::new(Feedback::of(Sm4::new(&key.first().into()))),
            Self::Twofish => Box::new(Feedback::of(Twofish::new(&key.first().into()))),
            Self::Blowfish => Box::new(Feedback::of(blowfish(key))),
            Self::Cast5 => Box::new(Feedback::of(Cast5::new(&key.first().into()))),
            Self::TripleDes => Box::new(Feedback::of(TdesEde3::new(&key.first().into()))),
            Self::Xtea => Box::new(Xtea::new(key)),
        })
    }
}

impl fmt::Display for Crypt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Crypt {
    type Err = UnknownCrypt;

    fn from_str(name: &str) -> Result<Self, UnknownCrypt> {
        let unknown = || UnknownCrypt { name: name.into() };
        Self::ALL.into_iter().find(|crypt| crypt.name() == name).ok_or_else(unknown)
    }
}

/// Encrypts and decrypts a whole datagram in place. Keeps its length.
pub(super) trait Cipher: Send + Sync {
    fn hide(&self, datagram: &mut [u8]);
    fn show(&self, datagram: &mut [u8]);
}

/// Blowfish keys may have up to 56 bytes; kcp-go passes all it has.
fn blowfish(key: &Key) -> Blowfish {
    #[expect(clippy::expect_used, reason = "32 bytes are a key")]
    Blowfish::new_from_slice(key.as_bytes()).expect("a key of 4 to 56 bytes")
}

/// No cipher; only the checksum protects the datagram.
struct Clear;

impl Cipher for Clear {
    fn hide(&self, _: &mut [u8]) {}
    fn show(&self, _: &mut [u8]) {}
}

/// The initial block of the feedback for every datagram; ciphers with 8-byte blocks use the first 8 bytes.
/// Source: kcp-go `crypt.go`.
const FIRST: [u8; 16] = *b"\xa7\x73\x4f\x9c\x12\xac\x1b\x01\xa4\x15\xf2\xc1\xfc\x78\xe6\x6b";
