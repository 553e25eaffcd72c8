//! The matchmaker: knows the servers, and makes tokens for them. Only it has the fleet key, and nobody asks it during a
//! match.
//!
//! | POST | body | answer |
//! |---|---|---|
//! | `/play` | the player's name | a token for the server with the fewest players |
//! | `/servers` | server, address, players; each half second, by the server | `drain` if it has to send its players away, or nothing |
//! | `/move` | server, player's number; by the server | a token for another server |
//! | `/drain` | server | nothing |
//!
//! Anybody who can reach it can claim to be a server. They would be sent players, but could not read their tokens.

use crate::http::Request;
use crate::keys::{KEY_ID, PROTOCOL_ID};
use crate::{Done, http, keys};
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::str::{self, FromStr};
use std::time::{Duration, Instant};
use whitewater::session::Suite;
use whitewater::session::token::{FleetKey, Order};

/// A server that is silent for this long is gone.
const SILENCE: Duration = Duration::from_secs(3);
/// How long a player may take from getting the token to joining the server, s.
const LIFE: u64 = 45;

struct Matchmaker {
    key: FleetKey,
    servers: BTreeMap<u64, Known>,
    /// The number of a player is the index of their name. A real matchmaker has accounts.
    players: Vec<String>,
}

/// A server as it last reported.
struct Known {
    address: SocketAddr,
    players: usize,
    heard: Instant,
    drains: bool,
}

/// Answers one request after the other.
pub(crate) fn run(listener: &TcpListener, key: FleetKey) -> Done {
    let mut matchmaker = Matchmaker { key, servers: BTreeMap::new(), players: Vec::new() };
    for stream in listener.incoming() {
        let stream = stream?;
        // Invalid requests and broken connections get no answer.
        if let Ok(request) = http::receive(&stream) {
            let _ = http::answer(&stream, matchmaker.answer(&request).as_deref());
        }
    }
    Ok(())
}

impl Matchmaker {
    /// `None`: there is no answer to this.
    fn answer(&mut self, request: &Request) -> Option<Vec<u8>> {
        let body = str::from_utf8(&request.body).ok()?;
        let mut words = body.split(' ');
        self.servers.retain(|_, server| server.heard.elapsed() < SILENCE);
        match request.path.as_str() {
            "/play" => {
                let player = self.number(body);
                self.token(player, None)
            }
            "/servers" => {
                let (id, address, players) = (word(&mut words)?, word(&mut words)?, word(&mut words)?);
                let drains = self.servers.get(&id).is_some_and(|known| known.drains);
                self.servers.insert(id, Known { address, players, heard: Instant::now(), drains });
                Some(if drains { b"drain".to_vec() } else { Vec::new() })
            }
            "/move" => {
                let from = word(&mut words)?;
                self.token(word(&mut words)?, Some(from))
            }
            "/drain" => {
                self.servers.get_mut(&word(&mut words)?)?.drains = true;
                Some(Vec::new())
            }
            _ => None,
        }
    }

    fn number(&mut self, name: &str) -> u64 {
        let place = self.players.iter().position(|known| known == name).unwrap_or_else(|| {
            self.players.push(name.to_owned());
            self.players.len() - 1
        });
        place as u64 + 1
    }

    /// A token for the server with the fewest players, except this one.
    fn token(&mut self, client_id: u64, except: Option<u64>) -> Option<Vec<u8>> {
        let open = self.servers.iter_mut().filter(|(id, server)| !server.drains && Some(**id) != except);
        let (id, server) = open.min_by_key(|(_, server)| server.players)?;
        server.players += 1; // until the server reports the real number
        let now = keys::unix_now();
        let order = Order {
            protocol_id: PROTOCOL_ID,
            suite: Suite::TOKEN,
            client_id,
            match_id: [0; 16],
            created: now,
            expires: now + LIFE,
            addresses: &[server.address],
            server_key: None,
            routing_token: b"",
            user: b"",
        };
        let (psk, nonce) = (keys::random().ok()?, keys::random().ok()?);
        let token = self.key.server_key(*id, KEY_ID).mint(&order, psk, nonce).ok()?;
        Some(token.encode().to_vec())
    }
}

fn word<'a, T: FromStr>(words: &mut impl Iterator<Item = &'a str>) -> Option<T> {
    words.next()?.parse().ok()
}
