//! Salsa20: the first 8 bytes of a datagram stay as they are and are the nonce, so the rest is hidden by a stream that comes
//! again only with the same 8 bytes: of 2^32 datagrams under one key that is to be expected once.

use super::{Cipher, Key};
use salsa20::Salsa20;
use salsa20::cipher::{KeyIvInit, StreamCipher};

pub(super) struct Salsa(Key);

impl Salsa {
    pub(super) fn new(key: &Key) -> Self {
        Self(key.clone())
    }
}

impl Cipher for Salsa {
    fn hide(&self, datagram: &mut [u8]) {
        let Some((nonce, rest)) = datagram.split_first_chunk_mut::<8>() else { return };
        Salsa20::new(self.0.as_bytes().into(), (&*nonce).into()).apply_keystream(rest);
    }

    fn show(&self, datagram: &mut [u8]) {
        self.hide(datagram);
    }
}
