//! Every interleaving of what a session's datagrams and timers do, what a network does to them, and what people do
//! meanwhile: of the real machines, in virtual time, to a depth.
//!
//! docs/PROOFS.md says what is searched. `INTERLEAVINGS=<n>` goes n faults and n steps deeper.

#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

#[cfg(test)]
#[path = "../common/mod.rs"]
mod common;
#[cfg(test)]
mod explorer;
#[cfg(test)]
mod play;
#[cfg(test)]
mod records;
#[cfg(test)]
mod world;

use common::sessions::{SUITE, client_config, server_config};
use explorer::{Explorer, Search};
use play::{DEADLINE, DRAIN, Plan, TIMEOUT};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use whitewater::session::Suite;
use whitewater::{ClientConfig, ServerConfig, SessionConfig};
use world::Deed;

#[test]
fn a_handshake_ends_up_or_over_at_both_ends() {
    let plan = Plan {
        before: None,
        deeds: &[],
        may: &[Deed::CloseClient, Deed::Move, Deed::RestartServer, Deed::RestartClient],
    };
    let restarted = Plan { before: Some(&[]), deeds: &[Deed::RestartServer], ..plan };
    let mut found =
        explore(plan, [(Suite::Checked, faults(2)), (Suite::Checked, free(4)), (SUITE, faults(2))]);
    found += explore(restarted, [(SUITE, faults(1))]);
    found.happened(&["client: Local(1)", "client: ServerForgot", "server: Peer(1)", "server: Timeout"]);
    found.is_as_documented("a handshake");
}

/// The first datagram of a client may be all that its server needs. Each client has a token of its own.
#[cfg(feature = "crypto")]
#[test]
fn a_handshake_with_a_token_ends_up_or_over_at_both_ends() {
    let plan = Plan {
        before: None,
        deeds: &[],
        may: &[Deed::CloseClient, Deed::CloseServer, Deed::Move, Deed::RestartServer, Deed::RestartClient],
    };
    let restarted = Plan { before: Some(&[]), deeds: &[Deed::RestartServer], ..plan };
    let mut found = Found::default();
    for (plan, search) in [(plan, faults(2)), (plan, free(3)), (restarted, faults(1))] {
        let ends = |verifier| {
            let (server, client) = configs(SUITE);
            (common::tokens::requiring(verifier, server), client)
        };
        found +=
            search_once(plan, SUITE, search, || ends(common::tokens::verifier(common::tokens::SERVER_ID)));
    }
    found.happened(&["client: Local(1)", "client: ServerForgot", "server: Peer(1)", "server: Timeout"]);
    found.is_as_documented("a handshake with a connect token");
}

/// Both ends have keys only once a KEM_KEY and a KEM_CIPHERTEXT have arrived, the client before the server.
#[cfg(feature = "pq")]
#[test]
fn a_hybrid_handshake_ends_up_or_over_at_both_ends() {
    const HYBRID: Suite = Suite::HYBRID_TOKEN;
    let plan = Plan {
        before: None,
        deeds: &[],
        may: &[Deed::CloseClient, Deed::CloseServer, Deed::Move, Deed::RestartServer, Deed::RestartClient],
    };
    let restarted = Plan { before: Some(&[]), deeds: &[Deed::RestartServer], ..plan };
    let mut found = explore(plan, [(HYBRID, faults(2)), (HYBRID, free(3))]);
    found += explore(restarted, [(HYBRID, faults(1))]);
    found.happened(&[
        "client: Local(1)",
        "client: ServerForgot",
        "client: Timeout",
        "moved",
        "server: Peer(1)",
    ]);
    found.is_as_documented("a hybrid handshake");
}

#[test]
fn whoever_closes_both_ends_are_over_once() {
    let plan = Plan {
        before: Some(&[]),
        deeds: &[Deed::Talk, Deed::CloseClient],
        may: &[Deed::Talk, Deed::CloseServer, Deed::KickClient, Deed::Move, Deed::RestartServer],
    };
    let found = explore(plan, both_ways(1));
    found.happened(&[
        "client: Local(1)",
        "client: Peer(2)",
        "client: Peer(3)",
        "server: Local(2)",
        "server: Peer(1)",
    ]);
    found.is_as_documented("a close");
}

#[test]
fn a_redirected_client_is_told_once() {
    let plan = Plan {
        before: Some(&[]),
        deeds: &[Deed::Redirect, Deed::CloseServer],
        may: &[Deed::Talk, Deed::CloseClient, Deed::Move, Deed::RestartServer],
    };
    let found = explore(plan, both_ways(2));
    found.happened(&["redirected", "client: Peer(2)", "server: Local(2)", "client: ServerForgot"]);
    found.is_as_documented("a redirect");
}

#[test]
fn a_client_that_moves_is_followed_or_both_ends_are_over() {
    let plan = Plan {
        before: Some(&[]),
        deeds: &[Deed::Move, Deed::Talk],
        may: &[Deed::Move, Deed::CloseClient, Deed::CloseServer, Deed::RestartServer],
    };
    let found = explore(plan, [(SUITE, faults(2)), (SUITE, free(3))]);
    if SUITE != Suite::Checked {
        found.happened(&["moved", "client: Local(1)", "server: Local(2)"]);
    }
    found.is_as_documented("a move");
}

