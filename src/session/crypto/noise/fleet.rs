//! The key of a fleet of servers, from which the key of each server is derived.

use crate::session::Secret;
use crate::session::token::{LABEL, ServerKey};
use blake2::Blake2sMac256;
use blake2::digest::{FixedOutput, KeyInit as _, Update};

/// The key of a fleet: 32 random bytes that only matchmakers have.
///
/// ```
/// use whitewater::session::Suite;
/// use whitewater::session::token::{FleetKey, Order, PublicToken, Verifier};
///
/// // The matchmaker. Keys, `psk` and `nonce` are random bytes, times are seconds since 1970.
/// let (fleet, now) = (FleetKey::new([1; 32]), 1_900_000_000);
/// let order = Order {
///     protocol_id: 7,
///     suite: Suite::TOKEN,
///     client_id: 99,
///     match_id: [0; 16],
///     created: now,
///     expires: now + 45,
///     addresses: &["192.0.2.1:4000".parse()?],
///     server_key: None,
///     routing_token: b"",
///     user: b"red team",
/// };
/// let bytes = fleet.server_key(5, 0).mint(&order, [2; 32], [3; 24])?.encode();
///
/// // The client.
/// let token = PublicToken::decode(&bytes)?;
///
/// // Server 5, which was started before.
/// let verifier = Verifier::new(fleet.server_key(5, 0));
/// verifier.set_age(now, 60);
/// let grant = verifier.open(now + 1, 7, Suite::TOKEN, &token.sealed)?;
/// assert_eq!((grant.client_id, grant.user.as_slice()), (99, b"red team".as_slice()));
/// verifier.use_up(now + 1, &grant)?; // once the client has shown that it knows the pre-shared key
/// assert!(verifier.open(now + 2, 7, Suite::TOKEN, &token.sealed).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FleetKey(Secret);

printed_without_secrets! { FleetKey {} }

impl FleetKey {
    /// Makes a key from random bytes.
    #[must_use]
    pub fn new(random: [u8; 32]) -> Self {
        Self(random.into())
    }

    /// The key of one server. `server_id` stands for one process: a restarted server needs another one.
    /// `key_id` distinguishes the successive keys of one server.
    #[must_use]
    pub fn server_key(&self, server_id: u64, key_id: u8) -> ServerKey {
        let mut mac = Blake2sMac256::new((&*self.0).into());
        mac.update(LABEL);
        mac.update(&server_id.to_le_bytes());
        mac.update(&[key_id]);
        ServerKey::new(server_id, key_id, mac.finalize_fixed().into())
    }
}
