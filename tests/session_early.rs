//! A client with a connect token sends the CONNECT at once, and is up after one round trip. Its address is not proven then, so nobody must gain by that.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common;

use common::machine::Whole as _;
use common::ms;
use common::sessions::{
    NOW, SUITE, World, client_address, kind_of, on, random, server_address, server_config,
};
use common::tokens::{SERVER_ID, by_token, key, order, requiring, strict, token, verifier};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use whitewater::inside::session::wire::{CHALLENGE_LEN, kind};
use whitewater::session::token::{Order, PublicToken};
use whitewater::session::{Client, Suite};
use whitewater::{ClientConfig, ServerConfig, SessionConfig, Time};
use whitewater_sim::{LinkConfig, Loss};

fn path() -> LinkConfig {
    LinkConfig::with_rtt(ms(60))
}

fn world_with(config: ServerConfig) -> World {
    World::new(1, &requiring(verifier(SERVER_ID), config))
}

fn default() -> ServerConfig {
    server_config(&SessionConfig::default(), SUITE)
}

/// A token for another client with each number.
fn numbered(number: u16) -> PublicToken {
    let mut nonce = [0; 24];
    nonce[..2].copy_from_slice(&number.to_le_bytes());
    key(SERVER_ID).mint(&order(number.into(), NOW, &[server_address()]), [7; 32], nonce).unwrap()
}

/// What a client with this token sends first.
fn first_datagram(seed: u64, config: &ClientConfig) -> Vec<u8> {
    let mut client = Client::new(config, random(seed, 3)).unwrap();
    client.connect(Time::ZERO, &[server_address()]).unwrap();
    client.emit(Time::ZERO).unwrap().0
}

/// The first datagram of a client with a token of its own.
fn early(number: u16) -> Vec<u8> {
    first_datagram(number.into(), &by_token(&numbered(number)))
}

fn join(world: &mut World, path: &LinkConfig, config: ClientConfig) -> usize {
    world.add(path, path, &SessionConfig::default(), config)
}

/// The same for a player behind this address.
fn join_at(world: &mut World, ip: IpAddr, port: u16, config: ClientConfig) -> usize {
    world.add_at(SocketAddr::new(ip, port), &path(), &path(), &SessionConfig::default(), config)
}

/// How long a client takes until it is up.
fn takes(world: &mut World, config: ClientConfig) -> Duration {
    let (start, index) = (world.now, join(world, &path(), config));
    let is_up = world.run_until(12_000, |world| world.clients[index].session.is_connected());
    assert!(is_up, "{:?}", world.server.stats());
    world.now.since(start)
}

/// Bytes that were sent to an address without a link.
fn sent_to(world: &World, address: SocketAddr) -> usize {
    world.strangers.iter().filter(|(to, _)| *to == address).map(|(_, datagram)| datagram.len()).sum()
}

#[test]
fn a_client_with_a_token_is_up_after_one_round_trip_and_can_send() {
    let mut world = world_with(default());
    world.taps = true;
    let took = takes(&mut world, by_token(&token(99, NOW, 2)));
    assert!(took <= ms(61), "{took:?}");
    let sent: Vec<_> = world.tap.iter().map(|(.., bytes)| (kind_of(bytes), bytes.len())).collect();
    assert!(matches!(sent[..], [(kind::CONNECT, 1200), (kind::ACCEPT, ..=300), (kind::DATA, _)]), "{sent:?}");
    let (start, mut buf) = (world.now, [0; 5]);
    world.clients[0].session.connection_mut().unwrap().send(on(0), b"first").unwrap();
    let came = world.run_until(1_000, |world| {
        let Some(&id) = world.sessions.first() else { return false };
        world.server.connection_mut(id).unwrap().recv_into(on(0), &mut buf) == Ok(5)
    });
    assert!(came && world.now.since(start) <= ms(31), "right behind the ACCEPT");
    let stats = world.server.stats();
    assert_eq!((stats.early, stats.accepted, stats.challenges), (1, 1, 0), "{stats:?}");
    assert_eq!(stats.rejected, <_>::default());
}

