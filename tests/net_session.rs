//! The session drivers over real loopback sockets. What sessions promise over bad paths is tested in virtual
//! time; no test here depends on the speed of the machine.

#![cfg(feature = "net")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};
use whitewater::channel::{Carrier, SendError};
use whitewater::net::Error;
use whitewater::session::{self, ClientState, Connection, SecondNetwork, Suite};
use whitewater::{
    Channel, ChannelConfig, Client, ClientConfig, CloseReason, Event, Server, ServerConfig, SessionConfig,
    SessionId,
};
use whitewater_sim::SimRng;

/// Long enough for any machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(30);
/// The strongest suite in this build.
const SUITE: Suite = if cfg!(feature = "crypto") { Suite::TOKEN } else { Suite::Checked };
const PSK: [u8; 32] = [7; 32];
/// The channel of a default session.
const CHAT: Channel = Channel::ordered(0);

/// A server, clients, and the events they reported.
struct World {
    server: Server,
    clients: Vec<Client>,
    config: ClientConfig,
    events: Vec<(SessionId, Event)>,
    /// Sessions of the server that are over, as it handed them out.
    ended: BTreeMap<SessionId, Connection>,
    told: Vec<Vec<Event>>,
}

impl World {
    fn new(session: SessionConfig) -> Self {
        Self::with(ServerConfig { session, ..server_config() })
    }

    fn with(config: ServerConfig) -> Self {
        let session = config.session.clone();
        Self {
            server: Server::bind("127.0.0.1:0", &config).unwrap(),
            clients: Vec::new(),
            config: ClientConfig { session, ..client_config() },
            events: Vec::new(),
            ended: BTreeMap::new(),
            told: Vec::new(),
        }
    }

    /// Connects a client to this server and returns its session there.
    fn join(&mut self) -> SessionId {
        let at = self.server.local_addr().unwrap();
        self.join_at(at)
    }

    /// The same at another address of the server.
    fn join_at(&mut self, at: SocketAddr) -> SessionId {
        let before = self.events.len();
        self.begin(at);
        let index = self.clients.len() - 1;
        self.until("up", |world| {
            world.told[index].contains(&Event::Connected) && world.connected(before).is_some()
        });
        self.connected(before).unwrap()
    }

    fn begin(&mut self, at: SocketAddr) {
        self.clients.push(Client::connect(at, &self.config).unwrap());
        self.told.push(Vec::new());
    }

    /// The first session that connected after the first `after` events.
    fn connected(&self, after: usize) -> Option<SessionId> {
        self.events[after..].iter().find(|(_, event)| *event == Event::Connected).map(|(id, _)| *id)
    }

    /// Pumps all ends until `is_done`.
    fn until(&mut self, what: &str, mut is_done: impl FnMut(&mut Self) -> bool) {
        let start = Instant::now();
        while !is_done(self) {
            assert!(start.elapsed() < PATIENCE, "not {what}: {:?} {:?}", self.server.stats(), self.events);
            self.server.poll(Some(Duration::from_micros(300))).unwrap();
            while let Some((id, event)) = self.server.poll_event() {
                self.ended.extend(self.server.pop_ended().map(|session| (id, session)));
                self.events.push((id, event));
            }
            for (client, told) in self.clients.iter_mut().zip(&mut self.told) {
                client.pump().unwrap();
                told.extend(std::iter::from_fn(|| client.poll_event()));
            }
        }
    }

    fn closed(&self, id: SessionId) -> Option<CloseReason> {
        self.events.iter().find_map(|(of, event)| if *of == id { reason(event) } else { None })
    }

    fn closed_at(&self, client: usize) -> Option<CloseReason> {
        self.told[client].iter().find_map(reason)
    }
}

fn reason(event: &Event) -> Option<CloseReason> {
    if let Event::Closed { reason, .. } = event { Some(*reason) } else { None }
}

fn server_config() -> ServerConfig {
    let psk = SUITE.needs_psk().then(|| PSK.into());
    // All clients of a test have the same address and come at once.
    let (sessions_per_address, accepts_per_second, accept_burst) = (1000, 1000, 1000);
    let suites = vec![SUITE];
    ServerConfig {
        suites,
        psk,
        sessions_per_address,
        half_open_per_address: 1000,
        accepts_per_second,
        accept_burst,
        ..ServerConfig::insecure(SessionConfig::default())
    }
}

