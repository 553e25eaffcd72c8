//! Quilkin, a proxy for game servers that finds them by routing tokens: what `QUILKIN` names, or `quilkin` in the path.

#![allow(dead_code, reason = "each test binary uses its part")]

use super::daemon::{Daemon, Directory, is_there};
use std::collections::HashSet;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

pub(crate) type Token = [u8; 8];

/// Runs until it is dropped.
pub(crate) struct Quilkin {
    pub(crate) daemon: Daemon,
    _directory: Directory,
}

/// The program, if it is installed.
pub(crate) fn program() -> Option<PathBuf> {
    let program = env::var_os("QUILKIN").map_or_else(|| "quilkin".into(), PathBuf::from);
    is_there(&program, "--version").then_some(program)
}

/// Whether it may have enough rings of `io_uring` for so many clients of one server; if not, a note is printed. Without them it drops datagrams of
/// clients that are too many, and says nothing. Root and whoever has CAP_IPC_LOCK need no limit, but in a user namespace nobody has it.
pub(crate) fn has_memory_for(clients: u64) -> bool {
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"));
    let limit = limit.unwrap().split_whitespace().next().unwrap().parse().unwrap_or(u64::MAX);
    let is_enough = is_root_outside() || limit / RING >= clients;
    if !is_enough {
        println!("skipped: `ulimit -l` is too low for Quilkin");
    }
    is_enough
}

/// Locked memory for each client of a server, with some to spare: 8 MiB are enough for 39.
const RING: u64 = 250_000;

fn is_root_outside() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap();
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

impl Quilkin {
    /// At this address, before these servers, with a port for so many clients of each.
    ///
    /// It opens ports for clients as they come, with `SO_REUSEPORT`, so the system may give it one that it has already. Then two clients have the same
    /// port, and all answers go to the second one. Of 100 ports that happens one time in six. So this lets it open them before anybody plays, and
    /// starts another if two are the same.
    pub(crate) fn start(
        program: &Path,
        address: SocketAddr,
        servers: &[(Token, SocketAddr)],
        clients: usize,
    ) -> Self {
        let nobody = UdpSocket::bind((address.ip(), 0)).unwrap();
        let servers = [servers, &[(NOBODY, nobody.local_addr().unwrap())]].concat();
        loop {
            let quilkin = Self::start_once(program, address, &servers);
            if quilkin.opens_different_ports(address, clients) {
                return quilkin;
            }
        }
    }

    fn start_once(program: &Path, address: SocketAddr, servers: &[(Token, SocketAddr)]) -> Self {
        let directory = Directory::new();
        let config = directory.write("quilkin.yaml", &settings(servers));
        let admin = TcpListener::bind((address.ip(), 0)).unwrap().local_addr().unwrap();
        let mut command = Command::new(program);
        command.args(["--service.udp", "--service.udp.port", &address.port().to_string()]);
        // With several, answers of a server overtake each other.
        command.args(["--service.udp.workers", "1", "--admin.address", &admin.to_string()]);
        command.arg("--provider.fs").arg("--provider.fs.path").arg(config);
        let daemon = Daemon::start(&mut command, &directory);
        let quilkin = Self { daemon, _directory: directory };
        let start = Instant::now();
        while TcpStream::connect(admin).is_err() {
            assert!(start.elapsed() < PATIENCE, "Quilkin does not start");
            thread::sleep(Duration::from_millis(20));
        }
        quilkin
    }

    /// Sends it datagrams of so many clients, to a server that does not answer. Real ones get the same ports to other servers.
    fn opens_different_ports(&self, address: SocketAddr, clients: usize) -> bool {
        let clients: Vec<_> = (0..clients).map(|_| UdpSocket::bind((address.ip(), 0)).unwrap()).collect();
        let start = Instant::now();
        loop {
            for client in &clients {
                client.send_to(&NOBODY, address).unwrap();
            }
            thread::sleep(Duration::from_millis(20));
            let ports = ports_of_ipv6();
            if ports.len() > clients.len() {
                return ports.iter().collect::<HashSet<_>>().len() == ports.len();
            }
            assert!(start.elapsed() < PATIENCE, "Quilkin has only {} ports", ports.len());
        }
    }
}

const PATIENCE: Duration = Duration::from_secs(20);
/// The token of a server that does not answer.
const NOBODY: Token = *b"nobody..";

/// UDP ports in use for IPv6 in this network: only Quilkin has some.
fn ports_of_ipv6() -> Vec<String> {
    let table = fs::read_to_string("/proc/net/udp6").unwrap();
    let port = |line: &str| Some(line.split_whitespace().nth(1)?.rsplit_once(':')?.1.to_owned());
    table.lines().skip(1).filter_map(port).collect()
}

/// The documented filters, which take eight bytes off each datagram of a client, and these servers.
fn settings(servers: &[(Token, SocketAddr)]) -> String {
    let endpoint = |(token, address): &(Token, SocketAddr)| {
        format!(
            "    - address: {address}\n      metadata: {{ quilkin.dev: {{ tokens: [{}] }} }}\n",
            base64(token)
        )
    };
    let endpoints: String = servers.iter().map(endpoint).collect();
    let document = include_str!("../../docs/PROXIES.md");
    let (_, rest) = document.split_once("```yaml\nversion: v1alpha1").unwrap();
    let (filters, _) = rest.split_once("clusters:").unwrap();
    format!("version: v1alpha1{filters}clusters:\n  - endpoints:\n{endpoints}")
}

fn base64(bytes: &[u8]) -> String {
    let digit = |bits: u32| {
        char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[bits as usize & 63])
    };
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits =
            (0..3).fold(0, |bits, at| bits << 8 | u32::from(group.get(at).copied().unwrap_or_default()));
        text.extend((0..4).map(|at| if at <= group.len() { digit(bits >> (18 - 6 * at)) } else { '=' }));
    }
    text
}
