//! New versions of a server take its socket over while players play: real processes, which this program starts as itself.

#![cfg(all(target_os = "linux", feature = "batch"))]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use getrandom::SysRng;
use std::io::{self, BufRead as _, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};
use whitewater::machine::{Arrival, Machine as _};
use whitewater::net::Clock;
use whitewater::rand_core::{Rng as _, UnwrapErr};
use whitewater::session::{self, ClientState, shard_of};
use whitewater::{Channel, ClientConfig, CloseReason, Event, Server, ServerConfig, SessionConfig};
use whitewater_sim::SimRng;
use whitewater_udp::{Mode, Port};

/// Long enough for any machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);
const TALK: Channel = Channel::ordered(0);
/// How often a player says something.
const TURN: Duration = Duration::from_millis(50);
/// One datagram of so many is lost, each way.
const LOSES: u32 = 20;
/// What a process of these tests is to do, in the environment.
const ROLE: &str = "WHITEWATER_GENERATION";

#[test]
fn nobody_loses_a_session_or_a_message_while_two_new_versions_take_over() {
    const THIS: &str = "nobody_loses_a_session_or_a_message_while_two_new_versions_take_over";
    if env::var_os(ROLE).is_some() {
        return serve();
    }
    let mut game = Game::new(THIS);
    let first = game.start();
    game.join(200);
    game.play(|player| player.heard >= 10);
    let gap_before = game.longest_gap();
    // Some join while the next version starts, one after the other; whoever comes once it is there is served by it.
    let (joining, mut second) = (game.players.len(), game.spawn("serve"));
    game.join(5);
    game.play_turn();
    while !second.is_ready() {
        game.join(5);
        game.play_turn();
    }
    let after = game.players.len();
    game.join(25);
    game.players.iter_mut().take(20).for_each(Player::move_away);
    game.play(|player| player.heard >= 20);
    println!(
        "longest gap of a player, from one message to the next: {} ms before, {} ms with the takeover",
        gap_before.as_millis(),
        game.longest_gap().as_millis()
    );
    let slowest = |players: &[Player]| players.iter().map(Player::joined_after).max().unwrap().as_millis();
    println!(
        "slowest to join: {} ms of {} during the takeover, {} ms of 25 after it",
        slowest(&game.players[joining..after]),
        after - joining,
        slowest(&game.players[after..])
    );
    let mut third = game.start();
    let last = game.players.len();
    game.join(10);
    game.players.iter_mut().take(20).for_each(Player::move_away);
    game.play(|player| player.heard >= 30 || (player.served_by == Some(2) && player.heard >= 10));
    let served: Vec<_> = game.players.iter().map(|player| player.served_by).collect();
    assert_eq!(served[..joining], [Some(0); 200]);
    assert!(served[joining..after].iter().all(|shard| [Some(0), Some(1)].contains(shard)), "{served:?}");
    assert_eq!(served[after..last], [Some(1); 25]);
    assert_eq!(served[last..], [Some(2); 10]);
    // The old versions end by themselves when their players have left.
    let mut old = [first, second];
    for (shard, process) in (0..).zip(&mut old) {
        game.leave(|player| player.served_by == Some(shard));
        game.play_until(|| process.child.try_wait().unwrap().is_some());
        assert!(process.child.wait().unwrap().success());
    }
    assert!(game.players.iter().all(|player| player.closed.is_none()) && game.players.len() == 10);
    third.child.kill().unwrap();
}

