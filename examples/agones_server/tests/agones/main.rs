//! The example as a process, against a stand-in for its sidecar, with the matchmaker itself and with real players.

mod matchmaker;
mod player;
mod process;
#[path = "../../src/protocol.rs"]
mod protocol;

use agones_stand_in::{Counter, Health, State};
use matchmaker::Running;
use player::{Player, Seen};
use process::{ARENA, OTHER, PATIENCE, Process, patient, sidecar, started, wait};
use protocol::DRAINED;
use std::time::Duration;
use whitewater::CloseReason;
use whitewater_matchmaker::client::StatusCode;

#[test]
fn a_match_is_ready_registered_allocated_played_and_shut_down_and_both_sides_count_its_players() {
    let (sidecar, matchmaker) = (started(ARENA, 3), Running::start("match"));
    let mut server = Process::start(&sidecar, &matchmaker, &[]);
    let listed = matchmaker.wait_for(ARENA, 0).report;
    let ready = sidecar.game_server();
    assert_eq!((ready.state, &ready.calls[..]), (State::Ready, &["ready"][..]), "before it has a lease");
    assert_eq!((listed.capacity, &*listed.region, listed.draining), (3, "eu", false));
    assert_eq!(listed.addresses, [format!("127.0.0.1:{}", ready.port).parse().unwrap()]);
    let (mut players, tokens) = (Vec::new(), matchmaker.join(&[1, 2, 3]).unwrap());
    assert_eq!(matchmaker.servers()[0].reserved, 3);
    assert_eq!(matchmaker.join(&[4]), Err(StatusCode::CONFLICT), "one too many");
    for (count, token) in (1..).zip(&tokens) {
        players.push(Player::join(token));
        let number = i64::from(count);
        let now = wait(&sidecar, "counted", |it| it.players == Some(Counter { count: number, capacity: 3 }));
        assert_eq!(now.labels["agones.dev/sdk-players"], count.to_string());
        let listed = matchmaker.wait_for(ARENA, count);
        assert_eq!((listed.reserved, listed.report.draining), (3 - count, count == 3));
    }
    wait(&sidecar, "allocated by itself", |it| it.state == State::Allocated);
    for count in [2, 1] {
        players.pop().unwrap().leave();
        wait(&sidecar, "counted", |it| it.players == Some(Counter { count, capacity: count }));
        assert_eq!(matchmaker.join(&[4]), Err(StatusCode::CONFLICT), "nobody else plays this match");
    }
    players.pop().unwrap().leave();
    server.wait("draining: the match is over");
    assert!(server.ended());
    assert_eq!(matchmaker.servers(), []);
    let end = sidecar.game_server();
    assert_eq!(end.calls, ["ready", "allocate", "shutdown"]);
    assert_eq!((end.state, end.players), (State::Shutdown, Some(Counter { count: 0, capacity: 0 })));
}

#[test]
fn a_server_without_its_port_or_its_secrets_is_never_ready() {
    let (sidecar, matchmaker) = (started(ARENA, 3), Running::start("unready"));
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let missing = "/nonexistent";
    for setting in [("BIND", &*taken), ("SERVERS_TOKEN_FILE", missing), ("MATCHMAKER_ROOT_FILE", missing)] {
        let mut server = Process::start(&sidecar, &matchmaker, &[setting]);
        assert!(!server.ended(), "{setting:?}");
    }
    assert_eq!(sidecar.game_server().calls, [""; 0]);
    assert_eq!(matchmaker.servers(), []);
}

#[test]
fn the_loop_learns_that_it_was_allocated_and_does_not_allocate_itself_again() {
    let (sidecar, matchmaker) = (started(ARENA, 3), Running::start("allocated"));
    let server = Process::start(&sidecar, &matchmaker, &[]);
    matchmaker.wait_for(ARENA, 0);
    sidecar.allocate().unwrap();
    server.wait("arena-x2c4v: Allocated");
    let player = Player::join(&matchmaker.token(1));
    player.is_served_by(ARENA);
    player.leave();
    wait(&sidecar, "over", |it| it.state == State::Shutdown);
    assert_eq!(sidecar.game_server().calls, ["ready", "allocate", "shutdown"]);
}

