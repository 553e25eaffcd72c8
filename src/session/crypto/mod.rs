//! What protects sessions, behind traits: a handshake gives keys, keys seal packets, and a matchmaker's key seals connect tokens.
//!
//! `plain` is always there and hides nothing. What the feature `crypto` has is `noise`, which the rest of the library knows as
//! [`CRYPTO`] alone, so that nothing else depends on the feature.

#[cfg(feature = "crypto")]
pub(super) mod noise;
mod plain;

use super::Suite;
use super::exchange::{Attempt, HandshakeError};
use super::seal::{Keys, OpenError, SealError};
use super::wire::Data;
use crate::time::Time;

/// Ciphers, as far as they are built in.
#[cfg(feature = "crypto")]
pub(super) const CRYPTO: Option<&'static dyn Provider> = Some(&noise::Noise);
#[cfg(not(feature = "crypto"))]
pub(super) const CRYPTO: Option<&'static dyn Provider> = None;

/// A family of suites.
pub(super) trait Provider: Sync {
    /// Begins as the client: appends the first message with `payload` to `msg1`, which stays as it is when there is an error.
    fn begin(&self, attempt: &Attempt<'_>, secrets: Secrets<'_>, payload: &[u8], msg1: &mut Vec<u8>)
    -> Begun;

    /// Reads the first message as the server: appends what it says to `payload`.
    fn answer(
        &self,
        attempt: &Attempt<'_>,
        secrets: Secrets<'_>,
        msg1: &[u8],
        payload: &mut Vec<u8>,
    ) -> Begun;

    /// Encrypts a connect token in place; returns the tag over that and `associated`. `None`: it has no cipher for tokens.
    fn seal_token(&self, _: &[u8; 32], _: &[u8; 24], _associated: &[u8], _: &mut [u8]) -> Option<[u8; 16]> {
        None
    }

    fn open_token(&self, _: &[u8; 32], _: &[u8; 24], _associated: &[u8], _: &mut [u8], _: &[u8; 16]) -> bool {
        false
    }
}

/// What one end has for a handshake: the keys that the suite needs, and random bytes of which its own key is made.
#[derive(Clone, Copy)]
pub(super) struct Secrets<'a> {
    pub(super) psk: Option<&'a [u8; 32]>,
    /// The public half at the client, the private at the server.
    pub(super) server_key: Option<&'a [u8; 32]>,
    pub(super) random: &'a [u8; 32],
}

/// A handshake of which the first message was written, or read.
type Begun = Result<Box<dyn Handshake>, HandshakeError>;

/// An end whose turn the second message is.
pub(super) trait Handshake: Send + Sync {
    /// At the client: appends what the message says to `payload`. A message that is not the answer changes nothing.
    fn read_msg2(&mut self, msg2: &[u8], payload: &mut Vec<u8>) -> Result<Keys, HandshakeError>;

    fn write_msg2(self: Box<Self>, payload: &[u8], msg2: &mut Vec<u8>) -> Result<Keys, HandshakeError>;
}

/// What makes packets authentic by the keys of one session. Its owner numbers them, and opens none twice.
pub(super) trait Protection: Send + Sync {
    /// Bytes behind the body of a packet.
    fn tail(&self) -> usize;

    /// The keys are used from now on.
    fn begin(&mut self, _now: Time) {}

    /// Seals the packet that begins at `start` of the buffer, with room for its header: writes that, with the phase of the key, and appends
    /// the tail. Updates the key first if that is due.
    fn seal(
        &mut self,
        now: Time,
        number: (Data, u64),
        buffer: &mut Vec<u8>,
        start: usize,
    ) -> Result<(), SealError>;

    /// Opens a packet in place, which has a header and a tail. Of the header: its phase, its number, and whether that is beyond all that
    /// were opened.
    fn open(&mut self, now: Time, header: (bool, u64, bool), packet: &mut [u8]) -> Result<(), OpenError>;

    /// How often the keys were updated: to send, to receive.
    fn updates(&self) -> (u64, u64) {
        (0, 0)
    }

    /// Has this end, if it is the one to begin updates, do so after so many packets.
    fn update_after(&mut self, _packets: u64) {}

    /// Bytes of the heap, about.
    fn memory(&self) -> usize;

    /// Keeps nothing but the keys.
    fn rest(&mut self) {}

    /// Prepares the keys for more packets than one.
    fn wake(&mut self) {}

    /// Whether nobody else can read what is sealed.
    fn is_encrypted(&self) -> bool {
        false
    }
}

impl Suite {
    /// Whether this program has what the suite takes: the feature `crypto`, but for [`Checked`](Self::Checked).
    #[must_use]
    pub fn is_built_in(self) -> bool {
        self.provider().is_some()
    }

    pub(super) fn provider(self) -> Option<&'static dyn Provider> {
        match self {
            Self::Checked => Some(&plain::Plain),
            Self::Noise(..) => CRYPTO,
        }
    }
}
