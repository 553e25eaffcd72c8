//! Salsa20. The first 8 bytes of a datagram stay in the clear and are the nonce. So a key stream only repeats
//! with the same 8 bytes, which is to be expected once in 2^32 datagrams under one key.

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