#[test]
fn an_allocated_server_that_nobody_joins_is_ready_again_and_can_still_be_joined() {
    let (sidecar, matchmaker) = (started(ARENA, 3), Running::start("idle"));
    let mut server = Process::start(&sidecar, &matchmaker, &[("IDLE_SECONDS", "1")]);
    matchmaker.wait_for(ARENA, 0);
    for _ in 0..2 {
        sidecar.allocate().unwrap();
        server.wait("allocated, and nobody has come");
        wait(&sidecar, "ready again", |it| it.state == State::Ready);
    }
    assert_eq!(sidecar.game_server().calls, ["ready", "allocate", "ready", "allocate", "ready"]);
    let player = Player::join(&matchmaker.token(1));
    wait(&sidecar, "allocated by itself", |it| it.state == State::Allocated);
    player.is_served_by(ARENA);
    player.leave();
    assert!(server.ended());
    assert_eq!(sidecar.game_server().calls[5..], ["allocate", "shutdown"]);
}

/// Nobody reads its log: it waits for room, and so do the players. The threads that talk to sidecar and matchmaker run on.
#[test]
fn a_loop_that_hangs_is_unhealthy_and_loses_its_lease() {
    let mut sidecar = sidecar(ARENA, 3, Health::new(PATIENCE, Duration::from_secs(1), 10));
    sidecar.start().unwrap();
    let mut matchmaker = Running::new("hang", Duration::from_secs(8));
    matchmaker.revive();
    let mut server = Process::start(&sidecar, &matchmaker, &[]);
    server.wait("listening on ");
    let healthy = wait(&sidecar, "beating", |it| it.health.beats >= 6);
    assert_eq!(healthy.state, State::Ready);
    matchmaker.wait_for(ARENA, 0);
    let _player = Player::start(&matchmaker.token(1), &"hello ".repeat(150));
    wait(&sidecar, "unhealthy", |it| it.state == State::Unhealthy);
    matchmaker.wait("without a lease", <[_]>::is_empty);
    assert!(server.is_running());
}

#[test]
fn sigterm_lets_players_stay_for_a_while_and_nobody_in_and_then_ends_in_order() {
    let (sidecar, matchmaker) = (started(ARENA, 3), Running::start("sigterm"));
    let mut server = Process::start(&sidecar, &matchmaker, &[("DRAIN_SECONDS", "10")]);
    matchmaker.wait_for(ARENA, 0);
    let tokens = matchmaker.join(&[1, 2]).unwrap();
    let player = Player::join(&tokens[0]);
    server.terminate();
    server.wait("draining: SIGTERM");
    let late = Player::start(&tokens[1], "hello");
    assert_eq!(late.next(), Seen::Closed(CloseReason::Rejected(DRAINED)));
    wait(&sidecar, "without free places", |it| it.players == Some(Counter { count: 1, capacity: 1 }));
    matchmaker.wait("draining", |servers| servers[0].report.draining);
    assert_eq!(matchmaker.join(&[2]), Err(StatusCode::CONFLICT));
    player.is_served_by(ARENA);
    player.wait(&Seen::Closed(CloseReason::Peer(DRAINED)));
    assert!(server.ended());
    assert_eq!(matchmaker.servers(), []);
    let end = sidecar.game_server();
    assert_eq!((end.state, end.calls.last()), (State::Shutdown, Some(&"shutdown")));
}

