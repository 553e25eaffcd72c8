//! Several sockets and threads on one port: clients are spread over them, and a client that migrates is still
//! served by the thread that has its session. On a real loopback, on systems that can share a port.

#![cfg(all(target_os = "linux", feature = "batch"))]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;
use crate::common::machine::Whole as _;
use crate::common::router::{Passes, Router};

use common::sessions::{SUITE, client_config, on, random, server_config};
use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};
use whitewater::kcp::{self, Conv};
use whitewater::machine::Machine as _;
use whitewater::net::Clock;
use whitewater::session;
use whitewater::thread::{self as threads, ThreadConfig};
use whitewater::{ClientConfig, Server, ServerConfig, SessionConfig, SessionId};

const PATIENCE: Duration = Duration::from_secs(20);

/// A client whose socket can be replaced.
struct Client {
    session: session::Client,
    socket: UdpSocket,
    server: SocketAddr,
    clock: Clock,
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

impl Client {
    fn new(seed: u64, server: SocketAddr) -> Self {
        Self::with(seed, server, &client_config(SUITE))
    }

    fn with(seed: u64, server: SocketAddr, config: &ClientConfig) -> Self {
        let mut session = session::Client::new(config, random(seed, 7)).unwrap();
        let clock = Clock::new();
        session.connect(clock.now(), &[server]).unwrap();
        Self { session, socket: socket(), server, clock }
    }

    fn pump(&mut self) {
        let mut buf = [0; 2000];
        while let Ok((len, from)) = self.socket.recv_from(&mut buf) {
            self.session.give(self.clock.now(), from, &buf[..len]);
        }
        let now = self.clock.now();
        self.session.handle_timeout(now);
        let mut datagram = Vec::new();
        while self.session.emit_to(now, &mut datagram).is_some() {
            let _ = self.socket.send_to(&datagram, self.server);
        }
    }

    fn say(&mut self, message: &[u8]) {
        self.session.connection_mut().unwrap().send(on(0), message).unwrap();
    }

