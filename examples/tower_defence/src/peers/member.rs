//! A player of a match that players host: their client, and their server while they host.

use super::{POSTS, REPORTS};
use crate::bots::Bot;
use crate::carry::{Guest, Host, REFUSED, session};
use crate::server::Server;
use crate::sim::rules::HZ;
use crate::wire::{ADDRESSES_MAX, Post, Report, Will};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;
use whitewater::session::token::{PublicToken, ServerKey};
use whitewater::session::{self, Connection, HostTicket};
use whitewater::{ClientConfig, CloseReason, Event, ServerConfig, SessionConfig, SessionId, Time};

/// A player, without sockets: three machines are driven for it. One is its session with the lobby. The others come and go as
/// a [`Task`] says: its session with the host, and its own server.
#[derive(Debug)]
pub struct Member {
    /// The client, which keeps what it shows from host to host.
    pub guest: Guest,
    bot: Option<Bot>,
    /// What it says about itself in handshakes with hosts.
    user: Vec<u8>,
    seed: u64,
    /// The newest term that it was told of, and the one whose host it joined last.
    term: u32,
    joined: u32,
    hosted: Option<Hosted>,
    path: Path,
    reports: VecDeque<Report>,
}

/// What to do for a member.
#[derive(Debug)]
pub enum Task {
    /// Bind its server, on a port of its own, instead of any other. If that fails, call [`Member::decline`].
    Bind(Box<ServerConfig>),
    /// Connect with this from a new port, instead of any other session with a host, to these addresses, or else to its own
    /// server if there is one. A server that is no longer [wanted](Member::hosts) goes first.
    Join(Box<ClientConfig>, Vec<SocketAddr>),
}

/// The own server.
#[derive(Debug)]
struct Hosted {
    host: Host,
    /// The number of this player.
    own: u64,
    next_tick: Time,
    told: Vec<SocketAddr>,
    /// What the server is bound with, when it was, and how often.
    config: Box<ServerConfig>,
    bound: Time,
    times: u32,
    /// Another server goes on from here.
    has_ended: bool,
}

/// Whether the host can be heard.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Path {
    /// There is no session with it.
    None,
    /// There is one since then, but no snapshot yet.
    Begun(Time),
    /// Snapshots come.
    Up,
    /// None has come for a while: the lobby was told then.
    Silent(Time),
}

impl Member {
    /// A player who says `user`, an encoded [`Hello`](crate::wire::Hello), to each host. The lobby knows them by the secret
    /// number in the hello for it; that one should have another. `seed`: for a match that begins here.
    #[must_use]
    pub fn new(user: Vec<u8>, bot: Option<Bot>, seed: u64) -> Self {
        Self {
            guest: Guest::default(),
            bot,
            user,
            seed,
            term: 0,
            joined: 0,
            hosted: None,
            path: Path::None,
            reports: VecDeque::new(),
        }
    }

    /// The match, while this player hosts it.
    #[must_use]
    pub fn game(&self) -> Option<&Server> {
        self.hosted.as_ref().map(|hosted| &hosted.host.game)
    }

    /// The same, to make changes there that no client can make.
    pub fn game_mut(&mut self) -> Option<&mut Server> {
        self.hosted.as_mut().map(|hosted| &mut hosted.host.game)
    }

    /// Whether it hosts. If not, its server has nothing to do any more.
    #[must_use]
    pub const fn hosts(&self) -> bool {
        self.hosted.is_some()
    }

    /// The newest term that it was told of.
    #[must_use]
    pub const fn term(&self) -> u32 {
        self.term
    }

    /// Reads what the lobby says, and says what there is to say. If there is a task, call it again afterwards.
    pub fn talk(&mut self, lobby: &mut Connection, now: Time) -> Option<Task> {
        let mut task = None;
        while task.is_none()
            && let Some(post) = lobby.recv(POSTS)
        {
            task = self.take(post, now);
        }
        let rtt = lobby.stats().rtt;
        task = task.or_else(|| self.hosted.as_mut()?.bind_again(now, rtt));
        while let Some(report) = self.reports.front() {
            if lobby.send(REPORTS, report).is_err_and(|error| error.is_full()) {
                break;
            }
            self.reports.pop_front(); // it was said, or the session is over
        }
        task
    }

