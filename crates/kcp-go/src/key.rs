//! The key that both ends share.

use pbkdf2::pbkdf2_hmac_array;
use sha1::Sha1;
use std::fmt;
use zeroize::Zeroize;

/// 32 bytes that both ends know and nobody else does. A cipher with a shorter key takes the first of them.
#[derive(Clone, Eq, PartialEq)]
pub struct Key([u8; 32]);

impl Key {
    /// The bytes themselves, as a program gives them to kcp-go.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// What kcptun makes of its `--key`: PBKDF2 with HMAC-SHA1, the salt `kcp-go`, 4096 rounds. It takes a millisecond or two, which is too
    /// little to make up for a phrase that can be guessed. kcptun's own default, `it's a secrect`, is no secret.
    ///
    /// Source: kcptun `client/main.go`; RFC 8018 section 5.2.
    #[must_use]
    pub fn kcptun(phrase: &str) -> Self {
        Self(pbkdf2_hmac_array::<Sha1, 32>(phrase.as_bytes(), b"kcp-go", 4096))
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first bytes, as many as a cipher wants.
    pub(super) fn first<const N: usize>(&self) -> [u8; N] {
        const { assert!(N <= 32) };
        let mut bytes = [0; N];
        bytes.iter_mut().zip(self.0).for_each(|(to, from)| *to = from);
        bytes
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}
