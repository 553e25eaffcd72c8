//! Clients behind a proxy that tells where they are: limits, proofs and events know them by their own addresses.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;

use common::ms;
use common::sessions::{SUITE, World, client_address, client_config, on, random, server_config};
use common::told::{PROXY, Proxy, header};

use std::net::{Ipv4Addr, SocketAddr};
use whitewater::inside::session::wire::{DenyReason, Hello};
use whitewater::rand_core::Rng as _;
use whitewater::session::Suite;
use whitewater::{ClientConfig, CloseReason, Event, ServerConfig, SessionConfig, SessionId};
use whitewater_sim::{LinkConfig, Loss};

fn behind(seed: u64, config: ServerConfig) -> World {
    let mut world = World::new(seed, &ServerConfig { proxies: vec![PROXY.into()], ..config });
    world.proxy = Some(Proxy::new());
    world
}

fn default(suite: Suite) -> ServerConfig {
    server_config(&SessionConfig::default(), suite)
}

fn path(loss: f64) -> LinkConfig {
    LinkConfig { loss: Loss::Random(loss), ..LinkConfig::with_rtt(ms(60)) }
}

fn add(world: &mut World, loss: f64, suite: Suite) -> usize {
    world.add(&path(loss), &path(loss), &SessionConfig::default(), client_config(suite))
}

fn is_up(world: &World, client: usize) -> bool {
    world.clients[client].session.is_connected()
}

/// Sends a message each way in so many turns of 50 ms, and checks that each arrives.
fn talk(world: &mut World, turns: u8) {
    for turn in 0..turns {
        world.client().send(on(0), &[turn; 50]).unwrap();
        world.session().send(on(0), &[turn; 50]).unwrap();
        world.run(50);
    }
    world.run(3000);
    for turn in 0..turns {
        assert_eq!(world.session().recv(on(0)).unwrap(), [turn; 50][..]);
        assert_eq!(world.client().recv(on(0)).unwrap(), [turn; 50][..]);
    }
}

#[test]
fn each_client_of_a_proxy_has_the_limits_of_its_own_address() {
    let limited = ServerConfig { sessions_per_address: 1, half_open_per_address: 1, ..default(SUITE) };
    let mut world = behind(1, limited);
    for _ in 0..40 {
        add(&mut world, 0.0, SUITE);
    }
    world.run(3000);
    assert!((0..40).all(|client| is_up(&world, client)), "40 clients of one proxy");
    let met: Vec<_> =
        world.sessions.iter().map(|id| world.server.connection(*id).unwrap().peer_addr()).collect();
    assert!((0..40).all(|client| met.contains(&world.address(client))), "{met:?}");
    let second = add(&mut world, 0.0, SUITE);
    world.rebind(second, client_address(1, 2000)); // of the first client's address
    world.run(15_000);
    assert_eq!(world.clients[second].closed(), Some(CloseReason::Denied(DenyReason::Busy)));
}

#[test]
fn sessions_outlive_a_restart_of_their_proxy_without_a_move_even_if_they_are_not_encrypted() {
    for (seed, suite) in (1..=20).flat_map(|seed| [(seed, SUITE), (seed, Suite::Checked)]) {
        let mut world = behind(seed, default(suite));
        add(&mut world, 0.1, suite);
        world.connect();
        talk(&mut world, 20);
        world.proxy.as_mut().unwrap().restart();
        talk(&mut world, 20);
        let moved = world.events.iter().any(|(.., event)| matches!(event, Event::Moved { .. }));
        assert!(!moved && world.closed().is_none(), "seed {seed}");
    }
}

#[test]
#[cfg(feature = "crypto")]
fn a_client_that_moves_behind_the_proxy_is_known_by_its_new_address() {
    let mut world = behind(1, default(SUITE));
    add(&mut world, 0.0, SUITE);
    world.connect();
    let (old, new) = (world.address(0), client_address(77, 7777));
    world.rebind(0, new);
    talk(&mut world, 20);
    let moved = world.events.iter().find_map(|(.., event)| match event {
        Event::Moved { from, to } => Some((*from, *to)),
        _ => None,
    });
    assert_eq!(moved, Some((old, new)));
}

#[test]
fn tickets_and_resets_are_for_the_address_of_a_client_whatever_the_port_of_its_proxy() {
    let config = ServerConfig { proxies: vec![PROXY.into()], reset_key: Some([3; 16]), ..default(SUITE) };
    let mut world = behind(6, config.clone());
    add(&mut world, 0.0, SUITE);
    world.rebind(0, client_address(2, 999)); // the next client has this address, and another port
    world.connect();
    let ticket = world.client().ticket().to_vec();
    world.proxy.as_mut().unwrap().restart();
    let with_ticket = ClientConfig { ticket, ..client_config(SUITE) };
    let second = world.add(&path(0.0), &path(0.0), &SessionConfig::default(), with_ticket);
    world.run(61);
    assert!(is_up(&world, second), "after one round trip");
    assert_eq!(world.server.stats().tickets, 1);

    world.server = whitewater::session::Server::new(&config, random(8, 1000)).unwrap();
    world.proxy.as_mut().unwrap().restart();
    world.clients[second].session.connection_mut().unwrap().send(on(0), b"are you there?").unwrap();
    world.run(1000);
    assert_eq!(world.clients[second].closed(), Some(CloseReason::ServerForgot));
}

