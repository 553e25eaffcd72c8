//! A cipher with its key: authenticated encryption by packet number.

#[cfg(feature = "ring")]
use super::fast::{AesGcm, ChaChaPoly};
use super::keys::Key;
#[cfg(not(feature = "ring"))]
use super::pure::{AesGcm, ChaChaPoly};
use crate::session::Cipher;

/// Authenticated encryption in place. The nonce of a packet is its number, as Noise has it (revision 34, section 12).
pub(super) trait Aead {
    fn new(key: &[u8; 32]) -> Self
    where
        Self: Sized;

    /// Encrypts `body`; returns the tag over it and `header`. `None` never is, for bodies of less than 64 GiB.
    fn seal(&self, pn: u64, header: &[u8], body: &mut [u8]) -> Option<[u8; TAG_LEN]>;

    /// Decrypts what stands before the tag in `sealed` if the tag is right. If it is not, the bytes of `sealed` are of no use.
    fn open(&self, pn: u64, header: &[u8], sealed: &mut [u8]) -> bool;
}

/// A key, ready for use, or at rest.
pub(super) struct Keyed {
    key: Key,
    which: Cipher,
    /// What is computed from the key once; `None`: for each packet anew.
    aead: Option<Any>,
}

enum Any {
    ChaChaPoly(ChaChaPoly),
    AesGcm(AesGcm),
}

impl Keyed {
    pub(super) fn new(which: Cipher, key: Key) -> Self {
        let aead = Some(Any::new(which, &key));
        Self { key, which, aead }
    }

    pub(super) const fn memory(&self) -> usize {
        match &self.aead {
            Some(Any::ChaChaPoly(_)) => size_of::<ChaChaPoly>(),
            Some(Any::AesGcm(_)) => AES_GCM,
            None => 0,
        }
    }

    /// Keeps nothing but the key.
    pub(super) fn rest(&mut self) {
        self.aead = None;
    }

    pub(super) fn wake(&mut self) {
        if self.aead.is_none() {
            self.aead = Some(Any::new(self.which, &self.key));
        }
    }

    pub(super) fn seal(&self, pn: u64, header: &[u8], body: &mut [u8]) -> Option<[u8; TAG_LEN]> {
        #[cfg(test)]
        super::record::used(&self.key, pn);
        #[cfg(fuzzing)]
        if super::null::is_on() {
            return Some([0; TAG_LEN]);
        }
        self.encrypt(pn, header, body)
    }

    fn encrypt(&self, pn: u64, header: &[u8], body: &mut [u8]) -> Option<[u8; TAG_LEN]> {
        match &self.aead {
            Some(aead) => aead.seal(pn, header, body),
            None => Any::new(self.which, &self.key).seal(pn, header, body),
        }
    }

    pub(super) fn open(&self, pn: u64, header: &[u8], sealed: &mut [u8]) -> bool {
        #[cfg(fuzzing)]
        if super::null::is_on() {
            return sealed.ends_with(&[0; TAG_LEN]);
        }
        match &self.aead {
            Some(aead) => aead.open(pn, header, sealed),
            None => Any::new(self.which, &self.key).open(pn, header, sealed),
        }
    }

    /// The key that follows this one; this one cannot be computed from it. Source: Noise revision 34, section 11.3 and `REKEY` in
    /// section 4.2. Packet numbers end long before the nonce that it uses, and
    /// what it encrypts is never sent.
    pub(super) fn next(&self) -> Key {
        let mut key = Key::new([0; 32]);
        let _ = self.encrypt(u64::MAX, &[], &mut *key);
        key
    }

    pub(super) const fn key(&self) -> &Key {
        &self.key
    }

    pub(super) const fn which(&self) -> Cipher {
        self.which
    }
}

impl Any {
    fn new(which: Cipher, key: &Key) -> Self {
        match which {
            Cipher::ChaChaPoly => Self::ChaChaPoly(Aead::new(key)),
            Cipher::AesGcm => Self::AesGcm(Aead::new(key)),
        }
    }

    fn seal(&self, pn: u64, header: &[u8], body: &mut [u8]) -> Option<[u8; TAG_LEN]> {
        match self {
            Self::ChaChaPoly(aead) => aead.seal(pn, header, body),
            Self::AesGcm(aead) => aead.seal(pn, header, body),
        }
    }

    fn open(&self, pn: u64, header: &[u8], sealed: &mut [u8]) -> bool {
        match self {
            Self::ChaChaPoly(aead) => aead.open(pn, header, sealed),
            Self::AesGcm(aead) => aead.open(pn, header, sealed),
        }
    }
}

/// 4 zero bytes, then the number, its low byte first.
pub(super) fn chacha_nonce(pn: u64) -> [u8; 12] {
    let [a, b, c, d, e, f, g, h] = pn.to_le_bytes();
    [0, 0, 0, 0, a, b, c, d, e, f, g, h]
}

/// 4 zero bytes, then the number, its high byte first.
pub(super) fn aes_nonce(pn: u64) -> [u8; 12] {
    let [a, b, c, d, e, f, g, h] = pn.to_be_bytes();
    [0, 0, 0, 0, a, b, c, d, e, f, g, h]
}

/// Bytes of what is computed from a key of AES-GCM, at most.
const AES_GCM: usize = 1024;
/// Bytes of a tag.
pub(super) const TAG_LEN: usize = 16;