    fn heard(&mut self) -> Option<Vec<u8>> {
        let mut buf = [0; 100];
        let len = self.session.connection_mut()?.recv_into(on(0), &mut buf).ok()?;
        Some(buf[..len].to_vec())
    }
}

/// Answers everything until `is_done`, judging by what the clients received.
fn serve(
    server: &mut threads::Server,
    clients: &mut [Client],
    mut is_done: impl FnMut(&mut [Client]) -> bool,
) {
    let start = Instant::now();
    while !is_done(clients) {
        assert!(start.elapsed() < PATIENCE, "it takes too long");
        clients.iter_mut().for_each(Client::pump);
        server.poll(Some(Duration::from_millis(1)));
        while let Some((id, _)) = server.poll_event() {
            while let Some(question) = server.recv(id, on(0)) {
                server.send(id, on(0), &[&question[..], &[id.shard()]].concat()).unwrap();
            }
        }
    }
}

fn connect(server: &mut threads::Server, clients: &mut [Client]) {
    serve(server, clients, |clients| {
        clients
            .iter()
            .all(|client| client.session.connection().is_some_and(|session| session.stats().received > 0))
    });
}

fn config() -> ServerConfig {
    let session = SessionConfig::default();
    ServerConfig {
        sessions_per_address: 1000,
        half_open_per_address: 1000,
        accept_burst: 1000,
        ..server_config(&session, SUITE)
    }
}

/// Datagrams that a server of four shards has handed over, in total.
fn strays(server: &mut threads::Server) -> u64 {
    let (tell, told) = channel();
    for shard in 0..server.shards() {
        let tell = tell.clone();
        assert!(server.run(shard, move |server| tell.send(server.socket_traffic().handed_on).unwrap()));
    }
    (0..server.shards()).map(|_| told.recv().unwrap()).sum()
}

/// The answer that each of them gets: the shard of its session.
fn ask(server: &mut threads::Server, clients: &mut [Client], question: &[u8]) -> Vec<u8> {
    clients.iter_mut().for_each(|client| client.say(question));
    let mut answers = vec![None; clients.len()];
    serve(server, clients, |clients| {
        for (client, answer) in clients.iter_mut().zip(&mut answers) {
            if let Some(heard) = client.heard() {
                let (shard, echo) = heard.split_last().unwrap();
                assert_eq!(echo, question);
                *answer = Some(*shard);
            }
        }
        answers.iter().all(Option::is_some)
    });
    answers.into_iter().flatten().collect()
}

#[test]
fn clients_are_spread_over_the_shards_and_keep_theirs_when_they_migrate() {
    let mut server =
        threads::Server::bind_shards("127.0.0.1:0", &config(), 4, &ThreadConfig::default()).unwrap();
    let mut clients: Vec<_> = (0..32).map(|seed| Client::new(seed, server.local_addr())).collect();
    connect(&mut server, &mut clients);
    let shards = ask(&mut server, &mut clients, b"where am I?");
    assert!(shards.iter().collect::<BTreeSet<_>>().len() >= 3, "{shards:?}");
    assert_eq!(strays(&mut server), 0, "clients that stay need no handover");
    if cfg!(feature = "crypto") {
        clients.iter_mut().for_each(|client| client.socket = socket());
        assert_eq!(ask(&mut server, &mut clients, b"and now?"), shards);
        assert!(strays(&mut server) > 0, "none of 32 came to another shard");
    }
    server.shutdown(0).unwrap();
}

#[test]
fn clients_keep_their_shards_when_the_proxy_that_tells_who_they_are_is_started_again() {
    let config = ServerConfig { proxies: vec![[127, 0, 0, 1].into()], routing_token: 8, ..config() };
    let mut server =
        threads::Server::bind_shards("127.0.0.1:0", &config, 4, &ThreadConfig::default()).unwrap();
    let (address, token) = (socket().local_addr().unwrap(), *b"by token");
    let servers = [(token, server.local_addr())];
    let start = || Router::start(address, &servers, u32::MAX, Passes::Told);
    let router = start();
    let routed = ClientConfig { routing_token: token.to_vec(), ..client_config(SUITE) };
    let mut clients: Vec<_> = (0..32).map(|seed| Client::with(seed, address, &routed)).collect();
    connect(&mut server, &mut clients);
    let shards = ask(&mut server, &mut clients, b"where am I?");
    assert!(shards.iter().collect::<BTreeSet<_>>().len() >= 3, "{shards:?}");
    drop(router);
    let _router = start();
    assert_eq!(ask(&mut server, &mut clients, b"and now?"), shards);
    assert!(strays(&mut server) > 0, "none of 32 came to another shard");
    server.shutdown(0).unwrap();
}

#[test]
fn a_request_to_a_sleeping_thread_wakes_it() {
    let mut server =
        threads::Server::bind_shards("127.0.0.1:0", &config(), 4, &ThreadConfig::default()).unwrap();
    thread::sleep(Duration::from_millis(20));
    // A lost wake-up is noticed after 100 ms: if all were lost, four per request, this would take longer than
    // the timeout.
    let start = Instant::now();
    for question in 0..100 {
        strays(&mut server);
        assert!(start.elapsed() < PATIENCE, "{question}");
    }
    server.shutdown(0).unwrap();
}

#[test]
fn a_session_and_each_of_its_datagrams_name_their_shard() {
    let mut server =
        threads::Server::bind_shards("127.0.0.1:0", &config(), 2, &ThreadConfig::default()).unwrap();
    let mut client = Client::new(1, server.local_addr());
    let start = Instant::now();
    let id: SessionId = loop {
        assert!(start.elapsed() < PATIENCE);
        client.pump();
        server.poll(Some(Duration::from_millis(1)));
        if let Some((id, _)) = server.poll_event() {
            break id;
        }
    };
    client.say(b"hello");
    let (mut datagram, now) = (Vec::new(), client.clock.now());
    client.session.emit_to(now, &mut datagram).unwrap();
    assert_eq!(session::shard_of(&datagram), Some(id.shard()));
    assert_eq!(session::shard_of(b"no session"), None);
}

#[test]
fn there_are_1_to_64_shards() {
    for count in [0, 65] {
        assert!(Server::bind_shards("127.0.0.1:0", &config(), count).is_err(), "{count}");
    }
    let one = Server::bind_shards("127.0.0.1:0", &config(), 1).unwrap();
    assert!(UdpSocket::bind(one[0].local_addr().unwrap()).is_err(), "a single one has its port for itself");
}

#[test]
fn bare_kcp_peers_are_spread_over_independent_listeners() {
    let kcp = configs::turbo();
    let limits = kcp::PeersConfig {
        kcp,
        max_peers_per_address: 100,
        accept_burst: 100,
        ..kcp::PeersConfig::default()
    };
    let listeners = kcp::Listener::bind_shards("127.0.0.1:0", &limits, 3).unwrap();
    let address = listeners[0].local_addr().unwrap();
    let served: Vec<_> = listeners.into_iter().map(|listener| thread::spawn(|| echo(listener))).collect();
    for conv in 0..24 {
        let mut client = kcp::Socket::connect(address, Conv(conv), &kcp).unwrap();
        client.set_read_timeout(Some(PATIENCE));
        let mut answer = [0; 10];
        for message in [b"one", b"two"] {
            client.send_blocking(message).unwrap();
            let len = client.recv_blocking(&mut answer).unwrap();
            assert_eq!(&answer[..len], message);
        }
    }
    let served: Vec<usize> = served.into_iter().map(|listener| listener.join().unwrap()).collect();
    assert_eq!(served.iter().sum::<usize>(), 24);
    assert!(served.iter().all(|count| *count < 24), "{served:?}");
}

/// Answers until nobody has asked for a while. Returns how many peers there were.
fn echo(mut listener: kcp::Listener) -> usize {
    let mut buf = [0; 100];
    while listener.poll(Some(Duration::from_secs(1))).unwrap() {
        while let Some(event) = listener.poll_event() {
            let kcp::PeerEvent::Readable(id) = event else { continue };
            let peer = listener.peer(id).unwrap();
            while let Ok(len) = peer.recv_into(&mut buf) {
                peer.send(&buf[..len]).unwrap();
            }
        }
    }
    listener.stats().accepted.try_into().unwrap()
}