#[test]
fn headers_of_strangers_are_malformed_and_datagrams_without_one_are_not_taken_from_a_proxy() {
    let mut world = behind(1, default(SUITE));
    add(&mut world, 0.0, SUITE);
    world.connect();
    world.proxy = None; // by hand from here
    let mut hello = Vec::new();
    let (suite, cid) = (SUITE.code(), 5);
    Hello { suite, protocol_id: 0, cid, client_stamp: 1, size: 1200 }.encode(&mut hello).unwrap();
    let told = [header(world.address(0)), hello.clone()].concat();
    let proxy = SocketAddr::from((PROXY, 9));
    let before = world.server.stats();
    world.inject(client_address(200, 1), &told);
    assert_eq!(world.server.stats().rejected.malformed, before.rejected.malformed + 1);
    let twice = [header(world.address(0)), told.clone()].concat(); // the second one is the client's own
    world.inject(proxy, &twice);
    assert_eq!(world.server.stats().rejected.malformed, before.rejected.malformed + 2);
    let of_tcp = [&told[..13], &[0x11], &told[14..]].concat();
    for datagram in [&hello[..], &[], &told[..12], &told[..20], &of_tcp] {
        world.inject(proxy, datagram);
    }
    world.inject(proxy, &told[..28]); // a header alone, which says nothing of what comes next
    world.inject(proxy, &hello);
    let rejected = world.server.stats().rejected;
    assert_eq!(rejected.proxy, before.rejected.proxy + 6, "{rejected:?}");
    assert_eq!(world.server.stats().challenges, before.challenges);
    assert!(world.strangers.is_empty());

    world.inject(proxy, &told);
    assert_eq!(world.server.stats().challenges, before.challenges + 1);
    assert_eq!(world.strangers.pop().unwrap().0, proxy);
    let own = [&told[..12], &[0x20, 0, 0, 0], &hello].concat();
    world.inject(SocketAddr::from((PROXY, 10)), &own);
    assert_eq!(world.strangers.pop().unwrap().0.port(), 10, "a proxy may ask for itself");
    let mapped = SocketAddr::new(Ipv4Addr::from(PROXY).to_ipv6_mapped().into(), 11); // at a socket of both families
    world.inject(mapped, &[header("[2001:db8::1]:4000".parse().unwrap()), hello].concat());
    assert_eq!(world.strangers.pop().unwrap().0, mapped);
    assert_eq!(world.server.stats().challenges, before.challenges + 3);
}

#[test]
fn strangers_behind_the_proxy_cannot_displace_the_way_to_a_client() {
    let mut world = behind(3, default(SUITE));
    add(&mut world, 0.0, SUITE);
    world.connect();
    talk(&mut world, 3);
    let (mut rng, mut hello) = (random(3, 99), Vec::new());
    Hello { suite: SUITE.code(), protocol_id: 0, cid: 9, client_stamp: 1, size: 512 }
        .encode(&mut hello)
        .unwrap();
    for _ in 0..20_000 {
        world.inject((rng.next_u32().to_le_bytes(), 9).into(), &hello);
    }
    world.strangers.clear();
    world.session().send(on(0), b"hello").unwrap();
    world.run(35); // the way to the client takes 30 ms, and it has not spoken since
    assert_eq!(world.client().recv(on(0)).unwrap(), b"hello"[..]);
    talk(&mut world, 10);
    assert!(world.closed().is_none());
}

#[test]
fn a_forged_datagram_by_the_proxy_diverts_nothing_from_a_session() {
    for is_behind in [true, false] {
        let mut world = behind(4, default(SUITE));
        if !is_behind {
            world.proxy = None; // this client is reached directly
        }
        add(&mut world, 0.0, SUITE);
        world.connect();
        talk(&mut world, 3);
        let forged = [&header(world.address(0))[..], &[0xa6; 100]].concat();
        for round in 0..20_u8 {
            let proxy = world.proxy.take(); // by another port of the proxy
            world.inject((PROXY, 9).into(), &forged);
            world.proxy = proxy;
            world.session().send(on(0), &[round; 9]).unwrap();
            world.run(35);
            assert_eq!(world.client().recv(on(0)).unwrap(), [round; 9][..]);
        }
        // The forged session is unknown, which is said where it came from, in fewer bytes.
        let is_reset = |(to, bytes): &(SocketAddr, Vec<u8>)| *to == (PROXY, 9).into() && bytes.len() == 21;
        assert!(world.strangers.iter().all(is_reset) && world.closed().is_none(), "{:?}", world.strangers);
    }
}

/// Nothing is sent to the client itself, which would show it where the server is.
#[test]
fn an_answer_to_a_client_whose_proxy_is_forgotten_is_dropped_and_the_next_one_arrives() {
    let mut world = behind(4, ServerConfig { ask: true, ..default(SUITE) });
    add(&mut world, 0.0, SUITE);
    let requested = |(_, id, event): &(_, SessionId, Event)| (*event == Event::Requested).then_some(*id);
    assert!(world.run_until(3000, |world| world.events.iter().any(|event| requested(event).is_some())));
    let id = world.events.iter().find_map(requested).unwrap();
    let mut rng = random(4, 99);
    for _ in 0..20_000 {
        world.inject((rng.next_u32().to_le_bytes(), 9).into(), b"data");
    }
    world.server.admit(world.now, id, b"").unwrap();
    world.drain();
    assert_eq!(world.server.stats().rejected.way, 1);
    world.run(35); // the way to the client takes 30 ms
    assert!(!is_up(&world, 0));
    world.run(5000);
    assert!(is_up(&world, 0));
}
