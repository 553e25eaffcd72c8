//! The loop of the game: echoes what players say. It tells sidecar and matchmaker what happens, and never waits for them.

use crate::drain::Drain;
use crate::game_server::GameServer;
use crate::idle::Idle;
use crate::matchmaker::{self, Matchmaker, Request};
use crate::protocol::{self, DRAINED, TALK};
use crate::sidecar::Sidecar;
use crate::{Done, load};
use std::error::Error;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use whitewater::session::token::{ADDRESSES_MAX, ServerKey};
use whitewater::{Event, Server, ServerConfig, SessionId};
use whitewater_matchmaker::messages::{Hex, Id, Report};

pub(crate) struct Config {
    pub(crate) at: SocketAddr,
    /// Of this server, as players ask for it.
    pub(crate) region: String,
    /// How long players may stay when the server is to end.
    pub(crate) drain: Duration,
    /// How long it stays allocated without a player.
    pub(crate) idle: Duration,
}

/// For the loop.
pub(crate) enum News {
    /// The `GameServer` as it is now.
    Changed(GameServer),
    /// The matchmaker has a number and a key for this server.
    Registered(ServerKey),
    /// SIGTERM.
    Stop,
    /// The operators of the matchmaker want the server to end.
    Drain,
    /// Tokens for other servers. Without any, there was no place.
    Tokens(Vec<(SessionId, Vec<u8>)>),
}

const TICK: Duration = Duration::from_millis(20);
/// Between beats before the server knows its period of health.
const FIRST_BEAT: Duration = Duration::from_secs(1);
/// Places of a server whose fleet has no counter.
const PLACES: u16 = 32;
/// Beats in each period of health: one may be late.
const BEATS: u32 = 3;
/// Between reports to the matchmaker if nobody comes or leaves. Its leases last for 15 s.
const REPORT: Duration = Duration::from_secs(3);

/// Serves until SIGTERM, until the operators want it to end, or until the match is over.
pub(crate) fn run(config: &Config, matchmaker: matchmaker::Config) -> Done {
    let (tell, news) = channel();
    let sidecar = Sidecar::start(tell.clone())?;
    let matchmaker = Matchmaker::start(matchmaker, tell)?;
    let Some((game_server, key)) = wait(&sidecar, &news) else {
        matchmaker.end();
        sidecar.end();
        return Ok(());
    };
    let mut game = Game::bind(config, game_server, key, (sidecar, matchmaker, news))?;
    while !game.is_over() {
        game.turn()?;
    }
    game.end()
}

/// Waits for sidecar and matchmaker, for as long as it takes. `None`: SIGTERM comes first.
fn wait(sidecar: &Sidecar, news: &Receiver<News>) -> Option<(GameServer, ServerKey)> {
    println!("waiting for the sidecar and the matchmaker");
    let mut known = (None, None);
    loop {
        match news.recv_timeout(FIRST_BEAT) {
            Ok(News::Changed(game_server)) => known.0 = Some(game_server),
            Ok(News::Registered(key)) => known.1 = Some(key),
            Ok(News::Stop) | Err(RecvTimeoutError::Disconnected) => return None,
            Ok(News::Drain | News::Tokens(_)) | Err(RecvTimeoutError::Timeout) => {}
        }
        sidecar.tell(|told| told.beats += 1); // it is healthy, and not ready
        match known {
            (Some(game_server), Some(key)) => return Some((game_server, key)),
            incomplete => known = incomplete,
        }
    }
}

struct Game<'a> {
    config: &'a Config,
    server: Server,
    sidecar: Sidecar,
    matchmaker: Matchmaker,
    news: Receiver<News>,
    game_server: GameServer,
    /// Where players reach it.
    addresses: Vec<SocketAddr>,
    places: u16,
    /// Somebody has played: when all have left, the match is over.
    has_begun: bool,
    /// Every place was taken once: a match does not fill up again when somebody leaves.
    is_full: bool,
    idle: Idle,
    drain: Option<Drain>,
    /// Whom the matchmaker has not heard of.
    arrived: Vec<Id>,
    /// The players of the last report, and whether it took more.
    reported: Option<(usize, bool)>,
    next_beat: Instant,
    next_report: Instant,
}

impl<'a> Game<'a> {
    fn bind(
        config: &'a Config,
        game_server: GameServer,
        key: ServerKey,
        (sidecar, matchmaker, news): (Sidecar, Matchmaker, Receiver<News>),
    ) -> Result<Self, Box<dyn Error>> {
        let capacity = game_server.capacity;
        let places = capacity.map_or(Ok(PLACES), u16::try_from)?;
        let sessions = ServerConfig::tokens(protocol::session_config(), key);
        let server = Server::bind(config.at, &ServerConfig { max_sessions: places, ask: true, ..sessions })?;
        println!("listening on {}", server.local_addr()?);
        let GameServer { name, address, port, .. } = &game_server;
        println!("{name}: players reach it at {address}:{port}");
        let addresses = (address.as_str(), *port).to_socket_addrs()?.take(ADDRESSES_MAX).collect();
        sidecar.tell(|told| (told.is_ready, told.capacity) = (true, capacity));
        let now = Instant::now();
        Ok(Self {
            config,
            server,
            sidecar,
            matchmaker,
            news,
            game_server,
            addresses,
            places,
            has_begun: false,
            is_full: false,
            idle: Idle::new(config.idle),
            drain: None,
            arrived: Vec::new(),
            reported: None,
            next_beat: now,
            next_report: now,
        })
    }

