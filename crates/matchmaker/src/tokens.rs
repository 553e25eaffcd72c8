//! What the fleet key makes: keys and secrets of servers, and connect tokens of players. Nothing of it has to be stored.

use crate::access::Bearer;
use crate::fleet::TOKEN_LIFE;
use crate::messages::{Hex, Id, Identity, Join, Report};
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};
use subtle::ConstantTimeEq;
use whitewater::session::Suite;
use whitewater::session::token::{FleetKey, Order, TokenError};

/// Servers do not live long enough for a second key.
const KEY_ID: u8 = 0;
/// Keys with this number seal no tokens: they are the secrets that servers show. So nobody has to show a key.
const SECRET_ID: u8 = 255;
/// Keys with this number make the passes of a server, which cannot make any: it does not get this key.
const PASS_ID: u8 = 254;
/// For how long a server may move a player, from when their token was made, s.
const PASS_LIFE: u64 = 86_400;
/// Bytes of the number of a client, the time, and a MAC.
const PASS_LEN: usize = 8 + 8 + 16;

#[derive(Debug)]
pub(crate) struct Mint {
    fleet: FleetKey,
    protocol_id: u64,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum MintError {
    #[error("no random bytes: {0}")]
    Random(#[from] io::Error),
    #[error("no token: {0}")]
    Token(#[from] TokenError),
}

impl Mint {
    pub(crate) fn new(fleet: FleetKey, protocol_id: u64) -> Self {
        Self { fleet, protocol_id }
    }

    /// A server gets a number by chance, so it cannot ask for the key of another.
    pub(crate) fn identity(&self) -> Result<Identity, MintError> {
        let server = Id(u64::from_le_bytes(random()?));
        let key = Hex(self.fleet.server_key(server.0, KEY_ID).secret().to_vec());
        Ok(Identity { server, key_id: KEY_ID, key, secret: self.secret_text(server) })
    }

    /// Whether this is the secret of that server.
    pub(crate) fn is_secret(&self, server: Id, shown: &str) -> bool {
        Bearer::new(&self.secret_text(server)).is_some_and(|secret| secret.is(shown))
    }

    /// A token for each client.
    pub(crate) fn tokens(&self, server: Id, report: &Report, join: &Join) -> Result<Vec<Hex>, MintError> {
        let (key, passes) = (self.fleet.server_key(server.0, KEY_ID), self.passes(server));
        let now = unix_time();
        let token = |client: &Id| {
            let order = Order {
                protocol_id: self.protocol_id,
                suite: Suite::TOKEN,
                client_id: client.0,
                match_id: join.match_id.0.as_slice().try_into().unwrap_or_default(),
                created: now,
                expires: now + TOKEN_LIFE,
                addresses: &report.addresses,
                server_key: None,
                routing_token: &report.routing_token.0,
                user: &pass(&passes, *client, now),
            };
            Ok(Hex(key.mint(&order, random()?, random()?)?.encode().to_vec()))
        };
        join.clients.iter().map(token).collect()
    }

    /// Who came to this server with that pass. `None`: it is not of this server, or too old.
    pub(crate) fn client(&self, server: Id, shown: &[u8]) -> Option<Id> {
        let (client, rest) = shown.split_first_chunk()?;
        let (created, _) = rest.split_first_chunk()?;
        let (client, created) = (Id(u64::from_le_bytes(*client)), u64::from_le_bytes(*created));
        let is_ours = pass(&self.passes(server), client, created).ct_eq(shown);
        (bool::from(is_ours) && unix_time() < created.saturating_add(PASS_LIFE)).then_some(client)
    }

    /// The key of the passes of a server.
    fn passes(&self, server: Id) -> FleetKey {
        FleetKey::new(*self.fleet.server_key(server.0, PASS_ID).secret())
    }

    fn secret_text(&self, server: Id) -> String {
        Hex(self.fleet.server_key(server.0, SECRET_ID).secret().to_vec()).to_string()
    }
}

/// Says that a client was sent to a server. Only the matchmaker can make it: the derivation of keys is a MAC (`FleetKey::server_key`).
fn pass(passes: &FleetKey, client: Id, created: u64) -> [u8; PASS_LEN] {
    let of_client = FleetKey::new(*passes.server_key(client.0, 0).secret());
    let mac = of_client.server_key(created, 0);
    let bytes = client.0.to_le_bytes().into_iter().chain(created.to_le_bytes()).chain(*mac.secret());
    let mut pass = [0; PASS_LEN];
    pass.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
    pass
}

fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_is_for_one_client_and_one_server_and_for_a_day() {
        let mint = Mint::new(FleetKey::new([5; 32]), 7);
        let now = unix_time();
        let made = pass(&mint.passes(Id(1)), Id(9), now);
        assert_eq!(mint.client(Id(1), &made), Some(Id(9)));
        assert_eq!(mint.client(Id(2), &made), None, "another server");
        for at in 0..PASS_LEN {
            let mut changed = made;
            changed[at] ^= 1;
            assert_eq!(mint.client(Id(1), &changed), None, "byte {at}");
            assert_eq!(mint.client(Id(1), &made[..at]), None, "{at} bytes");
        }
        assert_eq!(mint.client(Id(1), &[&made[..], &[0]].concat()), None);
        let old = pass(&mint.passes(Id(1)), Id(9), now - PASS_LIFE);
        assert_eq!(mint.client(Id(1), &old), None, "too old");
        let key = FleetKey::new(*mint.fleet.server_key(1, KEY_ID).secret());
        assert_eq!(mint.client(Id(1), &pass(&key, Id(9), now)), None, "made by the server");
    }
}
