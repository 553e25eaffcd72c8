//! The program in a terminal of its own: played for a few seconds by keys, and checked.

#![cfg(all(unix, feature = "program"))]
#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use portable_pty::{Child, CommandBuilder, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Long enough for any machine: a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program and its screen.
struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
}

impl Terminal {
    fn run(args: &[&str]) -> Self {
        let size = PtySize { rows: 40, cols: 160, ..PtySize::default() };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_tower-defence"));
        command.args(args);
        command.env("TERM", "xterm-256color");
        command.env("XDG_STATE_HOME", std::env::temp_dir().join("tower-defence-test")); // not among the user's
        let child = pair.slave.spawn_command(command).unwrap();
        let keys = pair.master.take_writer().unwrap();
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (sender, output) = channel();
        thread::spawn(move || {
            let _master = pair.master; // the terminal exists as long as somebody reads
            let mut bytes = [0; 4096];
            while let Ok(len @ 1..) = reader.read(&mut bytes) {
                if sender.send(bytes.iter().take(len).copied().collect()).is_err() {
                    return;
                }
            }
        });
        Self { child, keys, output, screen: vt100::Parser::new(size.rows, size.cols, 0) }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Reads until the screen shows what it should, and returns it.
    fn until(&mut self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let screen = self.screen.screen().contents();
            if is_there(&screen) {
                return screen;
            }
            assert!(start.elapsed() < PATIENCE, "{what}: not on the screen:\n{screen}");
            if let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(100)) {
                // A terminal answers questions about the cursor and its abilities. Ours does not report released keys.
                if bytes.windows(3).any(|asked| asked == b"\x1b[c") {
                    self.press("\x1b[?6c");
                }
                self.screen.process(&bytes);
            }
        }
    }

    /// Quits the program with a key.
    fn leave(mut self) {
        self.press("q");
        let start = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < PATIENCE, "q does not end it");
            let _ = self.output.recv_timeout(Duration::from_millis(50));
        }
        assert!(self.child.wait().unwrap().success());
    }
}

/// What the status bar says about the network.
fn is_measured(screen: &str) -> bool {
    ["RTT", "loss", "kB/s", "prediction error", "snapshot", "ticks ahead"]
        .iter()
        .all(|word| screen.contains(word))
        && !screen.contains("RTT 0 ms")
}

fn gold(screen: &str) -> u32 {
    let before = screen.split(" gold").next().unwrap();
    before.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_builder_builds_and_pays_for_it() {
    let mut game = Terminal::run(&["--role", "a", "--bots", "4", "--seed", "3"]);
    let before = game.until("the game", |screen| screen.contains("Builder") && is_measured(screen));
    assert!(before.contains("next wave") && before.contains("base "), "{before}");
    // Which cells are free depends on the board: build along a row until one was.
    let paid = gold(&before);
    for _ in 0..6 {
        game.press("\x1b[C ");
        thread::sleep(Duration::from_millis(100));
    }
    game.until("a turret of ours", |screen| screen.contains("you has built") && gold(screen) < paid);
    game.until("runners", |screen| screen.contains('☺'));
    game.leave();
}

#[test]
fn a_runner_runs() {
    let mut game =
        Terminal::run(&["--role", "b", "--bots", "3", "--seed", "5", "--link", "rtt=60ms,loss=5%"]);
    let screen = game.until("our runner", |screen| screen.contains('☻') && is_measured(screen));
    let column = |screen: &str| {
        screen.lines().find_map(|line| {
            line.split('☻')
                .next()
                .filter(|before| before.len() < line.len())
                .map(|before| before.chars().count())
        })
    };
    let start = column(&screen).unwrap();
    game.press("d");
    game.until("it a few cells to the right", |screen| column(screen).is_some_and(|now| now > start + 4));
    game.leave();
}

#[test]
fn a_server_is_joined_with_a_phrase_and_watched() {
    let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let secret = ["--pass", "a phrase for a test only"];
    let mut server = std::process::Command::new(env!("CARGO_BIN_EXE_tower-defence"))
        .args(["server", &address, secret[0], secret[1], "--bots", "4"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut player = Terminal::run(&["join", &address, secret[0], secret[1], "--role", "a", "--name", "Ada"]);
    player.until("the game", |screen| screen.contains("Ada builds (you)") && is_measured(screen));
    let mut spectator =
        Terminal::run(&["join", &address, secret[0], secret[1], "--spectate", "--name", "Bob"]);
    spectator.until("the game", |screen| screen.contains("You watch.") && screen.contains("Ada builds"));
    player.press("thello there\r");
    spectator.until("what was said", |screen| screen.contains("Ada: hello there"));
    spectator.leave();
    player.leave();
    server.kill().unwrap();
    server.wait().unwrap();
}
