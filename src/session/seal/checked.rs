//! The checksum of sessions without encryption.

use crc32fast::Hasher;

/// What is mixed into the checksum, so that only who has seen the handshake can make one.
#[derive(Clone)]
pub(super) struct Checked {
    /// Of the salts of both ends and the protocol id, which each packet's checksum begins with.
    begun: Hasher,
}

impl Checked {
    pub(super) fn new(client_salt: [u8; 8], server_salt: [u8; 8], protocol_id: u64) -> Self {
        let salt = u64::from_le_bytes(client_salt) ^ u64::from_le_bytes(server_salt);
        let secret = u128::from(salt) | u128::from(protocol_id) << 64;
        let mut begun = Hasher::new();
        begun.update(&secret.to_le_bytes());
        Self { begun }
    }

    /// CRC-32 of IEEE 802.3 over the secret and `bytes`.
    pub(super) fn sum(&self, bytes: &[u8]) -> [u8; SUM_LEN] {
        let mut hasher = self.begun.clone();
        hasher.update(bytes);
        hasher.finalize().to_le_bytes()
    }
}

/// Bytes of the checksum.
pub(super) const SUM_LEN: usize = 4;
