//! A cipher with its key: authenticated encryption in place, by packet number. Both implementations, `pure`
//! and `fast`, return no tag for bodies of 64 GiB or more, and leave garbage behind if a tag is wrong.

use super::Key;
#[cfg(feature = "ring")]
use super::fast::Fast as Any;
#[cfg(not(feature = "ring"))]
use super::pure::Pure as Any;
use crate::session::Cipher;
use crate::session::seal::MaskKey;
#[cfg(fuzzing)]
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub(super) struct Keyed {
    pub(super) key: Key,
    pub(super) which: Cipher,
    /// What is precomputed from the key; `None`: it is computed for each packet.
    aead: Option<Any>,
}

impl Keyed {
    pub(super) fn new(which: Cipher, key: Key) -> Self {
        Self { aead: Some(Any::new(which, &key)), key, which }
    }

    /// One that computes everything for each packet.
    pub(super) const fn resting(which: Cipher, key: Key) -> Self {
        Self { aead: None, key, which }
    }

    pub(super) const fn memory(&self) -> usize {
        match (&self.aead, self.which) {
            (Some(_), Cipher::ChaChaPoly) => size_of::<Key>(),
            (Some(_), Cipher::AesGcm) => AES_GCM,
            (None, _) => 0,
        }
    }

    /// Frees everything but the key.
    pub(super) fn rest(&mut self) {
        self.aead = None;
    }

    pub(super) fn wake(&mut self) {
        self.aead.get_or_insert_with(|| Any::new(self.which, &self.key));
    }

    pub(super) fn seal(&self, pn: u64, header: &[u8], body: &mut [u8]) -> Option<[u8; TAG_LEN]> {
        #[cfg(test)]
        super::record::used(&self.key, pn);
        #[cfg(fuzzing)]
        if REPLACED.load(Relaxed) {
            return Some([0; TAG_LEN]);
        }
        self.encrypt(pn, header, body)
    }

    pub(super) fn encrypt(&self, pn: u64, header: &[u8], body: &mut [u8]) -> Option<[u8; TAG_LEN]> {
        let nonce = nonce(self.which, pn);
        match &self.aead {
            Some(aead) => aead.seal(nonce, header, body),
            None => Any::new(self.which, &self.key).seal(nonce, header, body),
        }
    }

    pub(super) fn open(&self, pn: u64, header: &[u8], sealed: &mut [u8]) -> bool {
        #[cfg(fuzzing)]
        if REPLACED.load(Relaxed) {
            return sealed.ends_with(&[0; TAG_LEN]);
        }
        self.decrypt(pn, header, sealed)
    }

    pub(super) fn decrypt(&self, pn: u64, header: &[u8], sealed: &mut [u8]) -> bool {
        let nonce = nonce(self.which, pn);
        match &self.aead {
            Some(aead) => aead.open(nonce, header, sealed),
            None => Any::new(self.which, &self.key).open(nonce, header, sealed),
        }
    }

    /// Derives the next key; this one cannot be computed from it. Source: Noise revision 34, section 11.3 and
    /// `REKEY` in section 4.2. Packet numbers end long before the nonce used here, and the encrypted bytes
    /// are never sent.
    pub(super) fn next(&self) -> Key {
        let mut key = Key::new([0; 32]);
        let _ = self.encrypt(u64::MAX, &[], &mut *key);
        key
    }
}

impl Keyed {
    /// Derives the key of the masks over headers, in the way of `next` with the nonce before. `None`: a fuzzer reads
    /// headers.
    pub(super) fn mask_key(&self) -> Option<MaskKey> {
        #[cfg(fuzzing)]
        if REPLACED.load(Relaxed) {
            return None;
        }
        let mut key = MaskKey::default();
        self.encrypt(u64::MAX - 1, &[], &mut *key).map(|_| key)
    }
}

/// 4 zero bytes, then the packet number: little-endian for ChaCha20, big-endian for AES. Source: Noise
/// revision 34, section 12.
fn nonce(cipher: Cipher, pn: u64) -> [u8; 12] {
    let [a, b, c, d, e, f, g, h] = match cipher {
        Cipher::ChaChaPoly => pn.to_le_bytes(),
        Cipher::AesGcm => pn.to_be_bytes(),
    };
    [0, 0, 0, 0, a, b, c, d, e, f, g, h]
}

/// Most bytes that are precomputed from an AES-GCM key.
const AES_GCM: usize = 1024;
pub(super) const TAG_LEN: usize = 16;

/// Lets a fuzzer get past the tag: from now on no session cipher in this process encrypts, and every tag is
/// zeros.
#[cfg(fuzzing)]
pub fn replace_ciphers() {
    REPLACED.store(true, Relaxed);
}

#[cfg(fuzzing)]
static REPLACED: AtomicBool = AtomicBool::new(false);
