//! A network namespace, and what runs there.

use super::{Link, until};
use crate::daemon::{Daemon, Directory};
use crate::network::{ip, run};
use std::ffi::OsStr;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

/// A program in the background, with a file for what it prints.
pub(crate) struct Process {
    daemon: Daemon,
    _directory: Directory,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        let directory = Directory::new();
        Self { daemon: Daemon::start(command, &directory), _directory: directory }
    }

    /// Waits for a line that begins like this, and returns the rest of it.
    pub(crate) fn said(&self, beginning: &str) -> String {
        until(beginning, || {
            self.daemon.log().lines().find_map(|line| Some(line.strip_prefix(beginning)?.into()))
        })
    }
}

/// A network namespace. It lasts as long as its first process.
pub(crate) struct Space(Process);

impl Space {
    pub(super) fn new() -> Self {
        let mut first = Command::new("unshare");
        let space = Self(Process::start(first.args(["-n", "sh", "-c", "echo in; exec sleep infinity"])));
        space.0.said("in");
        space.ip("link set lo up");
        space
    }

    fn net(&self) -> String {
        format!("/proc/{}/ns/net", self.0.daemon.id())
    }

    /// A command inside.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.net())).arg(program);
        command
    }

    fn ip(&self, args: &str) {
        run("nsenter", &format!("--net={} ip {args}", self.net()));
    }

    /// Takes a device of the internet.
    pub(super) fn take_link(&self, Link { name, addresses }: &Link) {
        ip(&format!("link set {name} netns {}", self.0.daemon.id()));
        self.ip(&format!("link set {name} name out"));
        for address in addresses {
            self.ip(&format!("addr add {address}/32 dev out"));
        }
        self.ip("link set out up");
        self.ip("route add default dev out");
    }

    /// Makes it the box of a network of 24 bits with that player inside.
    pub(super) fn become_box(&self, player: Ipv4Addr, rules: &str) {
        self.ip("link add lan type bridge");
        self.ip(&format!("addr add {}/24 dev lan", box_of(player)));
        self.ip("link set lan up");
        self.load(rules);
        let forward = self.command("sh").args(["-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]).status();
        assert!(forward.unwrap().success());
    }

    pub(super) fn load(&self, rules: &str) {
        let mut nft = self.command("nft").args(["-f", "-"]).stdin(Stdio::piped()).spawn().unwrap();
        nft.stdin.take().unwrap().write_all(rules.as_bytes()).unwrap();
        assert!(nft.wait().unwrap().success(), "{rules}");
    }

    /// Moves into the network of a box.
    pub(super) fn move_in(&self, outer: &Self, address: Ipv4Addr) {
        let port = format!("port{}", address.octets()[3]);
        self.ip(&format!("link add out type veth peer name {port} netns {}", outer.0.daemon.id()));
        outer.ip(&format!("link set {port} master lan"));
        outer.ip(&format!("link set {port} up"));
        self.ip(&format!("addr add {address}/24 dev out"));
        self.ip("link set out up");
        self.ip(&format!("route add default via {}", box_of(address)));
    }
}

/// The box of a network is number 1 there.
fn box_of(address: Ipv4Addr) -> Ipv4Addr {
    let [a, b, c, _] = address.octets();
    Ipv4Addr::new(a, b, c, 1)
}
