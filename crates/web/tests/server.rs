//! A server with native clients and browsers in one list of sessions.
#![cfg(not(target_arch = "wasm32"))]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

mod echo;
mod players;

use echo::{start, until};
use players::{CHAT, PSK, Player, Way, client, play, session, web};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use whitewater::session::Suite;
use whitewater::{Client, ClientConfig, CloseReason, Event, ServerConfig, SessionConfig};
use whitewater_web::Web;

/// Why a session has closed.
fn reason(client: &mut whitewater::session::Client) -> Option<CloseReason> {
    std::iter::from_fn(|| client.poll_event()).find_map(|event| match event {
        Event::Closed { reason, .. } => Some(reason),
        _ => None,
    })
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
        let (messages, datagrams) = play(&mut browser, 90).await;
        assert!(messages == 100 && datagrams >= 90, "{messages}, {datagrams}");
        let way = Way::web_socket(web.local_addr(), "/").await.unwrap();
        let mut fallback = Player::new(way, &config);
        assert_eq!(play(&mut fallback, 100).await, (100, 100), "nothing is lost in a WebSocket");
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
        play(&mut browser, 50).await;
        for next in 0..2 {
            browser.way = match next {
                0 => Way::web_transport(&url, web.certificate_hash()).await.unwrap(),
                _ => Way::web_socket(web.local_addr(), "/").await.unwrap(),
            };
            let now = browser.now();
            whitewater::machine::Machine::path_changed(&mut browser.session, now);
            play(&mut browser, 50).await;
        }
    });
    assert_eq!(echo.end().stats().accepted, 1, "the session is still the first one");
}

#[test]
fn a_session_that_a_restarted_server_does_not_know_ends_with_the_next_connection() {
    let config =
        ServerConfig { reset_key: Some([5; 16]), ..ServerConfig::secret(SessionConfig::default(), PSK) };
    let connect = async |web: &Web, is_socket| match is_socket {
        false => Way::web_transport(&web.url("127.0.0.1"), web.certificate_hash()).await.unwrap(),
        true => Way::web_socket(web.local_addr(), "/").await.unwrap(),
    };
    for is_socket in [false, true] {
        let (mut before, old, runtime) = start(&config, &web());
        let mut browser = runtime.block_on(async {
            let way = connect(&old, is_socket).await;
            let mut browser = Player::new(way, &client(ClientConfig::secret(session(), PSK)));
            play(&mut browser, 50).await;
            browser
        });
        before.end();
        let (mut after, new, _runtime) = start(&config, &web());
        runtime.block_on(async {
            browser.way = connect(&new, is_socket).await;
            let now = browser.now();
            whitewater::machine::Machine::path_changed(&mut browser.session, now);
            let mut closed = None;
            let run = browser.run(|session| {
                closed = closed.or_else(|| reason(session));
                closed.is_some()
            });
            run.await.unwrap();
            assert_eq!(closed, Some(CloseReason::ServerForgot), "instead of by silence");
        });
        assert_eq!(after.end().stats().resets, 1);
    }
}

/// Passes datagrams of one client to `server`, wherever that is at the time.
async fn relay(server: Arc<Mutex<SocketAddr>>) -> SocketAddr {
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let at = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut client, mut servers, mut buf) = (at, Vec::new(), [0; 2048]);
        loop {
            let (len, from) = socket.recv_from(&mut buf).await.unwrap();
            let current = *server.lock().unwrap();
            if !servers.contains(&current) {
                servers.push(current);
            }
            let to = if servers.contains(&from) {
                client
            } else {
                client = from;
                current
            };
            socket.send_to(&buf[..len], to).await.unwrap();
        }
    });
    at
}

#[test]
fn a_server_that_stopped_without_a_word_and_is_back_resets_its_old_connections() {
    let config = ServerConfig::secret(SessionConfig::default(), PSK);
    let [one, other] = [Some([5; 16]), None].map(|reset_key| {
        let mut web = web();
        web.reset_key = reset_key;
        web
    });
    for (again, is_told) in [(&one, true), (&other, false)] {
        let (_before, old, runtime) = start(&config, &one);
        let (_after, new, _runtime) = start(&config, again);
        runtime.block_on(async {
            let server = Arc::new(Mutex::new(old.local_addr()));
            let url = format!("https://{}/", relay(Arc::clone(&server)).await);
            let way = Way::web_transport(&url, old.certificate_hash()).await.unwrap();
            let mut browser = Player::new(way, &client(ClientConfig::secret(session(), PSK)));
            play(&mut browser, 50).await;
            *server.lock().unwrap() = new.local_addr();
            let told = async {
                loop {
                    let _ = browser.way.send(&[0; 1000]).await; // until the connection is over
                    let heard = tokio::time::timeout(Duration::from_millis(20), browser.way.recv()).await;
                    if let Ok(Err(error)) = heard {
                        return error;
                    }
                }
            };
            let told = tokio::time::timeout(Duration::from_secs(if is_told { 20 } else { 2 }), told).await;
            let is_reset = told.as_ref().is_ok_and(|error| error.to_string().contains("reset"));
            assert_eq!(is_reset, is_told, "{told:?}");
        });
    }
}

#[test]
fn without_inner_encryption_only_what_comes_through_tls_may_join() {
    let config = ServerConfig { checked_in_tls: true, ..ServerConfig::secret(SessionConfig::default(), PSK) };
    let (mut echo, web, runtime) = start(&config, &web());
    runtime.block_on(async {
        let config = client(ClientConfig::insecure(session()));
        let way = Way::web_transport(&web.url("127.0.0.1"), web.certificate_hash()).await.unwrap();
        let mut browser = Player::new(way, &config);
        play(&mut browser, 50).await;
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