#[test]
fn a_client_that_starts_again_gets_a_session_and_the_old_one_ends() {
    let plan = Plan {
        before: Some(&[]),
        deeds: &[Deed::RestartClient],
        may: &[Deed::CloseServer, Deed::CloseClient, Deed::Move, Deed::RestartServer],
    };
    let found = explore(plan, [(Suite::Checked, faults(2)), (SUITE, faults(1))]);
    found.happened(&["client: Local(1)", "server: Timeout"]);
    found.is_as_documented("a client that starts again");
}

#[test]
fn new_keys_stall_nothing() {
    let plan = Plan {
        before: Some(&[Deed::Talk; 67]), // for a second, until the next one asks for new keys
        deeds: &[Deed::Talk, Deed::Talk],
        may: &[Deed::CloseServer, Deed::Move],
    };
    let found = explore(plan, [(SUITE, faults(2)), (SUITE, free(3))]);
    found.happened(&["client: Local(1)", "server: Local(2)"]);
    if SUITE != Suite::Checked {
        found.happened(&["new keys", "moved"]);
    }
    found.is_as_documented("new keys");
}

/// What a search went through.
#[derive(Debug, Default)]
struct Found {
    runs: u64,
    states: u64,
    tally: BTreeMap<String, u64>,
}

impl std::ops::AddAssign for Found {
    fn add_assign(&mut self, other: Self) {
        self.runs += other.runs;
        self.states += other.states;
        self.add(other.tally);
    }
}

impl Found {
    fn add(&mut self, tally: BTreeMap<String, u64>) {
        tally.into_iter().for_each(|(what, count)| *self.tally.entry(what).or_default() += count);
    }

    /// A search that reaches nothing proves nothing.
    fn happened(&self, all: &[&str]) {
        let missing: Vec<_> = all.iter().filter(|what| !self.tally.contains_key(**what)).collect();
        assert!(missing.is_empty(), "{missing:?} never happened: {:?}", self.tally);
    }

    /// At least what the row of the table says.
    fn is_as_documented(&self, row: &str) {
        let page = include_str!("../../docs/PROOFS.md");
        let row = page.lines().find(|line| line.starts_with(&format!("| {row}"))).expect("its row");
        let number = |cell: &str| cell.trim().replace(',', "").parse::<u64>().ok();
        let told: Vec<_> = row.split('|').filter_map(number).collect();
        println!("{} runs, {} states; documented: {told:?}", self.runs, self.states);
        assert!(self.runs >= told[0] && self.states >= told[1], "{} runs, {} states", self.runs, self.states);
    }
}

/// Without encryption, and with it, which takes longer.
fn both_ways(with: u8) -> [(Suite, Search); 4] {
    [(Suite::Checked, faults(2)), (Suite::Checked, free(4)), (SUITE, faults(with)), (SUITE, free(3))]
}

fn explore<const N: usize>(plan: Plan, searches: [(Suite, Search); N]) -> Found {
    let mut found = Found::default();
    searches
        .into_iter()
        .for_each(|(suite, search)| found += search_once(plan, suite, search, || configs(suite)));
    found
}

/// `ends` makes the configs of each run.
fn search_once(
    plan: Plan,
    suite: Suite,
    search: Search,
    ends: impl Fn() -> (ServerConfig, ClientConfig),
) -> Found {
    let token = token(suite);
    let (mut explorer, mut found) = (Explorer::new(search), Found::default());
    loop {
        let (server, client) = ends();
        let run = || play::run(plan, (&server, &client), &token, &mut explorer);
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(happened) => found.add(happened),
            Err(error) => {
                eprintln!("{suite:?}, {search:?}: steps and choices {:?}", explorer.faults());
                resume_unwind(error);
            }
        }
        if !explorer.next() {
            break;
        }
    }
    (found.runs, found.states) = (explorer.runs, explorer.states());
    println!("{suite:?} {search:?}: {} runs, {} states, {:?}", found.runs, found.states, found.tally);
    found
}

fn configs(suite: Suite) -> (ServerConfig, ClientConfig) {
    let (timeout, drain, deadline) = (TIMEOUT, DRAIN, DEADLINE);
    let session =
        SessionConfig { timeout, drain, path_mtu: None, key_update: 64, ..SessionConfig::default() };
    let server = ServerConfig { reset_key: Some([9; 16]), ..server_config(&session, suite) };
    (server, ClientConfig { session, deadline, ..client_config(suite) })
}

/// Where a client is sent: a token, or without encryption any bytes.
fn token(suite: Suite) -> Vec<u8> {
    #[cfg(feature = "crypto")]
    if suite != Suite::Checked {
        return common::tokens::token(1, common::tokens::NOW, 9).encode().to_vec();
    }
    vec![9; usize::from(suite == Suite::Checked) * 100]
}

fn faults(faults: u8) -> Search {
    Search::Faults { faults: faults + depth(), steps: STEPS + usize::from(depth()) }
}

fn free(steps: usize) -> Search {
    Search::Free(steps + usize::from(depth()))
}

fn depth() -> u8 {
    std::env::var("INTERLEAVINGS").ok().and_then(|depth| depth.parse().ok()).unwrap_or(0)
}

/// Steps in which faults happen. A handshake, a message each way and a close take 20.
const STEPS: usize = 60;
