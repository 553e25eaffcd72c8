//! A client with a socket in each of two real networks, one of which fails, in Linux namespaces.
//!
//! `cargo test --release --all-features --test two_networks -- --nocapture` prints how long a message took at most.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

#[path = "common/daemon.rs"]
mod daemon;
#[path = "common/network.rs"]
mod network;

use daemon::{Daemon, Directory, is_there};
use network::{in_own_network, ip, run};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::net::UdpSocket;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use whitewater::session::SecondNetwork;
use whitewater::{Channel, Client, ClientConfig, Server, ServerConfig, SessionConfig, SessionId};

/// Long enough for any machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);
const PSK: [u8; 32] = [7; 32];
const MOVES: Channel = Channel::unordered(0);
const BEAT: Duration = Duration::from_millis(16);
const SERVER: &str = "192.0.2.1:4000";
const PURPOSES: [SecondNetwork; 3] = [SecondNetwork::Spare, SecondNetwork::Best, SecondNetwork::Double];
/// Their names, and the numbers in their addresses.
const NETWORKS: [[&str; 2]; 2] = [["wifi", "1"], ["lte", "2"]];
/// How the network in use fails: whether that is at the server, where nobody is told; the command; and how that ends.
const FAILURES: [(&str, bool, [&str; 2]); 3] = [
    ("is down", false, ["ip link set NAME down", "ip link set NAME up"]), // sending fails
    ("is dead upwards", true, ["nft add rule ip air in iifname NAME drop", "nft flush chain ip air in"]),
    ("is dead downwards", false, ["nft add rule ip air in iifname NAME drop", "nft flush chain ip air in"]),
];

#[test]
fn a_session_survives_each_failure_of_a_real_network_and_goes_back_to_one_that_is_there_again() {
    let programs = [("nft", "--version"), ("nsenter", "--version")];
    if !programs.iter().all(|(program, argument)| is_there(Path::new(program), argument)) {
        return;
    }
    in_own_network(
        "a_session_survives_each_failure_of_a_real_network_and_goes_back_to_one_that_is_there_again",
        || {
            let internet = Internet::new();
            println!("| the network in use | networks | longest, ms |\n|---|---|---:|");
            for ((failure, is_at_server, commands), purpose) in
                FAILURES.into_iter().flat_map(|failure| PURPOSES.map(|purpose| (failure, purpose)))
            {
                let mut phone = Phone::new(&internet, purpose);
                phone.play(60, |_| true);
                let failing = phone.client.network();
                assert!(
                    failing == 0 || purpose != SecondNetwork::Spare,
                    "the first is used while it is there"
                );
                let [name, _] = NETWORKS[usize::from(failing)];
                let [begin, end] = commands.map(|command| command.replace("NAME", name));
                phone.longest = Duration::ZERO;
                internet.shell(is_at_server, &begin);
                phone.play(60, |phone| phone.client.network() != failing);
                println!("| {failure} | {purpose:?} | {} |", phone.longest.as_millis());
                internet.shell(is_at_server, &end);
                internet.lead();
                phone.play(60, |phone| phone.client.network() == 0 || purpose != SecondNetwork::Spare);
            }
        },
    );
}

/// A server in a namespace of its own, to which two links lead.
struct Internet {
    space: Daemon,
    _directory: Directory,
}

struct Phone {
    client: Client,
    server: Server,
    id: SessionId,
    began: Instant,
    longest: Duration,
}

impl Internet {
    fn new() -> Self {
        let directory = Directory::new();
        let mut first = Command::new("unshare");
        let space = Daemon::start(first.args(["-n", "sh", "-c", "echo in; exec sleep infinity"]), &directory);
        let start = Instant::now();
        while !space.log().contains("in") {
            assert!(start.elapsed() < PATIENCE, "no namespace");
            thread::sleep(Duration::from_millis(1));
        }
        let internet = Self { space, _directory: directory };
        internet.ip("link set lo up");
        internet.ip("addr add 192.0.2.1/32 dev lo");
        for [name, number] in NETWORKS {
            ip(&format!("link add {name} type veth peer name {name} netns {}", internet.space.id()));
            internet.ip(&format!("addr add 10.0.{number}.1/24 dev {name}"));
            internet.ip(&format!("link set {name} up"));
            ip(&format!("addr add 10.0.{number}.2/24 dev {name}"));
            ip(&format!("link set {name} up"));
            ip(&format!("rule add from 10.0.{number}.2 table {number}"));
        }
        internet.lead();
        for command in
            ["nft add table ip air", "nft add chain ip air in { type filter hook input priority 0 ; }"]
        {
            [false, true].into_iter().for_each(|is_at_server| internet.shell(is_at_server, command));
        }
        internet
    }

