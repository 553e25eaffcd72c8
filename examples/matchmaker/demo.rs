//! Runs everything as processes of this program on this machine.

use crate::{Done, drain, keys};
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use std::{env, thread};
use whitewater::session::token::FleetKey;

/// A demo that takes this long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Succeeds if the player was served by both servers, and server 1 ended when it was empty.
pub(crate) fn run() -> Done {
    let (tell, lines) = channel();
    let mut said = Said { lines, all: Vec::new(), until: Instant::now() + PATIENCE };
    let secret = keys::random()?;
    let (fleet_key, fleet) = (keys::hex(&secret), FleetKey::new(secret));
    let _matchmaker = Process::start(&["matchmaker", "127.0.0.1:0"], Some(("FLEET_KEY", &fleet_key)), &tell)?;
    let matchmaker = said.wait("listening on ")?;
    let at: SocketAddr = matchmaker.trim_start_matches("listening on ").parse()?;
    let server = |id: u64| {
        let key = keys::hex(fleet.server_key(id, keys::KEY_ID).secret()); // everything that a server gets
        let words = ["server", &id.to_string(), "127.0.0.1:0", &at.to_string()];
        Process::start(&words, Some(("SERVER_KEY", &key)), &tell)
    };
    let mut first = server(1)?;
    said.wait("server 1: registered")?;
    let mut player = Process::start(&["player", "ann", &at.to_string()], None, &tell)?;
    said.wait("ann: server 1 serves me")?;
    let _second = server(2)?;
    said.wait("server 2: registered")?;
    drain(1, at)?;
    said.wait("ann: server 2 serves me")?;
    said.wait("ann: I was answered all that I said")?;
    said.wait("server 1: empty, so it ends")?;
    for process in [&mut player, &mut first] {
        let status = process.0.wait()?;
        if !status.success() {
            return Err(format!("a process has ended with {status}").into());
        }
    }
    println!("the player was served by both servers");
    Ok(())
}

/// The output of the processes, in the order in which it was read.
struct Said {
    lines: Receiver<String>,
    all: Vec<String>,
    until: Instant,
}

impl Said {
    /// Waits for a line that starts like this.
    fn wait(&mut self, start: &str) -> Result<String, Box<dyn Error>> {
        loop {
            if let Some(line) = self.all.iter().find(|line| line.starts_with(start)) {
                return Ok(line.clone());
            }
            let left = self.until.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).map_err(|_| format!("nobody says '{start}'"))?;
            println!("{line}");
            self.all.push(line);
        }
    }
}

/// A process of this program. Dropping the handle ends it.
struct Process(Child);

impl Process {
    fn start(
        words: &[&str],
        key: Option<(&str, &str)>,
        tell: &Sender<String>,
    ) -> Result<Self, Box<dyn Error>> {
        let mut command = Command::new(env::current_exe()?);
        command.args(words).envs(key).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let output = child.stdout.take().ok_or("no output")?;
        let tell = tell.clone();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = tell.send(line); // nobody listens when the demo is over
            }
        });
        Ok(Self(child))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _: Result<(), _> = self.0.kill(); // it may have ended already
        let _: Result<ExitStatus, _> = self.0.wait();
    }
}
