//! Whoever shares a client's address, because both are behind one NAT, and sees none of its packets cannot end its
//! session by a RESET.

#![expect(clippy::indexing_slicing, reason = "a test that panics has found something")]
#![cfg_attr(
    feature = "crypto",
    expect(clippy::unwrap_used, reason = "a test that panics has found something")
)]

use crate::common;
use crate::common::machine::Whole as _;

use common::ms;
use common::sessions::{
    SUITE, World, client_address, client_config, connect_of, random, server_address, server_config,
};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use whitewater::inside::session::wire::kind;
use whitewater::session::{Server, Suite};
use whitewater::{CloseReason, ServerConfig, SessionConfig};
use whitewater_sim::LinkConfig;

fn path() -> LinkConfig {
    LinkConfig::with_rtt(ms(40))
}

fn with_key() -> ServerConfig {
    ServerConfig { reset_key: Some([3; 16]), ..server_config(&SessionConfig::default(), SUITE) }
}

/// Adds a client and runs until it is up. Returns the number by which the server knows its session.
fn join(world: &mut World) -> u32 {
    let before = world.sessions.len();
    let client = world.add(&path(), &path(), &SessionConfig::default(), client_config(SUITE));
    assert!(world.run_until(5_000, |world| {
        let is_up = world.clients[client].session.connection().is_some();
        is_up && world.sessions.len() > before
    }));
    world.sessions[before].to_bits()
}

/// Another port of the first client's address.
fn neighbour() -> SocketAddr {
    client_address(1, 2000)
}

/// Asks about a session. Returns the RESET, if there is one.
fn ask(world: &mut World, from: SocketAddr, sid: u32) -> Option<Vec<u8>> {
    let mut question = vec![kind::DATA];
    question.extend_from_slice(&sid.to_le_bytes());
    question.resize(40, 0);
    world.strangers.clear();
    world.inject(from, &question);
    let (to, reset) = world.strangers.pop()?;
    assert_eq!((to, reset[0]), (from, kind::RESET));
    Some(reset)
}

/// The question is what follows the first id: with ids that count up in slots, under a mask, the difference of two
/// neighbours has all its ones in a row.
fn guesses(id: u32) -> impl Iterator<Item = u32> {
    (1..=14).map(move |ones| id ^ ((1 << ones) - 1) << 12)
}

#[test]
fn a_neighbour_who_asks_for_the_ids_after_their_own_ends_no_session() {
    let (mut guessed, mut ended) = (0, 0);
    for seed in 1..=100 {
        let mut world = World::new(seed, &with_key());
        world.add(&path(), &path(), &SessionConfig::default(), client_config(SUITE));
        world.connect();
        let own = world.sessions[0].to_bits();
        let mut collected = Vec::new();
        for guess in guesses(own) {
            collected.extend(ask(&mut world, client_address(2, 2000), guess));
            world.run(10);
        }
        assert_eq!(collected.len(), 14);
        let victim = join(&mut world); // at the address 2, port 1000
        guessed += usize::from(guesses(own).any(|guess| guess == victim));
        let now = world.now;
        for reset in &collected {
            world.clients[1].session.give(now, server_address(), reset);
        }
        world.run(100);
        ended += usize::from(world.clients[1].closed() == Some(CloseReason::ServerForgot));
    }
    assert_eq!((guessed, ended), (0, 0), "guessed and ended, of 100");
}

#[test]
fn a_reset_for_another_port_ends_nothing_and_the_one_for_its_own_tells_a_client_at_once() {
    let mut world = World::new(1, &with_key());
    let sid = join(&mut world);
    world.server = Server::new(&with_key(), random(9, 9)).unwrap();
    let stolen = ask(&mut world, neighbour(), sid).expect("the server no longer knows it");
    let now = world.now;
    world.clients[0].session.give(now, server_address(), &stolen);
    assert_eq!((world.clients[0].closed(), world.clients[0].session.rejected().stranger), (None, 1));
    let own = world.address(0);
    let start = world.now;
    assert!(world.run_until(2_000, |world| world.clients[0].closed().is_some()));
    assert_eq!(world.clients[0].closed(), Some(CloseReason::ServerForgot));
    assert!(world.now.since(start) <= ms(600), "a keepalive and a round trip");
    assert_eq!(own, client_address(1, 1000));
}