    /// This machine cannot host, as it was to.
    pub fn decline(&mut self) {
        self.hosted = None;
        self.reports.push_back(Report::Decline { term: self.term });
    }

    /// Takes an event of the own server.
    pub fn on_guest(&mut self, sessions: &mut session::Server, now: Time, id: SessionId, event: Event) {
        if let Some(hosted) = &mut self.hosted {
            hosted.host.on_event(sessions, now, id, event);
        }
    }

    /// Runs the ticks of the own match that are due. `addresses`: where guests can reach the server, if they can by now.
    pub fn serve(&mut self, sessions: &mut session::Server, now: Time, mut addresses: Vec<SocketAddr>) {
        let Some(hosted) = &mut self.hosted else { return };
        // The relay's is the last of them, and the lobby knows that one.
        addresses.truncate(ADDRESSES_MAX);
        if !addresses.is_empty() && hosted.told != addresses {
            hosted.told.clone_from(&addresses);
            self.reports.push_back(Report::At { term: self.term, addresses });
        }
        if now < hosted.next_tick || hosted.has_ended {
            return;
        }
        hosted.host.tick(sessions);
        // If the machine was suspended, the match continues without catching up.
        let late = now.since(hosted.next_tick);
        hosted.next_tick = hosted.next_tick + if late > 8 * TICK { late } else { TICK };
    }

    /// This player leaves: the match stands still, and the heirs get it as it is now.
    pub fn leave(&mut self, sessions: &mut session::Server) {
        if let Some(hosted) = &mut self.hosted {
            hosted.has_ended = true;
            hosted.host.farewell(sessions);
        }
    }

    /// Whether the heirs have the match. Say goodbye to guests then, and not before: they would move on at once. Do not wait for
    /// longer than half a second, because silence moves them as well.
    pub fn is_bequeathed(&self, sessions: &mut session::Server) -> bool {
        self.hosted.as_ref().is_none_or(|hosted| hosted.host.is_bequeathed(sessions))
    }

    /// Takes an event of the session with the host.
    pub fn on_event(&mut self, connection: Option<&mut Connection>, now: Time, event: Event) {
        match (event, connection) {
            (Event::Readable, Some(connection)) => self.guest.read(connection, now),
            (Event::Closed { reason, .. }, _) => {
                self.path = Path::None;
                if reason == CloseReason::Peer(REFUSED) {
                    return; // there is no place for us, and no other token makes one
                }
                self.reports.push_back(Report::Lost { term: self.joined, is_over: true });
            }
            _ => {}
        }
    }

    /// Call this once per frame. `connection`: the session with the host, if it is up. Without one, the client goes on with
    /// what it predicts.
    pub fn frame(&mut self, connection: Option<&mut Connection>, now: Time) {
        if let Some(bot) = &mut self.bot {
            bot.play(&mut self.guest.game);
        }
        match connection {
            Some(connection) => {
                self.guest.read(connection, now);
                self.guest.advance(connection, now);
            }
            None => self.guest.game.advance(now),
        }
        let heard = self.guest.game.heard().unwrap_or(Time::ZERO);
        let is_silent = match self.path {
            Path::None => return,
            Path::Begun(since) if heard <= since => now.since(since) > FIRST,
            Path::Begun(_) | Path::Up => now.since(heard) > SILENT,
            Path::Silent(told) => now.since(told) > AGAIN && now.since(heard) > SILENT,
        };
        if is_silent {
            self.path = Path::Silent(now);
            self.reports.push_back(Report::Lost { term: self.joined, is_over: false });
        } else if now.since(heard) <= SILENT && !matches!(self.path, Path::Begun(since) if heard <= since) {
            self.path = Path::Up;
        }
    }

