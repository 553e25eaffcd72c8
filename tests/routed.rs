//! Two servers behind a proxy that finds them by routing tokens: one of these tests, and Quilkin if it is installed.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

#[path = "common/daemon.rs"]
mod daemon;
#[path = "common/network.rs"]
mod network;
#[path = "common/quilkin.rs"]
mod quilkin;
#[path = "common/router.rs"]
mod router;
#[path = "common/told.rs"]
#[expect(dead_code, reason = "its proxy is for virtual time")]
mod told;

use network::{in_own_network, ip, run};
use quilkin::Quilkin;
use router::{Passes, Router, Token};
use std::collections::HashSet;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant, SystemTime};
use std::{array, iter, mem, thread};
use whitewater::session::token::{Order, PublicToken, ServerKey};
use whitewater::session::{ClientState, Suite};
use whitewater::{
    Channel, Client, ClientConfig, CloseReason, Event, Server, ServerConfig, SessionConfig, SessionId,
};

/// Long enough for any machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);
const TALK: Channel = Channel::ordered(0);
/// How often each player says a line, which its server answers.
const BEAT: Duration = Duration::from_millis(50);
const TOKENS: [Token; 2] = [*b"server A", *b"server B"];
const PLAYERS: usize = 100;
/// For this long there is no proxy.
const OUTAGE: Duration = Duration::from_secs(1);
/// The code with which a player leaves a server for another.
const LEFT: u16 = 3;

#[test]
fn a_hundred_players_keep_their_sessions_through_loss_a_restart_of_the_proxy_and_a_server_that_drains() {
    let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut fleet = Fleet::start("127.0.0.1", address, Passes::Payload);
    let servers = fleet.routes();
    println!(
        "behind a router of ours: {}",
        fleet.play(|| Router::start(address, &servers, 20, Passes::Payload))
    );
    fleet.check_moved();
}

#[test]
fn behind_a_proxy_that_tells_who_they_are_no_session_moves_and_servers_know_where_the_players_are() {
    let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut fleet = Fleet::start("127.0.0.1", address, Passes::Told);
    let servers = fleet.routes();
    println!(
        "told by a router of ours: {}",
        fleet.play(|| Router::start(address, &servers, 20, Passes::Told))
    );
    assert!(fleet.moved.iter().all(HashSet::is_empty), "{:?}", fleet.moved);
    let mut ports: Vec<_> =
        fleet.players.iter().map(|player| player.client.local_addr().unwrap().port()).collect();
    let server = fleet.servers[1].machine();
    let mut met: Vec<_> =
        fleet.sessions[1].iter().filter_map(|id| server.peer_addr(*id)).map(|at| at.port()).collect();
    ports.sort_unstable();
    met.sort_unstable();
    assert_eq!(met, ports);
    assert!(fleet.servers.iter().all(|server| server.stats().rejected.proxy == 0));
}

/// Quilkin refuses datagrams from loopback, so this needs a network of its own, with an address that is none.
#[test]
fn the_same_behind_quilkin() {
    const HERE: &str = "10.9.0.1";
    let Some(program) = quilkin::program() else { return };
    let has_nft = daemon::is_there("nft".as_ref(), "--version");
    in_own_network("the_same_behind_quilkin", || {
        if !quilkin::has_memory_for(PLAYERS as u64) || !has_nft {
            return;
        }
        ip(&format!("addr add {HERE}/32 dev lo"));
        // Where they arrive: a sender would learn of a loss where they leave.
        run("nft", "add table ip lossy");
        run("nft", "add chain ip lossy input { type filter hook input priority 0 ; }");
        run("nft", "add rule ip lossy input meta l4proto udp numgen random mod 20 == 0 drop");
        let address = SocketAddr::new(HERE.parse().unwrap(), 7777);
        let mut fleet = Fleet::start(HERE, address, Passes::Payload);
        let servers = fleet.routes();
        println!("behind Quilkin: {}", fleet.play(|| Quilkin::start(&program, address, &servers, PLAYERS)));
        fleet.check_moved();
    });
}

/// Both servers, and players of either.
struct Fleet {
    proxy: SocketAddr,
    servers: [Server; 2],
    sessions: [Vec<SessionId>; 2],
    players: Vec<Player>,
    are_talking: bool,
    /// Lines that the servers have got.
    heard: usize,
    /// Sessions of either that have moved to another port of the proxy.
    moved: [HashSet<SessionId>; 2],
    minted: u8,
}

