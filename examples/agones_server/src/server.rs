//! The loop of the game: echoes what players say. It tells the sidecar what happens, and never waits for it.

use crate::Done;
use crate::drain::Drain;
use crate::game_server::GameServer;
use crate::protocol::{self, DRAINED, KEY_ID, TALK};
use crate::sidecar::{News, Sidecar};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use whitewater::session::token::ServerKey;
use whitewater::{Event, Server, ServerConfig, SessionId};

pub(crate) struct Config {
    pub(crate) at: SocketAddr,
    /// The key of this server, not that of the fleet.
    pub(crate) key: [u8; 32],
    /// How long players may stay when the server is to end.
    pub(crate) drain: Duration,
    /// Where to ask for tokens for other servers.
    pub(crate) matchmaker: Option<SocketAddr>,
}

const TICK: Duration = Duration::from_millis(20);
/// Places of a server whose fleet has no counter.
const PLACES: u16 = 32;
/// Beats in each period of health: one may be late.
const BEATS: u32 = 3;

/// Serves until SIGTERM, or until the match is over.
pub(crate) fn run(config: &Config, sidecar: Sidecar) -> Done {
    let Some(game_server) = sidecar.game_server() else {
        sidecar.end();
        return Ok(());
    };
    let mut game = Game::bind(config, game_server, sidecar)?;
    while !game.is_over() {
        game.turn()?;
    }
    game.end()
}

struct Game<'a> {
    config: &'a Config,
    server: Server,
    sidecar: Sidecar,
    game_server: GameServer,
    /// Somebody has played: when all have left, the match is over.
    has_begun: bool,
    drain: Option<Drain>,
    next_beat: Instant,
}

impl<'a> Game<'a> {
    fn bind(
        config: &'a Config,
        game_server: GameServer,
        sidecar: Sidecar,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let key = ServerKey::new(game_server.server_id, KEY_ID, config.key);
        let capacity = game_server.capacity;
        let max_sessions = capacity.map_or(Ok(PLACES), u16::try_from)?;
        let sessions = ServerConfig::tokens(protocol::session_config(), key);
        let server = Server::bind(config.at, &ServerConfig { max_sessions, ask: true, ..sessions })?;
        println!("listening on {}", server.local_addr()?);
        let GameServer { name, address, port, .. } = &game_server;
        println!("{name}: players reach it at {address}:{port}");
        sidecar.tell(|told| (told.is_ready, told.capacity) = (true, capacity));
        let next_beat = Instant::now();
        Ok(Self { config, server, sidecar, game_server, has_begun: false, drain: None, next_beat })
    }

    fn turn(&mut self) -> Done {
        self.server.poll(Some(TICK))?;
        while let Some((id, event)) = self.server.poll_event() {
            match event {
                Event::Requested => self.decide(id),
                Event::Connected => {
                    self.has_begun = true;
                    println!("player {} is in", self.player(id));
                }
                Event::Readable => self.echo(id),
                Event::Closed { reason, .. } => println!("player {} is gone: {reason}", self.player(id)),
                _ => {}
            }
        }
        while let Some(news) = self.sidecar.news() {
            match news {
                News::Changed(game_server) => self.learn(game_server),
                News::Stop => self.drain("SIGTERM"),
            }
        }
        if self.has_begun && self.server.clients().len() == 0 {
            self.drain("the match is over");
        }
        if let Some(drain) = &mut self.drain {
            drain.turn(&mut self.server);
        }
        self.report();
        Ok(())
    }

    /// A client that has gone away meanwhile needs no answer.
    fn decide(&mut self, id: SessionId) {
        let _ = match self.drain {
            Some(_) => self.server.reject(id, DRAINED, b""),
            None => self.server.admit(id, b""),
        };
    }

    fn learn(&mut self, game_server: GameServer) {
        if game_server.state != self.game_server.state {
            println!("{}: {}", game_server.name, game_server.state);
        }
        self.game_server = game_server;
    }

    /// Tells the sidecar that this loop runs, and of the players. Nobody is to be sent to a server that drains: it has no free places.
    fn report(&mut self) {
        let players = i64::try_from(self.server.clients().len()).unwrap_or(i64::MAX);
        let (is_draining, now) = (self.drain.is_some(), Instant::now());
        let is_due = self.next_beat <= now;
        if is_due {
            self.next_beat = now + self.game_server.health_period / BEATS;
        }
        let is_busy = players > 0 && self.game_server.state == "Ready";
        self.sidecar.tell(|told| {
            told.players = players;
            told.capacity = told.capacity.map(|capacity| if is_draining { players } else { capacity });
            told.is_busy |= is_busy;
            told.beats += u64::from(is_due);
        });
    }

    /// Lets nobody in any more.
    fn drain(&mut self, why: &str) {
        if self.drain.is_none() {
            println!("draining: {why}");
            self.drain = Some(Drain::start(&self.server, self.config, self.game_server.server_id));
        }
    }

    fn is_over(&self) -> bool {
        self.drain.as_ref().is_some_and(|drain| self.server.clients().len() == 0 || drain.is_late())
    }

    /// Closes the sessions that are left, and only then lets Agones delete the pod.
    fn end(mut self) -> Done {
        self.server.shutdown(DRAINED)?;
        println!("empty, so it ends");
        self.sidecar.end();
        Ok(())
    }

    /// The matchmaker's number of a player.
    fn player(&self, id: SessionId) -> u64 {
        self.server.pass(id).map_or(0, |pass| pass.client_id)
    }

    fn echo(&mut self, id: SessionId) {
        while let Some(text) = self.server.recv(id, TALK) {
            println!("player {}: {text}", self.player(id));
            if self.server.send(id, TALK, &format!("{} {text}", self.game_server.name)).is_err() {
                self.server.close(id, DRAINED); // it sends and does not read
            }
        }
    }
}
