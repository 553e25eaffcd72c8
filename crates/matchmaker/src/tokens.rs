//! What the fleet key makes: keys and secrets of servers, and connect tokens of players. Nothing of it has to be stored.

use crate::access::Bearer;
use crate::fleet::TOKEN_LIFE;
use crate::messages::{Hex, Id, Identity, Join, Report};
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};
use whitewater::session::Suite;
use whitewater::session::token::{FleetKey, Order, TokenError};

/// Servers do not live long enough for a second key.
const KEY_ID: u8 = 0;
/// Keys with this number seal no tokens: they are the secrets that servers show. So nobody has to show a key.
const SECRET_ID: u8 = 255;

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
        let key = self.fleet.server_key(server.0, KEY_ID);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
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
                user: b"",
            };
            Ok(Hex(key.mint(&order, random()?, random()?)?.encode().to_vec()))
        };
        join.clients.iter().map(token).collect()
    }

    fn secret_text(&self, server: Id) -> String {
        Hex(self.fleet.server_key(server.0, SECRET_ID).secret().to_vec()).to_string()
    }
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}
