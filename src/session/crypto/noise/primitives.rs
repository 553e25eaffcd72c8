//! What snow computes with: X25519, BLAKE2s and the ciphers, all of which wipe what they held, and the caller's random
//! bytes instead of the system's.

use super::cipher::{Keyed, TAG_LEN};
use super::{Key, blank};
use crate::session::Cipher;
use crate::session::wire::MESSAGE_MAX;
use blake2::{Blake2s256, Digest as _};
use curve25519_dalek::MontgomeryPoint;
use snow::Error;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::CryptoResolver;
use snow::types::{Cipher as Sealing, Dh, Hash, Random};
use zeroize::{Zeroize, Zeroizing};

/// Has the random bytes for one handshake.
pub(super) struct Resolver(pub(super) Key);

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        let mut once = Box::new(Once { random: Key::new([0; 32]), is_drawn: false });
        once.random.copy_from_slice(&*self.0);
        Some(once)
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        match choice {
            DHChoice::Curve25519 => Some(Box::<X25519>::default()),
            DHChoice::Curve448 => None,
        }
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        match choice {
            HashChoice::Blake2s => Some(Box::<Blake>::default()),
            _ => None,
        }
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Sealing>> {
        let which = match choice {
            CipherChoice::ChaChaPoly => Cipher::ChaChaPoly,
            CipherChoice::AESGCM => Cipher::AesGcm,
        };
        Some(Box::new(Message(Keyed::resting(which, Key::default()))))
    }
}

/// 32 random bytes, handed out once: these patterns draw just one key.
struct Once {
    random: Key,
    is_drawn: bool,
}

impl Random for Once {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), Error> {
        if self.is_drawn || dest.len() != self.random.len() {
            return Err(Error::Rng);
        }
        dest.copy_from_slice(&*self.random);
        self.random.zeroize();
        self.is_drawn = true;
        Ok(())
    }
}

/// A pair of keys.
#[derive(Default)]
pub(super) struct X25519 {
    private: Key,
    pub(super) public: [u8; 32],
}

impl Dh for X25519 {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        self.public.len()
    }

    fn priv_len(&self) -> usize {
        self.private.len()
    }

    /// Ignores anything but 32 bytes, which snow does not pass.
    fn set(&mut self, private: &[u8]) {
        if let Ok(private) = <&[u8; 32]>::try_from(private) {
            self.private.copy_from_slice(private);
            self.public = MontgomeryPoint::mul_base_clamped(*private).to_bytes();
        }
    }

    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), Error> {
        rng.try_fill_bytes(&mut *self.private)?;
        self.public = MontgomeryPoint::mul_base_clamped(*self.private).to_bytes();
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &*self.private
    }

    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let public = public.first_chunk().ok_or(Error::Dh)?;
        let out = out.first_chunk_mut().ok_or(Error::Dh)?;
        *out = MontgomeryPoint(*public).mul_clamped(*self.private).to_bytes();
        Ok(())
    }
}

/// BLAKE2s, with a state that may contain a key.
#[derive(Default)]
pub(super) struct Blake(Blake2s256);

impl Hash for Blake {
    fn name(&self) -> &'static str {
        "BLAKE2s"
    }

    fn block_len(&self) -> usize {
        64
    }

    fn hash_len(&self) -> usize {
        32
    }

    fn reset(&mut self) {
        self.0 = Blake2s256::default(); // other than `Digest::reset`, this also overwrites the last block
    }

    fn input(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn result(&mut self, out: &mut [u8]) {
        let mut hash = self.0.finalize_reset();
        if let Some(out) = out.first_chunk_mut() {
            *out = hash.into();
        }
        hash.zeroize();
    }
}

impl Drop for Blake {
    fn drop(&mut self) {
        blank(&mut self.0, || Some(Blake2s256::default()));
    }
}

/// Seals the payloads of a handshake.
struct Message(Keyed);

impl Sealing for Message {
    fn name(&self) -> &'static str {
        match self.0.which {
            Cipher::ChaChaPoly => "ChaChaPoly",
            Cipher::AesGcm => "AESGCM",
        }
    }

    fn set(&mut self, key: &[u8; 32]) {
        self.0.key.copy_from_slice(key);
    }

    /// Returns 0 if there is no room, which snow makes sure of.
    fn encrypt(&self, nonce: u64, header: &[u8], plain: &[u8], out: &mut [u8]) -> usize {
        let Some((body, tag)) = out.split_at_mut_checked(plain.len()) else { return 0 };
        let Some(tag) = tag.first_chunk_mut() else { return 0 };
        body.copy_from_slice(plain);
        let Some(sealed) = self.0.encrypt(nonce, header, body) else { return 0 };
        *tag = sealed;
        plain.len() + TAG_LEN
    }

    fn decrypt(&self, nonce: u64, header: &[u8], sealed: &[u8], out: &mut [u8]) -> Result<usize, Error> {
        let mut room = Zeroizing::new([0; MESSAGE_MAX]);
        let room = room.get_mut(..sealed.len()).ok_or(Error::Decrypt)?;
        room.copy_from_slice(sealed);
        if !self.0.decrypt(nonce, header, room) {
            return Err(Error::Decrypt);
        }
        let plain = room.get(..sealed.len() - TAG_LEN).ok_or(Error::Decrypt)?;
        out.get_mut(..plain.len()).ok_or(Error::Decrypt)?.copy_from_slice(plain);
        Ok(plain.len())
    }
}
