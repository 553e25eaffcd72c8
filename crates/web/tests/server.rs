//! A server with native clients and browsers in one list of sessions.
#![cfg(not(target_arch = "wasm32"))]
#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

mod players;

use players::{Player, Way, client, session};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use whitewater::session::Suite;
use whitewater::{Channel, Client, ClientConfig, CloseReason, Event, Server, ServerConfig, SessionConfig};
use whitewater_web::{Browsers, Web, WebConfig, listen};

const CHAT: Channel = Channel::ordered(0);
const PSK: [u8; 32] = [7; 32];

fn web() -> WebConfig {
    let mut config = WebConfig::self_signed(["localhost", "127.0.0.1"]);
    config.addr = SocketAddr::from(([127, 0, 0, 1], 0));
    config
}

/// Echoes messages and datagrams on a thread, and notes the addresses of who has joined.
struct Echo {
    at: SocketAddr,
    joined: Arc<Mutex<Vec<SocketAddr>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Server>>,
}

impl Echo {
    fn new(config: &ServerConfig, browsers: Browsers) -> Self {
        let mut server = Server::bind("127.0.0.1:0", config).unwrap();
        server.attach(browsers).unwrap();
        let (joined, is_over) = (Arc::<Mutex<Vec<_>>>::default(), Arc::new(AtomicBool::new(false)));
        let (at, notes, ends) = (server.local_addr().unwrap(), Arc::clone(&joined), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            while !ends.load(Relaxed) {
                server.poll(Some(Duration::from_millis(20))).unwrap();
                while let Some((id, event)) = server.poll_event() {
                    match event {
                        Event::Connected => notes.lock().unwrap().push(server.peer_addr(id).unwrap()),
                        Event::Readable => {
                            while let Some(message) = server.recv(id, CHAT) {
                                server.send(id, CHAT, &message).unwrap();
                            }
                            while let Some(datagram) = server.recv_datagram(id) {
                                let _ = server.send_datagram(id, &datagram); // it may be lost
                            }
                        }
                        _ => {}
                    }
                }
                server.flush();
            }
            server
        });
        Self { at, joined, is_over, thread: Some(thread) }
    }

    fn end(&mut self) -> Server {
        self.is_over.store(true, Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

/// Sends 100 messages and as many datagrams, and returns how many are back.
async fn play(player: &mut Player) -> (usize, usize) {
    player.run(|session| session.is_connected()).await.unwrap();
    let (mut messages, mut datagrams) = (0, 0);
    let connection = player.session.connection_mut().unwrap();
    for number in 0..100_u8 {
        connection.send(CHAT, &[number; 200]).unwrap();
        connection.send_datagram(&[number; 400]).unwrap();
    }
    let run = player.run(|session| {
        let connection = session.connection_mut().unwrap();
        while let Some(message) = connection.recv(CHAT) {
            assert_eq!(message, vec![messages; 200]);
            messages += 1;
        }
        while connection.recv_datagram().is_some() {
            datagrams += 1;
        }
        messages == 100 && datagrams >= 90
    });
    run.await.unwrap();
    (messages.into(), datagrams)
}

/// Waits until that is so, at most 20 s.
fn until(is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < end, "in vain");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn start(config: &ServerConfig, web: &WebConfig) -> (Echo, Web, Runtime) {
    let (web, browsers) = listen(web).unwrap();
    (Echo::new(config, browsers), web, Runtime::new().unwrap())
}

#[test]
fn native_clients_and_browsers_are_sessions_of_one_server() {
    let config = ServerConfig::secret(SessionConfig::default(), PSK);
    let (mut echo, web, runtime) = start(&config, &web());
    let native = {
        let config = ClientConfig::secret(SessionConfig::default(), PSK);
        let mut native = Client::connect(echo.at, &config).unwrap();
        assert!(native.poll(Some(Duration::from_secs(20))).unwrap());
        native.send(CHAT, b"native").unwrap();
        while native.recv(CHAT).is_none() {
            native.poll(Some(Duration::from_millis(20))).unwrap();
        }
        native
    };
    runtime.block_on(async {
        let config = client(ClientConfig::secret(session(), PSK));
        let url = web.url("127.0.0.1");
        let way = Way::web_transport(&url, web.certificate_hash()).await.unwrap();
        let mut browser = Player::new(way, &config);
        let (messages, datagrams) = play(&mut browser).await;
        assert!(messages == 100 && datagrams >= 90, "{messages}, {datagrams}");
        let way = Way::web_socket(web.local_addr(), "/").await.unwrap();
        let mut fallback = Player::new(way, &config);
        assert_eq!(play(&mut fallback).await, (100, 100), "nothing is lost in a WebSocket");
        let joined = echo.joined.lock().unwrap().clone();
        assert_eq!(joined.len(), 3);
        let here = IpAddr::from(Ipv4Addr::LOCALHOST);
        assert!(joined.iter().all(|address| address.ip().to_canonical() == here), "{joined:?}");
        assert!(joined.iter().all(|one| joined.iter().filter(|other| one == *other).count() == 1));
    });
    let server = echo.end();
    assert_eq!(server.stats().accepted, 3);
    let stats = web.stats();
    assert_eq!((stats.web_transports, stats.web_sockets, stats.too_long, stats.overflowed), (1, 1, 0, 0));
    drop((server, native));
}

#[test]
fn a_session_goes_on_over_another_connection() {
    let config = ServerConfig::secret(SessionConfig::default(), PSK);
    let (mut echo, web, runtime) = start(&config, &web());
    runtime.block_on(async {
        let config = client(ClientConfig::secret(session(), PSK));
        let url = web.url("127.0.0.1");
        let way = Way::web_transport(&url, web.certificate_hash()).await.unwrap();
        let mut browser = Player::new(way, &config);
        play(&mut browser).await;
        for next in 0..2 {
            browser.way = match next {
                0 => Way::web_transport(&url, web.certificate_hash()).await.unwrap(),
                _ => Way::web_socket(web.local_addr(), "/").await.unwrap(),
            };
            let now = browser.now();
            whitewater::machine::Machine::path_changed(&mut browser.session, now);
            play(&mut browser).await;
        }
    });
    assert_eq!(echo.end().stats().accepted, 1, "the session is still the first one");
}

#[test]
fn without_inner_encryption_only_what_comes_through_tls_may_join() {
    let config = ServerConfig { checked_in_tls: true, ..ServerConfig::secret(SessionConfig::default(), PSK) };
    let (mut echo, web, runtime) = start(&config, &web());
    let reason = |client: &mut whitewater::session::Client| {
        while let Some(event) = client.poll_event() {
            if let Event::Closed { reason, .. } = event {
                return Some(reason);
            }
        }
        None
    };
    runtime.block_on(async {
        let config = client(ClientConfig::insecure(session()));
        let way = Way::web_transport(&web.url("127.0.0.1"), web.certificate_hash()).await.unwrap();
        let mut browser = Player::new(way, &config);
        play(&mut browser).await;
        // A WebSocket without TLS is as open as UDP.
        let way = Way::web_socket(web.local_addr(), "/").await.unwrap();
        let mut fallback = Player::new(way, &config);
        let mut closed = None;
        let run = fallback.run(|session| {
            closed = closed.or_else(|| reason(session));
            closed.is_some()
        });
        run.await.unwrap();
        assert!(matches!(closed, Some(CloseReason::Denied(_))), "{closed:?}");
    });
    let mut native = Client::connect(echo.at, &ClientConfig::insecure(SessionConfig::default())).unwrap();
    native.poll(Some(Duration::from_secs(20))).unwrap();
    assert!(matches!(native.poll_event(), Some(Event::Closed { reason: CloseReason::Denied(_), .. })));
    assert_eq!(echo.end().stats().accepted, 1);
    assert!(config.suites.iter().all(|suite| *suite != Suite::Checked));
}

#[test]
fn whoever_brings_no_session_has_to_go() {
    let config = ServerConfig::secret(SessionConfig::default(), PSK);
    let mut limits = web();
    (limits.idle_timeout, limits.bytes_without_session) = (Duration::from_millis(300), 10_000);
    let (mut echo, web, runtime) = start(&config, &limits);
    runtime.block_on(async {
        let url = web.url("127.0.0.1");
        let mut silent = Way::web_transport(&url, web.certificate_hash()).await.unwrap();
        assert!(silent.recv().await.is_err());
        let mut loud = Way::web_socket(web.local_addr(), "/").await.unwrap();
        for _ in 0..11 {
            let _ = loud.send(&[0xff; 1000]).await; // the last ones may find it closed
        }
        assert!(loud.recv().await.is_err());
        assert!(Way::web_socket(web.local_addr(), "/elsewhere").await.is_err());
        let elsewhere = format!("{url}elsewhere");
        assert!(Way::web_transport(&elsewhere, web.certificate_hash()).await.is_err());
    });
    until(|| (web.stats().evicted, web.stats().failed) == (2, 2));
    until(|| web.stats().connections == 0); // each place is given back
    drop(echo.end());
}

#[test]
fn an_address_has_so_many_connections_and_then_no_more() {
    let config = ServerConfig::secret(SessionConfig::default(), PSK);
    let mut limits = web();
    limits.connections_per_address = 3;
    let (mut echo, web, runtime) = start(&config, &limits);
    runtime.block_on(async {
        let mut inside = Vec::new();
        for _ in 0..3 {
            inside.push(Way::web_socket(web.local_addr(), "/").await.unwrap());
        }
        assert!(Way::web_socket(web.local_addr(), "/").await.is_err());
        assert!(Way::web_transport(&web.url("127.0.0.1"), web.certificate_hash()).await.is_err());
    });
    until(|| web.stats().refused == 2);
    drop(echo.end());
}

#[test]
fn a_page_from_elsewhere_is_not_served() {
    let config = ServerConfig::secret(SessionConfig::default(), PSK);
    let mut limits = web();
    limits.origins = vec!["https://game.example.org".to_owned()];
    let (mut echo, web, runtime) = start(&config, &limits);
    runtime.block_on(async {
        assert!(Way::web_socket(web.local_addr(), "/").await.is_err());
        assert!(Way::web_transport(&web.url("127.0.0.1"), web.certificate_hash()).await.is_err());
    });
    until(|| web.stats().failed == 2);
    drop(echo.end());
}
