//! The key that both ends share.

use pbkdf2::pbkdf2_hmac_array;
use sha1::Sha1;
use std::fmt;
use zeroize::Zeroize;

/// 32 bytes that only the two ends know. A cipher with a shorter key uses the first bytes.
#[derive(Clone, Eq, PartialEq)]
pub struct Key([u8; 32]);

impl Key {
    /// The raw bytes, as a program passes them to kcp-go.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Derives the key from kcptun's `--key`: PBKDF2 with HMAC-SHA1, the salt `kcp-go`, 4096 rounds. That
    /// takes a millisecond or two, which is too little to protect a phrase that can be guessed. kcptun's own
    /// default, `it's a secrect`, is no secret.
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

    /// The first bytes, as many as a cipher needs.
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