#[test]
fn a_version_that_dies_before_or_after_it_has_taken_over_costs_only_its_own_sessions() {
    const THIS: &str = "a_version_that_dies_before_or_after_it_has_taken_over_costs_only_its_own_sessions";
    if env::var_os(ROLE).is_some() {
        return serve();
    }
    let mut game = Game::new(THIS);
    let mut first = game.start();
    game.join(20);
    game.play(|player| player.heard >= 3);
    // Killed before it is ready: nobody notices.
    let mut never_ready = game.spawn("load");
    game.play_until(|| never_ready.says("loaded"));
    never_ready.child.kill().unwrap();
    never_ready.child.wait().unwrap();
    game.join(1);
    game.play(|player| player.heard >= 6);
    assert!(game.players.iter().all(|player| player.served_by == Some(0)));
    // Killed when it has sessions: the first one serves the port again, and tells these players.
    let mut second = game.start();
    game.join(10);
    game.play(|player| player.heard >= 9);
    second.child.kill().unwrap();
    second.child.wait().unwrap();
    let lost = game.players.split_off(21);
    assert!(lost.iter().all(|player| player.served_by == Some(1)));
    game.lost.extend(lost);
    game.play_lost(CloseReason::ServerForgot);
    game.join(1);
    game.play(|player| player.heard >= 12);
    assert!(game.players.iter().all(|player| player.served_by == Some(0)));
    // The old one is killed: its sessions end as after a crash, and the new one is not disturbed.
    let mut third = game.start();
    let old = game.players.len();
    game.join(10);
    game.play(|player| player.heard >= 15);
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let rest = game.players.split_off(old);
    game.lost = std::mem::replace(&mut game.players, rest);
    game.play_lost(CloseReason::ServerForgot);
    let so_far = game.players[0].heard;
    game.play(|player| player.heard >= so_far + 5);
    assert!(game.players.iter().all(|player| player.served_by == Some(1)), "its shard was free again");
    third.child.kill().unwrap();
}

#[test]
fn a_version_that_hangs_costs_the_others_two_seconds_and_goes_on_when_it_runs_again() {
    const THIS: &str = "a_version_that_hangs_costs_the_others_two_seconds_and_goes_on_when_it_runs_again";
    if env::var_os(ROLE).is_some() {
        return serve();
    }
    let mut game = Game::new(THIS);
    let _first = game.start();
    game.join(20);
    game.play(|player| player.heard >= 3);
    let second = game.start();
    game.join(5);
    game.play(|player| player.heard >= 6);
    second.signal("STOP");
    let hung = game.players.split_off(20);
    assert!(hung.iter().all(|player| player.served_by == Some(1)));
    let so_far = game.players.iter().map(|player| player.said).max().unwrap();
    game.play(|player| player.heard >= so_far + 60);
    game.join(3);
    game.play(|player| player.heard >= 3);
    assert!(game.players.iter().all(|player| player.served_by == Some(0)));
    second.signal("CONT");
    game.players.extend(hung);
    game.play(|player| player.heard >= 20);
    let last = game.players.len();
    game.join(5);
    game.play(|player| player.heard >= 10);
    assert!(game.players[last..].iter().all(|player| player.served_by == Some(1)));
}

#[test]
fn an_old_version_takes_as_many_datagrams_a_pump_as_before() {
    let game = Game::new("");
    let take_over = || Server::take_over(game.socket.try_clone().unwrap(), &game.dir, &config()).unwrap();
    let (mut old, mut new, sender) = (take_over(), take_over(), unblocked()); // the old one answers later
    let mut forged = [9; 200];
    forged[..5].copy_from_slice(&[0xa6, 7, 0, 0, 0]);
    let (mut most, deadline) = (0, Instant::now() + PATIENCE);
    while most < 512 {
        assert!(Instant::now() < deadline, "at most {most} of 512");
        for _ in 0..900 {
            sender.send_to(&forged, game.socket.local_addr().unwrap()).unwrap();
            new.pump().unwrap();
        }
        thread::sleep(Duration::from_millis(10)); // for the thread that takes them in
        let before = old.stats().datagrams;
        old.pump().unwrap();
        most = most.max(old.stats().datagrams - before);
        while old.pump().unwrap() == Some(Duration::ZERO) {}
    }
    assert_eq!((most, old.socket_traffic().received), (512, 0));
}