    fn take(&mut self, post: Post, now: Time) -> Option<Task> {
        match post {
            Post::Ask { term } => {
                if self.hosted.is_some() && term == self.term {
                    self.reports.push_back(Report::Here { term });
                }
                None
            }
            Post::Heirs { heirs } => {
                if let Some(hosted) = &mut self.hosted {
                    hosted.host.set_heirs(hosted.own, heirs);
                }
                None
            }
            Post::Host { term, you, may_begin, relay, ticket, key } => {
                self.term = term;
                let task = self.host(now, you, may_begin, (relay, &ticket), &key);
                if task.is_none() {
                    self.decline();
                }
                task
            }
            Post::Join { term, token } => {
                if term != self.term {
                    self.hosted = None; // somebody else hosts
                }
                let token = PublicToken::decode(&token).ok()?;
                (self.term, self.joined) = (term, term);
                self.reports.push_back(Report::Here { term });
                self.path = Path::Begun(now);
                self.guest.game.move_on();
                let session = SessionConfig { timeout: TIMEOUT, ..session() };
                let user = self.user.clone();
                let config = ClientConfig { user, deadline: CONNECT, ..ClientConfig::token(session, &token) };
                Some(Task::Join(Box::new(config), token.addresses))
            }
        }
    }

    /// Begins to host with what there is of the match.
    fn host(
        &mut self,
        now: Time,
        you: u64,
        may_begin: bool,
        (relay, ticket): (SocketAddr, &[u8]),
        key: &[u8],
    ) -> Option<Task> {
        let own = self.hosted.take().map(|hosted| hosted.host.game.will(None));
        let game = match own.or_else(|| self.will()) {
            Some(will) => Server::resume(will),
            None if may_begin => Server::new(self.seed),
            None => return None,
        };
        let (ticket, key) = (HostTicket::decode(ticket)?, key.try_into().ok()?);
        let key = ServerKey::new(self.term.into(), 0, key);
        let config = Box::new(ServerConfig {
            relay: Some((relay, ticket)),
            routing_token: 20,
            // Players of one household come from one address.
            sessions_per_address: 64,
            half_open_per_address: 64,
            accept_burst: 64,
            ..ServerConfig::tokens(SessionConfig { timeout: TIMEOUT, ..session() }, key)
        });
        self.hosted = Some(Hosted {
            host: Host::new(game),
            own: you,
            next_tick: now,
            told: Vec::new(),
            config: config.clone(),
            bound: now,
            times: 1,
            has_ended: false,
        });
        Some(Task::Bind(config))
    }

    /// The will of the last host, unless it is from long before what is known of the match.
    fn will(&mut self) -> Option<Will> {
        let known = self.guest.game.confirmed().map_or(0, |world| world.tick);
        self.guest.will.take().filter(|will| will.world.tick + WILL_AGE >= known)
    }
}

impl Hosted {
    /// A server that nobody can reach yet is bound again: a registration at the relay that gets lost is repeated by the server
    /// only after five seconds, but by a new one at once. Registering takes two round trips, and the relay may be as far away as
    /// the lobby, or farther.
    fn bind_again(&mut self, now: Time, rtt: Duration) -> Option<Task> {
        let patience = self.times.div_ceil(2) * REGISTERED.max(3 * rtt);
        if !self.told.is_empty() || now.since(self.bound) < patience {
            return None;
        }
        self.bound = now;
        self.times += 1;
        Some(Task::Bind(self.config.clone()))
    }
}

/// A tick of the match.
const TICK: Duration = Duration::from_micros(1_000_000 / HZ as u64);
/// Without a snapshot for so long, a host is silent.
const SILENT: Duration = Duration::from_millis(700);
/// The same for the first one: a new host waits a second until all are back.
const FIRST: Duration = Duration::from_millis(2500);
/// How long to wait before the lobby is told again.
const AGAIN: Duration = Duration::from_secs(1);
/// How long the first registration at the relay may take at least.
const REGISTERED: Duration = Duration::from_millis(150);
/// How long to try an address of a host.
const CONNECT: Duration = Duration::from_secs(2);
/// After so much silence, a session between host and guest ends.
const TIMEOUT: Duration = Duration::from_secs(5);
/// A will is of no use when it is older than this, ticks: its player was no heir any more.
const WILL_AGE: u32 = 5 * HZ;
