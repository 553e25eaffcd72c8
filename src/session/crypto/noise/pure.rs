//! The ciphers in pure Rust.

use super::blank;
use super::cipher::TAG_LEN;
use crate::session::Cipher;
use aes_gcm::Aes256Gcm;
use chacha20poly1305::ChaCha20Poly1305;
use chacha20poly1305::aead::consts::{U12, U16};
use chacha20poly1305::aead::{AeadInPlace, KeyInit};

pub(super) enum Pure {
    ChaChaPoly(ChaCha20Poly1305),
    AesGcm(Box<Aes256Gcm>),
}

impl Pure {
    pub(super) fn new(cipher: Cipher, key: &[u8; 32]) -> Self {
        match cipher {
            Cipher::ChaChaPoly => Self::ChaChaPoly(ChaCha20Poly1305::new(key.into())),
            Cipher::AesGcm => Self::AesGcm(Box::new(Aes256Gcm::new(key.into()))),
        }
    }

    pub(super) fn seal(&self, nonce: [u8; 12], header: &[u8], body: &mut [u8]) -> Option<[u8; TAG_LEN]> {
        let tag = match self {
            Self::ChaChaPoly(aead) => aead.encrypt_in_place_detached(&nonce.into(), header, body),
            Self::AesGcm(aead) => aead.encrypt_in_place_detached(&nonce.into(), header, body),
        };
        tag.ok().map(Into::into)
    }

    pub(super) fn open(&self, nonce: [u8; 12], header: &[u8], sealed: &mut [u8]) -> bool {
        match self {
            Self::ChaChaPoly(aead) => open(aead, nonce, header, sealed),
            Self::AesGcm(aead) => open(&**aead, nonce, header, sealed),
        }
    }
}

impl Drop for Pure {
    /// The other one wipes itself. AES does not where it finds out at run time which instructions there are.
    fn drop(&mut self) {
        if let Self::AesGcm(aead) = self {
            blank(&mut **aead, || Some(Aes256Gcm::new(&[0; 32].into())));
        }
    }
}

fn open<A>(aead: &A, nonce: [u8; 12], header: &[u8], sealed: &mut [u8]) -> bool
where
    A: AeadInPlace<NonceSize = U12, TagSize = U16>,
{
    let Some((body, tag)) = sealed.split_last_chunk_mut::<TAG_LEN>() else {
        return false;
    };
    let tag = &*tag;
    aead.decrypt_in_place_detached(&nonce.into(), header, body, tag.into()).is_ok()
}