#[test]
fn whoever_is_not_let_in_at_once_is_up_after_two_round_trips() {
    let token = |suite| {
        let addresses = [server_address()];
        let order = Order { suite, ..order(99, NOW, &addresses) };
        by_token(&key(SERVER_ID).mint(&order, [2; 32], [2; 24]).unwrap())
    };
    let hybrid = Suite::HYBRID_TOKEN;
    let of = |suite| ServerConfig { suites: vec![suite], ..default() };
    // The server, the client, what came before, and whether the server was asked at once.
    let few = ServerConfig { half_open: 4, ..default() };
    let cases = [
        ("of a hybrid suite", of(hybrid), token(hybrid), 0, false),
        ("with short HELLOs", default(), ClientConfig { hello: 1199, ..token(SUITE) }, 0, false),
        ("after another that was not heard from", few, token(SUITE), 1, true),
        ("after 64 that were not heard from", default(), token(SUITE), 64, true),
    ];
    for (what, server, client, before, is_asked) in cases {
        let mut world = world_with(server);
        for number in 0..before {
            world.inject(client_address(100 + u8::try_from(number).unwrap(), 1), &early(1000 + number));
            world.run(50);
        }
        let (stats, early) = (world.server.stats(), world.server.stats().early);
        let took = takes(&mut world, client);
        assert!(took > ms(61) && took <= ms(122), "{what}: {took:?}");
        let after = world.server.stats();
        assert_eq!(after.early, early, "{what}");
        assert_eq!(after.rejected.unproven - stats.rejected.unproven, u64::from(is_asked), "{what}");
    }
}

/// Its application is asked about clients at addresses that are proven.
#[test]
fn a_server_that_asks_its_application_asks_after_two_round_trips() {
    let mut world = world_with(ServerConfig { ask: true, ..default() });
    join(&mut world, &path(), by_token(&token(99, NOW, 2)));
    world.run(31);
    assert!(world.events.is_empty() && world.server.stats().rejected.unproven == 1);
    world.run(60);
    let (_, id, _) = world.events[0];
    assert_eq!(world.server.request(id).unwrap().address, world.address(0));
}

/// It does not know which of them are the same server, and each would use up the token.
#[test]
fn a_client_with_two_addresses_sends_no_connect_before_one_has_answered() {
    let config = by_token(&numbered(1));
    let mut client = Client::new(&config, random(1, 1)).unwrap();
    client.connect(Time::ZERO, &[server_address(), client_address(1, 1)]).unwrap();
    let first = [client.emit(Time::ZERO).unwrap(), client.emit(Time::ZERO).unwrap()];
    assert!(first.iter().all(|(datagram, _)| datagram[0] == kind::HELLO));
    // Those that a routing token leads to are one server.
    let routed = ClientConfig { routing_token: b"7".to_vec(), ..config };
    let mut client = Client::new(&routed, random(1, 1)).unwrap();
    client.connect(Time::ZERO, &[server_address(), client_address(1, 1)]).unwrap();
    let first = [client.emit(Time::ZERO).unwrap(), client.emit(Time::ZERO).unwrap()];
    assert!(first.iter().all(|(datagram, _)| datagram[0] == kind::CONNECT) && first[0].0 == first[1].0);
}

#[test]
fn loss_keeps_no_client_out_and_costs_it_no_more_than_one_that_asks_for_a_cookie() {
    let lossy = LinkConfig { loss: Loss::Random(0.3), ..path() };
    let all = |hello| {
        let mut all: Vec<_> = (1..=300)
            .map(|seed| {
                let mut world = strict(seed, verifier(SERVER_ID));
                let index = join(&mut world, &lossy, ClientConfig { hello, ..by_token(&token(99, NOW, 2)) });
                let is_up = world.run_until(10_000, |world| world.clients[index].session.is_connected());
                assert!(is_up, "seed {seed}: {:?}", world.server.stats());
                world.now.since(common::sessions::START)
            })
            .collect();
        all.sort_unstable();
        println!("hello {hello}: p50 {:?}, p99 {:?}", all[150], all[297]);
        all
    };
    let (early, late) = (all(1200), all(1199));
    for rank in [75, 150, 225, 297] {
        assert!(early[rank] + ms(50) <= late[rank], "{rank}: {:?}, {:?}", early[rank], late[rank]);
    }
}

