//! Which players reach each other without the relay behind real NATs, those of Linux, in network namespaces.
//!
//! `NAT_RUNS=20 cargo test --release -p whitewater-relay --test nat -- --nocapture every` prints how soon, in 20 runs.

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
        let directory = Directory::new();
        let key = directory.path("key");
        fs::write(&key, [5; 32]).unwrap();
        let mut relay = lab.relay.command(env!("CARGO_BIN_EXE_whitewater-relay"));
        let relay = Process::start(relay.arg(relay_address()).arg(key));
        relay.said("relays");
        let runs = env::var("NAT_RUNS").map_or(1, |runs| runs.parse().unwrap());
        let sites: Vec<_> = lab.hosts.iter().chain(&lab.together).collect();
        let mut hosts: Vec<_> =
            sites.iter().enumerate().map(|(number, site)| Host::start(number, &site.players[0])).collect();
        thread::sleep(Duration::from_millis(1100)); // tokens of the second in which a server starts may be from before

        let names = NATS.map(|nat| format!("{nat:?}").to_lowercase());
        println!("| host, guest: | {} |\n|---|{}", names.join(" | "), "---|".repeat(NATS.len()));
        for ((name, host), expected) in names.iter().zip(&hosts).zip(DIRECT) {
            let guests = lab.guests.iter().zip(expected);
            let cells = guests.map(|(site, is_direct)| host.meet(&site.players[0], is_direct, runs));
            println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
        }
        println!("| both behind one NAT | |\n|---|---|");
        for (what, site, knows_home, is_direct) in TOGETHER {
            let host = &mut hosts[NATS.len() + site];
            host.addresses.retain(|address| knows_home || !address.starts_with("192.168."));
            println!("| {what} | {} |", host.meet(&lab.together[site].players[1], is_direct, runs));
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

impl Host {
    fn start(number: usize, space: &Space) -> Self {
        let number = number.to_string();
        let process = Process::start(space.command(player()).args([&*number, "host", &relay_address()]));
        let addresses = process.said("guest ").split(' ').map(str::to_owned).collect();
        Self { number, addresses, _process: process }
    }

    /// A guest plays with it, so many times. Returns how it connected, and the median and the 99th percentile of the ms that took.
    fn meet(&self, guest: &Space, is_direct: bool, runs: usize) -> String {
        let mut ms: Vec<_> = (0..runs).map(|_| self.play(guest, is_direct)).collect();
        ms.sort_by(f64::total_cmp);
        let at = |percent: usize| ms[(ms.len() * percent).div_ceil(100) - 1];
        format!("{} {:.0} / {:.0}", if is_direct { "direct" } else { "relayed" }, at(50), at(99))
    }

    /// Returns ms until the session was up.
    fn play(&self, guest: &Space, is_direct: bool) -> f64 {
        let mut command = guest.command(player());
        let patience = if is_direct { "30" } else { "1" };
        let output = command.args([&*self.number, "guest", patience]).args(&self.addresses).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let way = if is_direct { "directly" } else { "by the relay" };
        let is_so = said.contains(&format!("sends {way}, is answered {way}"));
        assert!(output.status.success() && is_so, "to {:?}: {output:?}", self.addresses);
        said.strip_prefix("up after ").unwrap().split(' ').next().unwrap().parse().unwrap()
    }
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