struct Player {
    id: u64,
    /// The servers where it plays, and where it is about to and has been.
    client: Client,
    coming: Option<Client>,
    leaving: Option<Client>,
    said: usize,
    speaks_at: Instant,
    /// Who has answered, in this order.
    answers: Vec<u8>,
    /// When the last answer came, and the longest time between two.
    answered: Option<Instant>,
    silence: Duration,
}

fn session() -> SessionConfig {
    SessionConfig::default()
}

impl Fleet {
    fn start(host: &str, proxy: SocketAddr, passes: Passes) -> Self {
        let servers = [0, 1].map(|index| {
            let tokens = ServerConfig::tokens(session(), key(index));
            let is_told = passes == Passes::Told;
            // All clients have one address, that of the proxy or of this machine.
            let config = ServerConfig {
                sessions_per_address: tokens.max_sessions,
                half_open_per_address: tokens.half_open,
                accepts_per_second: 1000,
                accept_burst: 1000,
                routing_token: if is_told { 8 } else { 0 },
                proxies: if is_told { vec![proxy.ip()] } else { Vec::new() },
                ..tokens
            };
            Server::bind((host, 0), &config).unwrap()
        });
        Self {
            proxy,
            servers,
            sessions: [Vec::new(), Vec::new()],
            players: Vec::new(),
            are_talking: true,
            heard: 0,
            moved: [HashSet::new(), HashSet::new()],
            minted: 0,
        }
    }

    /// Which token leads to which server.
    fn routes(&self) -> [(Token, SocketAddr); 2] {
        array::from_fn(|index| (TOKENS[index], self.servers[index].local_addr().unwrap()))
    }

    /// `start` starts the proxy, which is killed once. Players talk all the time. Returns what it has cost them.
    fn play<P>(&mut self, start: impl Fn() -> P) -> String {
        let proxy = start();
        self.connect();
        self.run_for(Duration::from_millis(500));
        drop(proxy);
        self.run_for(OUTAGE);
        assert_eq!(self.malformed(), 0, "each token was removed");
        let _proxy = start();
        self.run_until_answered();
        // Quilkin knows its servers before it knows its filters: until then it passes each datagram on to all servers, with the token.
        let malformed = self.malformed();
        self.drain();
        self.run_until_answered();
        self.are_talking = false;
        self.run_until(|fleet| fleet.heard == fleet.said());
        assert_eq!(self.malformed(), malformed, "each token was removed");
        self.check()
    }

    fn token(&mut self, player: u64, server: usize) -> PublicToken {
        self.minted += 1;
        let created = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let order = Order {
            protocol_id: 0,
            suite: Suite::TOKEN,
            client_id: player,
            match_id: [0; 16],
            created,
            expires: created + 60,
            addresses: &[self.proxy],
            server_key: None,
            routing_token: &TOKENS[server],
            user: b"",
        };
        key(server).mint(&order, [self.minted; 32], [self.minted; 24]).unwrap()
    }

    /// Half of the players at each server.
    fn connect(&mut self) {
        thread::sleep(Duration::from_millis(1100)); // tokens of the second in which a server starts may be from before
        for id in 0..PLAYERS as u64 {
            let token = self.token(id, usize::from(id % 2 == 1));
            self.players.push(Player {
                id,
                client: join(&token),
                coming: None,
                leaving: None,
                said: 0,
                speaks_at: Instant::now(),
                answers: Vec::new(),
                answered: None,
                silence: Duration::ZERO,
            });
        }
        self.run_until_answered();
        assert_eq!(self.sessions.each_ref().map(Vec::len), [PLAYERS / 2; 2]);
    }

    /// The first server sends its players to the second, and waits until they have gone.
    fn drain(&mut self) {
        for id in mem::take(&mut self.sessions[0]) {
            let player = self.servers[0].pass(id).unwrap().client_id;
            let token = self.token(player, 1).encode();
            self.servers[0].redirect(id, &token).unwrap();
        }
        self.run_until(|fleet| fleet.servers[0].machine().is_empty() && fleet.sessions[1].len() == PLAYERS);
    }