#[test]
fn forged_datagrams_for_an_old_version_are_handed_on_or_counted_as_lost() {
    const BATCH: usize = 100;
    let game = Game::new("");
    let config = ServerConfig { refusals_per_second: 1, ..config() };
    let take_over = || Server::take_over(game.socket.try_clone().unwrap(), &game.dir, &config).unwrap();
    let mut old = take_over();
    let (tell, told) = channel::<()>();
    let old = thread::spawn(move || {
        while !matches!(told.try_recv(), Err(TryRecvError::Disconnected)) {
            old.poll(Some(Duration::from_millis(10))).unwrap();
        }
        (old.is_superseded(), old.socket_traffic().received, old.stats().datagrams)
    });
    let mut new = take_over();
    let sender = unblocked();
    let [own, other] = [1, 0].map(|shard| {
        let mut forged = [9; 200];
        forged[..5].copy_from_slice(&[0xa6, 7, 0, 0, shard << 2]);
        assert_eq!(shard_of(&forged), Some(shard));
        let batch = |_| {
            let until = new.socket_traffic().received + BATCH as u64;
            for _ in 0..BATCH {
                sender.send_to(&forged, game.socket.local_addr().unwrap()).unwrap();
            }
            let start = Instant::now();
            while new.socket_traffic().received < until {
                new.pump().unwrap();
            }
            start.elapsed()
        };
        (0..300).map(batch).min().unwrap().as_nanos() / BATCH as u128
    });
    println!("a forged datagram costs the new process {own} ns for its own shard, {other} ns for another");
    let (handed_on, lost) = (new.socket_traffic().handed_on, new.socket_stats().not_handed_on);
    assert_eq!(handed_on + lost, 300 * BATCH as u64);
    drop(tell);
    let (is_superseded, read, taken) = old.join().unwrap();
    assert!(is_superseded && read == 0 && taken <= handed_on, "{read} {taken} {handed_on}");
}

#[test]
fn trains_of_datagrams_that_the_system_joins_are_all_read_across_a_takeover() {
    const TRAIN: u64 = 40;
    let game = Game::new("");
    let mut sender: Port = Port::new(unblocked(), Mode::Whole, 1).unwrap();
    let mut send_train = || {
        for _ in 0..TRAIN {
            sender.stage().extend_from_slice(&[9; 200]);
            sender.commit(game.socket.local_addr().unwrap(), 0);
        }
        sender.flush();
    };
    let take_over = || Server::take_over(game.socket.try_clone().unwrap(), &game.dir, &config()).unwrap();
    let read_trains = |server: &mut Server, send_train: &mut dyn FnMut()| {
        for train in 1..=10 {
            send_train();
            let deadline = Instant::now() + PATIENCE;
            while server.socket_traffic().received < train * TRAIN {
                assert!(Instant::now() < deadline, "{:?} after {train} trains", server.socket_traffic());
                server.pump().unwrap();
            }
        }
        assert_eq!(server.stats().datagrams, 10 * TRAIN);
    };
    let mut old = take_over();
    read_trains(&mut old, &mut send_train);
    let (tell, told) = channel::<()>();
    let old = thread::spawn(move || {
        while !matches!(told.try_recv(), Err(TryRecvError::Disconnected)) {
            old.poll(Some(Duration::from_millis(10))).unwrap();
        }
    });
    read_trains(&mut take_over(), &mut send_train);
    drop(tell);
    old.join().unwrap();
}

#[test]
fn a_directory_that_others_may_enter_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let game = Game::new("");
    fs::create_dir(&game.dir).unwrap();
    fs::set_permissions(&game.dir, fs::Permissions::from_mode(0o750)).unwrap();
    let taken = Server::take_over(game.socket.try_clone().unwrap(), &game.dir, &config());
    assert_eq!(taken.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
}