fn client_config() -> ClientConfig {
    let psk = SUITE.needs_psk().then(|| PSK.into());
    ClientConfig { suite: SUITE, psk, ..ClientConfig::insecure(SessionConfig::default()) }
}

#[test]
fn a_session_carries_every_kind_of_data_both_ways() {
    const KINDS: [Channel; 6] = [
        CHAT,
        Channel::ordered(1),
        Channel::unordered(2),
        Channel::sequenced(3),
        Channel::unreliable(4),
        Channel::stream(5),
    ];
    let mut channels = KINDS.map(ChannelConfig::from).to_vec();
    channels[1].carrier = Carrier::Packets;
    let mut world = World::new(SessionConfig { channels, ..SessionConfig::default() });
    let id = world.join();
    let World { server, clients, .. } = &mut world;
    let text = |which: &str, channel: Channel| format!("{which} {}", channel.number()).into_bytes();
    let long = |channel: Channel| -> Vec<u8> {
        (0..100_000u32).map(|at| at.to_le_bytes()[0] ^ channel.number()).collect()
    };
    for channel in KINDS {
        clients[0].send(channel, &text("up", channel)).unwrap();
        server.send(id, channel, &text("down", channel)).unwrap();
    }
    clients[0].send_datagram(b"datagram up").unwrap();
    server.send_datagram(id, b"datagram down").unwrap();
    // Too long for a packet, and cut where KCP carries it.
    for channel in &KINDS[..3] {
        clients[0].send(*channel, &long(*channel)).unwrap();
        server.send(id, *channel, &long(*channel)).unwrap();
    }

    let (mut up, mut down) = (BTreeSet::new(), BTreeSet::new());
    world.until("all there", |World { server, clients, .. }| {
        for channel in KINDS {
            up.extend(server.recv(id, channel));
            down.extend(clients[0].recv(channel));
        }
        up.extend(server.recv_datagram(id));
        down.extend(clients[0].recv_datagram());
        up.len() == 10 && down.len() == 10
    });
    for (arrived, which) in [(up, "up"), (down, "down")] {
        assert!(arrived.contains(format!("datagram {which}").as_bytes()));
        assert!(KINDS.iter().all(|channel| arrived.contains(&text(which, *channel)[..])), "{arrived:?}");
        assert!(KINDS[..3].iter().all(|channel| arrived.contains(&long(*channel)[..])));
    }
}

#[test]
fn a_close_waits_until_everything_sent_has_arrived() {
    let mut world = World::new(SessionConfig::default());
    let id = world.join();
    let messages = 400; // several windows
    for number in 0..messages {
        world.clients[0].send(CHAT, &u32::to_le_bytes(number)).unwrap();
    }
    world.clients[0].close(7);
    assert_eq!(world.clients[0].send(CHAT, b"too late"), Err(SendError::Closed));
    let (mut received, mut buf) = (Vec::new(), [0; 100]);
    world.until("closed", |world| {
        while let Ok(len) = world.server.recv_into(id, CHAT, &mut buf) {
            received.push(u32::from_le_bytes(buf[..len].try_into().unwrap()));
        }
        world.closed(id).is_some() && world.closed_at(0).is_some()
    });
    assert!(received.iter().copied().eq(0..messages), "{received:?}");
    assert_eq!(world.closed(id), Some(CloseReason::Peer(7)));
    let undelivered = world.told[0].iter().find_map(|event| match event {
        Event::Closed { reason: CloseReason::Local(7), undelivered } => Some(*undelivered),
        _ => None,
    });
    assert!(undelivered.is_some_and(|undelivered| undelivered.is_empty()), "{undelivered:?}");
}

#[test]
fn a_waker_ends_one_wait_of_a_server_from_another_thread() {
    let mut server = Server::bind("127.0.0.1:0", &server_config()).unwrap();
    let waker = server.waker().unwrap();
    for _ in 0..3 {
        let waker = waker.clone();
        let thread = std::thread::spawn(move || waker.wake());
        assert!(server.poll(Some(PATIENCE)).unwrap());
        thread.join().unwrap();
        assert!(!server.poll(Some(Duration::from_millis(1))).unwrap());
    }
}