    fn check(&self) -> String {
        for player in &self.players {
            let is_of_a = player.id % 2 == 0;
            assert_eq!(player.answers.contains(&b'A'), is_of_a, "player {}: {:?}", player.id, player.answers);
            assert_eq!(player.answers.last(), Some(&b'B'), "player {}", player.id);
        }
        let joined = self.servers.each_ref().map(|server| server.stats().confirmed);
        assert_eq!(joined, [50, 100], "nobody has joined a server twice");
        let silence = self.players.iter().map(|player| player.silence).max().unwrap();
        assert!((OUTAGE..session().timeout).contains(&silence), "{silence:?}");
        let moved: usize = self.moved.iter().map(HashSet::len).sum();
        format!(
            "{} lines, {moved} of {PLAYERS} sessions moved, 50 players were sent to the other server, the longest silence was {} ms",
            self.heard,
            silence.as_millis()
        )
    }

    /// The proxy was started again, so each session has moved to another of its ports. Some may have got their old one again.
    fn check_moved(&self) {
        let moved = self.moved.each_ref().map(HashSet::len);
        assert!(moved.iter().all(|moved| (45..=50).contains(moved)), "{moved:?} sessions have moved");
    }

    /// Datagrams that were none of ours.
    fn malformed(&self) -> u64 {
        self.servers.iter().map(|server| server.stats().rejected.malformed).sum()
    }

    /// Lines of all players.
    fn said(&self) -> usize {
        self.players.iter().map(|player| player.said).sum()
    }

    fn run_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        self.run_until(|_| Instant::now() >= end);
    }

    /// Until everybody has had another answer.
    fn run_until_answered(&mut self) {
        let start = Some(Instant::now());
        self.run_until(|fleet| fleet.players.iter().all(|player| player.answered > start));
    }

    fn run_until(&mut self, is_done: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !is_done(self) {
            assert!(start.elapsed() < PATIENCE, "it does not end");
            for (index, server) in self.servers.iter_mut().enumerate() {
                server.pump().unwrap();
                while let Some((id, event)) = server.poll_event() {
                    match event {
                        Event::Connected => self.sessions[index].push(id),
                        Event::Moved { .. } => {
                            self.moved[index].insert(id);
                        }
                        Event::Closed { reason, .. } => assert_eq!(reason, CloseReason::Peer(LEFT)),
                        _ => {}
                    }
                    while let Some(_line) = server.recv(id, TALK) {
                        self.heard += 1;
                        // A player who has left is gone when its last lines are read.
                        let _ = server.send(id, TALK, &[b"AB"[index]]);
                    }
                }
            }
            for player in &mut self.players {
                player.pump();
                if self.are_talking {
                    player.speak();
                }
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Player {
    fn pump(&mut self) {
        for event in pump(&mut self.client) {
            match event {
                Event::Redirected => {
                    self.coming =
                        Some(join(&PublicToken::decode(&self.client.take_redirect().unwrap()).unwrap()));
                }
                Event::Closed { reason, .. } => {
                    assert_eq!(reason, CloseReason::Peer(0), "player {}", self.id)
                }
                _ => {}
            }
        }
        if let Some(coming) = &mut self.coming {
            let events = pump(coming);
            assert!(!events.iter().any(|event| matches!(event, Event::Closed { .. })), "{events:?}");
            if events.contains(&Event::Connected) {
                self.client.close(LEFT);
                let there = self.coming.take().unwrap();
                self.leaving = Some(mem::replace(&mut self.client, there));
            }
        }
        for client in iter::once(&mut self.client).chain(&mut self.leaving) {
            while let Some(answer) = client.recv(TALK) {
                self.answers.extend_from_slice(&answer);
                let now = Instant::now();
                self.silence = self.silence.max(now - self.answered.unwrap_or(now));
                self.answered = Some(now);
            }
        }
        self.leaving.as_mut().map(pump);
    }

    fn speak(&mut self) {
        let now = Instant::now();
        if self.client.state() == ClientState::Up && now >= self.speaks_at {
            self.client.send(TALK, b"hello").unwrap();
            self.said += 1;
            self.speaks_at = now + BEAT;
        }
    }
}

fn pump(client: &mut Client) -> Vec<Event> {
    client.pump().unwrap();
    iter::from_fn(|| client.poll_event()).collect()
}

fn join(token: &PublicToken) -> Client {
    Client::connect(&*token.addresses, &ClientConfig::token(session(), token)).unwrap()
}

fn key(server: usize) -> ServerKey {
    let number = 1 + u8::try_from(server).unwrap();
    ServerKey::new(number.into(), 0, [number; 32])
}
