//! The cryptography behind sessions, as traits: a handshake yields keys, keys seal packets, and a
//! matchmaker's key seals connect tokens.
//!
//! `plain` is always available and encrypts nothing. The feature `crypto` adds `noise`, which the rest of the
//! library only reaches through [`CRYPTO`], so that nothing else depends on the feature.

#[cfg(feature = "crypto")]
pub(super) mod noise;
mod plain;
#[cfg(any(test, target_arch = "wasm32"))]
mod small_crc;

use super::Suite;
use super::exchange::{Attempt, HandshakeError};
use super::seal::{Keys, MaskKey, OpenError, SealError};
use super::wire::{Data, KEM_KEY_LEN, RekeyFrame};
use crate::time::Time;

/// The encrypted suites, if they are built in.
#[cfg(feature = "crypto")]
pub(super) const CRYPTO: Option<&'static dyn Provider> = Some(&noise::Noise);
#[cfg(not(feature = "crypto"))]
pub(super) const CRYPTO: Option<&'static dyn Provider> = None;

/// The hybrid suites, if they are built in.
#[cfg(feature = "pq")]
const HYBRID: Option<&'static dyn Provider> = Some(&noise::Hybrid);
#[cfg(not(feature = "pq"))]
const HYBRID: Option<&'static dyn Provider> = None;

/// A family of suites.
pub(super) trait Provider: Sync {
    /// Begins a handshake as the client: appends the first message, with `payload`, to `msg1`. An error
    /// leaves `msg1` as it was.
    fn begin(&self, attempt: &Attempt<'_>, secrets: Secrets<'_>, payload: &[u8], msg1: &mut Vec<u8>)
    -> Begun;

    /// Reads the first message as the server, and appends its payload to `payload`.
    fn answer(
        &self,
        attempt: &Attempt<'_>,
        secrets: Secrets<'_>,
        msg1: &[u8],
        payload: &mut Vec<u8>,
    ) -> Begun;

    /// Encrypts a connect token in place and returns the tag over it and `associated`. `None`: there is no
    /// cipher for tokens.
    fn seal_token(&self, _: &[u8; 32], _: &[u8; 24], _associated: &[u8], _: &mut [u8]) -> Option<[u8; 16]> {
        None
    }

    /// Derives a key from that of connect tokens, for the use that `label` names.
    fn derive(&self, _: &[u8; 32], _label: &[u8]) -> Option<[u8; 16]> {
        None
    }

    fn open_token(&self, _: &[u8; 32], _: &[u8; 24], _associated: &[u8], _: &mut [u8], _: &[u8; 16]) -> bool {
        false
    }
}

/// What one end brings to a handshake: the keys that the suite needs, and random bytes for its own key.
#[derive(Clone, Copy)]
pub(super) struct Secrets<'a> {
    pub(super) psk: Option<&'a [u8; 32]>,
    /// At the client the public half, at the server the private half.
    pub(super) server_key: Option<&'a [u8; 32]>,
    pub(super) random: &'a [u8; 32],
}

/// A handshake whose first message was written or read.
type Begun = Result<Box<dyn Handshake>, HandshakeError>;

/// An end that expects or sends the second message next.
pub(super) trait Handshake: Send + Sync {
    /// At the client: appends the payload of the message to `payload`. A message that is not the answer
    /// changes nothing.
    fn read_msg2(&mut self, msg2: &[u8], payload: &mut Vec<u8>) -> Result<Keys, HandshakeError>;

    fn write_msg2(self: Box<Self>, payload: &[u8], msg2: &mut Vec<u8>) -> Result<Keys, HandshakeError>;
}

/// What an end has to do for new keys.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Renewal {
    #[default]
    Nothing,
    /// It needs random bytes for its half.
    Draw,
    /// It has to tell the peer its half.
    Tell,
    /// It has told it, and tells it again unless it is answered soon.
    Wait,
}

