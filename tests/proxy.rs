//! Two servers behind a UDP load balancer that hashes the client's address: nginx and Envoy.
//!
//! Linux only: each client has its own address in 127.0.0.0/8. Without nginx and its stream module, or without
//! Envoy, tests print a note and pass, unless `WHITEWATER_NO_SKIP` is set.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

#[path = "common/balancer.rs"]
mod balancer;
#[path = "common/daemon.rs"]
mod daemon;
#[path = "common/echo.rs"]
mod echo;
#[path = "common/envoy.rs"]
mod envoy;
#[path = "common/nginx.rs"]
mod nginx;

use balancer::{Balancer, Kind};
use echo::{Answer, Echo};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};
use whitewater::inside::session::wire::DenyReason;
use whitewater::{Channel, Client, ClientConfig, CloseReason, Event, Server, ServerConfig, SessionConfig};

/// Long enough for any machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);
const PSK: [u8; 32] = [7; 32];
const ECHOED: Channel = Channel::ordered(0);
/// Addresses of clients: so many that there are some for each server, by whatever ports the servers have got.
const HOSTS: u8 = 40;

#[test]
fn clients_of_one_address_share_a_server_and_all_are_served() {
    behind_each(&server_config(), 60, |fleet| {
        let mut players: Vec<_> =
            (0..2 * HOSTS).map(|index| Player::connect(&fleet, 1 + index / 2)).collect();
        let served = ask_all(&mut players);
        assert!(served.chunks(2).all(|of_one_address| of_one_address[0] == of_one_address[1]), "{served:?}");
        assert!(["A", "B"].iter().all(|name| served.contains(name)), "{served:?}");
        for player in &mut players {
            player.client.send(ECHOED, &[42; 5000]).unwrap();
        }
        let mut buf = vec![0; 5000];
        wait(&mut players, |player| {
            player.client.recv_into(ECHOED, &mut buf) == Ok(5000) && buf == [42; 5000]
        });
    });
}

#[test]
fn a_client_that_gets_another_port_keeps_its_server_and_its_session() {
    behind_each(&server_config(), 60, |mut fleet| {
        let mut players: Vec<_> = (1..=HOSTS).map(|host| Player::connect_by_nat(&fleet, host)).collect();
        let served = ask_all(&mut players);
        players.iter_mut().for_each(|player| player.nat.as_mut().unwrap().take_another_port());
        assert_eq!(ask_all(&mut players), served);
        assert!(players.iter().all(|player| player.closed.is_none()), "each is in its first session");
        assert_eq!(fleet.confirmed(), u64::from(HOSTS), "nobody had to connect again");
    });
}

#[test]
fn clients_of_a_vanished_server_notice_and_connect_to_the_other() {
    behind_each(&server_config(), 60, |mut fleet| {
        let (mut of_a, mut of_b) = connect_all(&fleet);
        fleet.health[0] = None;
        fleet.servers[0] = None; // without a goodbye
        wait_for_the_end(&mut of_a, &mut of_b);
        assert!(of_a.iter().all(|player| player.closed == Some(CloseReason::Timeout)));
        let again: Vec<_> = of_a.iter().map(|player| Player::connect(&fleet, player.host)).collect();
        of_b.extend(again);
        assert!(ask_all(&mut of_b).iter().all(|served| *served == "B"));
        assert!(of_b.iter().all(|player| player.closed.is_none()), "the other server has kept its clients");
    });
}

#[test]
fn a_server_that_shuts_down_tells_its_clients_through_the_proxy() {
    behind_each(&server_config(), 60, |mut fleet| {
        let (mut of_a, mut of_b) = connect_all(&fleet);
        fleet.servers[0].take().unwrap().shut_down(9);
        wait_for_the_end(&mut of_a, &mut of_b);
        assert!(of_a.iter().all(|player| player.closed == Some(CloseReason::Peer(9))));
    });
}

#[test]
fn a_proxy_that_drops_its_state_costs_no_encrypted_session() {
    // The clients are silent for longer than its timeout, so their next packets come from another port of the
    // proxy. A session follows four moves in ten seconds, and these are three: on a busy machine nobody else may be
    // silent for that long.
    let session = SessionConfig { keepalive: Duration::from_secs(5), ..SessionConfig::default() };
    behind_each(&ServerConfig { session, ..server_config() }, 1, |mut fleet| {
        let mut players: Vec<_> = (1..=4).map(|host| Player::connect(&fleet, host)).collect();
        let served = ask_all(&mut players);
        for _ in 0..2 {
            idle(&mut players, Duration::from_millis(1500));
            assert_eq!(ask_all(&mut players), served, "since only the address is hashed");
        }
        fleet.proxy.restart(&fleet.addresses());
        assert_eq!(ask_all(&mut players), served);
        assert!(players.iter().all(|player| player.closed.is_none()), "each is in its first session");
        assert_eq!(fleet.confirmed(), 4, "nobody had to connect again");
    });
}

