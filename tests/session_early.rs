//! A client with a connect token sends the CONNECT at once, and is up after one round trip. Its address is not proven then, so nobody must gain by that.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common;

use common::machine::Whole as _;
use common::ms;
use common::sessions::{
    NOW, SUITE, World, client_address, first_of, kind_of, on, random, server_address, server_config,
};
use common::tokens::{SERVER_ID, by_token, key, order, requiring, strict, token, verifier};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use whitewater::inside::session::wire::{Challenge, Connect, Deny, Hello, Packet, kind};
use whitewater::session::token::{Order, PublicToken};
use whitewater::session::{Client, DenyReason};
use whitewater::{ClientConfig, CloseReason, ServerConfig, SessionConfig};
use whitewater_sim::{LinkConfig, Loss};

#[cfg(feature = "pq")]
const HYBRID: whitewater::session::Suite = whitewater::session::Suite::HYBRID_TOKEN;

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

/// The first datagram of a client with a token of its own.
fn early(number: u16) -> Vec<u8> {
    first_of(by_token(&numbered(number)))
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
    let of = |suite| ServerConfig { suites: vec![suite], ..default() };
    // The server, the client, how many came before, and whether the server was asked at once.
    let few = ServerConfig { half_open: 4, ..default() };
    let cases = [
        #[cfg(feature = "pq")]
        ("of a hybrid suite", of(HYBRID), token(HYBRID), 0, false),
        ("with short HELLOs", of(SUITE), ClientConfig { hello: 1199, ..token(SUITE) }, 0, false),
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

#[test]
fn an_application_is_asked_about_clients_at_proven_addresses_only() {
    let mut world = world_with(ServerConfig { ask: true, ..default() });
    join(&mut world, &path(), by_token(&token(99, NOW, 2)));
    world.run(31);
    assert!(world.events.is_empty() && world.server.stats().rejected.unproven == 1);
    world.run(60);
    let (_, id, _) = world.events[0];
    assert_eq!(world.server.request(id).unwrap().address, world.address(0));
}

/// It does not know whether they are one server, and each would use up the token.
#[test]
fn a_client_with_two_addresses_asks_both_for_a_cookie_first() {
    let mut world = world_with(default());
    let mut client = Client::new(&by_token(&numbered(1)), random(1, 1)).unwrap();
    let (from, addresses) = (client_address(1, 1), [server_address(), client_address(2, 2)]);
    client.connect(world.now, &addresses).unwrap();
    let asked = [client.emit(world.now).unwrap(), client.emit(world.now).unwrap()];
    assert!(asked.iter().all(|(datagram, _)| datagram[0] == kind::HELLO));
    assert_eq!(asked.each_ref().map(|(_, to)| *to), addresses);
    world.inject(from, &asked[0].0);
    let (_, challenge) = world.strangers.pop().unwrap();
    client.give(world.now, server_address(), &challenge);
    let (connect, to) = client.emit(world.now).unwrap();
    assert_eq!((connect[0], to), (kind::CONNECT, server_address()));
    assert!(Connect::decode(&connect).unwrap().has_proof());
}

/// All of them lead to one server, which knows that it is one attempt.
#[test]
fn a_client_with_a_routing_token_asks_at_all_addresses_at_once_and_is_one_session() {
    let mut world = world_with(ServerConfig { routing_token: 1, ..default() });
    let config = ClientConfig { routing_token: b"7".to_vec(), ..by_token(&numbered(1)) };
    let mut client = Client::new(&config, random(1, 1)).unwrap();
    let addresses = [1, 2, 3, 4].map(|number| client_address(90, number));
    client.connect(world.now, &addresses).unwrap();
    let asked: Vec<_> = std::iter::from_fn(|| client.emit(world.now)).collect();
    assert!(asked.iter().map(|(_, to)| *to).eq(addresses) && asked.iter().all(|(it, _)| *it == asked[0].0));
    // Each proxy has an address of its own.
    for (number, (datagram, _)) in (1..).zip(&asked) {
        world.inject(client_address(number, 1), datagram);
    }
    let kinds: Vec<_> = world.strangers.iter().map(|(_, bytes)| bytes[0]).collect();
    assert_eq!(kinds, [kind::ACCEPT, kind::CHALLENGE, kind::CHALLENGE, kind::CHALLENGE]);
    assert_eq!((world.server.len(), world.server.stats().early), (1, 1));
    // A server may answer from where nobody expected it.
    let (_, accept) = world.strangers.swap_remove(0);
    client.give(world.now, client_address(91, 1), &accept);
    assert!(client.is_connected());
    assert_eq!(client.peer_addr(), Some(client_address(91, 1)));
}

/// It says who the client is, and the token saves the same round trip.
#[test]
fn a_client_with_a_token_keeps_its_ticket_to_itself() {
    let config = ClientConfig { ticket: vec![0xff; 20], ..by_token(&numbered(1)) };
    assert_eq!(first_of(config), first_of(by_token(&numbered(1))));
}

/// A server that cannot read it tells the client at once which versions it speaks.
#[test]
fn a_connect_of_another_version_is_denied_in_16_bytes() {
    let mut world = world_with(default());
    let (from, mut datagram) = (client_address(9, 9), early(1));
    datagram[1] = 2;
    world.inject(from, &datagram);
    let (to, deny) = world.strangers.pop().unwrap();
    let Ok(Packet::Deny(Deny { reason, cid, .. })) = Packet::decode(&deny) else { panic!("{deny:?}") };
    assert_eq!((to, reason), (from, DenyReason::Version));
    assert_eq!(cid.to_le_bytes(), datagram[12..20]);
    world.inject(from, &datagram[..511]);
    assert!(world.strangers.is_empty(), "it is too short for an answer");
}

/// Somebody on the way answers before the server.
#[test]
fn forged_cookies_and_denials_keep_no_client_with_a_token_out() {
    let mut world = world_with(default());
    world.taps = true;
    let index = join(&mut world, &path(), by_token(&numbered(1)));
    let (_, _, _, datagram) = world.tap[0].clone();
    let Connect { suite, cid, .. } = Connect::decode(&datagram).unwrap();
    let (mut challenge, mut deny) = (Vec::new(), Vec::new());
    Challenge { suite, cid, client_stamp: 0, epoch: 7, cookie: [7; 16] }.encode(&mut challenge).unwrap();
    let reason = DenyReason::Token;
    Deny { lowest: 1, highest: 1, reason, cid, retry_after_ms: 5000 }.encode(&mut deny).unwrap();
    for forged in [challenge, deny] {
        world.inject_client(index, &forged);
    }
    world.run(61);
    assert!(world.clients[index].session.is_connected());
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

/// The same path and the same end as in `connecting_takes_three_round_trips_and_loss_costs_little`: both ends have heard each other.
#[test]
fn connecting_takes_two_round_trips_with_a_token() {
    let all = |loss| {
        let path = LinkConfig { loss: Loss::Random(loss), ..LinkConfig::with_rtt(ms(120)) };
        let times = (1..=1000).filter_map(|seed| {
            let mut world = strict(seed, verifier(SERVER_ID));
            join(&mut world, &path, by_token(&token(99, NOW, 2)));
            let start = world.now.as_millis();
            world.run_until(10_000, |world| world.is_up()).then(|| world.now.as_millis() - start)
        });
        let mut times: Vec<_> = times.collect();
        times.sort_unstable();
        times
    };
    let [clean, third, most] = [0.0, 0.3, 0.6].map(all);
    assert!(most.len() >= 990, "{} of 1000 in 10 s", most.len());
    println!("token: p50 {} {} {}", clean[500], third[500], most[500]);
    println!("token: p99 {} {} {}", clean[990], third[990], most[985]);
    assert!(clean.len() == 1000 && clean[999] <= 241, "{}", clean[999]);
    assert!(third.len() == 1000 && third[990] <= 1500, "{}: p99 {:?}", third.len(), third.get(990));
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
fn a_flood_of_forged_addresses_takes_a_quarter_of_the_places_and_costs_others_one_round_trip() {
    let config = ServerConfig { max_sessions: 64, half_open: 64, ..default() };
    let mut world = world_with(config);
    world.taps = false;
    let mut flood = (0..3000).map(|number: u16| {
        let [high, low] = number.to_be_bytes();
        (SocketAddr::new([10, 1, high, low].into(), 1), early(1000 + number))
    });
    let mut step = |world: &mut World| {
        let (from, datagram) = flood.next().unwrap();
        world.inject(from, &datagram);
    };
    (0..500).for_each(|_| step(&mut world));
    assert_eq!((world.server.len(), world.server.stats().early), (16, 16));
    let index = join(&mut world, &path(), by_token(&numbered(1)));
    let start = world.now;
    let is_up = world.run_until(2_000, |world| {
        step(world);
        world.clients[index].session.is_connected()
    });
    assert!(is_up && world.now.since(start) <= ms(122), "{:?}", world.now.since(start));
    assert!(world.server.len() <= 17 && world.server.stats().memory < 1 << 20, "{:?}", world.server.stats());
}

/// 20 times what one address may ask for. Others ask for a cookie.
#[test]
fn clients_that_are_let_in_at_once_share_a_rate() {
    let limits = ServerConfig { accepts_per_second: 2, accept_burst: 4, half_open: 16_384, ..default() };
    let mut world = world_with(ServerConfig { max_sessions: 2048, ..limits });
    let mut number = 0_u16;
    let mut let_in = |world: &mut World, count: u16| {
        let before = world.server.stats().early;
        for _ in 0..count {
            number += 1;
            let [low, high] = number.to_le_bytes();
            world.inject(SocketAddr::new([10, 1, high, low].into(), 1), &early(1000 + number));
        }
        world.server.stats().early - before
    };
    assert_eq!(let_in(&mut world, 20), 8, "twice the burst of an address");
    world.run(150);
    assert_eq!(let_in(&mut world, 20), 6, "40 a second");
    assert_eq!(world.server.stats().rejected.unproven, 26);
}

#[test]
fn an_unproven_client_is_removed_when_one_with_a_cookie_needs_its_place() {
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

/// The same CONNECT with a cookie of that address.
fn with_cookie(world: &mut World, from: SocketAddr, connect: &[u8]) -> Vec<u8> {
    let read = Connect::decode(connect).unwrap();
    let Connect { suite, protocol_id, cid, .. } = read;
    let (mut hello, mut proven) = (Vec::new(), Vec::new());
    Hello { suite, protocol_id, cid, client_stamp: 0, size: 512 }.encode(&mut hello).unwrap();
    let before = world.strangers.len();
    world.inject(from, &hello);
    let (_, challenge) = world.strangers.drain(before..).next().unwrap();
    let Challenge { epoch, cookie, .. } = Challenge::decode(&challenge).unwrap();
    Connect { epoch, cookie, ..read }.encode(&mut proven).unwrap();
    proven
}

/// An observer is faster than the client, and sends a copy of its CONNECT in the name of another address.
#[test]
fn a_copy_that_is_first_costs_its_client_half_a_second_and_nothing_else() {
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
        assert!(world.now.since(start) <= ms(700), "{:?}", world.now.since(start));
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

/// Whoever has a token names somebody else's address, and asks with a cookie of their own as well. Everything that they send comes in the name of the other
/// address, and from their own.
#[test]
fn nobody_gets_a_session_to_an_address_that_they_cannot_read_at() {
    let mut world = world_with(default());
    world.taps = true;
    let victim = client_address(9, 9);
    let index = join(&mut world, &path(), by_token(&numbered(1)));
    let (_, own, _, datagram) = world.tap[0].clone();
    world.inject(victim, &datagram);
    assert!(world.run_until(1_000, |world| world.clients[index].session.is_connected()));
    assert!(
        world.clients[index].session.connection().unwrap().ticket().is_empty(),
        "it would be for the other address"
    );
    let (mut sent, mut forged) = (0, datagram.len());
    for number in 0..100 {
        world.clients[index].session.connection_mut().unwrap().send(on(0), &[number; 100]).unwrap();
        for _ in 0..20 {
            let data: Vec<_> =
                world.tap[sent..].iter().filter(|tapped| is_data(tapped, own)).cloned().collect();
            sent = world.tap.len();
            for (.., datagram) in data {
                forged += datagram.len();
                world.inject(victim, &datagram); // before the packet itself arrives
            }
            world.run(1);
        }
        if let Some(&id) = world.sessions.first() {
            assert_eq!(world.server.connection(id).unwrap().peer_addr(), own);
            let _ = world.session().send(on(0), &[number; 1000]);
        }
    }
    assert_eq!((world.sessions.len(), world.session().peer_addr()), (1, own));
    let got = sent_to(&world, victim);
    assert!(got <= forged, "{got} for {forged}");
}

/// An observer gets a cookie of their own, and asks with the CONNECT of a client that was let in a moment ago. Then they copy all that the client sends,
/// and their copies arrive first.
#[test]
fn whoever_proves_an_address_for_a_client_that_was_let_in_does_not_keep_its_session() {
    for (rtt, copies) in [(60, false), (60, true), (1200, false), (1200, true)] {
        let mut world = world_with(default());
        world.taps = true;
        let index = join(&mut world, &LinkConfig::with_rtt(ms(rtt)), by_token(&numbered(1)));
        let (_, own, _, datagram) = world.tap[0].clone();
        assert!(world.run_until(1_000, |world| world.server.len() == 1));
        let (thief, mut sent) = (client_address(9, 9), 0);
        for number in 0..300_u16 {
            if world.sessions.is_empty() {
                let copy = with_cookie(&mut world, thief, &datagram);
                world.inject(thief, &copy);
            }
            if let Some(connection) = world.clients[index].session.connection_mut() {
                let _ = connection.send(on(0), &[number.to_le_bytes()[0]; 100]);
            }
            for _ in 0..20 {
                let data: Vec<_> =
                    world.tap[sent..].iter().filter(|tapped| is_data(tapped, own)).cloned().collect();
                sent = world.tap.len();
                for (.., datagram) in data.into_iter().filter(|_| copies) {
                    world.inject(thief, &datagram);
                }
                world.run(1);
            }
        }
        let stats = world.server.stats();
        assert_eq!(
            (stats.accepted, stats.unconfirmed, world.sessions.len()),
            (1, 0, 1),
            "{rtt} {copies}: {stats:?}"
        );
        assert!(world.clients[index].session.is_connected(), "{rtt} {copies}");
        assert_eq!(world.session().peer_addr(), own, "{rtt} {copies}");
        let got = world.strangers.iter().any(|(_, bytes)| bytes[0] == kind::ACCEPT);
        assert_eq!(got, rtt == 1200, "within half a second, the answer is for the client only");
    }
}

fn is_data((_, from, _, bytes): &common::sessions::Tapped, sender: SocketAddr) -> bool {
    *from == sender && kind_of(bytes) == kind::DATA
}

/// Its channels are others than the server's.
#[test]
fn a_client_that_is_rejected_is_told_so_when_its_address_is_proven() {
    let mut world = world_with(default());
    let session =
        SessionConfig { channels: vec![on(0).config(), on(1).config()], ..SessionConfig::default() };
    let other = |number| ClientConfig { session: session.clone(), ..by_token(&numbered(number)) };
    for number in 0..20 {
        world.inject(client_address(9, 1 + number), &first_of(other(100 + number)));
    }
    assert!(
        world.strangers.len() == 20 && world.strangers.iter().all(|(_, bytes)| bytes[0] == kind::CHALLENGE)
    );
    let index = world.add(&path(), &path(), &session, other(1));
    assert!(world.run_until(122, |world| world.clients[index].closed().is_some()));
    let closed = world.clients[index].closed();
    assert!(matches!(closed, Some(CloseReason::Denied(DenyReason::Shape(_)))), "{closed:?}");
    assert_eq!((world.server.len(), world.server.stats().rejected.shape), (0, 1));
}

/// A neighbour who is never heard from has taken the place of their address, and somebody has copied the CONNECT first.
#[test]
fn a_client_that_proves_its_address_gets_the_place_of_its_neighbours_oldest_attempt() {
    let mut world = world_with(ServerConfig { half_open_per_address: 1, ..default() });
    world.taps = true;
    let ip = client_address(1, 1).ip();
    let neighbour = SocketAddr::new(ip, 9);
    let copy = with_cookie(&mut world, neighbour, &early(1000));
    world.inject(neighbour, &copy);
    assert_eq!(world.server.len(), 1);
    let index = join_at(&mut world, ip, 1000, by_token(&numbered(1)));
    let (.., datagram) =
        world.tap.iter().rfind(|(_, from, ..)| *from == world.address(index)).unwrap().clone();
    world.inject(client_address(9, 9), &datagram);
    assert_eq!(world.server.len(), 2);
    let start = world.now;
    assert!(world.run_until(2_000, |world| world.clients[index].session.is_connected()));
    assert!(world.now.since(start) <= ms(700), "{:?}", world.now.since(start));
    world.run(31);
    assert_eq!((world.sessions.len(), world.server.len()), (1, 1));
}

/// The client could not come back by a move.
#[test]
fn a_server_without_moves_asks_for_a_cookie() {
    let mut world = world_with(ServerConfig { migration: false, ..default() });
    let took = takes(&mut world, by_token(&numbered(1)));
    assert!(took > ms(61) && took <= ms(122) && world.server.stats().early == 0, "{took:?}");
}

/// They have tokens of many players, and two addresses.
#[test]
fn nobody_has_more_sessions_at_an_address_by_asking_from_another_one_first() {
    let mut world = world_with(ServerConfig { sessions_per_address: 2, ..default() });
    let (own, other) = (client_address(1, 1).ip(), client_address(9, 9));
    for number in 1..=4 {
        let config = by_token(&numbered(number));
        let mut client = Client::new(&config, random(1, 2000 + u64::from(number) - 1)).unwrap();
        client.connect(world.now, &[server_address()]).unwrap();
        let (datagram, _) = client.emit(world.now).unwrap();
        world.inject(other, &datagram);
        join_at(&mut world, own, 1000 + number, config);
        world.run(2_500);
    }
    assert_eq!(world.sessions.len(), 2, "{:?}", world.server.stats());
    assert!(world.server.stats().rejected.per_address > 0);
}

#[test]
fn a_replayed_connect_is_answered_with_a_cookie_and_makes_no_second_session() {
    let mut world = world_with(default());
    world.taps = true;
    takes(&mut world, by_token(&numbered(1)));
    let (_, from, _, datagram) = world.tap[0].clone();
    let is_answered_with_a_cookie = |world: &mut World| {
        for whence in [from, client_address(9, 9)] {
            world.tap.clear();
            world.inject(whence, &datagram);
            let answers =
                world.tap.iter().filter(|(_, _, to, bytes)| *to == whence && bytes[0] != kind::DATA);
            let kinds: Vec<_> = answers.map(|(.., bytes)| bytes[0]).collect();
            assert_eq!(kinds, [kind::CHALLENGE], "to {whence}");
        }
    };
    for after in [200, 30_000] {
        world.run(after);
        is_answered_with_a_cookie(&mut world);
        assert_eq!((world.sessions.len(), world.server.len()), (1, 1));
    }
    // The session is over, and only its token is remembered.
    let now = world.now;
    world.clients[0].session.close(now, 0);
    world.run(11_000);
    assert!(world.server.is_empty());
    is_answered_with_a_cookie(&mut world);
    assert!(
        world.server.is_empty() && world.server.stats().rejected.token == 2,
        "{:?}",
        world.server.stats()
    );
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
