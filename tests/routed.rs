//! Two servers behind a proxy that finds them by routing tokens: one of these tests, and Quilkin if it is installed.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

#[path = "common/quilkin.rs"]
mod quilkin;
#[path = "common/router.rs"]
mod router;
#[path = "common/told.rs"]
#[expect(dead_code, reason = "its proxy is for virtual time")]
mod told;

use quilkin::Quilkin;
use router::{Passes, Router, Token};
use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};
use std::{array, env, iter, mem, thread};
use whitewater::session::Suite;
use whitewater::session::token::{Order, PublicToken, ServerKey};
use whitewater::{
    Channel, Client, ClientConfig, CloseReason, Event, Server, ServerConfig, SessionConfig, SessionId,
};

/// Long enough for any machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);
const TALK: Channel = Channel::ordered(0);
const TOKENS: [Token; 2] = [*b"server A", *b"server B"];
const PLAYERS: u64 = 100;
/// The code with which a player leaves a server for another.
const LEFT: u16 = 3;

#[test]
fn a_hundred_players_keep_their_sessions_through_loss_a_restart_of_the_proxy_and_a_server_that_drains() {
    let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut fleet = Fleet::start("127.0.0.1", address, Passes::Payload);
    let servers = fleet.routes();
    fleet.play(|| Router::start(address, &servers, 20, Passes::Payload));
    assert!(fleet.moved >= 90, "{} sessions have moved with the proxy", fleet.moved);
}

#[test]
fn behind_a_proxy_that_tells_who_they_are_no_session_moves_and_servers_know_where_the_players_are() {
    let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut fleet = Fleet::start("127.0.0.1", address, Passes::Told);
    let servers = fleet.routes();
    fleet.play(|| Router::start(address, &servers, 20, Passes::Told));
    assert_eq!(fleet.moved, 0);
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
    const INSIDE: &str = "WHITEWATER_QUILKIN_NETWORK";
    const HERE: &str = "10.9.0.1";
    let Some(program) = quilkin::program() else { return println!("skipped: Quilkin is not installed") };
    if env::var_os(INSIDE).is_none() {
        let this = env::current_exe().unwrap();
        let script = format!(
            "ip link set lo up && ip addr add {HERE}/32 dev lo && exec {} --exact the_same_behind_quilkin --nocapture",
            this.display()
        );
        let output =
            Command::new("unshare").args(["-rn", "sh", "-c", &script]).env(INSIDE, "1").output().unwrap();
        let [out, err] =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        return assert!(output.status.success() && out.contains("1 passed"), "{out}{err}");
    }
    let address = SocketAddr::new(HERE.parse().unwrap(), 7777);
    let mut fleet = Fleet::start(HERE, address, Passes::Payload);
    let servers = fleet.routes();
    fleet.play(|| Quilkin::start(&program, address.port(), &servers));
}

/// Both servers, and players of either.
struct Fleet {
    proxy: SocketAddr,
    servers: [Server; 2],
    sessions: [Vec<SessionId>; 2],
    players: Vec<Player>,
    minted: u8,
    /// Moves of sessions to another address.
    moved: usize,
}

struct Player {
    id: u64,
    /// The servers where it plays, and where it is about to and has been.
    client: Client,
    coming: Option<Client>,
    leaving: Option<Client>,
    said: usize,
    answers: Vec<u8>,
    is_up: bool,
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
        Self { proxy, servers, sessions: [Vec::new(), Vec::new()], players: Vec::new(), minted: 0, moved: 0 }
    }

    /// Which token leads to which server.
    fn routes(&self) -> [(Token, SocketAddr); 2] {
        array::from_fn(|index| (TOKENS[index], self.servers[index].local_addr().unwrap()))
    }

    /// `start` starts the proxy, which is killed once.
    fn play<P>(&mut self, start: impl Fn() -> P) {
        let proxy = start();
        self.connect();
        self.talk(5);
        drop(proxy);
        self.idle(Duration::from_millis(300));
        let _proxy = start();
        self.talk(5);
        self.drain();
        self.talk(5);
        self.check();
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
        for id in 0..PLAYERS {
            let token = self.token(id, usize::from(id % 2 == 1));
            self.players.push(Player {
                id,
                client: join(&token),
                coming: None,
                leaving: None,
                said: 0,
                answers: Vec::new(),
                is_up: false,
            });
        }
        self.run_until(|fleet| {
            let are_all_up = fleet.players.iter().all(|player| player.is_up);
            are_all_up && fleet.sessions.each_ref().map(Vec::len) == [50, 50]
        });
    }

    /// Each player says so many lines, and hears the answer to all that it has said.
    fn talk(&mut self, lines: usize) {
        for _ in 0..lines {
            for player in &mut self.players {
                player.client.send(TALK, b"hello").unwrap();
                player.said += 1;
            }
            self.run_until(|fleet| fleet.players.iter().all(|player| player.answers.len() == player.said));
        }
    }

    /// The first server sends its players to the second, and waits until they have gone.
    fn drain(&mut self) {
        for id in mem::take(&mut self.sessions[0]) {
            let player = self.servers[0].pass(id).unwrap().client_id;
            let token = self.token(player, 1).encode();
            self.servers[0].redirect(id, &token).unwrap();
        }
        self.run_until(|fleet| fleet.servers[0].machine().is_empty() && fleet.sessions[1].len() == 100);
    }

    fn check(&self) {
        for player in &self.players {
            let first = if player.id % 2 == 1 { b'B' } else { b'A' };
            let (before, after) = player.answers.split_at(10);
            assert!(before.iter().all(|answer| *answer == first), "{}: {before:?}", player.id);
            assert!(after == [b'B'; 5], "{}: {after:?}", player.id);
        }
        assert!(self.servers.iter().all(|server| server.stats().rejected.malformed == 0));
        assert_eq!(self.servers.each_ref().map(|server| server.stats().confirmed), [50, 100]);
    }

    fn idle(&mut self, time: Duration) {
        let end = Instant::now() + time;
        self.run_until(|_| Instant::now() >= end);
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
                        Event::Closed { reason, .. } => assert_eq!(reason, CloseReason::Peer(LEFT)),
                        Event::Moved { .. } => self.moved += 1,
                        _ => {}
                    }
                    while let Some(_line) = server.recv(id, TALK) {
                        server.send(id, TALK, &[b"AB"[index]]).unwrap();
                    }
                }
            }
            self.players.iter_mut().for_each(Player::pump);
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Player {
    fn pump(&mut self) {
        for event in pump(&mut self.client) {
            match event {
                Event::Connected => self.is_up = true,
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
            }
        }
        self.leaving.as_mut().map(pump);
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
