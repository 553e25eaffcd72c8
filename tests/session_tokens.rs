//! Connect tokens at a server: who gets in, once, and which session has to make room.

use crate::common;

use common::ms;
use common::sessions::{SUITE, World, server_config};
use common::tokens::{NOW, SERVER_ID, by_token, requiring, strict, token, verifier};
use whitewater::session::token::PublicToken;
use whitewater::session::{DenyReason, code};
use whitewater::{ClientConfig, CloseReason, ServerConfig, SessionConfig};
use whitewater_sim::LinkConfig;

fn world() -> World {
    strict(1, verifier(SERVER_ID))
}

fn enter(world: &mut World, token: &PublicToken) -> usize {
    let path = LinkConfig::with_rtt(ms(40));
    world.add(&path, &path, &SessionConfig::default(), by_token(token))
}

#[test]
fn a_token_admits_its_client_and_identifies_it() {
    let mut world = world();
    enter(&mut world, &token(99, NOW, 2));
    world.connect();
    let pass = world.server.pass(world.sessions[0]).unwrap();
    assert_eq!((pass.client_id, pass.match_id, pass.user.as_slice()), (99, [2; 16], &b"red team"[..]));
}

/// Servers that share tokens tell each other which were used.
#[test]
fn a_request_names_the_token_that_its_client_has_brought() {
    let config = requiring(verifier(SERVER_ID), server_config(&SessionConfig::default(), SUITE));
    let mut world = World::new(1, &ServerConfig { ask: true, ..config });
    for number in [2, 3] {
        enter(&mut world, &token(90 + u64::from(number), NOW, number));
        world.run(1_000);
    }
    let named = world.events.iter().map(|(_, id, _)| world.server.request(*id).unwrap().token.unwrap());
    let named: Vec<_> = named.map(|token| (token.server_id, token.nonce, token.expires)).collect();
    assert_eq!(named, [2, 3].map(|number| (SERVER_ID, [number; 24], NOW + 45)));
}

#[test]
fn a_token_can_be_used_once_and_only_with_its_secret() {
    let mut world = world();
    let token = token(99, NOW, 2);
    let path = LinkConfig::with_rtt(ms(40));
    let thief = ClientConfig { psk: Some([9; 32].into()), ..by_token(&token) };
    world.add(&path, &path, &SessionConfig::default(), thief);
    world.run(1_000);
    assert!(world.server.is_empty() && world.server.stats().rejected.handshake > 0);
    enter(&mut world, &token);
    assert!(world.run_until(2_000, |world| world.sessions.len() == 1), "the thief has not used it up");
    let again = enter(&mut world, &token);
    world.run(12_000);
    assert_eq!(world.clients[again].closed(), Some(CloseReason::Denied(DenyReason::Token)));
    assert!(world.server.stats().rejected.token > 0 && world.sessions.len() == 1);
}

#[test]
fn a_newer_token_replaces_the_session_and_an_older_one_is_rejected() {
    let mut world = world();
    let first = enter(&mut world, &token(99, NOW, 2));
    world.run(1_000);
    let other = enter(&mut world, &token(98, NOW, 3));
    let second = enter(&mut world, &token(99, NOW + 1, 4));
    world.run(3_000);
    assert_eq!(world.clients[first].closed(), Some(CloseReason::Peer(code::REPLACED)));
    assert_eq!((world.clients[other].closed(), world.clients[second].closed()), (None, None));
    let late = enter(&mut world, &token(99, NOW, 5));
    world.run(1_000);
    assert_eq!(world.clients[late].closed(), Some(CloseReason::Rejected(code::REPLACED)));
    assert_eq!(world.server.stats().rejected.outdated, 1);
}

#[test]
fn a_missing_or_expired_token_opens_nothing() {
    let mut world = world();
    world.run(60_000);
    enter(&mut world, &token(99, NOW, 2));
    let path = LinkConfig::with_rtt(ms(40));
    world.add(&path, &path, &SessionConfig::default(), common::sessions::client_config(SUITE));
    world.run(2_000);
    assert!(world.server.is_empty() && world.server.stats().rejected.token >= 2);
}
