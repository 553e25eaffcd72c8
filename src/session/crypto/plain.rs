//! Sessions without encryption. The handshake exchanges two salts in the clear, with a checksum over
//! everything that both ends must agree on, so that a corrupted message does not lead to a session. Packets
//! have a checksum that includes both salts.

#[cfg(target_arch = "wasm32")]
use super::small_crc::Hasher;
use super::{Begun, Handshake, Protection, Provider, Renewal, Secrets};
use crate::session::exchange::{Attempt, HandshakeError};
use crate::session::seal::{Keys, OpenError, SealError};
use crate::session::wire::Data;
use crate::time::Time;
#[cfg(not(target_arch = "wasm32"))]
use crc32fast::Hasher;

pub(super) struct Plain;

/// The client of a handshake, or a server that has read the first message.
struct Salted {
    /// CRC-32 over the prologue and the first message without its checksum. With the checksum, the result
    /// would always be the same.
    transcript: Hasher,
    salt: [u8; SALT_LEN],
    /// The client's salt; at the server, it came with the first message.
    client_salt: [u8; SALT_LEN],
    protocol_id: u64,
}

/// The CRC-32 of both salts and the protocol id. The checksum of each packet continues from there, so that
/// only somebody who has seen the handshake can compute one. A hasher and not its four bytes, since creating
/// one detects the CPU's features, which would be done for each packet.
struct Checksum(Hasher);

impl Provider for Plain {
    fn begin(
        &self,
        attempt: &Attempt<'_>,
        secrets: Secrets<'_>,
        payload: &[u8],
        msg1: &mut Vec<u8>,
    ) -> Begun {
        let mut handshake = Salted::new(attempt, secrets);
        handshake.write(payload, msg1);
        Ok(Box::new(handshake))
    }

    fn answer(
        &self,
        attempt: &Attempt<'_>,
        secrets: Secrets<'_>,
        msg1: &[u8],
        payload: &mut Vec<u8>,
    ) -> Begun {
        let mut handshake = Salted::new(attempt, secrets);
        handshake.client_salt = read(&mut handshake.transcript, msg1, payload)?;
        Ok(Box::new(handshake))
    }
}

impl Salted {
    fn new(attempt: &Attempt<'_>, secrets: Secrets<'_>) -> Self {
        let mut transcript = Hasher::new();
        transcript.update(&attempt.prologue());
        let salt = secrets.random.first_chunk().copied().unwrap_or_default();
        Self { transcript, salt, client_salt: salt, protocol_id: attempt.protocol_id }
    }

    fn write(&mut self, payload: &[u8], message: &mut Vec<u8>) {
        self.transcript.update(&self.salt);
        self.transcript.update(payload);
        message.extend_from_slice(&self.salt);
        message.extend_from_slice(payload);
        message.extend_from_slice(&self.transcript.clone().finalize().to_le_bytes());
    }
}

impl Handshake for Salted {
    fn read_msg2(&mut self, msg2: &[u8], payload: &mut Vec<u8>) -> Result<Keys, HandshakeError> {
        let server_salt = read(&mut self.transcript.clone(), msg2, payload)?;
        Ok(Keys::checked(self.client_salt, server_salt, self.protocol_id))
    }

    fn write_msg2(mut self: Box<Self>, payload: &[u8], msg2: &mut Vec<u8>) -> Result<Keys, HandshakeError> {
        self.write(payload, msg2);
        Ok(Keys::checked(self.client_salt, self.salt, self.protocol_id))
    }
}

impl Keys {
    /// No keys, but a checksum with these salts, for both ends.
    #[must_use]
    pub fn checked(client_salt: [u8; 8], server_salt: [u8; 8], protocol_id: u64) -> Self {
        let salt = u64::from_le_bytes(client_salt) ^ u64::from_le_bytes(server_salt);
        let secret = u128::from(salt) | u128::from(protocol_id) << 64;
        let mut begun = Hasher::new();
        begun.update(&secret.to_le_bytes());
        Self(Box::new(Checksum(begun)))
    }
}

impl Checksum {
    /// CRC-32 of IEEE 802.3 over the secret and `bytes`.
    fn sum(&self, bytes: &[u8]) -> [u8; SUM_LEN] {
        let mut hasher = self.0.clone();
        hasher.update(bytes);
        hasher.finalize().to_le_bytes()
    }
}

impl Protection for Checksum {
    fn tail(&self) -> usize {
        SUM_LEN
    }

    fn seal(
        &mut self,
        _now: Time,
        (header, _): (Data, u64),
        buffer: &mut Vec<u8>,
        start: usize,
    ) -> Result<Renewal, SealError> {
        let packet = buffer.get_mut(start..).unwrap_or_default();
        *packet.first_chunk_mut().ok_or(SealError::NoHeader)? = header.encode();
        let sum = self.sum(packet);
        buffer.extend_from_slice(&sum);
        Ok(Renewal::Nothing)
    }

    fn open(
        &mut self,
        _now: Time,
        (phase, ..): (bool, u64, bool),
        packet: &mut [u8],
    ) -> Result<(), OpenError> {
        if phase {
            return Err(OpenError::Phase);
        }
        let (bytes, sum) = packet.split_last_chunk::<SUM_LEN>().ok_or(OpenError::Forged)?;
        if self.sum(bytes) == *sum { Ok(()) } else { Err(OpenError::Forged) }
    }

    fn memory(&self) -> usize {
        size_of::<Self>()
    }
}

fn read(
    transcript: &mut Hasher,
    message: &[u8],
    payload: &mut Vec<u8>,
) -> Result<[u8; SALT_LEN], HandshakeError> {
    let (bytes, sum) = message.split_last_chunk().ok_or(HandshakeError::Length)?;
    let (salt, rest) = bytes.split_first_chunk().ok_or(HandshakeError::Length)?;
    transcript.update(bytes);
    if transcript.clone().finalize().to_le_bytes() != *sum {
        return Err(HandshakeError::Forged);
    }
    payload.extend_from_slice(rest);
    Ok(*salt)
}

const SALT_LEN: usize = 8;
const SUM_LEN: usize = 4;