/// The program of a process: its socket is its standard input, as systemd passes it.
fn serve() {
    let socket = UdpSocket::from(io::stdin().as_fd().try_clone_to_owned().unwrap());
    if env::var_os(ROLE).unwrap() == "load" {
        println!("\nloaded");
        loop {
            thread::park(); // it never gets ready
        }
    }
    let mut server = Server::take_over(socket, env::var_os("DIR").unwrap(), &config()).unwrap();
    println!("\nready");
    let mut buf = [0; 64];
    while !server.is_superseded() || !server.machine().is_empty() {
        server.poll(Some(Duration::from_millis(100))).unwrap();
        while let Some((id, event)) = server.poll_event() {
            if event == Event::Readable {
                while let Ok(len) = server.connection_mut(id).unwrap().recv_into(TALK, &mut buf) {
                    let _ = server.connection_mut(id).unwrap().send(TALK, &buf[..len]);
                }
            }
        }
    }
}

fn config() -> ServerConfig {
    ServerConfig {
        reset_key: Some([5; 16]),
        sessions_per_address: 1000,
        half_open: 1000,
        half_open_per_address: 1000,
        accepts_per_second: 10_000,
        accept_burst: 10_000,
        refusals_per_second: 10_000,
        ..ServerConfig::secret(SessionConfig::default(), [7; 32])
    }
}

/// A port, its directory, and everybody who plays there.
struct Game {
    test: &'static str,
    socket: UdpSocket,
    dir: PathBuf,
    players: Vec<Player>,
    /// Whose session must end.
    lost: Vec<Player>,
    seed: u64,
}

impl Game {
    fn new(test: &'static str) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let name = format!("whitewater-{}-{}", process::id(), socket.local_addr().unwrap().port());
        let dir = env::temp_dir().join(name);
        Self { test, socket, dir, players: Vec::new(), lost: Vec::new(), seed: 0 }
    }

    fn spawn(&self, role: &str) -> Process {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", self.test, "--nocapture"])
            .env(ROLE, role)
            .env("DIR", &self.dir)
            .stdin(OwnedFd::from(self.socket.try_clone().unwrap()))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (say, said) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| say.send(line)));
        Process { child, said }
    }

    /// A process that has taken over, while everybody plays on.
    fn start(&mut self) -> Process {
        let mut process = self.spawn("serve");
        self.play_until(|| process.is_ready());
        process
    }

    fn join(&mut self, count: usize) {
        let server = self.socket.local_addr().unwrap();
        for _ in 0..count {
            self.seed += 1;
            self.players.push(Player::new(self.seed, server));
        }
    }

    fn play_until(&mut self, mut is_over: impl FnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_over() {
            assert!(Instant::now() < deadline, "waited for too long");
            self.players.iter_mut().chain(&mut self.lost).for_each(Player::pump);
            thread::sleep(Duration::from_millis(1));
            for player in &self.players {
                assert_eq!(player.closed, None, "a player of {:?}, at {}", player.served_by, player.heard);
            }
        }
    }

    /// Until it is so for all.
    fn play(&mut self, mut is_done: impl FnMut(&Player) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !self.players.iter().all(&mut is_done) {
            assert!(Instant::now() < deadline, "waited for too long");
            self.play_turn();
        }
    }

    fn play_turn(&mut self) {
        let mut turns = 0..2;
        self.play_until(|| turns.next().is_none());
    }

    fn play_lost(&mut self, reason: CloseReason) {
        let deadline = Instant::now() + PATIENCE;
        while self.lost.iter().any(|player| player.closed.is_none()) {
            assert!(Instant::now() < deadline, "waited for too long");
            self.play_turn();
        }
        assert!(self.lost.drain(..).all(|player| player.closed == Some(reason)));
    }

    fn leave(&mut self, who: impl Fn(&Player) -> bool) {
        for player in self.players.extract_if(.., |player| who(player)) {
            self.lost.push(player);
        }
        self.lost.iter_mut().for_each(|player| player.session.close(player.clock.now(), 0));
        self.play_lost(CloseReason::Local(0));
    }

    fn longest_gap(&self) -> Duration {
        self.players.iter().map(|player| player.longest_gap).max().unwrap()
    }
}

