//! The game over real sockets, encrypted.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]
#![cfg(feature = "program")]

mod common;

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tower_defence::client::{self, Game, Line};
use tower_defence::play::{Hosting, Key, Relay, Remote};
use tower_defence::sim::Role;
use tower_defence::sim::rules::PLAYERS;
use tower_defence::wire::{Hello, Wish};
use whitewater::CloseReason;

fn key_file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("tower-defence-{name}-{}", std::process::id()))
}

fn key(name: &str) -> Key {
    let path = key_file(name);
    let key = Key::create(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    key
}

/// Pumps all ends until something holds. Gives up after a time that no machine needs.
fn until(
    hosting: &mut Hosting,
    players: &mut [&mut Remote],
    mut done: impl FnMut(&Hosting, &[&mut Remote]) -> bool,
) {
    let start = Instant::now();
    while !done(hosting, players) {
        assert!(start.elapsed() < Duration::from_secs(20), "it does not happen");
        hosting.pump().unwrap();
        players.iter_mut().for_each(|player| player.pump().unwrap());
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn who_knows_the_secret_plays_and_has_his_place_again_after_a_restart() {
    let key = key("one");
    let mut hosting = Hosting::bind("127.0.0.1:0".parse().unwrap(), &key, 3, 1).unwrap();
    let at = hosting.local_addr().unwrap();
    let hello = common::hello(7, Wish::Run);
    let mut player = Remote::connect(at, &key, &hello).unwrap();
    until(&mut hosting, &mut [&mut player], |_, players| {
        players[0].view().is_some_and(|view| view.tick > 20)
    });
    let view = player.view().unwrap();
    assert_eq!((view.role, view.players.len(), view.is_live), (Role::Runner, 4, true));
    drop(player); // closes the session at once
    let mut again = Remote::connect(at, &key, &hello).unwrap();
    until(&mut hosting, &mut [&mut again], |_, players| players[0].view().is_some());
    assert_eq!(again.view().unwrap().you, view.you);
    assert_eq!(hosting.game().peers().count(), 4);
}

#[test]
fn nobody_takes_the_place_of_a_bot_and_a_bot_that_is_sent_away_does_not_end_the_game() {
    let key = key("bots");
    let mut hosting = Hosting::bind("127.0.0.1:0".parse().unwrap(), &key, 2, 1).unwrap();
    let at = hosting.local_addr().unwrap();
    until(&mut hosting, &mut [], |hosting, _| hosting.game().peers().count() == 2);
    let mut thieves = (0..3)
        .map(|ticket| Hello { name: "bot 1".into(), wish: Wish::Any, ticket })
        .map(|hello| Remote::connect(at, &key, &hello).unwrap())
        .collect::<Vec<_>>();
    let mut players: Vec<&mut Remote> = thieves.iter_mut().collect();
    until(&mut hosting, &mut players, |_, players| players.iter().all(|player| player.view().is_some()));
    assert_eq!(hosting.game().peers().count(), 5, "a bot was sent away");

    // More bots than places: those without one leave, and the others play.
    let mut hosting = Hosting::bind("127.0.0.1:0".parse().unwrap(), &key, PLAYERS + 2, 1).unwrap();
    let start = Instant::now();
    until(&mut hosting, &mut [], |hosting, _| {
        hosting.game().peers().count() == PLAYERS.into() && start.elapsed() > Duration::from_secs(1)
    });
}

#[test]
fn who_does_not_know_the_secret_is_not_let_in_and_is_told_why() {
    let mut hosting = Hosting::bind("127.0.0.1:0".parse().unwrap(), &key("ours"), 0, 1).unwrap();
    let mut stranger =
        Remote::connect(hosting.local_addr().unwrap(), &key("theirs"), &common::hello(1, Wish::Run)).unwrap();
    let start = Instant::now();
    let told = loop {
        assert!(start.elapsed() < Duration::from_secs(20), "it is not told");
        hosting.pump().unwrap();
        if let Err(told) = stranger.pump() {
            break told.to_string();
        }
        thread::sleep(Duration::from_millis(1));
    };
    assert_eq!(told, "the server is there, but does not accept this passphrase or key");
    assert!(stranger.view().is_none());
    assert_eq!(hosting.game().peers().count(), 0);
}

/// A server in a process of its own, which can be killed: it says no goodbye.
struct Process(Child);

impl Process {
    fn start(at: SocketAddr, key: &Path) -> (Self, SocketAddr) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tower-defence"));
        command.args(["server", &at.to_string(), "--token"]).arg(key).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let at = line.trim().strip_prefix("listening on ").unwrap().parse().unwrap();
        (Self(child), at)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

#[test]
fn after_a_restart_of_the_server_everybody_is_told_and_plays_the_new_game() {
    let path = key_file("restart");
    let key = Key::create(&path).unwrap();
    let (server, at) = Process::start("127.0.0.1:0".parse().unwrap(), &path);
    let mut players = [(1, Wish::Run), (2, Wish::Build), (3, Wish::Watch)]
        .map(|(number, wish)| Remote::connect(at, &key, &common::hello(number, wish)).unwrap());
    let mut pump = |is_done: &dyn Fn(&Remote) -> bool| {
        let start = Instant::now();
        while !players.iter().all(is_done) {
            assert!(start.elapsed() < Duration::from_secs(60), "it does not happen");
            players.iter_mut().for_each(|player| player.pump().unwrap());
            thread::sleep(Duration::from_millis(1));
        }
        players.each_ref().map(|player| player.view().map_or(0, |view| view.tick))
    };
    let before = pump(&|player| player.view().is_some_and(|view| view.tick > 60));
    drop(server);
    let (_server, _) = Process::start(at, &path);
    let after = pump(&|player| player.ended().is_some() && player.view().is_some_and(|view| view.is_live));
    std::fs::remove_file(&path).unwrap();
    assert!(after < before, "{before:?} {after:?}: not a new game");
    // Neither did silence end their sessions, nor did the server say goodbye.
    assert_eq!(players.map(|player| player.ended()), [Some(CloseReason::ServerForgot); 3]);
}

/// It prints a line every five seconds, which is 150 ticks.
#[test]
fn a_server_goes_on_when_nobody_reads_what_it_prints() {
    let path = key_file("unread");
    let key = Key::create(&path).unwrap();
    let (mut server, at) = Process::start("127.0.0.1:0".parse().unwrap(), &path);
    std::fs::remove_file(&path).unwrap();
    let mut player = Remote::connect(at, &key, &common::hello(1, Wish::Run)).unwrap();
    let start = Instant::now();
    while player.view().is_none_or(|view| view.tick < 320) {
        assert!(start.elapsed() < Duration::from_secs(60), "it does not happen");
        assert_eq!(server.0.try_wait().unwrap(), None, "the server has ended");
        player.pump().unwrap();
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_bad_network_on_the_way_to_a_real_server_shows_in_the_figures_and_loses_no_message() {
    let key = key("relay");
    let mut hosting = Hosting::bind("127.0.0.1:0".parse().unwrap(), &key, 1, 1).unwrap();
    let relay = Relay::start(hosting.local_addr().unwrap(), &common::link("rtt=80ms,loss=20%"), 1).unwrap();
    let mut player = Remote::connect(relay.addr(), &key, &common::hello(1, Wish::Run)).unwrap();
    until(&mut hosting, &mut [&mut player], |_, players| players[0].view().is_some());
    for number in 0..CHATS {
        player.command(client::Command::Chat(format!("number {number}")));
    }
    // Round trip and loss are measured once enough packets were sent.
    until(&mut hosting, &mut [&mut player], |_, players| {
        let figures = players[0].view().unwrap().figures;
        figures.loss.is_some_and(|loss| (0.1..0.3).contains(&loss))
            && figures.rtt >= Duration::from_millis(80)
    });
    let said = |players: &[&mut Remote]| {
        let lines = players[0].view().unwrap().lines;
        let chat = |line: &Line| matches!(line, Line::Chat { text, .. } if text.starts_with("number "));
        lines.iter().filter(|line| chat(line)).count()
    };
    until(&mut hosting, &mut [&mut player], |_, players| said(players) == CHATS);
    let view = player.view().unwrap();
    assert!(view.is_live && view.figures.snapshots > 30, "{:?}", view.figures);
}

/// What the server passes on of a player's chat at once.
const CHATS: usize = 4;
