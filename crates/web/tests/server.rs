//! A server with native clients and browsers in one list of sessions.
#![cfg(not(target_arch = "wasm32"))]
#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

mod echo;
mod players;

use echo::{start, until};
use players::{CHAT, PSK, Player, Way, client, play, session, web};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use whitewater::session::Suite;
use whitewater::{Client, ClientConfig, CloseReason, Event, ServerConfig, SessionConfig};

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
