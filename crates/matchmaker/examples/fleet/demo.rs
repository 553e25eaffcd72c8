//! Runs everything as processes of this program on this machine. It is also the game's backend and the operator.

use crate::{Done, game};
use axum::http::Method;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio, id};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use std::{env, fs, thread};
use whitewater_matchmaker::Bearer;
use whitewater_matchmaker::client::Client;
use whitewater_matchmaker::messages::{Allocation, Hex, Id, Join, Listed};

/// A demo that takes this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// The player's number. A real backend has accounts.
const ANN: Id = Id(1);

/// Succeeds if the player was served by both servers, and the first ended when it was empty.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run() -> Done {
    let (tell, lines) = channel();
    let mut said = Said { lines, all: Vec::new(), until: Instant::now() + PATIENCE };
    let files = Files::write()?;
    let _matchmaker = Process::start(&files.matchmaker(), &tell)?;
    let at: SocketAddr = said.wait("listening on ")?.trim_start_matches("listening on ").parse()?;
    let mut client = Client::tls(at, "localhost", &fs::read(files.path("cert.pem"))?)?;
    let server = |name: &str| {
        let words = ["server", name, "127.0.0.1:0", &at.to_string()].map(str::to_owned);
        Process::start(&[&words[..], &[files.path("cert.pem"), files.path("servers.token")]].concat(), &tell)
    };
    let mut first = server("first")?;
    said.wait("server first: registered")?;
    let mut player = Process::start(&["player", "ann"].map(str::to_owned), &tell)?;
    let join = Join { clients: vec![ANN], regions: Vec::new(), match_id: Hex::default() };
    let place: Allocation = client.ask((Method::POST, "/join"), &files.backend, &join).await?;
    player.tell(&place.tokens.first().ok_or("no token")?.to_string())?;
    said.wait("ann: server first serves me")?;
    let _second = server("second")?;
    said.wait("server second: registered")?;
    let servers: Vec<Listed> = client.ask((Method::GET, "/servers"), &files.operator, &()).await?;
    println!("servers: {:?}", servers.iter().map(|listed| &listed.report.name).collect::<Vec<_>>());
    let drain = format!("/servers/{}/drain", place.server.0);
    client.ask::<()>((Method::POST, &drain), &files.operator, &()).await?;
    said.wait("ann: server second serves me")?;
    said.wait("ann: I was answered all that I said")?;
    said.wait("server first: empty, so it ends")?;
    for process in [&mut player, &mut first] {
        let status = process.0.wait()?;
        if !status.success() {
            return Err(format!("a process has ended with {status}").into());
        }
    }
    println!("the player was served by both servers");
    Ok(())
}

/// A folder with the secrets of this fleet, and a certificate for this machine.
struct Files {
    folder: PathBuf,
    backend: Bearer,
    operator: Bearer,
}

impl Files {
    fn write() -> Result<Self, Box<dyn Error>> {
        let folder = env::temp_dir().join(format!("whitewater-fleet-{}", id()));
        let mut ours = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut ours, 0o700); // nobody else reads it
        ours.create(&folder)?;
        let secret = |file: &str| -> Result<String, Box<dyn Error>> {
            let mut bytes = vec![0; 32];
            getrandom::fill(&mut bytes)?;
            let text = Hex(bytes).to_string();
            fs::write(folder.join(file), &text)?;
            Ok(text)
        };
        secret("fleet.key")?;
        secret("servers.token")?;
        let bearer = |text: &str| Bearer::new(text).ok_or("a secret that is too short");
        let (backend, operator) = (bearer(&secret("backend.token")?)?, bearer(&secret("operator.token")?)?);
        let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
        fs::write(folder.join("cert.pem"), certificate.cert.pem())?;
        fs::write(folder.join("key.pem"), certificate.signing_key.serialize_pem())?;
        Ok(Self { folder, backend, operator })
    }

    fn path(&self, file: &str) -> String {
        self.folder.join(file).display().to_string()
    }

    fn matchmaker(&self) -> Vec<String> {
        let mut words =
            ["matchmaker", "--listen", "127.0.0.1:0", "--protocol-id"].map(str::to_owned).to_vec();
        words.push(game::PROTOCOL_ID.to_string());
        words.extend(["--tls".to_owned(), self.path("cert.pem"), self.path("key.pem")]);
        words.extend(["--fleet-key".to_owned(), self.path("fleet.key")]);
        for who in ["servers", "backend", "operator"] {
            words.extend([format!("--{who}-token"), self.path(&format!("{who}.token"))]);
        }
        words
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let folder: &Path = &self.folder;
        let _: Result<(), _> = fs::remove_dir_all(folder);
    }
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
    fn start(words: &[String], tell: &Sender<String>) -> Result<Self, Box<dyn Error>> {
        let mut command = Command::new(env::current_exe()?);
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
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

    /// Writes a line into its input: nobody else reads that, unlike its words and its environment.
    fn tell(&mut self, line: &str) -> Done {
        Ok(writeln!(self.0.stdin.as_mut().ok_or("no input")?, "{line}")?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _: Result<(), _> = self.0.kill(); // it may have ended already
        let _: Result<ExitStatus, _> = self.0.wait();
    }
}
