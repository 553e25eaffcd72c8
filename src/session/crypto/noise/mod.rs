//! Noise by the crate snow: NN, NNpsk0, NK and NKpsk0 with X25519 and BLAKE2s. Source: the Noise Protocol
//! Framework, revision 34.
//!
//! `phase` seals packets with the resulting keys; `cipher` encrypts, either in pure Rust (`pure`) or with
//! ring (`fast`).

mod cipher;
#[cfg(feature = "ring")]
mod fast;
mod fleet;
mod phase;
#[cfg(any(test, not(feature = "ring")))]
mod pure;
#[cfg(test)]
pub(in crate::session) mod record;

#[cfg(fuzzing)]
pub use cipher::replace_ciphers;
pub use fleet::FleetKey;

use super::{Begun, Handshake, Provider, Secrets};
use crate::session::exchange::{Attempt, HandshakeError};
use crate::session::seal::Keys;
use crate::session::wire::MESSAGE_MAX;
use crate::session::{Cipher, Pattern, Suite};
use blake2::Blake2sMac256;
use blake2::digest::{FixedOutput, Update};
use chacha20poly1305::XChaCha20Poly1305;
use chacha20poly1305::aead::{AeadInPlace, KeyInit};
use phase::Phases;
use snow::params::{CipherChoice, DHChoice, HashChoice, NoiseParams};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Dh, Hash, Random};
use snow::{Builder, HandshakeState};
use zeroize::{Zeroize, Zeroizing};

/// A key of a cipher, wiped when it is dropped.
type Key = Zeroizing<[u8; 32]>;

pub(super) struct Noise;

/// The client of a handshake, or a server that has read the first message.
struct Shaking {
    state: HandshakeState,
    cipher: Cipher,
}

impl Provider for Noise {
    fn begin(
        &self,
        attempt: &Attempt<'_>,
        secrets: Secrets<'_>,
        payload: &[u8],
        msg1: &mut Vec<u8>,
    ) -> Begun {
        let (mut state, cipher) = state(attempt, secrets, true)?;
        write(&mut state, payload, msg1)?;
        Ok(Box::new(Shaking { state, cipher }))
    }

    fn answer(
        &self,
        attempt: &Attempt<'_>,
        secrets: Secrets<'_>,
        msg1: &[u8],
        payload: &mut Vec<u8>,
    ) -> Begun {
        let (mut state, cipher) = state(attempt, secrets, false)?;
        read(&mut state, msg1, payload)?;
        Ok(Box::new(Shaking { state, cipher }))
    }

    fn seal_token(
        &self,
        key: &[u8; 32],
        nonce: &[u8; 24],
        associated: &[u8],
        plain: &mut [u8],
    ) -> Option<[u8; 16]> {
        let cipher = XChaCha20Poly1305::new(key.into());
        cipher.encrypt_in_place_detached(nonce.into(), associated, plain).ok().map(Into::into)
    }

    fn derive(&self, key: &[u8; 32], label: &[u8]) -> Option<[u8; 16]> {
        let mut mac = Blake2sMac256::new(key.into());
        mac.update(label);
        let derived: Key = Key::new(mac.finalize_fixed().into());
        derived.first_chunk().copied()
    }

    fn open_token(
        &self,
        key: &[u8; 32],
        nonce: &[u8; 24],
        associated: &[u8],
        sealed: &mut [u8],
        tag: &[u8; 16],
    ) -> bool {
        let cipher = XChaCha20Poly1305::new(key.into());
        cipher.decrypt_in_place_detached(nonce.into(), associated, sealed, tag.into()).is_ok()
    }
}

impl Handshake for Shaking {
    fn read_msg2(&mut self, msg2: &[u8], payload: &mut Vec<u8>) -> Result<Keys, HandshakeError> {
        read(&mut self.state, msg2, payload)?;
        let (to_server, to_client) = self.state.dangerously_get_raw_split();
        Ok(Keys::of_client(self.cipher, to_server, to_client))
    }

    fn write_msg2(mut self: Box<Self>, payload: &[u8], msg2: &mut Vec<u8>) -> Result<Keys, HandshakeError> {
        write(&mut self.state, payload, msg2)?;
        let (to_server, to_client) = self.state.dangerously_get_raw_split();
        Ok(Keys::of_server(self.cipher, to_server, to_client))
    }
}

impl Keys {
    /// The keys at the client's end of a session.
    #[must_use]
    pub fn of_client(cipher: Cipher, to_server: [u8; 32], to_client: [u8; 32]) -> Self {
        Self(Box::new(Phases::new(cipher, Key::new(to_server), Key::new(to_client), true)))
    }

