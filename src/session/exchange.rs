//! The handshake: two messages that prove what the suite requires and give both ends the same keys.
//!
//! The client writes the first message when it is made, and may read any number of second messages until one is right.
//! The server reads the first message, decides, and answers. A failure appends and changes nothing.
#![expect(clippy::missing_errors_doc, reason = "`HandshakeError` says it for all of them")]

use super::Suite;
use super::crypto::{Handshake, Provider, Secrets};
use super::seal::Keys;
use super::wire::{MESSAGE_MAX, VERSION};

/// What both ends know before the first message. The handshake proves that they know the same.
#[derive(Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "the prologue has these and no others")]
pub struct Attempt<'a> {
    /// The suite.
    pub suite: Suite,
    /// The game and its version of its protocol.
    pub protocol_id: u64,
    /// The attempt.
    pub cid: u64,
    /// The number that the server must write into packets to the client.
    pub client_sid: u32,
    /// The sealed connect token as in the CONNECT, or nothing.
    pub token: &'a [u8],
}

errors! {
    /// Why the handshake failed.
    HandshakeError {
        /// The suite needs the feature `crypto` or `pq`, which is not built in.
        "the suite is not built in" Suite,
        /// The suite needs a pre-shared key and there is none, or there is one that it does not use.
        "the suite and the pre-shared key do not go together" Psk,
        /// The suite needs the server's key and there is none, or there is one that it does not use.
        "the suite and the key of the server do not go together" ServerKey,
        /// The message or its payload is too short or too long.
        "the message has the wrong length" Length,
        /// The message was made by somebody else, or for another attempt.
        "the message is not authentic" Forged,
    }
}

/// The client's side of a handshake. Dropping it wipes its keys.
pub struct Initiator(Box<dyn Handshake>);

/// The server's side of a handshake that has read the first message.
pub struct Responder(Box<dyn Handshake>);

impl Initiator {
    /// Begins the handshake: appends the first message, with `payload`, to `msg1`.
    ///
    /// `psk` and `server_key` (the public half): as the suite requires. `random`: 32 unpredictable bytes, used only for
    /// the key of this attempt.
    pub fn new(
        attempt: &Attempt<'_>,
        psk: Option<&[u8; 32]>,
        server_key: Option<&[u8; 32]>,
        random: [u8; 32],
        payload: &[u8],
        msg1: &mut Vec<u8>,
    ) -> Result<Self, HandshakeError> {
        let secrets = Secrets { psk, server_key, random: &random };
        attempt.check(secrets, payload)?.begin(attempt, secrets, payload, msg1).map(Self)
    }

    /// Reads the second message. Returns the keys, and replaces `payload` with what the server says. After an error,
    /// another message may still be the answer.
    pub fn read_msg2(&mut self, msg2: &[u8], payload: &mut Vec<u8>) -> Result<Keys, HandshakeError> {
        payload.clear();
        if msg2.len() > MESSAGE_MAX {
            return Err(HandshakeError::Length);
        }
        self.0.read_msg2(msg2, payload)
    }
}

impl Responder {
    /// Reads the first message, and replaces `payload` with what the client says.
    ///
    /// `psk` and `server_key` (the private half): as the suite requires. `random`: as for [`Initiator::new`].
    pub fn read_msg1(
        attempt: &Attempt<'_>,
        psk: Option<&[u8; 32]>,
        server_key: Option<&[u8; 32]>,
        random: [u8; 32],
        msg1: &[u8],
        payload: &mut Vec<u8>,
    ) -> Result<Self, HandshakeError> {
        payload.clear();
        let secrets = Secrets { psk, server_key, random: &random };
        let provider = attempt.check(secrets, &[])?;
        if msg1.len() > MESSAGE_MAX {
            return Err(HandshakeError::Length);
        }
        provider.answer(attempt, secrets, msg1, payload).map(Self)
    }

    /// Appends the second message, with `payload`, to `msg2`, and returns the keys.
    pub fn write_msg2(self, payload: &[u8], msg2: &mut Vec<u8>) -> Result<Keys, HandshakeError> {
        if payload.len() > PAYLOAD_MAX {
            return Err(HandshakeError::Length);
        }
        self.0.write_msg2(payload, msg2)
    }
}

impl Attempt<'_> {
    /// The provider of the suite, if these are the keys that it needs.
    fn check(&self, secrets: Secrets<'_>, payload: &[u8]) -> Result<&'static dyn Provider, HandshakeError> {
        if secrets.psk.is_some() != self.suite.needs_psk() {
            return Err(HandshakeError::Psk);
        }
        if secrets.server_key.is_some() != self.suite.needs_server_key() {
            return Err(HandshakeError::ServerKey);
        }
        if payload.len() > PAYLOAD_MAX {
            return Err(HandshakeError::Length);
        }
        self.suite.provider().ok_or(HandshakeError::Suite)
    }

    /// What Noise mixes in before the first message, or the checksum without Noise. If the ends differ in it, no
    /// message is authentic.
    #[must_use]
    pub fn prologue(&self) -> Vec<u8> {
        let Self { suite, protocol_id, cid, client_sid, token } = self;
        let mut prologue = b"whitewater/1\0".to_vec();
        prologue.push(VERSION);
        prologue.extend_from_slice(&suite.code().to_le_bytes());
        prologue.extend_from_slice(&protocol_id.to_le_bytes());
        prologue.extend_from_slice(&cid.to_le_bytes());
        prologue.extend_from_slice(&client_sid.to_le_bytes());
        prologue.extend_from_slice(token);
        prologue
    }
}

printed_without_secrets! { Attempt<'_> { suite, protocol_id, cid, client_sid }, Initiator {}, Responder {} }

/// Most bytes of a payload: a whole message without the public key and the tag.
const PAYLOAD_MAX: usize = MESSAGE_MAX - 32 - 16;