/// The server has told the client that it is in, and has given its place to somebody else when its first packet comes.
/// Without a word it would be silent for 20 s.
#[test]
fn a_client_whose_place_went_to_others_is_told_within_a_round_trip() {
    let config = ServerConfig { half_open: 1, ..server_config(&SessionConfig::default(), SUITE) };
    let mut world = World::new(1, &config);
    world.add(&path(), &path(), &SessionConfig::default(), client_config(SUITE));
    assert!(world.run_until(1_000, |world| world.server.stats().accepted == 1));
    let other = ([60, 0, 0, 1], 9).into();
    let connect = connect_of(&mut world, other, 9, client_config(SUITE));
    world.inject(other, &connect);
    assert_eq!(world.server.stats().unconfirmed, 1, "it made room");
    let start = world.now;
    assert!(world.run_until(200, |world| world.clients[0].closed().is_some()));
    assert_eq!(world.clients[0].closed(), Some(CloseReason::ServerForgot));
    assert!(
        world.now.since(start) <= ms(65),
        "half a round trip until it believes that it is up, and one more"
    );
}

/// What is known of one id, by whoever had a session, says nothing of the next.
#[test]
fn ids_have_no_order() {
    let config = ServerConfig { reset_key: None, ..server_config(&SessionConfig::default(), Suite::Checked) };
    let config = ServerConfig {
        sessions_per_address: 1024,
        half_open_per_address: 1024,
        accept_burst: 1024,
        ..config
    };
    let mut world = World::new(1, &config);
    let mut ids = Vec::new();
    for _ in 0..240 {
        world.add(&path(), &path(), &SessionConfig::default(), client_config(Suite::Checked));
        world.run(60);
    }
    world.run(1_000);
    ids.extend(world.sessions.iter().map(|id| id.to_bits()));
    assert_eq!(ids.len(), 240);
    let steps: Vec<_> = ids.windows(2).map(|pair| pair[0] ^ pair[1]).collect();
    let distinct: BTreeSet<_> = steps.iter().collect();
    assert!(distinct.len() >= 235, "{} different steps of 239", distinct.len());
    for bit in 0..26 {
        let ones = steps.iter().filter(|step| **step & 1 << bit != 0).count();
        assert!((80..=159).contains(&ones), "bit {bit} changes in {ones} of 239 steps");
    }
    assert!(steps.iter().all(|step| step >> 26 == 0), "the shard stays");
}

/// Connect tokens bring a key that survives a restart, if the server keeps its own.
#[cfg(feature = "crypto")]
mod with_tokens {
    use super::*;
    use common::tokens::{NOW, SERVER_ID, by_token, key, requiring, strict, token, verifier};

    fn another(server_id: u64) -> Server {
        let config = requiring(verifier(server_id), server_config(&SessionConfig::default(), SUITE));
        Server::new(&config, random(9, 9)).unwrap()
    }

    fn connected() -> World {
        let mut world = strict(1, verifier(SERVER_ID));
        let config = by_token(&token(7, NOW, 1));
        world.add(&path(), &path(), &SessionConfig::default(), config);
        world.connect();
        world
    }

    #[test]
    fn clients_of_a_restarted_server_are_told_without_a_reset_key() {
        let mut world = connected();
        world.server = another(SERVER_ID);
        assert!(world.run_until(600, |world| world.clients[0].closed().is_some()));
        assert_eq!(world.clients[0].closed(), Some(CloseReason::ServerForgot));
    }

    #[test]
    fn a_server_with_another_key_tells_nobody() {
        for rotated in [false, true] {
            let mut world = connected();
            world.server = if rotated {
                let verifier = verifier(SERVER_ID);
                verifier.rotate(key(SERVER_ID + 1));
                let config = requiring(verifier, server_config(&SessionConfig::default(), SUITE));
                Server::new(&config, random(9, 9)).unwrap()
            } else {
                another(SERVER_ID + 1)
            };
            world.run(5_000);
            assert_eq!(world.clients[0].closed(), None);
            assert!(world.server.stats().resets > 0);
        }
    }

    /// Servers of one key, at addresses of their own: whoever copies a client's packets to another one gets a token for
    /// themselves, and the client listens to its own server only.
    #[test]
    fn a_sibling_with_the_same_key_resets_no_session() {
        let mut world = connected();
        let sid = world.sessions[0].to_bits();
        let mut sibling = another(SERVER_ID);
        let question = [&[kind::DATA][..], &sid.to_le_bytes(), &[0; 35]].concat();
        let (now, mut reset) = (world.now, Vec::new());
        sibling.give(now, neighbour(), &question);
        assert_eq!(sibling.emit_to(now, &mut reset), Some(neighbour()));
        world.clients[0].session.give(now, server_address(), &reset);
        reset.clear();
        let victim = world.address(0);
        sibling.give(now, victim, &question); // in its name
        assert_eq!(sibling.emit_to(now, &mut reset), Some(victim));
        world.clients[0].session.give(now, client_address(99, 4000), &reset);
        world.run(1_000);
        assert_eq!(world.clients[0].closed(), None);
        assert!(world.session().is_connected());
    }
}
