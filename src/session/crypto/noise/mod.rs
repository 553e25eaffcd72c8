//! Noise by the crate snow: NN, NNpsk0, NK and NKpsk0 with X25519 and BLAKE2s. Source: the Noise Protocol
//! Framework, revision 34.
//!
//! `primitives` is what snow computes with; `phase` seals packets with the resulting keys; `cipher` encrypts, either in
//! pure Rust (`pure`) or with ring (`fast`). `hybrid` adds a KEM.
//!
//! No key stays in memory that is freed. What libraries do not wipe is overwritten ([`blank`]), and the stack below a
//! handshake as well.

mod cipher;
#[cfg(feature = "ring")]
mod fast;
mod fleet;
#[cfg(feature = "pq")]
mod hybrid;
mod phase;
mod primitives;
#[cfg(any(test, not(feature = "ring")))]
mod pure;
#[cfg(test)]
pub(in crate::session) mod record;
mod renewal;

#[cfg(fuzzing)]
pub use cipher::replace_ciphers;
pub use fleet::FleetKey;
#[cfg(feature = "pq")]
pub(super) use hybrid::Hybrid;

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
use primitives::{Resolver, X25519};
use snow::params::{
    BaseChoice, CipherChoice, DHChoice, HandshakeChoice, HandshakeModifier, HandshakeModifierList,
    HandshakePattern, HashChoice, NoiseParams,
};
use snow::types::Dh as _;
use snow::{Builder, HandshakeState};
use zeroize::{Zeroizing, optimization_barrier, zeroize_stack};

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
        let begun = begin(attempt, secrets, payload, msg1);
        zeroize_stack::<STACK>();
        Ok(begun?)
    }

    fn answer(
        &self,
        attempt: &Attempt<'_>,
        secrets: Secrets<'_>,
        msg1: &[u8],
        payload: &mut Vec<u8>,
    ) -> Begun {
        let begun = answer(attempt, secrets, msg1, payload);
        zeroize_stack::<STACK>();
        Ok(begun?)
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
        derived(key, label).first_chunk().copied()
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

/// A key from another, for the use that `label` names.
fn derived(key: &[u8; 32], label: &[u8]) -> Key {
    let mut mac = Blake2sMac256::new(key.into());
    mac.update(label);
    Key::new(mac.finalize_fixed().into())
}

#[inline(never)]
fn begin(
    attempt: &Attempt<'_>,
    secrets: Secrets<'_>,
    payload: &[u8],
    msg1: &mut Vec<u8>,
) -> Result<Box<Shaking>, HandshakeError> {
    let mut shaking = Box::new(Shaking::new(attempt, secrets, true)?);
    write(&mut shaking.state, payload, msg1)?;
    Ok(shaking)
}

#[inline(never)]
fn answer(
    attempt: &Attempt<'_>,
    secrets: Secrets<'_>,
    msg1: &[u8],
    payload: &mut Vec<u8>,
) -> Result<Box<Shaking>, HandshakeError> {
    let mut shaking = Box::new(Shaking::new(attempt, secrets, false)?);
    read(&mut shaking.state, msg1, payload)?;
    Ok(shaking)
}

impl Handshake for Shaking {
    fn read_msg2(&mut self, msg2: &[u8], payload: &mut Vec<u8>) -> Result<Keys, HandshakeError> {
        let keys = read(&mut self.state, msg2, payload).map(|()| self.split(Keys::of_client));
        zeroize_stack::<STACK>();
        keys
    }

    fn write_msg2(mut self: Box<Self>, payload: &[u8], msg2: &mut Vec<u8>) -> Result<Keys, HandshakeError> {
        let keys = write(&mut self.state, payload, msg2).map(|()| self.split(Keys::of_server));
        zeroize_stack::<STACK>();
        keys
    }
}

impl Drop for Shaking {
    /// snow wipes nothing: its state is replaced by that of a handshake with keys of zeros.
    fn drop(&mut self) {
        blank(&mut self.state, || zeros().ok());
    }
}

/// A state with zeros in all places for keys.
fn zeros() -> Result<HandshakeState, snow::Error> {
    let params = params(Pattern::NnPsk0, Cipher::ChaChaPoly);
    let mut builder = Builder::with_resolver(params, Box::new(Resolver(Key::default())));
    for place in 0..PSKS {
        builder = builder.psk(place, &[0; 32])?;
    }
    builder.build_initiator()
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
    let mut pair = X25519::default();
    pair.set(private);
    pair.public
}

impl Shaking {
    /// The state before the first message.
    fn new(attempt: &Attempt<'_>, secrets: Secrets<'_>, is_client: bool) -> Result<Self, HandshakeError> {
        let (Suite::Noise(pattern, cipher) | Suite::Hybrid(pattern, cipher)) = attempt.suite else {
            return Err(HandshakeError::Suite);
        };
        let params = params(pattern, cipher);
        Ok(Self { state: build(params, &attempt.prologue(), secrets, is_client)?, cipher })
    }

    #[inline(never)]
    fn split(&mut self, keys: fn(Cipher, [u8; 32], [u8; 32]) -> Keys) -> Keys {
        let (to_server, to_client) = self.state.dangerously_get_raw_split();
        keys(self.cipher, to_server, to_client)
    }

    /// The keys of packets to the server and to the client.
    #[cfg(feature = "pq")]
    #[inline(never)]
    fn keys(&mut self) -> [Key; 2] {
        let (to_server, to_client) = self.state.dangerously_get_raw_split();
        [Key::new(to_server), Key::new(to_client)]
    }
}

fn build(
    params: NoiseParams,
    prologue: &[u8],
    secrets: Secrets<'_>,
    is_client: bool,
) -> Result<HandshakeState, HandshakeError> {
    let resolver = Box::new(Resolver(Key::new(*secrets.random)));
    let builder = Builder::with_resolver(params, resolver).prologue(prologue);
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
    builder.and_then(build).map_err(|_| HandshakeError::ServerKey)
}

/// Replaces what has secrets and does not wipe them, all bytes of it. The compiler must not leave that out because the
/// memory is freed afterwards. The bytes that `blank` leaves uninitialised are those of the stack, so that is cleared.
fn blank<T>(place: &mut T, blank: impl FnOnce() -> Option<T>) {
    zeroize_stack::<BLANK>();
    replace(place, blank);
}

#[inline(never)]
fn replace<T>(place: &mut T, blank: impl FnOnce() -> Option<T>) {
    if let Some(blank) = blank() {
        *place = blank;
    }
    optimization_barrier(place);
}

/// What [`name`] says, without the parser, which a browser would have to load.
fn params(pattern: Pattern, cipher: Cipher) -> NoiseParams {
    let (base, has_psk) = match pattern {
        Pattern::Nn => (HandshakePattern::NN, false),
        Pattern::NnPsk0 => (HandshakePattern::NN, true),
        Pattern::Nk => (HandshakePattern::NK, false),
        Pattern::NkPsk0 => (HandshakePattern::NK, true),
    };
    let modifiers =
        HandshakeModifierList { list: Vec::from_iter(has_psk.then_some(HandshakeModifier::Psk(0))) };
    let handshake = HandshakeChoice { pattern: base, modifiers };
    let choice = match cipher {
        Cipher::ChaChaPoly => CipherChoice::ChaChaPoly,
        Cipher::AesGcm => CipherChoice::AESGCM,
    };
    let (dh, hash) = (DHChoice::Curve25519, HashChoice::Blake2s);
    NoiseParams::new(name(pattern, cipher).to_owned(), BaseChoice::Noise, handshake, dh, choice, hash)
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

#[inline(never)]
fn write(state: &mut HandshakeState, payload: &[u8], message: &mut Vec<u8>) -> Result<(), HandshakeError> {
    let mut room = [0; MESSAGE_MAX];
    let len = state.write_message(payload, &mut room).map_err(|_| HandshakeError::Length)?;
    message.extend_from_slice(room.get(..len).unwrap_or_default());
    Ok(())
}

#[inline(never)]
fn read(state: &mut HandshakeState, message: &[u8], payload: &mut Vec<u8>) -> Result<(), HandshakeError> {
    let mut room = Zeroizing::new([0; MESSAGE_MAX]);
    let len = state.read_message(message, &mut *room).map_err(|error| match error {
        snow::Error::Input => HandshakeError::Length,
        _ => HandshakeError::Forged,
    })?;
    payload.extend_from_slice(room.get(..len).unwrap_or_default());
    Ok(())
}

/// Bytes of stack that a handshake uses at most, approximately.
const STACK: usize = 16 << 10;
/// Places that snow has for pre-shared keys.
const PSKS: u8 = 10;
/// The same, for what is made to overwrite something.
const BLANK: usize = 8 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_are_those_of_their_name() {
        for pattern in [Pattern::Nn, Pattern::NnPsk0, Pattern::Nk, Pattern::NkPsk0] {
            for cipher in [Cipher::ChaChaPoly, Cipher::AesGcm] {
                assert_eq!(params(pattern, cipher), name(pattern, cipher).parse().unwrap());
            }
        }
    }
}
