//! The parts as threads of one process; `demo` runs them as processes.

use crate::{drain, http, keys, matchmaker, player, server};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;
use whitewater::session::token::{FleetKey, PublicToken};

const SECRET: [u8; 32] = [1; 32];
const PATIENCE: Duration = Duration::from_secs(20);

fn start_matchmaker() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    thread::spawn(move || matchmaker::run(&listener, FleetKey::new(SECRET)).unwrap());
    at
}

/// The receiver returns its output.
fn start_server(id: u64, matchmaker: SocketAddr) -> Receiver<String> {
    let (tell, said) = channel();
    let key = *FleetKey::new(SECRET).server_key(id, keys::KEY_ID).secret();
    let config = server::Config { id, key, at: "127.0.0.1:0".parse().unwrap(), matchmaker };
    thread::spawn(move || {
        let say = |line: &str| drop(tell.send(line.to_owned()));
        server::run(&config, &say).unwrap();
    });
    assert_eq!(said.recv_timeout(PATIENCE).unwrap(), format!("server {id}: registered"));
    said
}

#[test]
fn a_player_is_moved_from_one_server_to_the_other_and_the_first_one_ends() {
    let matchmaker = start_matchmaker();
    let first = start_server(1, matchmaker);
    let (tell, said) = channel();
    let play = thread::spawn(move || {
        let say = |line: &str| drop(tell.send(line.to_owned()));
        player::run("ann", matchmaker, &say).unwrap();
    });
    let next = || said.recv_timeout(PATIENCE).unwrap();
    assert_eq!(next(), "ann: server 1 serves me");
    let _second = start_server(2, matchmaker);
    drain(1, matchmaker).unwrap();
    let story = [(); 3].map(|()| next());
    let expected = [
        "ann: server 1 sends me to another",
        "ann: server 2 serves me",
        "ann: I was answered all that I said",
    ];
    assert_eq!(story, expected);
    play.join().unwrap();
    let of_server: Vec<_> = std::iter::from_fn(|| first.recv_timeout(PATIENCE).ok()).collect();
    let expected = [
        "server 1: player 1 is in",
        "server 1: draining",
        "server 1: player 1 is gone: the peer closed it, with code 0",
        "server 1: empty, so it ends",
    ];
    assert_eq!(of_server, expected);
}

#[test]
fn there_is_a_token_only_for_servers_that_are_there() {
    let at = start_matchmaker();
    assert!(http::post(at, "/play", b"ann").is_err());
    http::post(at, "/servers", b"1 127.0.0.1:4001 0").unwrap();
    http::post(at, "/servers", b"2 127.0.0.1:4002 5").unwrap();
    let port = |token: &[u8]| PublicToken::decode(token).unwrap().addresses[0].port();
    assert_eq!(port(&http::post(at, "/play", b"ann").unwrap()), 4001, "which has fewer players");
    assert_eq!(port(&http::post(at, "/move", b"1 1").unwrap()), 4002);
    drain(2, at).unwrap();
    assert_eq!(http::post(at, "/servers", b"2 127.0.0.1:4002 5").unwrap(), b"drain");
    assert!(http::post(at, "/move", b"1 1").is_err(), "there is no other");
    for (path, body) in [("/servers", "1 127.0.0.1:4001"), ("/servers", "x y z"), ("/drain", "9"), ("/", "")]
    {
        assert!(http::post(at, path, body.as_bytes()).is_err(), "{path} {body}");
    }
}

#[test]
fn a_key_is_read_as_it_is_written() {
    let key = [0x5a; 32];
    assert_eq!(keys::from_hex(&keys::hex(&key)), Some(key));
    for wrong in ["", "5a", &"5".repeat(63), &"5a".repeat(33), &"xx".repeat(32)] {
        assert_eq!(keys::from_hex(wrong), None, "{wrong}");
    }
}
