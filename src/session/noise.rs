//! Noise by the crate snow: NN, NNpsk0, NK and NKpsk0 with X25519 and BLAKE2s. Source: the Noise Protocol Framework, revision 34.

use super::exchange::HandshakeError;
use super::seal::Keys;
use super::wire::MESSAGE_MAX;
use super::{Cipher, Pattern};
use snow::params::{CipherChoice, DHChoice, HashChoice, NoiseParams};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Dh, Hash, Random};
use snow::{Builder, HandshakeState};
use zeroize::{Zeroize, Zeroizing};

/// A pre-shared key and a key of the server, as far as the suite needs them.
pub(super) type Credentials<'a> = (Option<&'a [u8; 32]>, Option<&'a [u8; 32]>);

pub(super) struct NoiseInitiator {
    state: HandshakeState,
    cipher: Cipher,
}

pub(super) struct NoiseResponder {
    state: HandshakeState,
    cipher: Cipher,
}

impl NoiseInitiator {
    pub(super) fn new(
        pattern: Pattern,
        cipher: Cipher,
        prologue: &[u8],
        (psk, server_key): Credentials<'_>,
        random: [u8; 32],
    ) -> Result<Self, HandshakeError> {
        let mut builder = builder(pattern, cipher, prologue, psk, random)?;
        if let Some(server_key) = server_key {
            builder = builder.remote_public_key(server_key).map_err(|_| HandshakeError::ServerKey)?;
        }
        let state = builder.build_initiator().map_err(|_| HandshakeError::ServerKey)?;
        Ok(Self { state, cipher })
    }

    pub(super) fn begin(mut self, payload: &[u8], msg1: &mut Vec<u8>) -> Result<Self, HandshakeError> {
        write(&mut self.state, payload, msg1)?;
        Ok(self)
    }

    pub(super) fn read_msg2(&mut self, msg2: &[u8], payload: &mut Vec<u8>) -> Result<Keys, HandshakeError> {
        read(&mut self.state, msg2, payload)?;
        let (to_server, to_client) = self.state.dangerously_get_raw_split();
        Ok(Keys::of_client(self.cipher, to_server, to_client))
    }
}

impl NoiseResponder {
    pub(super) fn new(
        pattern: Pattern,
        cipher: Cipher,
        prologue: &[u8],
        (psk, server_key): Credentials<'_>,
        random: [u8; 32],
    ) -> Result<Self, HandshakeError> {
        let mut builder = builder(pattern, cipher, prologue, psk, random)?;
        if let Some(server_key) = server_key {
            builder = builder.local_private_key(server_key).map_err(|_| HandshakeError::ServerKey)?;
        }
        let state = builder.build_responder().map_err(|_| HandshakeError::ServerKey)?;
        Ok(Self { state, cipher })
    }

    pub(super) fn read_msg1(mut self, msg1: &[u8], payload: &mut Vec<u8>) -> Result<Self, HandshakeError> {
        read(&mut self.state, msg1, payload)?;
        Ok(self)
    }

    pub(super) fn write_msg2(mut self, payload: &[u8], msg2: &mut Vec<u8>) -> Result<Keys, HandshakeError> {
        write(&mut self.state, payload, msg2)?;
        let (to_server, to_client) = self.state.dangerously_get_raw_split();
        Ok(Keys::of_server(self.cipher, to_server, to_client))
    }
}

/// The public half of a private key of 32 random bytes: what a client has to know of a server with this key.
#[must_use]
pub fn public_key(private: &[u8; 32]) -> [u8; 32] {
    let mut public = [0; 32];
    if let Some(mut dh) = DefaultResolver.resolve_dh(&DHChoice::Curve25519) {
        dh.set(private);
        public = dh.pubkey().try_into().unwrap_or_default();
    }
    public
}

fn builder<'a>(
    pattern: Pattern,
    cipher: Cipher,
    prologue: &'a [u8],
    psk: Option<&'a [u8; 32]>,
    random: [u8; 32],
) -> Result<Builder<'a>, HandshakeError> {
    let params: NoiseParams = name(pattern, cipher).parse().map_err(|_| HandshakeError::Suite)?;
    let resolver = Box::new(Resolver(Zeroizing::new(random)));
    let builder = Builder::with_resolver(params, resolver);
    let builder = builder.prologue(prologue).map_err(|_| HandshakeError::Suite)?;
    match psk {
        Some(psk) => builder.psk(0, psk).map_err(|_| HandshakeError::Psk),
        None => Ok(builder),
    }
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

/// The primitives in Rust, and the caller's random bytes instead of the system's.
struct Resolver(Zeroizing<[u8; 32]>);

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

/// 32 random bytes, once: one key is all that these patterns draw.
struct Once(Option<Zeroizing<[u8; 32]>>);

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
