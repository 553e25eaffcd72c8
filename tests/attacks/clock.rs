//! A server's clock of the day may be wrong, stop or jump: tokens work when it is right, and none works twice.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;

use common::ms;
use common::sessions::{SUITE, World, random, server_config};
use common::tokens::{NOW, SERVER_ID, by_token, key, token};
use std::time::Duration;
use whitewater::machine::Machine as _;
use whitewater::session::Server;
use whitewater::session::token::{PublicToken, Verifier};
use whitewater::{ServerConfig, SessionConfig};
use whitewater_sim::LinkConfig;

/// A server that was not told the time, with the key of tokens and nothing else.
fn untold() -> World {
    let config = server_config(&SessionConfig::default(), SUITE);
    let tokens = Some(Verifier::new(key(SERVER_ID)));
    let config = ServerConfig { tokens, psk: None, ..config };
    let mut world = World::new(1, &config);
    world.server = Server::new(&config, random(1, 1)).unwrap();
    world
}

/// A server whose clock shows `unix`.
fn server(unix: u64) -> World {
    let mut world = untold();
    set(&mut world, unix);
    world
}

/// Sets the clock of the server.
fn set(world: &mut World, unix: u64) {
    world.server.set_unix_time(world.now, Duration::from_secs(unix));
}

/// Whether the server admits a new client with this token.
fn admits(world: &mut World, token: &PublicToken) -> bool {
    let path = LinkConfig::with_rtt(ms(40));
    let client = world.add(&path, &path, &SessionConfig::default(), by_token(token));
    world.run_until(2_000, |world| world.clients[client].session.connection().is_some())
}

#[test]
fn a_clock_that_was_wrong_at_first_harms_nobody_once_it_is_right() {
    for wrong in [0, NOW - 86_400, NOW + 86_400, u64::MAX] {
        let mut world = server(wrong);
        world.run(20_000);
        assert!(!admits(&mut world, &token(1, NOW, 1)), "at {wrong}");
        set(&mut world, NOW);
        assert!(admits(&mut world, &token(2, NOW, 2)), "after {wrong}");
        let old = token(3, NOW - 40, 3);
        assert!(!admits(&mut world, &old), "from before the server, which may have been used: after {wrong}");
    }
}

#[test]
fn a_suspended_server_refuses_what_expired_meanwhile() {
    let mut world = server(NOW);
    assert!(admits(&mut world, &token(1, NOW, 1)));
    let (held, before) = (token(2, NOW, 2), world.now);
    set(&mut world, NOW + 3_600); // the monotonic clock stood still
    assert_eq!(world.now, before);
    assert!(!admits(&mut world, &held), "55 minutes after it expired");
    assert!(admits(&mut world, &token(3, NOW + 3_600, 3)));
}

#[test]
fn no_jump_of_the_clock_lets_a_used_token_in_again() {
    let mut world = server(NOW);
    let used = token(1, NOW, 1);
    assert!(admits(&mut world, &used));
    for unix in [NOW + 86_400, NOW, NOW - 86_400, NOW - 20, 0, NOW + 1] {
        set(&mut world, unix);
        assert!(!admits(&mut world, &used), "at {unix}");
        world.run(1_000);
    }
    set(&mut world, NOW + 60);
    assert!(admits(&mut world, &token(2, NOW + 60, 2)));
}

#[test]
fn without_the_time_no_token_is_good() {
    let mut world = untold();
    assert!(!admits(&mut world, &token(1, NOW, 1)) && world.server.stats().rejected.token > 0);
}

/// Of servers that share a verifier, one that was made later makes the others forget nothing and refuse nothing more.
#[test]
fn a_second_server_does_not_make_the_memory_of_a_verifier_younger() {
    let verifier = Verifier::new(key(SERVER_ID));
    let open = |now, token: &PublicToken| verifier.open(now, 0, SUITE, &token.sealed).is_ok();
    verifier.set_age(NOW, 0);
    verifier.set_age(NOW + 30, 30);
    verifier.set_age(NOW + 30, 0);
    assert!(open(NOW + 30, &token(1, NOW, 1)), "it was made after the first");
    assert!(!open(NOW + 30, &token(1, NOW - 6, 1)));
}
