//! What a relay's matchmaker gives to a player who hosts.

use super::secret::Secret;
use super::wire::relayed::HOST_TICKET_LEN;
use siphasher::sip128::SipHasher24;

/// A host's ticket for a relay, and the secret that proves whose it is. Only the ticket is ever sent. The matchmaker makes it, with the crate
/// `whitewater-relay`; [`ServerConfig::relay`](crate::ServerConfig::relay) takes it.
#[derive(Clone)]
pub struct HostTicket {
    ticket: [u8; HOST_TICKET_LEN],
    secret: Secret,
}

printed_without_secrets! { HostTicket { ticket } }

impl HostTicket {
    /// A ticket of a relay, and its secret.
    #[must_use]
    pub fn new(ticket: [u8; HOST_TICKET_LEN], secret: impl Into<Secret>) -> Self {
        Self { ticket, secret: secret.into() }
    }

    /// As the matchmaker gives it to the host, over a connection that nobody else can read: 62 bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; HOST_TICKET_LEN + 32] {
        super::concat(&[&self.ticket, &*self.secret])
    }

    /// Reads such bytes. `None`: there are not 62.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (ticket, secret) = bytes.split_first_chunk()?;
        Some(Self::new(*ticket, <&[u8; 32]>::try_from(secret).ok()?))
    }

    /// The part that is sent.
    #[must_use]
    pub const fn ticket(&self) -> &[u8; HOST_TICKET_LEN] {
        &self.ticket
    }

    /// Proves that the host has the secret, to whoever made this cookie: SipHash-2-4-128 of the cookie, with the first half of the secret as the key.
    #[must_use]
    pub fn proof(&self, cookie: &[u8; 16]) -> [u8; 16] {
        let (key, _) = self.secret.split_first_chunk().unwrap_or((&[0; 16], &[]));
        SipHasher24::new_with_key(key).hash(cookie).as_bytes()
    }
}
