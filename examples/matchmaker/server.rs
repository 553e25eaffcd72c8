//! A server: echoes with its name, sends its players away when told to, and ends when the last is gone.

use crate::Done;
use crate::agent::{Agent, News};
use crate::keys::{self, KEY_ID, TALK};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use whitewater::session::token::ServerKey;
use whitewater::{Event, Server, ServerConfig, SessionId};

pub(crate) struct Config {
    /// The number of this process. A restarted server needs another one, or it accepts no tokens made before.
    pub(crate) id: u64,
    /// The key that the fleet key makes for `id`.
    pub(crate) key: [u8; 32],
    pub(crate) at: SocketAddr,
    pub(crate) matchmaker: SocketAddr,
}

/// How long to wait before closing a player who was redirected but has not left.
const LINGER: Duration = Duration::from_secs(10);
/// The code for that.
const DRAINED: u16 = 1;
const TICK: Duration = Duration::from_millis(20);

pub(crate) fn run(config: &Config, say: &dyn Fn(&str)) -> Done {
    let key = ServerKey::new(config.id, KEY_ID, config.key);
    let sessions = ServerConfig::tokens(keys::session_config(), key);
    let mut server = Server::bind(config.at, &sessions)?;
    let agent = Agent::start(config.id, server.local_addr()?, config.matchmaker);
    let mut end = None;
    loop {
        server.poll(Some(TICK))?;
        while let Some((id, event)) = server.poll_event() {
            match event {
                Event::Connected => {
                    say(&format!("server {}: player {} is in", config.id, player(&server, id)))
                }
                Event::Readable => echo(&mut server, id, config.id),
                Event::Closed { reason, .. } => {
                    say(&format!("server {}: player {} is gone: {reason}", config.id, player(&server, id)));
                }
                _ => {}
            }
        }
        let up: Vec<_> = server.clients().collect();
        agent.players(up.len());
        while let Some(news) = agent.news() {
            match news {
                News::Registered => say(&format!("server {}: registered", config.id)),
                News::Drain => {
                    say(&format!("server {}: draining", config.id));
                    end = Some(Instant::now() + LINGER);
                    up.iter().for_each(|id| agent.token(player(&server, *id)));
                }
                News::Token { player: number, token } => {
                    let id = up.iter().find(|id| player(&server, **id) == number);
                    if let (Some(&id), Some(token)) = (id, token) {
                        server.redirect(id, &token)?;
                    }
                }
            }
        }
        if end.is_some_and(|end| up.is_empty() || Instant::now() >= end) {
            server.shutdown(DRAINED)?;
            say(&format!("server {}: empty, so it ends", config.id));
            return Ok(());
        }
    }
}

/// The matchmaker's number of the player.
fn player(server: &Server, id: SessionId) -> u64 {
    server.machine().pass(id).map_or(0, |pass| pass.client_id)
}

fn echo(server: &mut Server, id: SessionId, name: u64) {
    while let Some(text) = server.recv(id, TALK) {
        if server.send(id, TALK, &format!("{name} {text}")).is_err() {
            server.close(id, DRAINED); // it sends and does not read
        }
    }
}
