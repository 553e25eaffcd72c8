//! An internet in network namespaces: a relay, and players behind NATs of Linux. All links lead to a program that passes packets on after 20 ms.

mod nat;
mod space;

pub(crate) use nat::{NATS, Nat};
pub(crate) use space::{Process, Space};

use crate::daemon::is_there;
use crate::network::in_own_network;
use nat::hairpin;
use std::fs::OpenOptions;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, thread};

/// Long enough for any machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// The relay's addresses.
pub(crate) const RELAY: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
/// Everybody has the same network at home.
const HOST_AT_HOME: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 2);
const GUEST_AT_HOME: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 3);
/// A box at home in the network of a provider with a box.
const PROVIDED: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 2);

/// Everything, until it is dropped.
pub(crate) struct Lab {
    pub(crate) relay: Space,
    /// A host and a guest behind each of [`NATS`].
    pub(crate) hosts: Vec<Site>,
    pub(crate) guests: Vec<Site>,
    /// A host and a guest behind one box that is restricted, and behind another one with a hairpin.
    pub(crate) together: [Site; 2],
    _internet: Process,
}

/// A device of the internet.
struct Link {
    name: String,
    addresses: Vec<Ipv4Addr>,
}

/// Players with a link to the internet, and the boxes in between.
pub(crate) struct Site {
    pub(crate) players: Vec<Space>,
    boxes: Vec<Space>,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let relay_link = Link { name: "relay".into(), addresses: RELAY.to_vec() };
        let hosts = Link::several("host", [198, 51, 100], NATS.len());
        let guests = Link::several("guest", [203, 0, 113], NATS.len());
        let together = Link::several("both", [198, 18, 0], 2);
        let mut internet = Command::new(python_program());
        internet.arg(file("internet.py"));
        for Link { name, addresses } in
            [&relay_link].into_iter().chain(&hosts).chain(&guests).chain(&together)
        {
            let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
            internet.arg(format!("{name}={}", addresses.join(",")));
        }
        let internet = Process::start(&mut internet);
        internet.said("ready");

        let relay = Space::new();
        relay.take_link(&relay_link);
        let sites = |links: &[Link], address| {
            NATS.iter().zip(links).map(|(nat, link)| Site::new(*nat, link, &[address])).collect()
        };
        let both = [HOST_AT_HOME, GUEST_AT_HOME];
        let together = [false, true].map(|has_hairpin| {
            let link = &together[usize::from(has_hairpin)];
            let site = Site::new(Nat::Restricted, link, &both);
            if has_hairpin {
                site.boxes[0].load(&hairpin(link.addresses[0], HOST_AT_HOME));
            }
            site
        });
        Self {
            relay,
            hosts: sites(&hosts, HOST_AT_HOME),
            guests: sites(&guests, GUEST_AT_HOME),
            together,
            _internet: internet,
        }
    }
}

impl Link {
    /// Each with an address of a network of 24 bits.
    fn several(name: &str, [a, b, c]: [u8; 3], count: usize) -> Vec<Self> {
        let link = |number| Self {
            name: format!("{name}{number}"),
            addresses: vec![Ipv4Addr::new(a, b, c, number)],
        };
        (1..).map(link).take(count).collect()
    }
}

impl Site {
    fn new(nat: Nat, link: &Link, players: &[Ipv4Addr]) -> Self {
        let count = match nat {
            Nat::Open => 0,
            Nat::Double => 2,
            _ => 1,
        };
        let boxes: Vec<_> = (0..count).map(|_| Space::new()).collect();
        let spaces: Vec<_> = players.iter().map(|_| Space::new()).collect();
        boxes.first().unwrap_or(&spaces[0]).take_link(link);
        if let [provider, home] = &*boxes {
            provider.become_box(PROVIDED, &nat.rules(PROVIDED));
            home.move_in(provider, PROVIDED);
        }
        if let Some(home) = boxes.last() {
            home.become_box(players[0], &nat.rules(players[0]));
            for (space, address) in spaces.iter().zip(players) {
                space.move_in(home, *address);
            }
        }
        Self { players: spaces, boxes }
    }
}

/// Runs the test in its own network if there is all that a lab needs.
pub(crate) fn in_lab(test: &str, body: impl FnOnce(&Lab)) {
    let has_tun = OpenOptions::new().read(true).write(true).open("/dev/net/tun").is_ok();
    if !has_tun {
        return println!("skipped: /dev/net/tun cannot be opened");
    }
    let programs = [("nft", "--version"), ("nsenter", "--version"), (&*python_program(), "--version")];
    if programs.iter().all(|(program, argument)| is_there(Path::new(program), argument)) {
        in_own_network(test, || body(&Lab::new()));
    }
}

/// The program that finds out what is between a player and the relay.
pub(crate) fn probe(space: &Space) -> Command {
    let mut command = space.command(python_program());
    command.arg(file("probe.py"));
    command
}

fn python_program() -> String {
    env::var("WHITEWATER_PYTHON").unwrap_or_else(|_| "python3".into())
}

/// A program in Python in this directory.
fn file(name: &str) -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lab/").to_owned() + name
}

/// Waits for something.
fn until<T>(what: &str, get: impl Fn() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(it) = get() {
            return it;
        }
        assert!(start.elapsed() < PATIENCE, "not yet: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}
