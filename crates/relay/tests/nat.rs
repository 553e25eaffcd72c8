//! Which players reach each other without the relay behind real NATs, those of Linux, in network namespaces.
//!
//! `NAT_RUNS=20 cargo test --release -p whitewater-relay --test nat -- --nocapture every` prints how soon, in 20 runs. `just nat-iroh 20` prints the same
//! beside iroh.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

#[path = "../../../tests/common/daemon.rs"]
mod daemon;
mod lab;
#[path = "../../../tests/common/network.rs"]
mod network;

use daemon::Directory;
use lab::{NATS, Nat, Process, RELAY, Space, in_lab, probe};
use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs, thread};

/// Whether a NAT of one kind or the other lets the other one's datagrams in at a port that it can know: hosts down, guests across.
const DIRECT: [[bool; NATS.len()]; NATS.len()] = [
    [true, true, true, true, true, true],     // open
    [true, true, true, true, true, true],     // cone
    [true, true, true, true, true, false],    // restricted
    [true, true, true, true, true, false],    // double
    [true, true, false, false, false, false], // bare
    [true, true, false, false, false, false], // symmetric
];
/// Players behind one NAT: [where](lab::Lab::together), whether the guest knows the host's address at home, and whether they meet directly.
const TOGETHER: [(&str, usize, bool, bool); 3] = [
    ("the guest knows the host's address at home", 0, true, true),
    ("it only knows their public one", 0, false, false),
    ("the same, and the NAT has a hairpin", 1, false, true),
];
/// Hosts and guests that meet directly, for a comparison.
const PAIRS: [[Nat; 2]; 6] = [
    [Nat::Open, Nat::Restricted],
    [Nat::Cone, Nat::Cone],
    [Nat::Restricted, Nat::Restricted],
    [Nat::Double, Nat::Double],
    [Nat::Restricted, Nat::Bare],
    [Nat::Cone, Nat::Symmetric],
];
/// Tokens of the second in which a server starts may be from before.
const SETTLED: Duration = Duration::from_millis(1100);

#[test]
fn each_nat_is_what_its_name_says() {
    in_lab("each_nat_is_what_its_name_says", |lab| {
        let relay = RELAY.map(|address| address.to_string());
        let answers = Process::start(probe(&lab.relay).arg("answer").args(&relay));
        answers.said("ready");
        for (nat, site) in NATS.iter().cycle().zip(lab.hosts.iter().chain(&lab.guests)) {
            let asked = probe(&site.players[0]).args(["ask", "4321"]).args(&relay).output().unwrap();
            let said = String::from_utf8_lossy(&asked.stdout);
            let words: Vec<_> = said.split_whitespace().collect();
            println!("{nat:?}: {words:?}");
            let [ports @ .., stranger] = &words[..] else { panic!("{asked:?}") };
            let mut different = ports.to_vec();
            different.sort_unstable();
            different.dedup();
            if *nat == Nat::Symmetric {
                assert_eq!((ports.len(), different.len()), (4, 4));
            } else {
                assert_eq!((ports.len(), &*different), (4, &["4321"][..]), "{nat:?}");
            }
            assert_eq!(*stranger == "heard", matches!(nat, Nat::Open | Nat::Cone), "{nat:?}");
        }
    });
}

#[test]
fn every_guest_reaches_every_host_and_directly_if_their_nats_allow_it() {
    in_lab("every_guest_reaches_every_host_and_directly_if_their_nats_allow_it", |lab| {
        let _relay = start_relay(&lab.relay);
        let sites: Vec<_> = lab.hosts.iter().chain(&lab.together).collect();
        let mut hosts: Vec<_> =
            sites.iter().enumerate().map(|(number, site)| Host::start(number, &site.players[0])).collect();
        thread::sleep(SETTLED);

        let names = NATS.map(|nat| format!("{nat:?}").to_lowercase());
        println!("| host, guest: | {} |\n|---|{}", names.join(" | "), "---|".repeat(NATS.len()));
        for ((name, host), expected) in names.iter().zip(&hosts).zip(DIRECT) {
            let guests = lab.guests.iter().zip(expected);
            let cells = guests.map(|(site, is_direct)| host.meet(&site.players[0], is_direct));
            println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
        }
        println!("| both behind one NAT | |\n|---|---|");
        for (what, site, knows_home, is_direct) in TOGETHER {
            let host = &mut hosts[NATS.len() + site];
            host.addresses.retain(|address| knows_home || !address.starts_with("192.168."));
            println!("| {what} | {} |", host.meet(&lab.together[site].players[1], is_direct));
        }
    });
}

