//! The programs kcptun-client and kcptun-server.

mod case;

pub use case::Case;

use crate::program::{self, Program, find};
use crate::skip;
use std::collections::HashMap;
use std::fs::read_to_string;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::Command;

/// The ciphers of Debian's version (20210922), without `tea`, which we do not have.
pub const CIPHERS: [&str; 12] = [
    "none", "xor", "aes", "aes-128", "aes-192", "salsa20", "sm4", "twofish", "blowfish", "cast5", "3des",
    "xtea",
];
/// All keys are derived from this.
pub const KEY: &str = "interop key";
/// Largest UDP payload, bytes: the default at both ends.
const MTU: u16 = 1350;

/// Whether both programs are installed. Reports it if not.
#[must_use]
pub fn is_there() -> bool {
    let is_there = [CLIENT, SERVER].iter().all(|name| find(name).is_some());
    if !is_there {
        skip("kcptun-client and kcptun-server, Debian's package kcptun, are missing");
    }
    is_there
}

/// Starts a client for this server. Returns the address where it accepts TCP.
///
/// # Panics
///
/// If it does not start.
#[must_use]
pub fn client(server: SocketAddr, case: &Case) -> (Program, SocketAddr) {
    client_of(server, case, 1)
}

/// The same with several sessions, used in turns.
///
/// # Panics
///
/// If it does not start.
#[must_use]
pub fn client_of(server: SocketAddr, case: &Case, sessions: usize) -> (Program, SocketAddr) {
    let mut command = command(CLIENT, case);
    command.args([
        "--localaddr",
        "127.0.0.1:0",
        "--remoteaddr",
        &server.to_string(),
        "--conn",
        &sessions.to_string(),
    ]);
    let mut program = Program::start(&mut command);
    let address = program.says("listening on: ").and_then(|address| address.trim().parse().ok());
    program.says("key derivation done").expect("it runs");
    (program, address.expect("its address"))
}

/// Starts a server that forwards to this TCP server. Returns the address where it accepts KCP.
///
/// # Panics
///
/// If it does not start.
#[must_use]
pub fn server(target: SocketAddr, case: &Case) -> (Program, SocketAddr) {
    for _ in 0..10 {
        // It does not report the port that the system chooses, so we choose one. Another program may take it in the
        // meantime.
        let address = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        let mut command = command(SERVER, case);
        command.args(["--listen", &address.to_string(), "--target", &target.to_string()]);
        let mut program = Program::start(&mut command);
        if program.says("key derivation done").is_some() && program.waits(|| is_bound(address.port())) {
            return (program, address);
        }
    }
    panic!("no port for {SERVER}");
}

/// The counters of a program, by kcp-go's names.
///
/// # Panics
///
/// If it does not print them.
#[must_use]
pub fn counted(program: &mut Program) -> HashMap<String, u64> {
    let id = program.id().to_string();
    assert!(Command::new("kill").args(["-USR1", &id]).status().unwrap().success());
    program::counted(program)
}

fn command(name: &str, case: &Case) -> Command {
    let Case { crypt, fec: (data, parity), .. } = *case;
    let mut command = Command::new(find(name).expect("it is there"));
    command.args(["--crypt", crypt, "--key", KEY, "--mode", "fast2", "--nocomp", "--quiet"]);
    for (name, number) in [("--mtu", MTU), ("--ds", data.into()), ("--ps", parity.into())] {
        command.args([name, &number.to_string()]);
    }
    command
}

/// Whether this UDP port is in use. Linux only, like Debian's programs.
fn is_bound(port: u16) -> bool {
    let has = |table: &str| {
        table.lines().any(|line| {
            line.split_whitespace().nth(1).is_some_and(|local| local.ends_with(&format!(":{port:04X}")))
        })
    };
    ["/proc/net/udp", "/proc/net/udp6"].iter().any(|file| has(&read_to_string(file).unwrap_or_default()))
}

const CLIENT: &str = "kcptun-client";
const SERVER: &str = "kcptun-server";
