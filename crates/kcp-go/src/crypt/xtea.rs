//! XTEA in CFB mode. The crate reads words as little-endian, kcp-go as big-endian, so the bytes of each word
//! are reversed before and after.

use super::{Cipher, FIRST, Key};
use cfb_mode::cipher::{BlockCipherEncrypt, KeyInit};

const BLOCK: usize = 8;

pub(super) struct Xtea(xtea::Xtea);

impl Xtea {
    pub(super) fn new(key: &Key) -> Self {
        Self(xtea::Xtea::new(&turned(key.first::<16>()).into()))
    }

    fn encrypt(&self, block: [u8; BLOCK]) -> [u8; BLOCK] {
        let mut block = turned(block).into();
        self.0.encrypt_block(&mut block);
        turned(block.into())
    }

    /// Runs the feedback over a datagram: each chunk is XORed with the encryption of the encrypted block
    /// before it. `hidden` picks the encrypted one of a chunk before and after.
    fn feed(&self, datagram: &mut [u8], hidden: impl Fn([u8; BLOCK], [u8; BLOCK]) -> [u8; BLOCK]) {
        let mut last = [0; BLOCK];
        last.iter_mut().zip(FIRST).for_each(|(to, from)| *to = from);
        for chunk in datagram.chunks_mut(BLOCK) {
            let over = self.encrypt(last);
            let before = block_of(chunk);
            chunk.iter_mut().zip(over).for_each(|(byte, over)| *byte ^= over);
            last = hidden(before, block_of(chunk));
        }
    }
}

impl Cipher for Xtea {
    fn hide(&self, datagram: &mut [u8]) {
        self.feed(datagram, |_, after| after);
    }

    fn show(&self, datagram: &mut [u8]) {
        self.feed(datagram, |before, _| before);
    }
}

/// Reverses the bytes of each 4-byte word.
fn turned<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    bytes.chunks_mut(4).for_each(<[u8]>::reverse);
    bytes
}

/// A chunk as a block, padded if it is shorter.
fn block_of(chunk: &[u8]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
    block
}
