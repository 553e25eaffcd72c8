//! The hybrid suites: Noise, then ML-KEM-768 (FIPS 203). The keys of packets come from both, so whoever wants them has
//! to break both.
//!
//! The server makes a key pair for each session. The second message authenticates the hash of its encapsulation key,
//! which follows in a datagram of its own. The client encapsulates a secret to it. The ciphertext is sealed with the key
//! from the two messages, which seals nothing else, so whatever opens it comes from the client.

use super::cipher::{Keyed, TAG_LEN};
use super::phase::Phases;
use super::renewal::derive;
use super::{Key, STACK, Shaking, answer, begin, derived, read, write};
use crate::session::Cipher;
use crate::session::crypto::{Begun, Handshake, Protection, Provider, Renewal, Secrets};
use crate::session::exchange::{Attempt, HandshakeError};
use crate::session::seal::{Keys, MaskKey, OpenError, SealError};
use crate::session::wire::{Data, KEM_KEY_LEN, KEM_SEALED_LEN, KemCiphertext, KemKey, kind};
use crate::time::Time;
use blake2::{Blake2s256, Digest as _};
use ml_kem::kem::{Decapsulate as _, KeyExport as _};
use ml_kem::ml_kem_768::{DecapsulationKey, EncapsulationKey};
use zeroize::{Zeroize as _, Zeroizing, zeroize_stack};

pub(in crate::session::crypto) struct Hybrid;

/// The random bytes of an end are derived from what its owner drew, one part for each use: whoever computes those for
/// X25519 with a quantum computer must not get the others from them.
impl Provider for Hybrid {
    fn begin(
        &self,
        attempt: &Attempt<'_>,
        secrets: Secrets<'_>,
        payload: &[u8],
        msg1: &mut Vec<u8>,
    ) -> Begun {
        let [dh, m] = ["ww/1 x25519", "ww/1 kem m"].map(|label| derived(secrets.random, label.as_bytes()));
        let shaking = begin(attempt, Secrets { random: &dh, ..secrets }, payload, msg1);
        zeroize_stack::<STACK>();
        Ok(Box::new(Initiator { shaking: shaking?, m }))
    }

    fn answer(
        &self,
        attempt: &Attempt<'_>,
        secrets: Secrets<'_>,
        msg1: &[u8],
        payload: &mut Vec<u8>,
    ) -> Begun {
        let labels = ["ww/1 x25519", "ww/1 kem d", "ww/1 kem z"];
        let [dh, d, z] = labels.map(|label| derived(secrets.random, label.as_bytes()));
        let shaking = answer(attempt, Secrets { random: &dh, ..secrets }, msg1, payload);
        zeroize_stack::<STACK>();
        Ok(Box::new(Responder { shaking: shaking?, cid: attempt.cid, seed: [d, z] }))
    }
}

struct Initiator {
    shaking: Box<Shaking>,
    m: Key,
}

struct Responder {
    shaking: Box<Shaking>,
    cid: u64,
    seed: Seed,
}

/// d and z of a key pair.
type Seed = [Key; 2];

impl Handshake for Initiator {
    fn read_msg2(&mut self, msg2: &[u8], payload: &mut Vec<u8>) -> Result<Keys, HandshakeError> {
        let mut said = Vec::new();
        let message = read(&mut self.shaking.state, msg2, &mut said);
        let keys = message.map(|()| self.shaking.keys());
        zeroize_stack::<STACK>();
        let keys = keys?;
        let (hash, said) = said.split_first_chunk().ok_or(HandshakeError::Length)?;
        payload.extend_from_slice(said);
        let role = Role::Client { m: self.m.clone(), hash: *hash };
        Ok(Keys(Box::new(Pending { cipher: self.shaking.cipher, keys, role })))
    }

    fn write_msg2(self: Box<Self>, _: &[u8], _: &mut Vec<u8>) -> Result<Keys, HandshakeError> {
        Err(HandshakeError::Suite)
    }
}

impl Handshake for Responder {
    fn read_msg2(&mut self, _: &[u8], _: &mut Vec<u8>) -> Result<Keys, HandshakeError> {
        Err(HandshakeError::Suite)
    }

    fn write_msg2(mut self: Box<Self>, payload: &[u8], msg2: &mut Vec<u8>) -> Result<Keys, HandshakeError> {
        let key = encapsulation_key(&self.seed);
        zeroize_stack::<KEM_STACK>();
        let message = [&Blake2s256::digest(key)[..], payload].concat();
        let written = write(&mut self.shaking.state, &message, msg2);
        let keys = written.map(|()| self.shaking.keys());
        zeroize_stack::<STACK>();
        let mut datagram = Vec::new();
        KemKey { cid: self.cid, key: &key }.encode(&mut datagram);
        let role = Role::Server { seed: self.seed.clone(), datagram: datagram.into() };
        Ok(Keys(Box::new(Pending { cipher: self.shaking.cipher, keys: keys?, role })))
    }
}

/// An end with the keys from the two messages, of packets to the server and to the client. It seals and opens no
/// packet.
struct Pending {
    cipher: Cipher,
    keys: [Key; 2],
    role: Role,
}

enum Role {
    /// The random bytes of its secret, and the hash of the server's encapsulation key.
    Client { m: Key, hash: [u8; 32] },
    /// Its key pair, and the datagram with the encapsulation key.
    Server { seed: Seed, datagram: Box<[u8]> },
}