    /// The networks lead to the server for whoever sends from their addresses. A link that was down has lost that.
    fn lead(&self) {
        for [name, number] in NETWORKS {
            ip(&format!("route replace 192.0.2.1 via 10.0.{number}.1 dev {name} table {number}"));
        }
    }

    fn ip(&self, args: &str) {
        self.shell(true, &format!("ip {args}"));
    }

    fn shell(&self, is_at_server: bool, command: &str) {
        let words =
            if is_at_server { format!("nsenter --net={} {command}", self.net()) } else { command.into() };
        let (program, args) = words.split_once(' ').unwrap();
        run(program, args);
    }

    fn net(&self) -> String {
        format!("/proc/{}/ns/net", self.space.id())
    }

    /// A socket stays in the namespace in which it was opened.
    fn socket(&self, address: &'static str) -> UdpSocket {
        let net = File::open(self.net()).unwrap();
        let open = move || {
            move_into_link_name_space(net.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            UdpSocket::bind(address).unwrap()
        };
        thread::spawn(open).join().unwrap()
    }
}

impl Phone {
    fn new(internet: &Internet, purpose: SecondNetwork) -> Self {
        let config = ServerConfig::secret(session_config(), PSK);
        let mut server = Server::from_socket(internet.socket(SERVER), &config).unwrap();
        let config = ClientConfig::secret(session_config(), PSK);
        let wifi = UdpSocket::bind("10.0.1.2:0").unwrap();
        let mut client = Client::from_socket(wifi, SERVER, &config).unwrap();
        let start = Instant::now();
        while !client.is_connected() || server.clients().next().is_none() {
            assert!(start.elapsed() < PATIENCE, "it does not connect");
            client.poll(Some(Duration::from_millis(1))).unwrap();
            server.poll(Some(Duration::from_millis(1))).unwrap();
        }
        let lte = UdpSocket::bind("10.0.2.2:0").unwrap();
        client.set_second_network(lte, purpose).unwrap();
        let id = server.clients().next().unwrap();
        Self { client, server, id, began: Instant::now(), longest: Duration::ZERO }
    }

    /// Says so many messages each way and as many as it takes, until all of them have arrived.
    fn play(&mut self, count: u32, is_over: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        let (mut said, mut heard) = (0, [0; 2]);
        let mut is_last = false;
        while !is_last || heard != [said; 2] {
            assert!(start.elapsed() < PATIENCE, "by {}: {said} said, {heard:?} heard", self.client.network());
            is_last |= said >= count && is_over(self);
            if !is_last && start.elapsed() >= BEAT * said {
                let now = u64::try_from(self.began.elapsed().as_micros()).unwrap().to_le_bytes();
                self.client.send(MOVES, &now).unwrap();
                self.server.send(self.id, MOVES, &now).unwrap();
                said += 1;
            }
            self.client.flush();
            self.server.flush();
            self.client.poll(Some(Duration::from_millis(1))).unwrap();
            self.server.poll(Some(Duration::ZERO)).unwrap();
            let [up, down] = &mut heard;
            while let Some(message) = self.server.recv(self.id, MOVES) {
                *up += 1;
                self.longest = self.longest.max(took(self.began, &message));
            }
            while let Some(message) = self.client.recv(MOVES) {
                *down += 1;
                self.longest = self.longest.max(took(self.began, &message));
            }
        }
    }
}

fn session_config() -> SessionConfig {
    SessionConfig { channels: vec![MOVES.config()], ..SessionConfig::default() }
}

fn took(began: Instant, message: &[u8]) -> Duration {
    let sent = u64::from_le_bytes(message.try_into().unwrap());
    began.elapsed().saturating_sub(Duration::from_micros(sent))
}