/// Authenticates packets with the keys of one session. Its owner numbers the packets and never opens one
/// twice.
pub(super) trait Protection: Send + Sync {
    /// Bytes after the body of a packet.
    fn tail(&self) -> usize;

    /// Called when the keys are first used.
    fn begin(&mut self, _now: Time) {}

    /// Seals the packet that begins at `start` of the buffer with room for a header: writes the header,
    /// including the key phase, and appends the tail. Returns what to do for new keys.
    fn seal(
        &mut self,
        now: Time,
        number: (Data, u64),
        buffer: &mut Vec<u8>,
        start: usize,
    ) -> Result<Renewal, SealError>;

    /// Opens a packet, with header and tail, in place. `header` has its phase, its number, and whether that
    /// number is higher than all opened before.
    fn open(&mut self, now: Time, header: (bool, u64, bool), packet: &mut [u8]) -> Result<(), OpenError>;

    /// What to do for new keys.
    fn renewal(&self, _now: Time) -> Renewal {
        Renewal::Nothing
    }

    /// Makes this end's half of new keys from random bytes.
    fn draw(&mut self, _now: Time, _random: &[u8; 32]) {}

    /// This end's half.
    fn half(&self) -> Option<RekeyFrame> {
        None
    }

    /// The half is in a packet that was sealed.
    fn told(&mut self, _now: Time) {}

    /// The peer's half. Returns whether a peer may send it; another changes nothing.
    fn on_half(&mut self, _now: Time, _half: &RekeyFrame) -> bool {
        false
    }

    /// The key to mask headers with, until the first update. `None`: nothing is secret.
    fn mask_key(&self) -> Option<MaskKey> {
        None
    }

    /// How often the keys were updated, for sending and for receiving.
    fn updates(&self) -> (u64, u64) {
        (0, 0)
    }

    /// Makes this end update its key after this many packets, if it is the one that starts updates.
    fn update_after(&mut self, _packets: u64) {}

    /// Whether the keys are there. Those of a hybrid suite take a KEM after the handshake, and nothing is sealed or
    /// opened before.
    fn is_complete(&self) -> bool {
        true
    }

    /// At a server that has no keys yet: the datagram with its encapsulation key.
    fn kem_key(&self) -> Option<&[u8]> {
        None
    }

    /// At a client that has no keys yet: takes that key, and returns the keys. `None`: it is another server's. `sid`: by
    /// which the server knows the session.
    fn encapsulate(&mut self, _sid: u32, _key: &[u8; KEM_KEY_LEN]) -> Option<Box<dyn Protection>> {
        None
    }

    /// At a client with keys: the datagram with the ciphertext, if it is due. Without it the server has no keys.
    fn kem_ciphertext(&mut self, _now: Time) -> Option<&[u8]> {
        None
    }

    /// At a server that has no keys yet: takes that datagram, and returns the keys. `None`: it is not authentic.
    fn decapsulate(&mut self, _datagram: &mut [u8]) -> Option<Box<dyn Protection>> {
        None
    }

    /// Bytes of heap memory, approximately.
    fn memory(&self) -> usize;

    /// Frees everything but the keys.
    fn rest(&mut self) {}

    /// Prepares the keys for many packets.
    fn wake(&mut self) {}

    /// Whether nobody else can read sealed packets.
    fn is_encrypted(&self) -> bool {
        false
    }
}

impl Suite {
    /// Whether this build supports the suite. All but [`Checked`](Self::Checked) need the feature `crypto`, and hybrid
    /// ones `pq`.
    #[must_use]
    pub fn is_built_in(self) -> bool {
        self.provider().is_some()
    }

    pub(super) fn provider(self) -> Option<&'static dyn Provider> {
        match self {
            Self::Checked => Some(&plain::Plain),
            Self::Noise(..) => CRYPTO,
            Self::Hybrid(..) => HYBRID,
        }
    }
}
