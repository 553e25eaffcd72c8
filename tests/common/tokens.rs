//! Connect tokens of a fleet, with the test as the matchmaker.

use super::sessions::{SUITE, World, server_address, server_config};
use std::net::SocketAddr;
use whitewater::session::Suite;
use whitewater::session::token::{FleetKey, Order, PublicToken, ServerKey, Verifier};
use whitewater::{ClientConfig, ServerConfig, SessionConfig};

pub(crate) use super::sessions::NOW;
/// The server that tokens are for, by default.
pub(crate) const SERVER_ID: u64 = 5;

pub(crate) fn key(server_id: u64) -> ServerKey {
    FleetKey::new([1; 32]).server_key(server_id, 0)
}

/// The verifier of a server that started a minute ago.
pub(crate) fn verifier(server_id: u64) -> Verifier {
    let verifier = Verifier::new(key(server_id));
    verifier.set_age(NOW, 60);
    verifier
}

/// A server that requires tokens, without clients.
pub(crate) fn strict(seed: u64, verifier: Verifier) -> World {
    World::new(seed, &requiring(verifier, server_config(&SessionConfig::default(), SUITE)))
}

/// `config` for a server that requires tokens.
pub(crate) fn requiring(verifier: Verifier, config: ServerConfig) -> ServerConfig {
    ServerConfig { tokens: Some(verifier), psk: None, ..config }
}

/// The config of a client with this token.
pub(crate) fn by_token(token: &PublicToken) -> ClientConfig {
    ClientConfig::token(SessionConfig::default(), token)
}

/// The default content of a token.
pub(crate) fn order(client_id: u64, created: u64, addresses: &[SocketAddr]) -> Order<'_> {
    Order {
        protocol_id: 0,
        suite: Suite::TOKEN,
        client_id,
        match_id: [0; 16],
        created,
        expires: created + 45,
        addresses,
        server_key: None,
        routing_token: b"",
        user: b"red team",
    }
}

/// Each number makes a different token.
pub(crate) fn mint(server_id: u64, number: u8, order: &Order<'_>) -> PublicToken {
    let order = Order { match_id: [number; 16], ..*order };
    key(server_id).mint(&order, [number; 32], [number; 24]).unwrap()
}

/// A token for [`SERVER_ID`].
pub(crate) fn token(client_id: u64, created: u64, number: u8) -> PublicToken {
    mint(SERVER_ID, number, &order(client_id, created, &[server_address()]))
}