impl Drop for Game {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

struct Process {
    child: Child,
    said: Receiver<String>,
}

impl Process {
    fn signal(&self, name: &str) {
        let status = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status();
        assert!(status.unwrap().success());
    }

    fn is_ready(&mut self) -> bool {
        self.says("ready")
    }

    fn says(&mut self, what: &str) -> bool {
        assert_eq!(self.child.try_wait().unwrap(), None, "the process has ended");
        self.said.try_iter().any(|line| line == what)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client that counts aloud, on a path that loses datagrams, and hears each number again.
struct Player {
    session: session::Client,
    socket: UdpSocket,
    server: SocketAddr,
    clock: Clock,
    loss: SimRng,
    born: Instant,
    joined: Option<Instant>,
    said: u32,
    heard: u32,
    says_next: Instant,
    heard_at: Option<Instant>,
    longest_gap: Duration,
    /// The shard that its datagrams name.
    served_by: Option<u8>,
    closed: Option<CloseReason>,
}

impl Player {
    fn new(seed: u64, server: SocketAddr) -> Self {
        let config = ClientConfig::secret(SessionConfig::default(), [7; 32]);
        let mut session = session::Client::new(&config, UnwrapErr(SysRng)).unwrap();
        let (clock, now) = (Clock::new(), Instant::now());
        session.connect(clock.now(), &[server]).unwrap();
        Self {
            session,
            socket: unblocked(),
            server,
            clock,
            loss: SimRng::new(seed, 0),
            born: now,
            joined: None,
            said: 0,
            heard: 0,
            says_next: now,
            heard_at: None,
            longest_gap: Duration::ZERO,
            served_by: None,
            closed: None,
        }
    }

    fn move_away(&mut self) {
        self.socket = unblocked();
    }

    fn joined_after(&self) -> Duration {
        self.joined.unwrap() - self.born
    }

    fn is_lost(&mut self) -> bool {
        self.loss.next_u32().is_multiple_of(LOSES)
    }

    fn pump(&mut self) {
        let mut buf = [0; 2048];
        while let Ok((len, from)) = self.socket.recv_from(&mut buf) {
            if !self.is_lost() {
                self.session.handle_datagram(self.clock.now(), Arrival::from(from), &mut buf[..len]);
            }
        }
        self.session.handle_timeout(self.clock.now());
        while let Some(event) = self.session.poll_event() {
            match event {
                Event::Connected => self.joined = Some(Instant::now()),
                Event::Closed { reason, .. } => self.closed = Some(reason),
                _ => {}
            }
        }
        if self.session.state() == ClientState::Up {
            self.talk();
        }
        let mut datagram = Vec::new();
        while self.session.poll_transmit(self.clock.now(), &mut datagram).is_some() {
            if let Some(shard) = shard_of(&datagram) {
                assert!(self.served_by.is_none_or(|known| known == shard), "a session stays where it is");
                self.served_by = Some(shard);
            }
            if !self.is_lost() {
                let _ = self.socket.send_to(&datagram, self.server);
            }
            datagram.clear();
        }
    }

    fn talk(&mut self) {
        let now = Instant::now();
        let connection = self.session.connection_mut().unwrap();
        let mut buf = [0; 64];
        while let Ok(len) = connection.recv_into(TALK, &mut buf) {
            assert_eq!(buf[..len], self.heard.to_le_bytes(), "no message is missing");
            self.heard += 1;
            let gap = self.heard_at.replace(now).map_or(Duration::ZERO, |before| now - before);
            self.longest_gap = self.longest_gap.max(gap);
        }
        if self.says_next <= now {
            connection.send(TALK, &self.said.to_le_bytes()).unwrap();
            self.said += 1;
            self.says_next = now + TURN;
        }
    }
}

fn unblocked() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}
