//! What a handshake leaves: the keys of one session.

use super::checked::Checked;
#[cfg(feature = "crypto")]
use crate::session::Cipher;
#[cfg(feature = "crypto")]
use zeroize::Zeroizing;

/// A key of a cipher; wiped when it is dropped.
#[cfg(feature = "crypto")]
pub(super) type Key = Zeroizing<[u8; 32]>;

/// The keys of one session, as one of its ends has them. A [`Seal`](super::Seal) is made of them, once.
pub struct Keys(pub(super) Kind);

pub(super) enum Kind {
    Checked(Checked),
    #[cfg(feature = "crypto")]
    Noise {
        cipher: Cipher,
        send: Key,
        receive: Key,
        /// Whether this end began the handshake.
        client: bool,
    },
}

impl Keys {
    /// No keys: a checksum with these salts, for both ends.
    #[must_use]
    pub fn checked(client_salt: [u8; 8], server_salt: [u8; 8], protocol_id: u64) -> Self {
        Self(Kind::Checked(Checked::new(client_salt, server_salt, protocol_id)))
    }

    /// The keys of the client of a session.
    #[cfg(feature = "crypto")]
    #[must_use]
    pub fn of_client(cipher: Cipher, to_server: [u8; 32], to_client: [u8; 32]) -> Self {
        let (send, receive) = (Key::new(to_server), Key::new(to_client));
        Self(Kind::Noise { cipher, send, receive, client: true })
    }

    /// The keys of the server of a session.
    #[cfg(feature = "crypto")]
    #[must_use]
    pub fn of_server(cipher: Cipher, to_server: [u8; 32], to_client: [u8; 32]) -> Self {
        let (send, receive) = (Key::new(to_client), Key::new(to_server));
        Self(Kind::Noise { cipher, send, receive, client: false })
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys(..)")
    }
}