/// The other server may even start later.
#[test]
fn sigterm_and_the_operators_send_a_match_to_another_server() {
    for end in ["SIGTERM", "the operators want it"] {
        let (sidecar, other) = (started(ARENA, 3), started(OTHER, 3));
        let matchmaker = Running::start("moved");
        let mut first = Process::start(&sidecar, &matchmaker, &[("DRAIN_SECONDS", "60")]);
        let server = matchmaker.wait_for(ARENA, 0).server;
        let tokens = matchmaker.join(&[7, 8]).unwrap();
        let players = tokens.iter().map(|token| Player::join(token)).collect::<Vec<_>>();
        players.iter().for_each(|player| player.is_served_by(ARENA));
        match end {
            "SIGTERM" => first.terminate(),
            _ => matchmaker.drain(server),
        }
        first.wait(&format!("draining: {end}"));
        let _second = Process::start(&other, &matchmaker, &[]);
        for player in &players {
            player.wait(&Seen::Heard(OTHER.to_owned()));
        }
        assert!(first.ended(), "as soon as it is empty");
        assert_eq!(sidecar.game_server().state, State::Shutdown);
        players.iter().for_each(|player| player.is_served_by(OTHER));
        wait(&other, "allocated", |it| it.state == State::Allocated && it.players.unwrap().count == 2);
        let listed = matchmaker.wait_for(OTHER, 2);
        assert_eq!((matchmaker.servers().len(), listed.reserved), (1, 0));
    }
}

#[test]
fn a_sidecar_may_start_late_and_start_again_while_players_play() {
    let mut sidecar = sidecar(ARENA, 3, patient());
    let matchmaker = Running::start("restart");
    let server = Process::start(&sidecar, &matchmaker, &[]);
    server.wait("waiting for the sidecar");
    sidecar.start().unwrap();
    matchmaker.wait_for(ARENA, 0);
    let tokens = matchmaker.join(&[1, 2]).unwrap();
    let first = Player::join(&tokens[0]);
    wait(&sidecar, "allocated", |it| it.state == State::Allocated && it.players.unwrap().count == 1);
    sidecar.kill_and_forget();
    sidecar.start().unwrap();
    wait(&sidecar, "counted again", |it| it.players.unwrap().count == 1);
    sidecar.kill();
    let second = Player::join(&tokens[1]);
    first.is_served_by(ARENA);
    let before = sidecar.game_server();
    assert_eq!(before.players.unwrap().count, 1, "nobody can tell it");
    sidecar.start().unwrap();
    let after = wait(&sidecar, "counted and healthy", |it| {
        it.players.unwrap().count == 2 && it.health.beats > before.health.beats
    });
    assert_eq!(after.calls, ["ready", "allocate"], "it is not made free by another `ready`");
    second.is_served_by(ARENA);
    first.leave();
    second.leave();
    wait(&sidecar, "over", |it| it.state == State::Shutdown);
}

#[test]
fn a_matchmaker_may_start_late_and_start_again_while_players_play() {
    let sidecar = started(ARENA, 3);
    let mut matchmaker = Running::new("revived", Duration::from_secs(15));
    let _server = Process::start(&sidecar, &matchmaker, &[]);
    let waiting = wait(&sidecar, "healthy", |it| it.health.beats >= 3);
    assert_eq!(waiting.state, State::Scheduled, "not ready without a key");
    matchmaker.revive();
    matchmaker.wait_for(ARENA, 0);
    let player = Player::join(&matchmaker.token(1));
    matchmaker.wait_for(ARENA, 1);
    matchmaker.kill();
    player.is_served_by(ARENA);
    matchmaker.revive();
    matchmaker.wait_for(ARENA, 1);
    let second = Player::join(&matchmaker.token(2));
    player.leave();
    second.leave();
    wait(&sidecar, "over", |it| it.state == State::Shutdown);
    assert_eq!(matchmaker.servers(), []);
}

#[test]
fn sigterm_ends_a_server_whose_sidecar_and_matchmaker_never_start() {
    let sidecar = sidecar(ARENA, 3, patient());
    let mut server = Process::start(&sidecar, &Running::new("never", PATIENCE), &[]);
    server.wait("waiting for the sidecar");
    server.terminate();
    assert!(server.ended());
}
