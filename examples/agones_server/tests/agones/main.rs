//! The example as a process, against a stand-in for its sidecar and with real players.

mod player;
mod process;
#[path = "../../src/protocol.rs"]
mod protocol;

#[path = "../../src/http.rs"]
#[expect(dead_code, reason = "a matchmaker does not post")]
mod http;

use agones_stand_in::{Counter, Health, State};
use player::{Player, Seen, token};
use process::{ARENA, OTHER, PATIENCE, Process, patient, sidecar, started, wait};
use protocol::DRAINED;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use whitewater::CloseReason;
use whitewater::session::DenyReason;

#[test]
fn a_match_is_ready_allocated_and_shut_down_in_this_order_and_the_counter_follows_its_players() {
    let sidecar = started(ARENA, 3);
    let mut server = Process::start(&sidecar, "match", &[]);
    let at = server.address();
    wait(&sidecar, "ready", |it| it.state == State::Ready);
    let player = |number| Player::join(&token(at, ARENA.2, number));
    let mut players = Vec::new();
    for count in 1..=3 {
        players.push(player(count));
        let number = i64::try_from(count).unwrap();
        let now = wait(&sidecar, "counted", |it| it.players == Some(Counter { count: number, capacity: 3 }));
        assert_eq!(now.labels["agones.dev/sdk-players"], count.to_string());
    }
    let one_too_many = Player::start(&token(at, ARENA.2, 4), "hello");
    assert_eq!(one_too_many.next(), Seen::Closed(CloseReason::Denied(DenyReason::Busy)));
    wait(&sidecar, "allocated by itself", |it| it.state == State::Allocated);
    for count in [2, 1] {
        players.pop().unwrap().leave();
        wait(&sidecar, "counted", |it| it.players == Some(Counter { count, capacity: 3 }));
    }
    players.pop().unwrap().leave();
    server.wait("draining: the match is over");
    assert!(server.ended());
    let end = sidecar.game_server();
    assert_eq!(end.calls, ["ready", "allocate", "shutdown"]);
    assert_eq!((end.state, end.players), (State::Shutdown, Some(Counter { count: 0, capacity: 0 })));
}

#[test]
fn a_server_without_its_port_or_its_key_is_never_ready() {
    let sidecar = started(ARENA, 3);
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for setting in [("BIND", taken.as_str()), ("SERVER_KEY_FILE", "/nonexistent")] {
        let mut server = Process::start(&sidecar, "unready", &[setting]);
        assert!(!server.ended(), "{setting:?}");
    }
    assert_eq!(sidecar.game_server().calls, [""; 0]);
}

#[test]
fn only_the_server_can_read_its_key_and_it_is_not_the_key_of_the_fleet() {
    let sidecar = started(ARENA, 3);
    let server = Process::start(&sidecar, "key", &[]);
    server.address();
    let file = server.key_file();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_ne!(fs::read_to_string(file).unwrap(), "42".repeat(32));
}

#[test]
fn the_loop_learns_that_it_was_allocated_and_does_not_allocate_itself_again() {
    let sidecar = started(ARENA, 3);
    let server = Process::start(&sidecar, "allocated", &[]);
    let at = server.address();
    wait(&sidecar, "ready", |it| it.state == State::Ready);
    sidecar.allocate().unwrap();
    server.wait("arena-x2c4v: Allocated");
    let player = Player::join(&token(at, ARENA.2, 1));
    player.is_served_by(ARENA.0);
    player.leave();
    wait(&sidecar, "over", |it| it.state == State::Shutdown);
    assert_eq!(sidecar.game_server().calls, ["ready", "allocate", "shutdown"]);
}

/// Nobody reads its log: it waits for room, and so do the players. The task that talks to the sidecar runs on.
#[test]
fn a_loop_that_hangs_for_longer_than_the_threshold_is_unhealthy() {
    let mut sidecar = sidecar(ARENA, 3, Health::new(PATIENCE, Duration::from_secs(1), 10));
    sidecar.start().unwrap();
    let mut server = Process::start(&sidecar, "hang", &[]);
    let at = server.address();
    let healthy = wait(&sidecar, "beating", |it| it.health.beats >= 6);
    assert_eq!(healthy.state, State::Ready);
    let _player = Player::start(&token(at, ARENA.2, 1), &"hello ".repeat(150));
    wait(&sidecar, "unhealthy", |it| it.state == State::Unhealthy);
    assert!(server.is_running());
}