#[test]
fn a_session_rerouted_to_another_server_times_out_even_with_a_shared_reset_key() {
    for reset_key in [None, Some([3; 16])] {
        behind_each(&ServerConfig { reset_key, ..server_config() }, 60, |mut fleet| {
            let (mut of_a, mut of_b) = connect_all(&fleet);
            fleet.proxy.restart(&fleet.addresses()[1..]); // A is running, but the proxy no longer knows it
            wait_for_the_end(&mut of_a, &mut of_b);
            assert!(of_a.iter().all(|player| player.closed == Some(CloseReason::Timeout)), "{reset_key:?}");
            ask_all(&mut of_b);
        });
    }
}

#[test]
fn all_clients_of_a_proxy_share_the_limits_of_one_address() {
    behind_each(&ServerConfig { sessions_per_address: 3, ..server_config() }, 60, |fleet| {
        let mut players: Vec<_> = (1..=HOSTS).map(|host| Player::connect(&fleet, host)).collect();
        wait(&mut players, |player| player.closed.is_some() || player.ask());
        let busy = Some(CloseReason::Denied(DenyReason::Busy));
        let denied = players.iter().filter(|player| player.closed == busy).count();
        assert_eq!(
            denied,
            usize::from(HOSTS) - 6,
            "2 servers take 3 each, and each client is a host of its own"
        );
    });
}

#[test]
fn the_proxies_accept_the_documented_configurations() {
    let document = include_str!("../docs/PROXIES.md");
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for (kind, start, listen, wrong) in [
        (Kind::Nginx, "```nginx\n", ("listen 4000", "listen 127.0.0.1:"), ("proxy_pass", "proxy_pas")),
        (
            Kind::Envoy,
            "```yaml\nstatic_resources:",
            ("port_value: 4000 ", "port_value: "),
            ("hash_pol", "hash_bol"),
        ),
    ] {
        let (_, rest) = document.split_once(start).unwrap();
        let config = start.trim_start_matches(|c| c != '\n').to_owned() + rest.split("```").next().unwrap();
        let config = config.replacen(listen.0, &format!("{}{port} ", listen.1), 1);
        assert_ne!(balancer::takes(kind, &config), Some(false), "{config}");
        assert_ne!(balancer::takes(kind, &config.replace(wrong.0, wrong.1)), Some(true));
    }
}

/// Plays with a fleet behind nginx, then with one behind Envoy, as far as they are installed. `forget`: after how many seconds
/// the proxy drops a silent client.
fn behind_each(config: &ServerConfig, forget: u8, play: impl Fn(Fleet)) {
    for kind in [Kind::Nginx, Kind::Envoy] {
        println!("behind {kind:?}:"); // for a test that fails
        Fleet::start(kind, config, forget).map(&play);
    }
}

/// Limits behind a proxy: one address may have as much as all together.
fn server_config() -> ServerConfig {
    let (keepalive, timeout) = (Duration::from_millis(100), Duration::from_secs(4));
    let session = SessionConfig { keepalive, timeout, ..SessionConfig::default() };
    let defaults = ServerConfig::secret(session, PSK);
    ServerConfig {
        sessions_per_address: defaults.max_sessions,
        half_open_per_address: defaults.half_open,
        accepts_per_second: 1000,
        accept_burst: 1000,
        ..defaults
    }
}

/// Two servers, A and B, behind a proxy.
struct Fleet {
    session: SessionConfig,
    proxy: Balancer,
    servers: [Option<Echo>; 2],
    /// By which Envoy learns whether a server is there.
    health: [Option<TcpListener>; 2],
}

impl Fleet {
    /// `forget`: after how many seconds the proxy drops a silent client. `None`: it is not installed.
    fn start(kind: Kind, config: &ServerConfig, forget: u8) -> Option<Self> {
        let answers: [(u8, Answer); 2] = [(0, |_, _, _| Some(b"A".into())), (1, |_, _, _| Some(b"B".into()))];
        let [(a, of_a), (b, of_b)] = answers.map(|(shard, answer)| {
            let (server, health) = bind(&ServerConfig { shard, ..config.clone() });
            (Echo::start(server, answer), Some(health))
        });
        let proxy = Balancer::start(kind, &[a.address, b.address], forget)?;
        let session = config.session.clone();
        Some(Self { session, proxy, servers: [Some(a), Some(b)], health: [of_a, of_b] })
    }

    /// How many sessions its servers have had, which it stops.
    fn confirmed(&mut self) -> u64 {
        self.servers.iter_mut().flat_map(Option::take).map(|server| server.shut_down(0).confirmed).sum()
    }

    /// Addresses of the running servers.
    fn addresses(&self) -> Vec<SocketAddr> {
        self.servers.iter().flatten().map(|server| server.address).collect()
    }
}

