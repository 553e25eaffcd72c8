//! The random bytes at the start of every datagram.

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use std::fmt;

/// AES-128 of a counter under a key of its own: no two in a socket are equal, and without the key they look
/// random. Their first bytes collide as often as those of random bytes. Source: kcp-go's `entropy.go` does
/// something similar.
pub(super) struct Nonces {
    cipher: Aes128,
    next: u128,
}

impl Nonces {
    /// `seed` must be random and different for every socket.
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
