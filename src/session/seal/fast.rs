//! The same ciphers by ring: assembler for most machines.

use super::cipher::{Aead, TAG_LEN, aes_nonce, chacha_nonce};
use ring::aead::{AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

pub(super) struct ChaChaPoly(Keyed);

pub(super) struct AesGcm(Keyed);

/// `None` never is: a key of either cipher has 32 bytes.
struct Keyed(Option<Box<LessSafeKey>>);

impl Aead for ChaChaPoly {
    fn new(key: &[u8; 32]) -> Self {
        Self(Keyed::new(&CHACHA20_POLY1305, key))
    }

    fn seal(&self, pn: u64, header: &[u8], body: &mut [u8]) -> Option<[u8; TAG_LEN]> {
        self.0.seal(chacha_nonce(pn), header, body)
    }

    fn open(&self, pn: u64, header: &[u8], sealed: &mut [u8]) -> bool {
        self.0.open(chacha_nonce(pn), header, sealed)
    }
}

impl Aead for AesGcm {
    fn new(key: &[u8; 32]) -> Self {
        Self(Keyed::new(&AES_256_GCM, key))
    }

    fn seal(&self, pn: u64, header: &[u8], body: &mut [u8]) -> Option<[u8; TAG_LEN]> {
        self.0.seal(aes_nonce(pn), header, body)
    }

    fn open(&self, pn: u64, header: &[u8], sealed: &mut [u8]) -> bool {
        self.0.open(aes_nonce(pn), header, sealed)
    }
}

impl Keyed {
    fn new(algorithm: &'static Algorithm, key: &[u8; 32]) -> Self {
        Self(UnboundKey::new(algorithm, key).ok().map(|key| Box::new(LessSafeKey::new(key))))
    }

    fn seal(&self, nonce: [u8; 12], header: &[u8], body: &mut [u8]) -> Option<[u8; TAG_LEN]> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self.0.as_ref()?.seal_in_place_separate_tag(nonce, Aad::from(header), body).ok()?;
        tag.as_ref().try_into().ok()
    }

    fn open(&self, nonce: [u8; 12], header: &[u8], sealed: &mut [u8]) -> bool {
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.0.as_ref().is_some_and(|key| key.open_in_place(nonce, Aad::from(header), sealed).is_ok())
    }
}
