//! Block ciphers in CFB mode: full blocks, a partial last one, and the same initial block for every datagram.
//! Datagrams differ because of the random bytes at their start.

use super::{Cipher, FIRST};
use cfb_mode::cipher::array::Array;
use cfb_mode::cipher::{Block, BlockCipherEncrypt, BlockSizeUser, InnerIvInit};
use cfb_mode::{Decryptor, Encryptor};

pub(super) struct Feedback<C: BlockSizeUser> {
    cipher: C,
    first: Block<C>,
}

impl<C: BlockSizeUser> Feedback<C> {
    pub(super) fn of(cipher: C) -> Self {
        let first = Array::from_fn(|at| FIRST.get(at).copied().unwrap_or_default());
        Self { cipher, first }
    }
}

impl<C: BlockCipherEncrypt + Send + Sync> Cipher for Feedback<C>
where
    Block<C>: Send + Sync,
{
    fn hide(&self, datagram: &mut [u8]) {
        Encryptor::inner_iv_init(&self.cipher, &self.first).encrypt(datagram);
    }

    fn show(&self, datagram: &mut [u8]) {
        Decryptor::inner_iv_init(&self.cipher, &self.first).decrypt(datagram);
    }
}
