//! The handshake of sessions without encryption: two salts in clear, and a checksum over all that both ends have to know alike, so
//! that a message which the network has changed makes no session.

use super::exchange::{Attempt, HandshakeError};
use super::seal::Keys;
use crc32fast::Hasher;

/// The client of a handshake, and a server that has read the first message.
pub(super) struct PlainHandshake {
    /// CRC-32 over the prologue and the first message without its checksum: over a checksum as well, it would always be the same.
    transcript: Hasher,
    client_salt: [u8; SALT_LEN],
    protocol_id: u64,
}

impl PlainHandshake {
    pub(super) fn begin(
        attempt: &Attempt<'_>,
        random: &[u8; 32],
        payload: &[u8],
        msg1: &mut Vec<u8>,
    ) -> Self {
        let (mut transcript, client_salt) = (Self::start(attempt), salt(random));
        write(&mut transcript, client_salt, payload, msg1);
        Self { transcript, client_salt, protocol_id: attempt.protocol_id }
    }

    pub(super) fn read_msg1(
        attempt: &Attempt<'_>,
        msg1: &[u8],
        payload: &mut Vec<u8>,
    ) -> Result<Self, HandshakeError> {
        let mut transcript = Self::start(attempt);
        let client_salt = read(&mut transcript, msg1, payload)?;
        Ok(Self { transcript, client_salt, protocol_id: attempt.protocol_id })
    }

    pub(super) fn write_msg2(mut self, random: &[u8; 32], payload: &[u8], msg2: &mut Vec<u8>) -> Keys {
        let server_salt = salt(random);
        write(&mut self.transcript, server_salt, payload, msg2);
        Keys::checked(self.client_salt, server_salt, self.protocol_id)
    }

    pub(super) fn read_msg2(&self, msg2: &[u8], payload: &mut Vec<u8>) -> Result<Keys, HandshakeError> {
        let server_salt = read(&mut self.transcript.clone(), msg2, payload)?;
        Ok(Keys::checked(self.client_salt, server_salt, self.protocol_id))
    }

    fn start(attempt: &Attempt<'_>) -> Hasher {
        let mut transcript = Hasher::new();
        transcript.update(&attempt.prologue());
        transcript
    }
}

fn write(transcript: &mut Hasher, salt: [u8; SALT_LEN], payload: &[u8], message: &mut Vec<u8>) {
    transcript.update(&salt);
    transcript.update(payload);
    message.extend_from_slice(&salt);
    message.extend_from_slice(payload);
    message.extend_from_slice(&transcript.clone().finalize().to_le_bytes());
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

fn salt(random: &[u8; 32]) -> [u8; SALT_LEN] {
    random.first_chunk().copied().unwrap_or_default()
}

const SALT_LEN: usize = 8;