/// A server, and a listener at the same port of TCP.
fn bind(config: &ServerConfig) -> (Server, TcpListener) {
    loop {
        let server = Server::bind("127.0.0.1:0", config).unwrap();
        if let Ok(health) = TcpListener::bind(server.local_addr().unwrap()) {
            return (server, health);
        }
    }
}

struct Player {
    host: u8,
    client: Client,
    nat: Option<Nat>,
    answer: Option<String>,
    closed: Option<CloseReason>,
}

impl Player {
    /// From the address 127.0.1.`host`.
    fn connect(fleet: &Fleet, host: u8) -> Self {
        Self::connect_to(fleet, fleet.proxy.address, host, None)
    }

    /// From that address, by a NAT that can take another port.
    fn connect_by_nat(fleet: &Fleet, host: u8) -> Self {
        let nat = Nat::new(host, fleet.proxy.address);
        Self::connect_to(fleet, nat.inside.local_addr().unwrap(), host, Some(nat))
    }

    fn connect_to(fleet: &Fleet, address: SocketAddr, host: u8, nat: Option<Nat>) -> Self {
        let config = ClientConfig::secret(fleet.session.clone(), PSK);
        let client = Client::from_socket(socket(host), address, &config).unwrap();
        Self { host, client, nat, answer: None, closed: None }
    }

    fn pump(&mut self) {
        self.client.pump().unwrap();
        self.nat.iter_mut().for_each(Nat::pass_on);
        while let Some(event) = self.client.poll_event() {
            if let Event::Closed { reason, .. } = event {
                self.closed = Some(reason);
            }
        }
    }

    /// Asks which server this is until it answers.
    fn ask(&mut self) -> bool {
        let mut buf = [0; 100];
        if let Ok(len) = self.client.recv_datagram_into(&mut buf) {
            self.answer = Some(String::from_utf8(buf[..len].to_vec()).unwrap());
        }
        if self.answer.is_none() {
            let _ = self.client.send_datagram(b"who"); // not connected yet, or enough questions in flight
        }
        self.answer.is_some()
    }
}

/// Passes datagrams on between one client and the proxy.
struct Nat {
    host: u8,
    inside: UdpSocket,
    client: Option<SocketAddr>,
    outside: UdpSocket,
    proxy: SocketAddr,
}

impl Nat {
    fn new(host: u8, proxy: SocketAddr) -> Self {
        Self { host, inside: socket(host), client: None, outside: socket(host), proxy }
    }

    fn take_another_port(&mut self) {
        self.outside = socket(self.host);
    }

    fn pass_on(&mut self) {
        let mut buf = [0; 2048];
        while let Ok((len, client)) = self.inside.recv_from(&mut buf) {
            self.client = Some(client);
            self.outside.send_to(&buf[..len], self.proxy).unwrap();
        }
        while let (Some(client), Ok((len, _))) = (self.client, self.outside.recv_from(&mut buf)) {
            self.inside.send_to(&buf[..len], client).unwrap();
        }
    }
}

/// At the address 127.0.1.`host`.
fn socket(host: u8) -> UdpSocket {
    let socket = UdpSocket::bind(SocketAddr::from(([127, 0, 1, host], 0))).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

/// A player at each address: those served by A and those served by B.
fn connect_all(fleet: &Fleet) -> (Vec<Player>, Vec<Player>) {
    let mut players: Vec<_> = (1..=HOSTS).map(|host| Player::connect(fleet, host)).collect();
    ask_all(&mut players);
    players.into_iter().partition(|player| player.answer.as_deref() == Some("A"))
}

/// Until these are closed. The others are pumped meanwhile, since it takes as long as their server's patience.
fn wait_for_the_end(of_a: &mut [Player], of_b: &mut [Player]) {
    wait(of_a.iter_mut().chain(of_b), |player| {
        player.closed.is_some() || player.answer.as_deref() == Some("B")
    });
}

/// The servers of these players.
fn ask_all(players: &mut [Player]) -> Vec<&'static str> {
    players.iter_mut().for_each(|player| player.answer = None);
    wait(players.iter_mut(), Player::ask);
    players.iter().map(|player| if player.answer.as_deref() == Some("A") { "A" } else { "B" }).collect()
}

/// Pumps until the condition has held for each; players for which it has are still pumped, or their sessions
/// would end.
fn wait<'a>(players: impl IntoIterator<Item = &'a mut Player>, mut holds: impl FnMut(&mut Player) -> bool) {
    let mut players: Vec<_> = players.into_iter().map(|player| (player, false)).collect();
    let start = Instant::now();
    while let waiting @ 1.. = players.iter().filter(|(_, held)| !held).count() {
        assert!(start.elapsed() < PATIENCE, "{waiting} are still waiting");
        for (player, held) in &mut players {
            player.pump();
            *held = *held || holds(player);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn idle(players: &mut [Player], time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        players.iter_mut().for_each(Player::pump);
        thread::sleep(Duration::from_millis(2));
    }
}
