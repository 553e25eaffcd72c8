//! The checksum of sessions without encryption.

/// What is mixed into the checksum, so that only who has seen the handshake can make one.
#[derive(Clone, Copy)]
pub(super) struct Checked {
    /// The salts of both ends and the protocol id.
    secret: [u8; 16],
}

impl Checked {
    pub(super) fn new(client_salt: [u8; 8], server_salt: [u8; 8], protocol_id: u64) -> Self {
        let salt = u64::from_le_bytes(client_salt) ^ u64::from_le_bytes(server_salt);
        let secret = u128::from(salt) | u128::from(protocol_id) << 64;
        Self { secret: secret.to_le_bytes() }
    }

    /// CRC-32 of IEEE 802.3 over the secret and `bytes`.
    pub(super) fn sum(&self, bytes: &[u8]) -> [u8; SUM_LEN] {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.secret);
        hasher.update(bytes);
        hasher.finalize().to_le_bytes()
    }
}

/// Bytes of the checksum.
pub(super) const SUM_LEN: usize = 4;