#[test]
fn sigterm_lets_players_stay_for_a_while_and_nobody_in_and_then_ends_in_order() {
    let sidecar = started(ARENA, 3);
    let mut server = Process::start(&sidecar, "sigterm", &[("DRAIN_SECONDS", "10")]);
    let at = server.address();
    let player = Player::join(&token(at, ARENA.2, 1));
    server.terminate();
    server.wait("draining: SIGTERM");
    let late = Player::start(&token(at, ARENA.2, 2), "hello");
    assert_eq!(late.next(), Seen::Closed(CloseReason::Rejected(DRAINED)));
    wait(&sidecar, "without free places", |it| it.players == Some(Counter { count: 1, capacity: 1 }));
    player.is_served_by(ARENA.0);
    player.wait(&Seen::Closed(CloseReason::Peer(DRAINED)));
    assert!(server.ended());
    let end = sidecar.game_server();
    assert_eq!((end.state, end.calls.last()), (State::Shutdown, Some(&"shutdown")));
}

#[test]
fn sigterm_sends_players_to_another_server_if_the_matchmaker_has_tokens() {
    let (sidecar, other) = (started(ARENA, 3), started(OTHER, 3));
    let second = Process::start(&other, "second", &[]);
    let there = second.address();
    let matchmaker = TcpListener::bind("127.0.0.1:0").unwrap();
    let settings = [("MATCHMAKER", &*matchmaker.local_addr().unwrap().to_string()), ("DRAIN_SECONDS", "60")];
    let mut first = Process::start(&sidecar, "first", &settings);
    let player = Player::join(&token(first.address(), ARENA.2, 7));
    player.is_served_by(ARENA.0);
    first.terminate();
    let (stream, _) = matchmaker.accept().unwrap();
    let request = http::receive(&stream).unwrap();
    assert_eq!(request.path, "/move");
    assert_eq!(request.body, format!("{} 7", ARENA.2).as_bytes());
    http::answer(&stream, Some(&token(there, OTHER.2, 7))).unwrap();
    player.wait(&Seen::Heard(OTHER.0.to_owned()));
    assert!(first.ended(), "as soon as it is empty");
    assert_eq!(sidecar.game_server().state, State::Shutdown);
    player.is_served_by(OTHER.0);
    wait(&other, "allocated", |it| it.state == State::Allocated && it.players.unwrap().count == 1);
}

#[test]
fn a_sidecar_may_start_late_and_start_again_while_players_play() {
    let mut sidecar = sidecar(ARENA, 3, patient());
    let server = Process::start(&sidecar, "restart", &[]);
    server.wait("waiting for the sidecar");
    sidecar.start().unwrap();
    let at = server.address();
    let first = Player::join(&token(at, ARENA.2, 1));
    wait(&sidecar, "allocated", |it| it.state == State::Allocated && it.players.unwrap().count == 1);
    sidecar.kill_and_forget();
    sidecar.start().unwrap();
    wait(&sidecar, "counted again", |it| it.players.unwrap().count == 1);
    sidecar.kill();
    let second = Player::join(&token(at, ARENA.2, 2));
    first.is_served_by(ARENA.0);
    let before = sidecar.game_server();
    assert_eq!(before.players.unwrap().count, 1, "nobody can tell it");
    sidecar.start().unwrap();
    let after = wait(&sidecar, "counted and healthy", |it| {
        it.players.unwrap().count == 2 && it.health.beats > before.health.beats
    });
    assert_eq!(after.calls, ["ready", "allocate"], "it is not made free by another `ready`");
    second.is_served_by(ARENA.0);
    first.leave();
    second.leave();
    wait(&sidecar, "over", |it| it.state == State::Shutdown);
}

#[test]
fn sigterm_ends_a_server_whose_sidecar_never_starts() {
    let sidecar = sidecar(ARENA, 3, patient());
    let key = format!("{}/a_key", env!("CARGO_TARGET_TMPDIR"));
    fs::write(&key, "42".repeat(32)).unwrap();
    let mut server = Process::start(&sidecar, "never", &[("SERVER_KEY_FILE", &key)]);
    server.wait("waiting for the sidecar");
    server.terminate();
    assert!(server.ended());
}
