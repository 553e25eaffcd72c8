//! The ciphers in Rust alone.

use super::cipher::{Aead, TAG_LEN, aes_nonce, chacha_nonce};
use aes_gcm::Aes256Gcm;
use chacha20poly1305::ChaCha20Poly1305;
use chacha20poly1305::aead::{AeadInPlace, KeyInit};

pub(super) struct ChaChaPoly(ChaCha20Poly1305);

pub(super) struct AesGcm(Box<Aes256Gcm>);

impl Aead for ChaChaPoly {
    fn new(key: &[u8; 32]) -> Self {
        Self(ChaCha20Poly1305::new(key.into()))
    }

    fn seal(&self, pn: u64, header: &[u8], body: &mut [u8]) -> Option<[u8; TAG_LEN]> {
        let tag = self.0.encrypt_in_place_detached(&chacha_nonce(pn).into(), header, body);
        tag.ok().map(Into::into)
    }

    fn open(&self, pn: u64, header: &[u8], sealed: &mut [u8]) -> bool {
        let Some((body, tag)) = sealed.split_last_chunk_mut::<TAG_LEN>() else {
            return false;
        };
        let tag = &*tag;
        self.0.decrypt_in_place_detached(&chacha_nonce(pn).into(), header, body, tag.into()).is_ok()
    }
}

impl Aead for AesGcm {
    fn new(key: &[u8; 32]) -> Self {
        Self(Box::new(Aes256Gcm::new(key.into())))
    }

    fn seal(&self, pn: u64, header: &[u8], body: &mut [u8]) -> Option<[u8; TAG_LEN]> {
        let tag = self.0.encrypt_in_place_detached(&aes_nonce(pn).into(), header, body);
        tag.ok().map(Into::into)
    }

    fn open(&self, pn: u64, header: &[u8], sealed: &mut [u8]) -> bool {
        let Some((body, tag)) = sealed.split_last_chunk_mut::<TAG_LEN>() else {
            return false;
        };
        let tag = &*tag;
        self.0.decrypt_in_place_detached(&aes_nonce(pn).into(), header, body, tag.into()).is_ok()
    }
}