/// The application says as much as it can.
#[test]
fn an_address_that_is_not_proven_gets_a_third_of_its_bytes_at_most() {
    let mut world = world_with(ServerConfig { user: vec![7; 256], ..default() });
    let (victim, datagram) = (client_address(9, 9), early(1));
    for _ in 0..400 {
        world.inject(victim, &datagram);
        world.run(50);
    }
    let sent = sent_to(&world, victim);
    assert!(sent > 150 * 300 && 3 * sent <= 400 * 1200, "{sent}");
    let stats = world.server.stats();
    assert!(stats.early <= 2 && stats.accepts_repeated > 150, "a place is held for 10 s: {stats:?}");
}

/// Whoever has tokens names somebody else's address in each CONNECT.
#[test]
fn forged_addresses_take_no_place_and_no_rate_of_their_owner() {
    let limits =
        ServerConfig { sessions_per_address: 2, half_open_per_address: 2, accept_burst: 2, ..default() };
    let mut world = world_with(limits);
    let victim = client_address(1, 1);
    for number in 0..200 {
        world.inject(SocketAddr::new(victim.ip(), 5000 + number), &early(1000 + number));
        world.run(5);
    }
    let forged = world.server.stats();
    assert!(forged.early == 2 && forged.rejected.unproven == 198, "{forged:?}");
    // Two players at that address get in, and a third one does not.
    let players: Vec<_> = (1..=3)
        .map(|number| join_at(&mut world, victim.ip(), 1000 + number, by_token(&numbered(number))))
        .collect();
    world.run(160);
    let up = players.iter().filter(|index| world.clients[**index].session.is_connected()).count();
    assert_eq!((up, world.sessions.len()), (2, 2), "{:?}", world.server.stats());
}

#[test]
fn a_flood_of_forged_addresses_takes_a_quarter_of_the_places_at_most_and_delays_nobody_else() {
    let config = ServerConfig { max_sessions: 64, half_open: 64, ..default() };
    let mut world = world_with(config);
    world.taps = false;
    let flood: Vec<_> = (1000..4000).map(early).collect();
    let mut at = 0;
    let mut step = |world: &mut World| {
        let from = SocketAddr::new([10, 1, (at / 250) as u8, (at % 250) as u8].into(), 1);
        world.inject(from, &flood[at]);
        at += 1;
    };
    (0..500).for_each(|_| step(&mut world));
    assert!(world.server.len() <= 16, "{}", world.server.len());
    let index = join(&mut world, &path(), by_token(&numbered(1)));
    let start = world.now;
    let is_up = world.run_until(2_000, |world| {
        step(world);
        world.clients[index].session.is_connected()
    });
    assert!(is_up && world.now.since(start) <= ms(122), "{:?}", world.now.since(start));
    assert!(world.server.len() <= 17 && world.server.stats().memory < 1 << 20, "{:?}", world.server.stats());
}

#[test]
fn unproven_clients_are_removed_first_when_a_client_with_a_cookie_needs_the_place() {
    let mut world = world_with(ServerConfig { max_sessions: 4, half_open: 8, ..default() });
    for number in 0..2 {
        let index = join(&mut world, &path(), by_token(&numbered(1 + number)));
        assert!(world.run_until(500, |world| world.clients[index].session.is_connected()));
    }
    world.run(500);
    world.inject(client_address(100, 1), &early(1000));
    world.inject(client_address(101, 1), &early(1001));
    assert_eq!(world.server.len(), 3, "a quarter of the places that are left is one");
    let late = |number| ClientConfig { hello: 1199, ..by_token(&numbered(number)) };
    for number in 5..=6 {
        assert!(takes(&mut world, late(number)) <= ms(122), "{number}");
    }
    world.run(31);
    assert_eq!((world.sessions.len(), world.server.len()), (4, 4));
    assert_eq!(world.server.stats().unconfirmed, 1);
    // Their tokens are good for another try.
    let now = world.now;
    world.clients[0].session.close(now, 0);
    world.run(2_000);
    assert!(takes(&mut world, late(1000)) <= ms(122));
}