    fn turn(&mut self) -> Done {
        self.server.poll(Some(TICK))?;
        while let Some((id, event)) = self.server.poll_event() {
            match event {
                Event::Requested => self.decide(id),
                Event::Connected => {
                    self.has_begun = true;
                    let number = player(&self.server, id);
                    self.arrived.push(Id(number));
                    println!("player {number} is in");
                }
                Event::Readable => self.echo(id),
                Event::Closed { reason, .. } => {
                    println!("player {} is gone: {reason}", player(&self.server, id));
                }
                _ => {}
            }
        }
        let now = Instant::now();
        while let Ok(news) = self.news.try_recv() {
            self.learn(now, news);
        }
        if self.has_begun && self.server.clients().len() == 0 {
            self.drain(now, "the match is over");
        }
        if let Some(drain) = &mut self.drain {
            drain.ask(now, &self.server, &self.config.region, &self.matchmaker);
        }
        self.tell_sidecar(now);
        self.tell_matchmaker(now);
        Ok(())
    }

    /// A client that has gone away meanwhile needs no answer.
    fn decide(&mut self, id: SessionId) {
        let _ = match self.drain {
            Some(_) => self.server.reject(id, DRAINED, b""),
            None => self.server.admit(id, b""),
        };
    }

    fn learn(&mut self, now: Instant, news: News) {
        match news {
            News::Changed(game_server) => {
                if game_server.state != self.game_server.state {
                    println!("{}: {}", game_server.name, game_server.state);
                }
                self.game_server = game_server;
            }
            News::Stop => self.drain(now, "SIGTERM"),
            News::Drain => self.drain(now, "the operators want it"),
            News::Tokens(tokens) => {
                if let Some(drain) = &mut self.drain {
                    drain.send(now, &mut self.server, tokens);
                }
            }
            News::Registered(_) => {}
        }
    }

    /// Tells the sidecar that this loop runs, and of the players.
    fn tell_sidecar(&mut self, now: Instant) {
        let players = self.server.clients().len();
        self.is_full |= players >= usize::from(self.places);
        let count = i64::try_from(players).unwrap_or(i64::MAX);
        let (is_closed, is_due) = (self.is_closed(), self.next_beat <= now);
        if is_due {
            self.next_beat = now + self.game_server.health_period / BEATS;
        }
        let is_allocated = self.game_server.state == "Allocated";
        let is_idle = self.idle.is_over(now, is_allocated && !self.has_begun && self.drain.is_none());
        if is_idle {
            println!("allocated, and nobody has come: ready again");
        }
        let is_busy = players > 0 && self.game_server.state == "Ready";
        self.sidecar.tell(|told| {
            told.players = count;
            told.capacity = told.capacity.map(|capacity| if is_closed { count } else { capacity });
            told.is_busy |= is_busy;
            told.returns += u64::from(is_idle);
            told.beats += u64::from(is_due);
        });
    }

    /// Tells the matchmaker at once when somebody comes or leaves, and renews the lease. Players are sent to a server that is `Ready`, and not earlier.
    fn tell_matchmaker(&mut self, now: Instant) {
        if !["Ready", "Allocated"].contains(&&*self.game_server.state) && self.reported.is_none() {
            return;
        }
        let next = Some((self.server.clients().len(), self.is_closed()));
        if self.reported == next && self.arrived.is_empty() && now < self.next_report {
            return;
        }
        (self.reported, self.next_report) = (next, now + REPORT);
        let (rtt_ms, loss) = load::of(&self.server);
        self.matchmaker.ask(Request::Report(Report {
            name: self.game_server.name.clone(),
            addresses: self.addresses.clone(),
            region: self.config.region.clone(),
            capacity: self.places.into(),
            players: u32::try_from(self.server.clients().len()).unwrap_or(u32::MAX),
            arrived: std::mem::take(&mut self.arrived),
            rtt_ms,
            loss,
            routing_token: Hex::default(),
            draining: self.is_closed(),
        }));
    }

    /// It has no places for others any more.
    fn is_closed(&self) -> bool {
        self.is_full || self.drain.is_some()
    }

    /// Lets nobody in any more.
    fn drain(&mut self, now: Instant, why: &str) {
        if self.drain.is_none() {
            println!("draining: {why}");
            self.drain = Some(Drain::start(now, self.config.drain));
        }
    }

    fn is_over(&self) -> bool {
        let is_late = |drain: &Drain| self.server.clients().len() == 0 || drain.is_late(Instant::now());
        self.drain.as_ref().is_some_and(is_late)
    }

    /// Closes the sessions that are left, gives the lease back, and only then lets Agones delete the pod.
    fn end(mut self) -> Done {
        self.server.shutdown(DRAINED)?;
        println!("empty, so it ends");
        self.matchmaker.end();
        self.sidecar.end();
        Ok(())
    }

    fn echo(&mut self, id: SessionId) {
        while let Some(text) = self.server.recv(id, TALK) {
            println!("player {}: {text}", player(&self.server, id));
            if self.server.send(id, TALK, &format!("{} {text}", self.game_server.name)).is_err() {
                self.server.close(id, DRAINED); // it sends and does not read
            }
        }
    }
}

/// The backend's number of a player.
pub(crate) fn player(server: &Server, id: SessionId) -> u64 {
    server.pass(id).map_or(0, |pass| pass.client_id)
}