#[test]
#[ignore = "just nat-iroh builds iroh"]
fn players_meet_beside_those_of_iroh() {
    in_lab("players_meet_beside_those_of_iroh", |lab| {
        let _relay = start_relay(&lab.relay);
        let address = format!("{}:4200", RELAY[0]);
        let iroh = Process::start(lab.relay.command(iroh()).args(["relay", &*address]));
        iroh.said("https://");
        let url = format!("https://{address}");
        println!("| host, guest | answered | iroh | direct | iroh |\n|---|---|---|---|---|");
        for (number, [of_host, of_guest]) in PAIRS.into_iter().enumerate() {
            let [host, guest] = [(&lab.hosts, of_host), (&lab.guests, of_guest)].map(|(sites, nat)| {
                let at = NATS.iter().position(|other| *other == nat).unwrap();
                &sites[at].players[0]
            });
            let ours = Host::start(number, host);
            let theirs = IrohHost::start(host, &url);
            thread::sleep(SETTLED);
            let took: Vec<_> = (0..runs()).map(|_| (ours.play(guest, true), theirs.play(guest))).collect();
            let cells = [
                quantiles(took.iter().map(|(ours, _)| ours.echo)),
                quantiles(took.iter().map(|(_, theirs)| theirs.echo)),
                quantiles(took.iter().map(|(ours, _)| ours.direct.unwrap())),
                quantiles(took.iter().map(|(_, theirs)| theirs.direct.unwrap_or(f64::INFINITY))),
            ];
            println!("| {of_host:?}, {of_guest:?} | {} |", cells.join(" | ").to_lowercase());
        }
    });
}

/// A player who hosts.
struct Host {
    number: String,
    /// Its own, and the relay's.
    addresses: Vec<String>,
    _process: Process,
}

/// The same with iroh.
struct IrohHost {
    url: String,
    /// What its guest has to know.
    line: String,
    _process: Process,
}

/// ms until a guest's session was up, its first message was back, and both ends sent directly.
struct Took {
    up: f64,
    echo: f64,
    direct: Option<f64>,
}

impl Host {
    fn start(number: usize, space: &Space) -> Self {
        let number = number.to_string();
        let process = Process::start(space.command(player()).args([&*number, "host", &relay_address()]));
        let addresses = process.said("guest ").split(' ').map(str::to_owned).collect();
        Self { number, addresses, _process: process }
    }

    /// A guest plays with it, several times. Returns how it connected, and how soon the session was up.
    fn meet(&self, guest: &Space, is_direct: bool) -> String {
        let up = (0..runs()).map(|_| self.play(guest, is_direct).up);
        format!("{} {}", if is_direct { "direct" } else { "relayed" }, quantiles(up))
    }

    fn play(&self, guest: &Space, is_direct: bool) -> Took {
        let mut command = guest.command(player());
        let patience = if is_direct { "30" } else { "1" };
        let output = command.args([&*self.number, "guest", patience]).args(&self.addresses).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let way = if is_direct { "directly" } else { "by the relay" };
        let is_so = said.contains(&format!("sends {way}, is answered {way}"));
        assert!(output.status.success() && is_so, "to {:?}: {output:?}", self.addresses);
        let after = |what| {
            let ms = said.lines().find_map(|line| line.strip_prefix(what)?.split(' ').next());
            ms.map(|ms| ms.parse().unwrap())
        };
        Took {
            up: after("up after ").unwrap(),
            echo: after("echo after ").unwrap(),
            direct: after("both directly after "),
        }
    }
}

impl IrohHost {
    fn start(space: &Space, url: &str) -> Self {
        let process = Process::start(space.command(iroh()).args(["host", url]));
        let line = process.said("");
        Self { url: url.into(), line, _process: process }
    }

    fn play(&self, guest: &Space) -> Took {
        let output = guest.command(iroh()).args(["guest", &self.url, &self.line]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "to {}: {output:?}", self.line);
        // A line of JSON with numbers only before the last value.
        let ms = |what: &str| {
            let (_, rest) = said.split_once(&format!("\"{what}\":")).unwrap();
            rest.split(',').next().unwrap().parse().ok() // or null
        };
        Took { up: ms("connected").unwrap(), echo: ms("echoed").unwrap(), direct: ms("both_direct") }
    }
}

/// How often each pair meets.
fn runs() -> usize {
    env::var("NAT_RUNS").map_or(1, |runs| runs.parse().unwrap())
}

/// The median and the 99th percentile.
fn quantiles(ms: impl Iterator<Item = f64>) -> String {
    let mut ms: Vec<_> = ms.collect();
    ms.sort_by(f64::total_cmp);
    let at = |percent: usize| ms[(ms.len() * percent).div_ceil(100) - 1];
    format!("{:.0} / {:.0}", at(50), at(99))
}

fn start_relay(space: &Space) -> (Process, Directory) {
    let directory = Directory::new();
    let key = directory.path("key");
    fs::write(&key, [5; 32]).unwrap();
    let mut relay = space.command(env!("CARGO_BIN_EXE_whitewater-relay"));
    let relay = Process::start(relay.arg(relay_address()).arg(key));
    relay.said("relays");
    (relay, directory)
}

fn relay_address() -> String {
    format!("{}:4100", RELAY[0])
}

/// The example, which `cargo test` builds before tests run.
fn player() -> PathBuf {
    let player = env::current_exe().unwrap().with_file_name("../examples/player");
    assert!(player.exists(), "build it first: cargo build --release -p whitewater-relay --example player");
    player
}

/// `benches/iroh`, as built.
fn iroh() -> PathBuf {
    PathBuf::from(env::var_os("IROH_PEER").unwrap())
}