    /// The keys at the server's end of a session.
    #[must_use]
    pub fn of_server(cipher: Cipher, to_server: [u8; 32], to_client: [u8; 32]) -> Self {
        Self(Box::new(Phases::new(cipher, Key::new(to_client), Key::new(to_server), false)))
    }
}

/// The public half of a private key (32 random bytes), which a client must have to recognise the server.
#[must_use]
pub fn public_key(private: &[u8; 32]) -> [u8; 32] {
    let mut public = [0; 32];
    if let Some(mut dh) = DefaultResolver.resolve_dh(&DHChoice::Curve25519) {
        dh.set(private);
        public = dh.pubkey().try_into().unwrap_or_default();
    }
    public
}

/// The state before the first message, and the cipher of the suite.
fn state(
    attempt: &Attempt<'_>,
    secrets: Secrets<'_>,
    is_client: bool,
) -> Result<(HandshakeState, Cipher), HandshakeError> {
    let Suite::Noise(pattern, cipher) = attempt.suite else { return Err(HandshakeError::Suite) };
    let params: NoiseParams = name(pattern, cipher).parse().map_err(|_| HandshakeError::Suite)?;
    let resolver = Box::new(Resolver(Key::new(*secrets.random)));
    let prologue = attempt.prologue();
    let builder = Builder::with_resolver(params, resolver).prologue(&prologue);
    let mut builder = builder.map_err(|_| HandshakeError::Suite)?;
    if let Some(psk) = secrets.psk {
        builder = builder.psk(0, psk).map_err(|_| HandshakeError::Psk)?;
    }
    let builder = match secrets.server_key {
        Some(key) if is_client => builder.remote_public_key(key),
        Some(key) => builder.local_private_key(key),
        None => Ok(builder),
    };
    let build = if is_client { Builder::build_initiator } else { Builder::build_responder };
    let state = builder.and_then(build).map_err(|_| HandshakeError::ServerKey)?;
    Ok((state, cipher))
}

const fn name(pattern: Pattern, cipher: Cipher) -> &'static str {
    match (pattern, cipher) {
        (Pattern::Nn, Cipher::ChaChaPoly) => "Noise_NN_25519_ChaChaPoly_BLAKE2s",
        (Pattern::Nn, Cipher::AesGcm) => "Noise_NN_25519_AESGCM_BLAKE2s",
        (Pattern::NnPsk0, Cipher::ChaChaPoly) => "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s",
        (Pattern::NnPsk0, Cipher::AesGcm) => "Noise_NNpsk0_25519_AESGCM_BLAKE2s",
        (Pattern::Nk, Cipher::ChaChaPoly) => "Noise_NK_25519_ChaChaPoly_BLAKE2s",
        (Pattern::Nk, Cipher::AesGcm) => "Noise_NK_25519_AESGCM_BLAKE2s",
        (Pattern::NkPsk0, Cipher::ChaChaPoly) => "Noise_NKpsk0_25519_ChaChaPoly_BLAKE2s",
        (Pattern::NkPsk0, Cipher::AesGcm) => "Noise_NKpsk0_25519_AESGCM_BLAKE2s",
    }
}

fn write(state: &mut HandshakeState, payload: &[u8], message: &mut Vec<u8>) -> Result<(), HandshakeError> {
    let mut room = [0; MESSAGE_MAX];
    let len = state.write_message(payload, &mut room).map_err(|_| HandshakeError::Length)?;
    message.extend_from_slice(room.get(..len).unwrap_or_default());
    Ok(())
}

fn read(state: &mut HandshakeState, message: &[u8], payload: &mut Vec<u8>) -> Result<(), HandshakeError> {
    let mut room = [0; MESSAGE_MAX];
    let len = state.read_message(message, &mut room).map_err(|error| match error {
        snow::Error::Input => HandshakeError::Length,
        _ => HandshakeError::Forged,
    })?;
    payload.extend_from_slice(room.get(..len).unwrap_or_default());
    room.zeroize();
    Ok(())
}

/// The primitives in Rust, with the caller's random bytes instead of the system's.
struct Resolver(Key);

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Once(Some(self.0.clone()))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn snow::types::Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

/// 32 random bytes, handed out once: these patterns draw just one key.
struct Once(Option<Key>);

impl Random for Once {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), snow::Error> {
        let random = self.0.take().ok_or(snow::Error::Rng)?;
        if dest.len() != random.len() {
            return Err(snow::Error::Rng);
        }
        dest.copy_from_slice(&*random);
        Ok(())
    }
}
