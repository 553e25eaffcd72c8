//! A cipher with its key: authenticated encryption in place, by packet number. Whichever of `pure` and `fast` is built in returns no tag
//! for bodies of 64 GiB and more, and leaves bytes of no use where a tag is wrong.

use super::Key;
#[cfg(feature = "ring")]
use super::fast::Fast as Any;
#[cfg(not(feature = "ring"))]
use super::pure::Pure as Any;
use crate::session::Cipher;
#[cfg(fuzzing)]
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub(super) struct Keyed {
    pub(super) key: Key,
    pub(super) which: Cipher,
    /// What is computed from the key once; `None`: for each packet anew.
    aead: Option<Any>,
}

impl Keyed {
    pub(super) fn new(which: Cipher, key: Key) -> Self {
        Self { aead: Some(Any::new(which, &key)), key, which }
    }

    pub(super) const fn memory(&self) -> usize {
        match (&self.aead, self.which) {
            (Some(_), Cipher::ChaChaPoly) => size_of::<Key>(),
            (Some(_), Cipher::AesGcm) => AES_GCM,
            (None, _) => 0,
        }
    }

    /// Keeps nothing but the key.
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

    fn encrypt(&self, pn: u64, header: &[u8], body: &mut [u8]) -> Option<[u8; TAG_LEN]> {
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
        let nonce = nonce(self.which, pn);
        match &self.aead {
            Some(aead) => aead.open(nonce, header, sealed),
            None => Any::new(self.which, &self.key).open(nonce, header, sealed),
        }
    }

    /// The key that follows this one; this one cannot be computed from it. Source: Noise revision 34, section 11.3 and `REKEY` in
    /// section 4.2. Packet numbers end long before the nonce that it uses, and what it encrypts is never sent.
    pub(super) fn next(&self) -> Key {
        let mut key = Key::new([0; 32]);
        let _ = self.encrypt(u64::MAX, &[], &mut *key);
        key
    }
}

/// 4 zero bytes, then the packet number: with ChaCha20 its low byte first, with AES its high byte. Source: Noise revision 34, section 12.
fn nonce(cipher: Cipher, pn: u64) -> [u8; 12] {
    let [a, b, c, d, e, f, g, h] = match cipher {
        Cipher::ChaChaPoly => pn.to_le_bytes(),
        Cipher::AesGcm => pn.to_be_bytes(),
    };
    [0, 0, 0, 0, a, b, c, d, e, f, g, h]
}

/// Bytes of what is computed from a key of AES-GCM, at most.
const AES_GCM: usize = 1024;
pub(super) const TAG_LEN: usize = 16;

/// A fuzzer gets past the tag: from now on no cipher of sessions encrypts in this process, and each tag is zeros.
#[cfg(fuzzing)]
pub fn replace_ciphers() {
    REPLACED.store(true, Relaxed);
}

#[cfg(fuzzing)]
static REPLACED: AtomicBool = AtomicBool::new(false);