impl Pending {
    /// What the ciphertext is sealed with.
    fn to_server(&self) -> Keyed {
        Keyed::resting(self.cipher, self.keys[0].clone())
    }

    /// The keys of packets to the server and to the client.
    fn complete(&self, shared: &Key, ciphertext: &[u8], key: &[u8; KEM_KEY_LEN]) -> [Key; 2] {
        let [to_server, to_client] = &self.keys;
        derive([to_server, to_client], shared, [ciphertext, key])
    }

    /// Seals the ciphertext for `key`, and returns the keys. `None`: the key is invalid.
    #[inline(never)]
    fn seal_ciphertext(
        &self,
        m: &Key,
        key: &[u8; KEM_KEY_LEN],
        sid: u32,
        sealed: &mut [u8; KEM_SEALED_LEN],
    ) -> Option<[Key; 2]> {
        let encapsulation_key = EncapsulationKey::new(key.into()).ok()?;
        let (ciphertext, mut secret) = encapsulation_key.encapsulate_deterministic((&**m).into());
        let shared = Key::new(secret.into());
        secret.0.zeroize();
        let keys = self.complete(&shared, &ciphertext, key);
        let (body, tag) = sealed.split_last_chunk_mut::<TAG_LEN>()?;
        body.copy_from_slice(&ciphertext);
        *tag = self.to_server().seal(0, &header(sid), body)?;
        Some(keys)
    }

    /// Opens the ciphertext, and returns the keys.
    #[inline(never)]
    fn open_ciphertext(&self, seed: &Seed, datagram: &mut [u8]) -> Option<[Key; 2]> {
        let (header, sealed) = datagram.split_first_chunk_mut::<HEADER_LEN>()?;
        if sealed.len() != KEM_SEALED_LEN || !self.to_server().open(0, header, sealed) {
            return None;
        }
        let (ciphertext, _) = sealed.split_last_chunk::<TAG_LEN>()?;
        let key = pair(seed);
        let mut secret = key.decapsulate(ciphertext.try_into().ok()?);
        let shared = Key::new(secret.into());
        secret.0.zeroize();
        Some(self.complete(&shared, ciphertext, &key.encapsulation_key().to_bytes().into()))
    }
}

impl Protection for Pending {
    fn tail(&self) -> usize {
        TAG_LEN
    }

    fn seal(&mut self, _: Time, _: (Data, u64), _: &mut Vec<u8>, _: usize) -> Result<Renewal, SealError> {
        Err(SealError::KeySpent)
    }

    fn open(&mut self, _: Time, _: (bool, u64, bool), _: &mut [u8]) -> Result<(), OpenError> {
        Err(OpenError::Phase)
    }

    fn is_complete(&self) -> bool {
        false
    }

    fn kem_key(&self) -> Option<&[u8]> {
        if let Role::Server { datagram, .. } = &self.role { Some(datagram) } else { None }
    }

    fn encapsulate(&mut self, sid: u32, key: &[u8; KEM_KEY_LEN]) -> Option<Box<dyn Protection>> {
        let Role::Client { m, hash } = &self.role else { return None };
        if Blake2s256::digest(key)[..] != *hash {
            return None;
        }
        let mut sealed = [0; KEM_SEALED_LEN];
        let keys = self.seal_ciphertext(m, key, sid, &mut sealed);
        zeroize_stack::<KEM_STACK>();
        let [to_server, to_client] = keys?;
        let mut datagram = Vec::new();
        KemCiphertext { sid, sealed: &sealed }.encode(&mut datagram);
        Some(Box::new(Phases::new(self.cipher, to_server, to_client, true).joining(datagram.into())))
    }

    fn decapsulate(&mut self, datagram: &mut [u8]) -> Option<Box<dyn Protection>> {
        let Role::Server { seed, .. } = &self.role else { return None };
        let keys = self.open_ciphertext(seed, datagram);
        zeroize_stack::<KEM_STACK>();
        let [to_server, to_client] = keys?;
        Some(Box::new(Phases::new(self.cipher, to_client, to_server, false)))
    }

    /// Another one follows with the keys, since whoever breaks X25519 must not unmask their packets.
    fn mask_key(&self) -> Option<MaskKey> {
        self.to_server().mask_key()
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.kem_key().map_or(0, <[u8]>::len)
    }

    fn is_encrypted(&self) -> bool {
        true
    }
}

fn pair([d, z]: &Seed) -> DecapsulationKey {
    let mut seed = Zeroizing::new([0; 64]);
    let (first, second) = seed.split_at_mut(32);
    first.copy_from_slice(&**d);
    second.copy_from_slice(&**z);
    DecapsulationKey::from_seed((*seed).into())
}

#[inline(never)]
fn encapsulation_key(seed: &Seed) -> [u8; KEM_KEY_LEN] {
    pair(seed).encapsulation_key().to_bytes().into()
}

/// What precedes the ciphertext, and is authenticated with it.
fn header(sid: u32) -> [u8; HEADER_LEN] {
    let [a, b, c, d] = sid.to_le_bytes();
    [kind::KEM_CIPHERTEXT, a, b, c, d]
}

const HEADER_LEN: usize = 5;
/// Bytes of stack that the KEM uses at most, approximately.
const KEM_STACK: usize = 64 << 10;
