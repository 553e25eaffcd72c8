//! The random bytes that every datagram starts with.

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use std::fmt;

/// AES-128 of a counter under a key of its own: no two of a socket are equal, and nobody without the key can tell them from random ones. Of the
/// first bytes of them two are equal as often as of random bytes. Source: kcp-go `entropy.go` does the like.
pub(super) struct Nonces {
    cipher: Aes128,
    next: u128,
}

impl Nonces {
    /// `seed`: random, and different for every socket.
    pub(super) fn new(seed: [u8; 16]) -> Self {
        Self { cipher: Aes128::new(&seed.into()), next: 0 }
    }

    pub(super) fn next(&mut self) -> [u8; 16] {
        let mut block = self.next.to_le_bytes().into();
        self.next = self.next.wrapping_add(1);
        self.cipher.encrypt_block(&mut block);
        block.into()
    }
}

impl fmt::Debug for Nonces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonces(..)")
    }
}
