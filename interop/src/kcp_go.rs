//! kcp-go itself, through go/peer.go, which is built if Go and kcp-go are installed.

use crate::messages::Load;
use crate::program::{Program, counted, find};
use crate::skip;
use std::collections::HashMap;
use std::env;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use whitewater::kcp::{Config, Congestion};

/// The settings of its sessions.
#[derive(Clone, Copy, Debug)]
pub struct Knobs {
    /// Whether the smallest timeout is 30 ms instead of 100.
    pub nodelay: bool,
    /// The flush interval, ms.
    pub interval: u16,
    /// Number of later acknowledgements that trigger a fast resend.
    pub resend: u16,
    /// No congestion window.
    pub nc: bool,
    /// Send and receive window, segments.
    pub window: u16,
    /// Largest UDP payload, bytes.
    pub mtu: u16,
}

impl Knobs {
    /// The settings of this config that kcp-go also has.
    #[must_use]
    pub const fn of(config: &Config) -> Self {
        let Config { nodelay, interval, fast_resend: resend, congestion, snd_wnd: window, mtu, .. } = *config;
        let nc = matches!(congestion, Congestion::None);
        Self { nodelay: nodelay > 0, interval, resend, nc, window, mtu }
    }

    fn command(self, role: &str) -> Command {
        let Self { nodelay, interval, resend, nc, window, mtu } = self;
        let mut command = Command::new(peer().expect("is_there() has been asked"));
        command.arg(role);
        for (name, value) in [
            ("-nodelay", nodelay.into()),
            ("-interval", interval),
            ("-resend", resend),
            ("-nc", nc.into()),
            ("-window", window),
            ("-mtu", mtu),
        ] {
            command.args([name, &value.to_string()]);
        }
        command
    }
}

/// A program that reads a load and answers with one byte.
#[derive(Debug)]
pub struct Receiver {
    program: Program,
    /// Its address.
    pub address: SocketAddr,
}

impl Receiver {
    /// Starts it on a port that the system chooses.
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[must_use]
    pub fn start(knobs: Knobs, load: &Load) -> Self {
        let mut program =
            Program::start(knobs.command("receive").args(["-bytes", &load.bytes().to_string()]));
        let address = listening(&mut program);
        Self { program, address }
    }

    /// Waits for the whole load. Returns the seconds from the first message to the last.
    ///
    /// # Panics
    ///
    /// If that takes too long.
    #[must_use]
    pub fn seconds(&mut self) -> f64 {
        let said = self.program.says("received all in ").expect("it runs");
        said.trim_end_matches(" s").parse().unwrap()
    }
}

/// Sends a load from kcp-go and waits for the answer. Returns kcp-go's counters by name.
///
/// # Panics
///
/// If that takes too long.
#[must_use]
pub fn send(to: SocketAddr, knobs: Knobs, load: &Load) -> HashMap<String, u64> {
    let mut command = knobs.command("send");
    command.args(["-to", &to.to_string()]);
    for (name, value) in [("-size", load.size), ("-count", load.count as usize), ("-hz", load.hz as usize)] {
        command.args([name, &value.to_string()]);
    }
    let mut program = Program::start(&mut command);
    program.says("sent all").expect("it runs");
    counted(&mut program)
}

/// Starts a program that echoes every session as a stream of bytes, until it is dropped.
///
/// # Panics
///
/// If it does not start.
#[must_use]
pub fn echo(knobs: Knobs) -> (Program, SocketAddr) {
    let mut program = Program::start(&mut knobs.command("echo"));
    let address = listening(&mut program);
    (program, address)
}

fn listening(program: &mut Program) -> SocketAddr {
    let port: u16 = program.says("listening on ").expect("it runs").parse().unwrap();
    ([127, 0, 0, 1], port).into()
}

/// Whether Go and kcp-go are installed. Reports it if not.
///
/// # Panics
///
/// If they are installed but the build fails.
#[must_use]
pub fn is_there() -> bool {
    let is_there = peer().is_some();
    if !is_there {
        skip("Go and kcp-go, Debian's packages golang-go and golang-github-xtaci-kcp-dev, are missing");
    }
    is_there
}

/// The program. The first call builds it.
fn peer() -> Option<&'static Path> {
    static PEER: OnceLock<Option<PathBuf>> = OnceLock::new();
    PEER.get_or_init(build).as_deref()
}

fn build() -> Option<PathBuf> {
    let go = find("go")?;
    let mut places: Vec<_> = env::var_os("GOPATH").iter().flat_map(env::split_paths).collect();
    places.push(DEBIAN.into());
    places.iter().find(|place| place.join("src/github.com/xtaci/kcp-go").is_dir())?;
    let gopath = env::join_paths(places).unwrap();
    let program = env::current_exe().unwrap().with_file_name("kcp-go-peer");
    let mut command = Command::new(go);
    command.env("GO111MODULE", "off").env("GOPATH", gopath).env("CGO_ENABLED", "0");
    command.arg("build").arg("-o").arg(&program).arg(concat!(env!("CARGO_MANIFEST_DIR"), "/go/peer.go"));
    let built = command.output().unwrap();
    assert!(built.status.success(), "{command:?}: {}", String::from_utf8_lossy(&built.stderr));
    Some(program)
}

/// Where Debian's Go packages put their sources.
const DEBIAN: &str = "/usr/share/gocode";