#[test]
fn a_shutdown_at_either_end_says_goodbye_to_the_other() {
    let mut world = World::new(SessionConfig::default());
    let ids = [world.join(), world.join()];
    let mut leaving = world.clients.remove(0);
    world.told.remove(0);
    let gone = std::thread::spawn(move || {
        leaving.send(CHAT, b"bye").unwrap();
        leaving.shutdown(3).unwrap();
        assert_eq!(leaving.state(), ClientState::Closed);
        while leaving.poll(None).unwrap() {
            leaving.poll_event().unwrap(); // and afterwards does not wait for what cannot come
        }
    });
    world.until("one has gone", |world| world.closed(ids[0]).is_some());
    gone.join().unwrap();
    assert_eq!(world.closed(ids[0]), Some(CloseReason::Peer(3)));
    let mut buf = [0; 3];
    let ended = world.ended.get_mut(&ids[0]).unwrap();
    assert_eq!(ended.recv_into(CHAT, &mut buf).map(|len| buf[..len].to_vec()), Ok(b"bye".to_vec()));

    let World { mut server, mut clients, .. } = world;
    server.send(ids[1], CHAT, b"bye").unwrap();
    let closing = std::thread::spawn(move || server.shutdown(4).unwrap());
    let mut client = clients.remove(0);
    let start = Instant::now();
    let mut last = None;
    while client.poll(Some(Duration::from_secs(1))).unwrap() || client.state() != ClientState::Closed {
        last = client.poll_event().or(last);
        assert!(start.elapsed() < PATIENCE, "no goodbye: {last:?}");
    }
    assert_eq!(last.as_ref().and_then(reason), Some(CloseReason::Peer(4)));
    assert_eq!(client.recv_into(CHAT, &mut buf), Ok(3));
    closing.join().unwrap();
}

