//! AES-128-GCM: a nonce before the ciphertext, a tag after it.

use super::Key;
use aes_gcm::aead::{AeadInPlace, KeyInit};
use aes_gcm::{Aes128Gcm, Tag};

pub(crate) const NONCE: usize = 12;
pub(crate) const TAG: usize = 16;

pub(crate) struct Gcm(Aes128Gcm);

impl Gcm {
    pub(crate) fn new(key: &Key) -> Self {
        Self(Aes128Gcm::new(&key.first::<16>().into()))
    }

    /// Encrypts the bytes in place and returns their tag.
    pub(crate) fn seal(&self, nonce: [u8; NONCE], bytes: &mut [u8]) -> [u8; TAG] {
        // It only refuses more than 64 GiB.
        self.0.encrypt_in_place_detached(&nonce.into(), &[], bytes).map(Into::into).unwrap_or_default()
    }

    /// Decrypts the bytes in place, if they are authentic.
    pub(crate) fn open<'a>(&self, datagram: &'a mut [u8]) -> Option<&'a [u8]> {
        let (nonce, rest) = datagram.split_first_chunk_mut::<NONCE>()?;
        let (bytes, tag) = rest.split_last_chunk_mut::<TAG>()?;
        self.0.decrypt_in_place_detached((&*nonce).into(), &[], bytes, Tag::from_slice(tag)).ok()?;
        Some(bytes)
    }
}
