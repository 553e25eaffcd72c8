//! The same bytes over every datagram. Only for compatibility.

use super::super::datagram::MOST;
use super::{Cipher, Key};
use pbkdf2::pbkdf2_hmac;
use sha1::Sha1;

pub(super) struct Xor(Box<[u8; MOST]>);

impl Xor {
    /// Source: kcp-go `NewSimpleXORBlockCrypt`.
    pub(super) fn new(key: &Key) -> Self {
        let mut over = Box::new([0; MOST]);
        pbkdf2_hmac::<Sha1>(key.as_bytes(), b"sH3CIVoF#rWLtJo6", 32, over.as_mut_slice());
        Self(over)
    }
}

impl Cipher for Xor {
    fn hide(&self, datagram: &mut [u8]) {
        datagram.iter_mut().zip(self.0.iter()).for_each(|(byte, over)| *byte ^= over);
    }

    fn show(&self, datagram: &mut [u8]) {
        self.hide(datagram);
    }
}