#[test]
fn a_name_is_resolved_and_an_unspecified_address_is_this_machine() {
    let mut world = World::new(SessionConfig::default());
    let port = world.server.local_addr().unwrap().port();
    for host in ["localhost", "0.0.0.0"] {
        let before = world.events.len();
        world.clients.push(Client::connect((host, port), &world.config).unwrap());
        world.told.push(Vec::new());
        world.until("up", |world| world.connected(before).is_some());
    }
    let error = Client::connect("no port", &client_config()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
fn a_server_that_is_or_falls_silent_is_an_event_not_an_error() {
    // A port that accepts datagrams and never answers, and one that nobody listens on.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
    for at in [silent.local_addr().unwrap(), nobody] {
        let config = ClientConfig {
            deadline: Duration::from_millis(300),
            ..ClientConfig::insecure(SessionConfig::default())
        };
        let mut client = Client::connect(at, &config).unwrap();
        assert!(client.poll(Some(PATIENCE)).unwrap());
        let event = client.poll_event();
        assert_eq!(event.as_ref().and_then(reason), Some(CloseReason::ConnectTimeout));
        assert_eq!(client.send(CHAT, b"too late"), Err(SendError::Closed));
    }
    let (keepalive, timeout) = (Duration::from_millis(100), Duration::from_secs(2));
    let mut world = World::new(SessionConfig { keepalive, timeout, ..SessionConfig::default() });
    world.join();
    let World { mut server, mut clients, .. } = world;
    clients[0].send(CHAT, b"anybody?").unwrap();
    *server.machine_mut() = session::Server::new(&server_config(), SimRng::new(1, 1)).unwrap(); // it has crashed
    drop(server);
    let start = Instant::now();
    loop {
        assert!(start.elapsed() < PATIENCE, "the silence did not end");
        clients[0].poll(Some(PATIENCE)).unwrap();
        if let Some(Event::Closed { reason, undelivered }) = clients[0].poll_event() {
            assert_eq!((reason, undelivered.segments), (CloseReason::Timeout, 1));
            break;
        }
    }
}

#[test]
fn the_next_address_of_a_target_is_tried_even_of_the_other_family() {
    let Ok(mut server) = Server::bind("[::]:0", &server_config()) else { return }; // no IPv6 here
    let port = server.local_addr().unwrap().port();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let config = ClientConfig { deadline: Duration::from_millis(200), ..client_config() };
    for at in [SocketAddr::from(([127, 0, 0, 1], port)), format!("[::1]:{port}").parse().unwrap()] {
        let addresses = [silent.local_addr().unwrap(), at];
        let mut client = Client::connect(&addresses[..], &config).unwrap();
        let start = Instant::now();
        let id = loop {
            assert!(start.elapsed() < PATIENCE, "{:?} {:?}", client.state(), server.stats());
            client.poll(Some(Duration::from_millis(1))).unwrap();
            server.poll(Some(Duration::from_millis(1))).unwrap();
            if let Some((id, Event::Connected)) = server.poll_event() {
                break id;
            }
        };
        // IPv4 addresses are shown as such, not as IPv6.
        assert_eq!(server.connection(id).unwrap().peer_addr().is_ipv4(), at.is_ipv4());
        assert_eq!(client.poll_event(), Some(Event::Connected));
    }
}

#[test]
fn four_addresses_are_tried_at_a_time() {
    let mut server = Server::bind("127.0.0.1:0", &server_config()).unwrap();
    let silent = [(); 3].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let mut addresses: Vec<_> = silent.iter().map(|socket| socket.local_addr().unwrap()).collect();
    addresses.push(server.local_addr().unwrap());
    // Were they tried one after another, it would take minutes.
    let config = ClientConfig { deadline: Duration::from_secs(120), ..client_config() };
    let mut client = Client::connect(&addresses[..], &config).unwrap();
    let start = Instant::now();
    while !client.is_connected() {
        assert!(start.elapsed() < PATIENCE, "{:?} {:?}", client.state(), server.stats());
        client.poll(Some(Duration::from_millis(1))).unwrap();
        server.poll(Some(Duration::from_millis(1))).unwrap();
    }
    assert_eq!(client.peer_addr(), addresses.pop());
}

#[test]
fn two_hundred_clients_are_served_from_one_socket() {
    const CLIENTS: usize = 200;
    let mut world = World::new(SessionConfig::default());
    let at = world.server.local_addr().unwrap();
    (0..CLIENTS).for_each(|_| world.begin(at));
    world.until("all up", |world| {
        world.clients.iter().all(|client| client.state() == ClientState::Up)
            && world.server.clients().count() == CLIENTS
    });
    for (index, client) in world.clients.iter_mut().enumerate() {
        client.send(CHAT, &index.to_le_bytes()).unwrap();
    }
    let (mut buf, mut echoes) = ([0; 100], BTreeSet::new());
    world.until("all echoed", |World { server, clients, .. }| {
        let ids: Vec<_> = server.clients().collect();
        for id in ids {
            while let Ok(len) = server.recv_into(id, CHAT, &mut buf) {
                server.send(id, CHAT, &buf[..len]).unwrap();
            }
        }
        for (index, client) in clients.iter_mut().enumerate() {
            while let Ok(len) = client.recv_into(CHAT, &mut buf) {
                assert_eq!(buf[..len], index.to_le_bytes());
                assert!(echoes.insert(index));
            }
        }
        echoes.len() == CLIENTS
    });
    assert_eq!(world.server.stats().accepted, CLIENTS as u64);
    assert_eq!(world.server.socket_stats(), whitewater::net::SocketStats::default());
}

#[test]
fn a_session_survives_a_flood_of_garbage() {
    let mut world = World::new(SessionConfig::default());
    let id = world.join();
    let flooder = UdpSocket::bind("127.0.0.1:0").unwrap();
    flooder.connect(world.server.local_addr().unwrap()).unwrap();
    // Not a packet, an unknown session, truncated HELLOs, and 32 bytes that look like DATA of this session.
    let mut data = vec![0xa6; 60];
    data[1..5].copy_from_slice(&u32::from_str_radix(&id.to_string(), 16).unwrap().to_le_bytes());
    let garbage = [vec![], vec![0; 100], vec![0xa6; 1000], vec![0xa1; 511], data];
    let (mut sent, mut received, mut buf) = (0, 0, [0; 100]);
    world.until("through", |World { server, clients, .. }| {
        for datagram in garbage.iter().cycle().take(50) {
            let _ = flooder.send(datagram); // a full buffer is no failure of the test
        }
        if sent < 200 {
            clients[0].send(CHAT, &[1; 50]).unwrap();
            sent += 1;
        }
        while server.recv_into(id, CHAT, &mut buf).is_ok() {
            received += 1;
        }
        received == 200
    });
    assert_eq!((world.server.clients().count(), world.server.stats().accepted), (1, 1));
    assert!(world.server.stats().rejected.malformed > 0, "{:?}", world.server.stats());
    assert_eq!(world.closed(id), None);
}

#[test]
fn a_peer_that_sends_at_full_speed_stalls_no_other() {
    let mut world = World::new(SessionConfig::default());
    let ids: Vec<_> = (0..6).map(|_| world.join()).collect();
    let (mut buf, mut flood, mut rounds) = ([0; 1200], 0, [0; 6]);
    world.until("all through", |World { server, clients, .. }| {
        while clients[0].send(CHAT, &[1; 1100]).is_ok() {}
        while server.recv_into(ids[0], CHAT, &mut buf).is_ok() {
            flood += 1;
        }
        for (index, (client, id)) in clients.iter_mut().zip(&ids).enumerate().skip(1) {
            while let Ok(len) = server.recv_into(*id, CHAT, &mut buf) {
                server.send(*id, CHAT, &buf[..len]).unwrap();
            }
            // One round trip after another.
            let is_first = rounds[index] == 0;
            if is_first || client.recv_into(CHAT, &mut buf).is_ok() {
                client.send(CHAT, &[2; 30]).unwrap();
                rounds[index] += 1;
            }
        }
        rounds[1..].iter().all(|rounds| *rounds > 50)
    });
    assert!(flood > 500, "no flood: {flood}");
}

#[test]
fn a_client_on_a_socket_of_its_own_reaches_either_family() {
    let mut world = World::new(SessionConfig::default());
    let at = world.server.local_addr().unwrap();
    for bound in ["127.0.0.1:0", "[::]:0"] {
        let Ok(socket) = whitewater_udp::bind(bound) else { continue }; // no IPv6 here
        let port = socket.local_addr().unwrap().port();
        world.clients.push(Client::from_socket(socket, at, &world.config).unwrap());
        world.told.push(Vec::new());
        let before = world.events.len();
        world.until("up", |world| world.connected(before).is_some());
        let id = world.connected(before).unwrap();
        assert_eq!(
            world.server.connection(id).unwrap().peer_addr(),
            SocketAddr::from(([127, 0, 0, 1], port))
        );
    }
}

#[test]
fn an_impossible_target_or_config_is_an_error_that_says_so() {
    let at = SocketAddr::from(([127, 0, 0, 1], 1));
    let error = Client::connect(&[][..], &client_config()).unwrap_err();
    assert!(matches!(Error::of(&error), Some(Error::Connect(_))), "{error:?}");
    let long = ClientConfig { user: vec![0; 300], ..client_config() };
    for config in [long, ClientConfig { hello: 1, ..client_config() }] {
        let error = Client::connect(at, &config).unwrap_err();
        assert!(matches!(Error::of(&error), Some(Error::Config(_))), "{error:?}");
    }

    let error = Server::bind("127.0.0.1:0", &ServerConfig { shard: 64, ..server_config() }).unwrap_err();
    assert!(error.to_string().contains("shard"), "{error}");
}

/// A network with no delay that can give its client another address.
#[cfg(feature = "crypto")]
mod rebind {
    use super::*;

    struct Nat {
        inside: UdpSocket,
        outside: UdpSocket,
        server: SocketAddr,
        client: Option<SocketAddr>,
    }

    impl Nat {
        fn new(server: SocketAddr) -> Self {
            Self { inside: socket(), outside: socket(), server, client: None }
        }

        fn pass(&mut self) {
            let mut buf = [0; 2000];
            while let Ok((len, from)) = self.inside.recv_from(&mut buf) {
                self.client = Some(from);
                let _ = self.outside.send_to(&buf[..len], self.server);
            }
            while let Ok((len, _)) = self.outside.recv_from(&mut buf) {
                let _ = self.inside.send_to(&buf[..len], self.client.unwrap());
            }
        }
    }

    fn socket() -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    }

    #[test]
    fn a_session_survives_a_nat_that_changes_the_port() {
        let mut world = World::new(SessionConfig::default());
        let at = world.server.local_addr().unwrap();
        let mut nat = Nat::new(at);
        world.begin(nat.inside.local_addr().unwrap());
        world.until("up", |world| {
            nat.pass();
            world.connected(0).is_some() && world.clients[0].state() == ClientState::Up
        });
        let id = world.connected(0).unwrap();
        let (mut buf, mut received) = ([0; 100], 0);
        for round in 1..=3 {
            nat.outside = socket();
            let there = nat.outside.local_addr().unwrap();
            world.clients[0].send(CHAT, b"from elsewhere").unwrap();
            world.server.send(id, CHAT, b"to elsewhere").unwrap();
            world.until("moved", |World { server, clients, events, .. }| {
                nat.pass();
                let moves = events.iter().filter(|(_, event)| matches!(event, Event::Moved { .. })).count();
                received += usize::from(server.recv_into(id, CHAT, &mut buf).is_ok());
                received += usize::from(clients[0].recv_into(CHAT, &mut buf).is_ok());
                moves == round && received == 2 * round
            });
            assert_eq!(world.server.connection(id).unwrap().peer_addr(), there);
        }
        assert_eq!(world.closed(id), None);
    }
}

#[cfg(feature = "crypto")]
#[test]
fn a_token_is_checked_by_the_system_clock() {
    use std::time::SystemTime;
    use whitewater::session::token::{FleetKey, Order, Verifier};
    let unix = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let key = || FleetKey::new([1; 32]).server_key(5, 0);
    let tokens = Some(Verifier::new(key()));
    let mut world = World::with(ServerConfig { tokens, psk: None, ..server_config() });
    let addresses = [world.server.local_addr().unwrap()];
    let order = Order {
        protocol_id: 0,
        suite: Suite::TOKEN,
        client_id: 99,
        match_id: [3; 16],
        created: unix,
        expires: unix + 45,
        addresses: &addresses,
        server_key: None,
        routing_token: b"",
        user: b"red team",
    };
    let token = key().mint(&order, [4; 32], [5; 24]).unwrap();
    let config = ClientConfig::token(SessionConfig::default(), &token);
    world.clients.push(Client::connect(&*token.addresses, &config).unwrap());
    world.told.push(Vec::new());
    world.until("in", |world| world.connected(0).is_some());
    let pass = world.server.machine().pass(world.connected(0).unwrap()).unwrap();
    assert_eq!((pass.client_id, &pass.user[..]), (99, &b"red team"[..]));
}

/// The other end of a session hears of a dropped one as soon as what was sent before.
#[test]
fn a_dropped_client_or_server_says_goodbye_after_what_it_has_sent() {
    for is_server in [false, true] {
        let mut world = World::new(SessionConfig::default());
        let id = world.join();
        let World { mut server, mut clients, .. } = world;
        let mut client = clients.pop().unwrap();
        let (is_closed, start) = (|reason| matches!(reason, CloseReason::Peer(0)), Instant::now());
        if is_server {
            server.send(id, CHAT, b"last words").unwrap();
            drop(server);
            while !client.poll_event().as_ref().and_then(reason).is_some_and(is_closed) {
                assert!(start.elapsed() < PATIENCE, "it hears by silence only");
                client.poll(Some(PATIENCE)).unwrap();
            }
            assert_eq!(client.recv(CHAT).as_deref(), Some(&b"last words"[..]));
        } else {
            client.send(CHAT, b"last words").unwrap();
            drop(client);
            loop {
                assert!(start.elapsed() < PATIENCE, "it hears by silence only");
                server.poll(Some(PATIENCE)).unwrap();
                let Some((_, event)) = server.poll_event() else { continue };
                if reason(&event).is_some_and(is_closed) {
                    break;
                }
            }
            assert_eq!(server.recv(id, CHAT).as_deref(), Some(&b"last words"[..]));
        }
    }
}

#[test]
fn a_broadcast_reaches_all_clients_but_the_one_left_out_and_names_those_without_room() {
    let mut world = World::new(SessionConfig::default());
    let ids: Vec<_> = (0..3).map(|_| world.join()).collect();
    assert_eq!(world.server.clients().collect::<BTreeSet<_>>(), ids.iter().copied().collect());
    assert_eq!(world.server.broadcast(CHAT, b"to all"), []);
    assert_eq!(world.server.broadcast_except(ids[1], CHAT, b"to two"), []);
    let mut heard = vec![Vec::new(); 3];
    world.until("heard", |world| {
        for (client, heard) in world.clients.iter_mut().zip(&mut heard) {
            heard.extend(std::iter::from_fn(|| client.recv(CHAT)));
        }
        heard.iter().map(Vec::len).sum::<usize>() == 5
    });
    assert_eq!([heard[0].len(), heard[1].len(), heard[2].len()], [2, 1, 2]);
    while world.server.send(ids[2], CHAT, &[0; 1000]).is_ok() {}
    let missed = world.server.broadcast(CHAT, &[0; 1000]);
    assert_eq!(missed, [(ids[2], SendError::Full { channel: 0 })]);
}

#[test]
fn a_kicked_client_hears_why_at_once_though_much_is_still_sent_to_it() {
    let mut world = World::new(SessionConfig::default());
    world.config.user = b"Ada".to_vec();
    let id = world.join();
    assert_eq!((world.server.user(id), world.clients[0].close_text()), (&b"Ada"[..], ""));
    while world.server.send(id, CHAT, &[0; 1000]).is_ok() {}
    assert!(world.server.is_connected(id) && world.clients[0].is_connected());
    assert_eq!(world.clients[0].peer_addr(), world.server.local_addr().ok());
    world.server.kick(id, 7, "no cheating").unwrap();
    assert!(!world.server.is_connected(id) && world.server.clients().len() == 0);
    world.until("kicked", |world| !world.clients[0].is_connected());
    assert_eq!(world.clients[0].close_text(), "no cheating");
    assert!(
        world.told[0].iter().any(|event| reason(event) == Some(CloseReason::Peer(7))),
        "{:?}",
        world.told
    );
}

/// What a close has said is not unsaid by a drop.
#[test]
fn a_drop_keeps_the_code_and_the_text_of_a_close_that_waits() {
    let mut world = World::new(SessionConfig::default());
    let id = world.join();
    world.server.send(id, CHAT, &[0; 100_000]).unwrap(); // a close waits for it
    world.server.close_with(id, 42, "banned").unwrap();
    let World { server, mut clients, .. } = world;
    drop(server);
    let start = Instant::now();
    while !clients[0].poll_event().as_ref().is_some_and(|event| reason(event) == Some(CloseReason::Peer(42)))
    {
        assert!(start.elapsed() < PATIENCE, "it hears by silence only");
        clients[0].poll(Some(PATIENCE)).unwrap();
    }
    assert_eq!(clients[0].close_text(), "banned");
}

#[cfg(feature = "crypto")]
#[test]
fn what_is_urgent_leaves_by_two_sockets_and_arrives_once() {
    let mut world = World::new(SessionConfig::default());
    let id = world.join();
    // All of 127.0.0.0/8 is this host on Linux; elsewhere another port has to do.
    let second = UdpSocket::bind("127.0.0.2:0").or_else(|_| UdpSocket::bind("127.0.0.1:0")).unwrap();
    world.clients[0].set_second_network(second, SecondNetwork::Double).unwrap();
    let (mut heard, mut said) = (0_u32, 0_u32);
    for number in 1..=200_u32 {
        world.clients[0].connection_mut().unwrap().send(CHAT, &number.to_le_bytes()).unwrap();
        world.server.connection_mut(id).unwrap().send(CHAT, &number.to_le_bytes()).unwrap();
        world.until("said on both sides", |world| {
            while let Some(message) = world.server.connection_mut(id).unwrap().recv(CHAT) {
                heard += 1;
                assert_eq!(*message, heard.to_le_bytes());
            }
            while let Some(message) = world.clients[0].connection_mut().unwrap().recv(CHAT) {
                said += 1;
                assert_eq!(*message, said.to_le_bytes());
            }
            (heard, said) == (number, number)
        });
    }
    let up = world.clients[0].connection().unwrap().stats().doubled;
    let down = world.server.connection(id).unwrap().stats();
    assert!(up > 150 && down.doubled > 100, "{up} and {} packets were doubled", down.doubled);
    assert_eq!(down.moves, 0);
    world.clients[0].remove_second_network();
    assert_eq!(world.clients[0].network(), 0);
}

#[test]
fn a_session_without_encryption_has_one_network() {
    let mut world = World::with(ServerConfig { suites: vec![Suite::Checked], psk: None, ..server_config() });
    world.config = ClientConfig::insecure(SessionConfig::default());
    world.join();
    let second = UdpSocket::bind("127.0.0.1:0").unwrap();
    let refused = world.clients[0].set_second_network(second, SecondNetwork::Spare).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::Unsupported);
}
