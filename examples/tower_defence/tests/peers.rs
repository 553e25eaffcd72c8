//! Players host behind a relay, over real sockets, and the host is killed.

#![allow(clippy::unwrap_used, reason = "a test that panics has found something")]
#![cfg(feature = "program")]

mod common;

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tower_defence::bots::Bot;
use tower_defence::client::Game as _;
use tower_defence::play::{Key, Lobbying, Peer};
use tower_defence::wire::Wish;
use whitewater_relay::{Counts, Relay, RelayConfig, RelayKey, serve};

const RELAY_KEY: [u8; 32] = [5; 32];

/// A relay on a thread.
struct Running {
    at: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Counts>>,
}

impl Running {
    fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (at, stop) = (socket.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let relay = Relay::new(RelayKey::new(RELAY_KEY), RelayConfig::default(), [9; 32]);
            let mut counts = relay.counts();
            serve(socket, relay, &stopped, |relay| counts = relay.counts()).unwrap();
            counts
        });
        Self { at, stop, thread: Some(thread) }
    }

    fn stop(mut self) -> Counts {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

/// A player in a process of its own, which can be killed: it says no goodbye.
struct Killable(Child);

impl Killable {
    fn start(lobby: SocketAddr, key: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tower-defence"));
        command.args(["meet", &lobby.to_string(), "--name", "Ann", "--bot", "--quiet", "--token"]).arg(key);
        command.env("XDG_STATE_HOME", std::env::temp_dir()).stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Killable {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

struct Match {
    lobby: Lobbying,
    peers: Vec<Peer>,
}

impl Match {
    /// Gives up after a time that no machine needs.
    fn run_until(&mut self, what: &str, is_done: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !is_done(self) {
            assert!(start.elapsed() < Duration::from_secs(60), "not yet: {what}");
            self.lobby.pump().unwrap();
            self.peers.iter_mut().for_each(|peer| peer.pump().unwrap());
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Whether all of ours play at the host of this term, and have seen so many ticks of theirs.
    fn plays(&self, term: u32, tick: u32) -> bool {
        self.peers.iter().all(|peer| {
            let confirmed = peer.member().guest.game.confirmed().map(|world| world.tick);
            peer.member().term() == term
                && peer.view().is_some_and(|view| view.is_live)
                && confirmed >= Some(tick)
        })
    }
}

fn key_file() -> PathBuf {
    std::env::temp_dir().join(format!("tower-defence-peers-{}", std::process::id()))
}

#[test]
fn when_the_host_is_killed_another_player_goes_on_with_the_match() {
    let (relay, path) = (Running::start(), key_file());
    let key = Key::create(&path).unwrap();
    let lobby = Lobbying::bind("127.0.0.1:0".parse().unwrap(), &key, relay.at, RELAY_KEY).unwrap();
    let at = lobby.local_addr().unwrap();
    let mut game = Match { lobby, peers: Vec::new() };
    let host = Killable::start(at, &path);
    game.run_until("somebody hosts", |game| game.lobby.lobby().present() == 1);
    for (number, wish) in [(1, Wish::Build), (2, Wish::Run)] {
        let hello = common::hello(number, wish);
        let bot = Some(Bot::new(number.into()));
        game.peers.push(Peer::connect(at, &key, &hello, bot, 1).unwrap());
    }
    game.run_until("all play", |game| game.plays(1, 150) && game.peers.iter().any(has_will));
    let places = |game: &Match| game.peers.iter().map(|peer| peer.view().unwrap().you).collect::<Vec<_>>();
    let (before, tick) = (places(&game), game.peers.iter().filter_map(tick).max().unwrap());
    drop(host);
    game.run_until("another hosts", |game| game.peers.iter().any(|peer| peer.member().hosts()));
    game.run_until("all play on", |game| game.plays(2, tick + 60));
    fs::remove_file(&path).unwrap();
    assert_eq!(places(&game), before);
    let heir = game.peers.iter().find_map(|peer| peer.member().game()).unwrap();
    assert!(heir.world().tick < tick + 60 * 30, "it went on, and did not begin anew");
    assert_eq!(
        (heir.peers().count(), heir.world().purse(tower_defence::sim::PlayerId(0)).is_some()),
        (2, true)
    );
    // Then the heir leaves, and says so.
    let host = game.peers.iter().position(|peer| peer.member().hosts()).unwrap();
    let mut leaver = game.peers.remove(host);
    let tick = tick_of_host(&leaver);
    thread::scope(|scope| {
        let done = scope.spawn(|| leaver.leave());
        game.run_until("the last one hosts", |game| game.plays(3, tick));
        game.run_until("the other is gone", |_| done.is_finished());
    });
    let counts = relay.stop();
    assert_eq!((counts.hosts, counts.forged, counts.malformed), (1, 0, 0), "{counts}");
}

fn has_will(peer: &Peer) -> bool {
    peer.member().guest.will.is_some()
}

fn tick(peer: &Peer) -> Option<u32> {
    peer.member().guest.game.confirmed().map(|world| world.tick)
}

fn tick_of_host(peer: &Peer) -> u32 {
    peer.member().game().unwrap().world().tick
}