/// An observer is faster than the client, and sends a copy of its CONNECT in the name of another address.
#[test]
fn a_copy_that_is_first_costs_its_client_a_round_trip_and_nothing_else() {
    for copies in [1, 10] {
        let mut world = world_with(default());
        world.taps = true;
        let index = join(&mut world, &path(), by_token(&numbered(1)));
        let (_, _, _, datagram) = world.tap[0].clone();
        let victim = |number| SocketAddr::new([10, 7, number, 9].into(), 9);
        for number in 0..copies {
            world.inject(victim(number), &datagram);
        }
        let accepts = world.strangers.iter().filter(|(_, bytes)| bytes[0] == kind::ACCEPT).count();
        assert_eq!((accepts, world.server.len()), (1, 1), "the others get cookies");
        let start = world.now;
        assert!(world.run_until(1_000, |world| world.clients[index].session.is_connected()));
        assert!(world.now.since(start) <= ms(122), "{:?}", world.now.since(start));
        // The session is where the client is, and the audit of the world sees to it that nobody else gets more than they sent.
        for number in 0..100 {
            world.clients[index].session.connection_mut().unwrap().send(on(0), &[number; 100]).unwrap();
            world.inject(victim(0), &datagram);
            world.run(50);
        }
        let stats = world.server.stats();
        assert_eq!((world.sessions.len(), stats.accepted, stats.early), (1, 1, 1), "{stats:?}");
        assert_eq!(world.session().peer_addr(), world.address(index));
        assert!(3 * sent_to(&world, victim(0)) <= 101 * 1200, "{}", sent_to(&world, victim(0)));
    }
}

#[test]
fn a_replayed_connect_gets_a_cookie_at_most_and_makes_no_session_while_its_token_is_used() {
    let mut world = world_with(default());
    world.taps = true;
    takes(&mut world, by_token(&numbered(1)));
    let (_, from, _, datagram) = world.tap[0].clone();
    world.run(200);
    for (after, whence) in [(0, from), (0, client_address(9, 9)), (30_000, from), (0, client_address(9, 9))] {
        world.run(after);
        world.tap.clear();
        world.inject(whence, &datagram);
        let answers = world.tap.iter().filter(|(_, _, to, bytes)| *to == whence && bytes[0] != kind::DATA);
        let lens: Vec<_> = answers.map(|(.., bytes)| bytes.len()).collect();
        assert!(lens.iter().all(|len| *len <= CHALLENGE_LEN) && lens.len() <= 1, "{lens:?}");
        assert_eq!((world.sessions.len(), world.server.len()), (1, 1));
    }
}

/// What it would have paid with a cookie.
#[test]
fn a_client_that_was_let_in_at_once_pays_for_it_when_it_is_heard_from() {
    let mut world = world_with(ServerConfig { accept_burst: 3, accepts_per_second: 1, ..default() });
    let address = client_address(1, 1).ip();
    for number in 1..=3 {
        let index = join_at(&mut world, address, 1000 + number, by_token(&numbered(number)));
        assert!(world.run_until(200, |world| world.clients[index].session.is_connected()));
        world.run(40);
    }
    let index = join_at(&mut world, address, 1004, by_token(&numbered(4)));
    world.run(130);
    let stats = world.server.stats();
    assert!(!world.clients[index].session.is_connected() && stats.early == 3, "{stats:?}");
    assert!(stats.rejected.unproven >= 1 && stats.rejected.accept_rate >= 1, "{stats:?}");
}
