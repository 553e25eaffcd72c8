//! The ciphers from ring, in assembly for most machines.

use super::blank;
use super::cipher::TAG_LEN;
use crate::session::Cipher;
use ring::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

/// Never `None`: a key of either cipher has 32 bytes.
pub(super) struct Fast(Option<Box<LessSafeKey>>);

impl Fast {
    pub(super) fn new(cipher: Cipher, key: &[u8; 32]) -> Self {
        let algorithm = match cipher {
            Cipher::ChaChaPoly => &CHACHA20_POLY1305,
            Cipher::AesGcm => &AES_256_GCM,
        };
        Self(UnboundKey::new(algorithm, key).ok().map(|key| Box::new(LessSafeKey::new(key))))
    }

    pub(super) fn seal(&self, nonce: [u8; 12], header: &[u8], body: &mut [u8]) -> Option<[u8; TAG_LEN]> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self.0.as_ref()?.seal_in_place_separate_tag(nonce, Aad::from(header), body).ok()?;
        tag.as_ref().try_into().ok()
    }

    pub(super) fn open(&self, nonce: [u8; 12], header: &[u8], sealed: &mut [u8]) -> bool {
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.0.as_ref().is_some_and(|key| key.open_in_place(nonce, Aad::from(header), sealed).is_ok())
    }
}

impl Drop for Fast {
    /// ring wipes nothing. A key of AES is the longest.
    fn drop(&mut self) {
        let zeros = || UnboundKey::new(&AES_256_GCM, &[0; 32]).ok().map(LessSafeKey::new);
        if let Some(key) = &mut self.0 {
            blank(&mut **key, zeros);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pure::Pure;
    use super::*;

    #[test]
    fn ring_and_pure_rust_produce_the_same_bytes() {
        for cipher in [Cipher::ChaChaPoly, Cipher::AesGcm] {
            let (fast, pure) = (Fast::new(cipher, &[7; 32]), Pure::new(cipher, &[7; 32]));
            for len in [0, 1, 16, 63, 1191] {
                let body = vec![5; len];
                let (mut a, mut b) = (body.clone(), body.clone());
                let tag = fast.seal([9; 12], b"header", &mut a).unwrap();
                assert_eq!(Some(tag), pure.seal([9; 12], b"header", &mut b));
                assert_eq!(a, b);
                let sealed = [&a[..], &tag].concat();
                for header in [&b"header"[..], b"other"] {
                    let (mut a, mut b) = (sealed.clone(), sealed.clone());
                    let opened = fast.open([9; 12], header, &mut a);
                    assert_eq!(opened, header == b"header");
                    assert_eq!(opened, pure.open([9; 12], header, &mut b));
                    assert!(!opened || (a[..len] == body && b[..len] == body));
                }
            }
        }
    }
}
