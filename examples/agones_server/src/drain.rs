//! The end of a server: its players are sent to others if the matchmaker has tokens for them, and may stay for a while if not.

use crate::http;
use crate::server::Config;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;
use whitewater::{Server, SessionId};

pub(crate) struct Drain {
    until: Instant,
    /// Tokens for players, by their numbers.
    tokens: Receiver<(u64, Vec<u8>)>,
    players: BTreeMap<u64, SessionId>,
}

impl Drain {
    pub(crate) fn start(server: &Server, config: &Config, server_id: u64) -> Self {
        let number = |id| server.pass(id).map(|pass| (pass.client_id, id));
        let players: BTreeMap<_, _> = server.clients().filter_map(number).collect();
        let (send, tokens) = channel();
        if let Some(matchmaker) = config.matchmaker {
            let numbers: Vec<_> = players.keys().copied().collect();
            thread::spawn(move || {
                for number in numbers {
                    let Ok(token) = ask(matchmaker, server_id, number) else { continue };
                    let _ = send.send((number, token)); // the server has ended
                }
            });
        }
        Self { until: Instant::now() + config.drain, tokens, players }
    }

    /// Redirects those for whom there is a token.
    pub(crate) fn turn(&mut self, server: &mut Server) {
        while let Ok((number, token)) = self.tokens.try_recv() {
            let Some(id) = self.players.get(&number) else { continue };
            match server.redirect(*id, &token) {
                Ok(()) => println!("player {number} is sent to another server"),
                Err(error) => eprintln!("player {number} stays: {error}"),
            }
        }
    }

    /// Whoever is still here is closed.
    pub(crate) fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }
}

/// A token for this player for another server than this, of which the matchmaker alone has the key.
fn ask(matchmaker: SocketAddr, server_id: u64, player: u64) -> std::io::Result<Vec<u8>> {
    http::post(matchmaker, "/move", format!("{server_id} {player}").as_bytes())
}
