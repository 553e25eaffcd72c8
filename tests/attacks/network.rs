//! A hostile network can do no more to sessions than a bad one. Figures are bytes, counters and virtual time.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that panics has found something"
)]

use crate::common;
use crate::common::machine::Whole as _;
use rand::Rng;

use common::ms;
use common::sessions::{
    SUITE, Toward, World, client_address, client_config, connect_of, forger_of_numbers, kind_of, on,
    server_address, server_config,
};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use whitewater::inside::session::exchange::{Attempt, Initiator};
use whitewater::inside::session::wire::{
    Accept, Challenge, Connect, Deny, DenyReason, Frame, FrameWriter, Hello, Msg1, Packet, Reset, kind,
};
use whitewater::session::Suite;
use whitewater::{CloseReason, Event, ServerConfig, SessionConfig, Time};
use whitewater_sim::{LinkConfig, SimRng};

fn path() -> LinkConfig {
    LinkConfig::with_rtt(ms(40))
}

fn connected(seed: u64) -> World {
    let mut world = tapped(seed);
    world.connect();
    world
}

/// A connected world that has recorded every datagram.
fn tapped(seed: u64) -> World {
    let mut world = World::new(seed, &server_config(&SessionConfig::default(), SUITE));
    world.taps = true;
    world.add(&path(), &path(), &SessionConfig::default(), client_config(SUITE));
    world
}

fn hello(suite: Suite, cid: u64, size: u16) -> Vec<u8> {
    let mut datagram = Vec::new();
    let hello = Hello { suite: suite.code(), protocol_id: 0, cid, client_stamp: 1, size };
    hello.encode(&mut datagram).unwrap();
    datagram
}

/// A CONNECT of an unencrypted stranger.
fn connect(cid: u64, epoch: u32, cookie: [u8; 16], salt: u8) -> Vec<u8> {
    let (mut payload, mut msg1, mut datagram) = (Vec::new(), Vec::new(), Vec::new());
    let said =
        Msg1 { features: 0, max_datagram: 1200, rcv_wnd: 128, keepalive_ms: 500, user: b"", shape: b"" };
    said.encode(&mut payload).unwrap();
    let attempt = Attempt { suite: Suite::Checked, protocol_id: 0, cid, client_sid: 5, token: &[] };
    Initiator::new(&attempt, None, None, [salt; 32], &payload, &mut msg1).unwrap();
    let packet =
        Connect { suite: 0, protocol_id: 0, cid, epoch, cookie, client_sid: 5, token: &[], msg1: &msg1 };
    packet.encode(&mut datagram).unwrap();
    datagram
}

/// The cookie that the server gives to an address.
fn cookie(world: &mut World, from: SocketAddr, cid: u64) -> (u32, [u8; 16]) {
    world.strangers.clear();
    world.inject(from, &hello(Suite::Checked, cid, 512));
    let Some((to, challenge)) = world.strangers.pop() else { panic!("no challenge") };
    assert_eq!((to, challenge.len()), (from, 36));
    let Challenge { epoch, cookie, .. } = Challenge::decode(&challenge).unwrap();
    (epoch, cookie)
}

fn stranger(number: u32) -> SocketAddr {
    let [a, b, c, d] = number.to_be_bytes();
    ([100 | a, b, c, d], 9).into()
}

fn checked(config: ServerConfig) -> World {
    World::new(1, &ServerConfig { suites: vec![Suite::Checked], ..config })
}

fn of_kind(world: &World, kind: u8, to_server: bool) -> Vec<Vec<u8>> {
    let is = |(_, _, to, bytes): &&common::sessions::Tapped| {
        kind_of(bytes) == kind && (*to == server_address()) == to_server
    };
    world.tap.iter().filter(is).map(|(.., bytes)| bytes.clone()).collect()
}

#[test]
fn a_flood_of_spoofed_hellos_takes_no_memory_and_gets_smaller_answers() {
    let mut world = connected(1);
    let hellos: Vec<_> = (0..64).map(|cid| hello(SUITE, cid, 512)).collect();
    let (mut received, mut sent, mut buf) = (0, 0, Vec::with_capacity(1500));
    let mut flood = |world: &mut World, count: u32| {
        for number in 0..count {
            let hello = &hellos[number as usize % hellos.len()];
            received += hello.len();
            let now = Time::from_micros(world.now.as_micros() + u64::from(number) * 10);
            world.server.give(now, stranger(number), hello);
            while world.server.emit_to(now, &mut buf).is_some() {
                sent += if buf.len() == 36 { 36 } else { 0 };
            }
        }
    };
    flood(&mut world, 1000);
    let heap = allocation_counter::measure(|| flood(&mut world, 100_000));
    assert_eq!((heap.count_total, heap.bytes_current), (0, 0));
    assert!(sent * 512 <= received * 36 && sent > 0, "{sent} of {received}: 0.07 of the shortest HELLO");
    world.now = Time::from_millis(world.now.as_millis() + 1011);
    world.run(5_000);
    assert!(world.client().is_connected() && world.session().is_connected() && world.server.len() == 1);
}

#[test]
fn cookies_have_a_global_rate_limit() {
    let config =
        ServerConfig { challenges_per_second: 100, ..ServerConfig::insecure(SessionConfig::default()) };
    let mut world = checked(config);
    for number in 0..1000 {
        world.inject(stranger(number), &hello(Suite::Checked, 1, 512));
    }
    assert_eq!((world.strangers.len(), world.server.stats().rejected.challenge_rate), (10, 990));
}

/// A server with a client, and the ticket that the client has: for its IP address.
fn with_ticket(config: ServerConfig) -> (World, SocketAddr, [u8; 20]) {
    let mut world = checked(config);
    world.add(&path(), &path(), &SessionConfig::default(), client_config(Suite::Checked));
    world.connect();
    let ticket = world.client().ticket().try_into().unwrap();
    (world, client_address(1, 7), ticket)
}

/// A CONNECT of a thief with the ticket of somebody else.
fn stolen(ticket: &[u8; 20], cid: u64) -> Vec<u8> {
    let (epoch, cookie) = ticket.split_first_chunk().unwrap();
    connect(cid, u32::from_le_bytes(*epoch), cookie.try_into().unwrap(), 1)
}

/// Source: RFC 9000, section 21.3. A stolen cookie is good for an attempt from its port, for 10 s.
#[test]
fn a_stolen_ticket_is_worth_one_attempt_and_no_more_bytes_than_it_came_with() {
    let (mut world, victim, ticket) = with_ticket(ServerConfig::insecure(SessionConfig::default()));
    let (mut received, accepted) = (0, world.server.stats().accepted);
    for number in 0..1000_u16 {
        let from = SocketAddr::new(victim.ip(), 2000 + number % 100);
        let datagram = stolen(&ticket, number.into());
        received += datagram.len();
        world.strangers.clear();
        world.inject(from, &datagram);
        for (to, answer) in &world.strangers {
            let most = if kind_of(answer) == kind::ACCEPT { datagram.len() } else { 36 };
            assert!(*to == from && answer.len() <= most, "{} for {}", answer.len(), datagram.len());
        }
        world.run(1);
    }
    let stats = world.server.stats();
    assert_eq!((stats.accepted - accepted, stats.tickets, stats.rejected.ticket), (1, 1, 999));
    assert!(received == 512_000 && world.server.len() == 2 && world.is_up());
}

/// Whoever watches can copy a CONNECT with a ticket, while it is going on and later.
#[test]
fn a_replayed_ticket_makes_no_session() {
    let (mut world, victim, ticket) = with_ticket(ServerConfig::insecure(SessionConfig::default()));
    let (datagram, accepted) = (stolen(&ticket, 9), world.server.stats().accepted);
    for second in 0..100_u16 {
        for port in [victim.port(), 3000 + second] {
            world.strangers.clear();
            world.inject(SocketAddr::new(victim.ip(), port), &datagram);
            let is_first = port == victim.port();
            let is_accepted = |(_, answer): &(SocketAddr, Vec<u8>)| kind_of(answer) == kind::ACCEPT;
            assert!(is_first || !world.strangers.iter().any(is_accepted), "at another port");
        }
        world.run(1_000);
    }
    let stats = world.server.stats();
    assert_eq!((stats.accepted - accepted, stats.tickets), (1, 1), "{:?}", stats.rejected);
    assert!(stats.rejected.ticket >= 180 && stats.rejected.repeated + stats.accepts_repeated > 5);
}

#[test]
fn a_forged_ticket_gets_a_cookie_at_most_and_takes_no_memory() {
    let (mut world, victim, ticket) = with_ticket(ServerConfig::insecure(SessionConfig::default()));
    let (mut received, mut sent, mut buf) = (0, 0, Vec::with_capacity(1500));
    let forged: Vec<_> = (0..160)
        .map(|bit| {
            let mut forged = ticket;
            forged[bit / 8] ^= 1 << (bit % 8);
            stolen(&forged, 1)
        })
        .chain([stolen(&ticket, 1)])
        .collect();
    let others = [victim, stranger(1)];
    let mut flood = |world: &mut World| {
        for datagram in &forged {
            let is_stolen = std::ptr::eq(datagram, &raw const forged[160]);
            world.server.give(world.now, others[usize::from(is_stolen)], datagram);
            received += datagram.len();
            while world.server.emit_to(world.now, &mut buf).is_some() {
                sent += if kind_of(&buf) == kind::CHALLENGE { buf.len() } else { 0 };
            }
        }
    };
    flood(&mut world);
    let heap = allocation_counter::measure(|| flood(&mut world));
    assert_eq!((heap.count_total, heap.bytes_current), (0, 0));
    assert!(sent * 512 <= received * 36 && sent > 0, "{sent} of {received}: as for a HELLO");
    let stats = world.server.stats();
    assert_eq!((stats.tickets, stats.rejected.ticket + stats.rejected.cookie), (0, 322));
    assert_eq!(world.server.len(), 1);
}

#[test]
fn the_longest_answer_is_shorter_than_a_connect_with_a_ticket() {
    let user = vec![7; 256];
    let (mut world, victim, ticket) =
        with_ticket(ServerConfig { user, ..ServerConfig::insecure(SessionConfig::default()) });
    world.strangers.clear();
    world.inject(victim, &stolen(&ticket, 9));
    assert_eq!(world.strangers.iter().map(|(_, answer)| answer.len()).collect::<Vec<_>>(), [334]);
    world.strangers.clear();
    let short = &stolen(&ticket, 9)[..100];
    world.inject(victim, short);
    assert_eq!((world.strangers.len(), world.server.stats().rejected.malformed), (0, 1));
}

#[test]
fn a_connect_without_a_valid_cookie_is_dropped_before_anything_is_stored() {
    let mut world = checked(ServerConfig::insecure(SessionConfig::default()));
    let (epoch, good) = cookie(&mut world, stranger(1), 7);
    world.strangers.clear();
    world.inject(stranger(1), &connect(7, epoch, [0; 16], 1));
    world.inject(stranger(2), &connect(7, epoch, good, 1)); // another address
    world.inject(stranger(1), &connect(8, epoch, good, 1)); // another attempt
    world.inject(stranger(1), &connect(7, epoch + 1, good, 1));
    for bit in 0..128 {
        let mut forged = good;
        forged[bit / 8] ^= 1 << (bit % 8);
        world.inject(stranger(1), &connect(7, epoch, forged, 1));
    }
    world.run(10_000);
    world.inject(stranger(1), &connect(7, epoch, good, 1)); // too old
    assert_eq!(world.server.stats().rejected.cookie, 133);
    assert!(world.strangers.is_empty() && world.server.is_empty());
}

#[test]
fn one_address_only_gets_its_share_and_others_connect() {
    let mut world = checked(ServerConfig {
        half_open_per_address: 100,
        ..ServerConfig::insecure(SessionConfig::default())
    });
    let from = stranger(1);
    let mut most = 0;
    for cid in 0..100_000 {
        let (epoch, cookie) = cookie(&mut world, from, cid);
        world.inject(from, &connect(cid, epoch, cookie, 1));
        most = most.max(world.server.len());
        world.run(1);
    }
    let stats = world.server.stats();
    assert_eq!(most, 16);
    let asked = 20 + 10 * 100; // in 100 s
    assert!(stats.accepted <= asked + 1 && stats.rejected.accept_rate >= 100_000 - asked - 1, "{stats:?}");
    world.add(&path(), &path(), &SessionConfig::default(), client_config(Suite::Checked));
    world.connect();
}

#[test]
fn clients_that_never_follow_up_take_no_room_from_others() {
    let mut world = checked(ServerConfig::insecure(SessionConfig::default()));
    for number in 0..10_000u32 {
        let [.., high, low] = number.to_be_bytes();
        let from = ([60 + high, low, 0, 1], 9).into(); // each of another network
        let (epoch, cookie) = cookie(&mut world, from, number.into());
        world.inject(from, &connect(number.into(), epoch, cookie, 1));
        assert!(world.server.len() <= 256);
    }
    world.add(&path(), &path(), &SessionConfig::default(), client_config(Suite::Checked));
    let start = world.now;
    world.connect();
    assert!(world.now.since(start) <= ms(3000));
    world.run(10_000);
    assert_eq!(world.server.len(), 1, "after 10 s the others are gone");
    let stats = world.server.stats();
    assert_eq!((stats.unconfirmed, stats.confirmed), (400, 1), "so many handshakes at once");
}

#[test]
fn a_host_that_keeps_asking_displaces_its_own_oldest_attempt() {
    let mut world = checked(ServerConfig::insecure(SessionConfig::default()));
    for cid in 0..20 {
        let (epoch, cookie) = cookie(&mut world, stranger(1), cid);
        world.inject(stranger(1), &connect(cid, epoch, cookie, 1));
        assert!(world.server.len() <= 8);
    }
    assert_eq!(world.server.stats().accepted, 20);
}

#[test]
fn a_replayed_connect_opens_no_ghost() {
    let mut world = connected(1);
    let connects = of_kind(&world, kind::CONNECT, true);
    let (from, id) = (world.address(0), world.sessions[0]);
    let replay = |world: &mut World| {
        let before = (world.server.len(), world.server.stats().accepted);
        for connect in &connects {
            world.inject(from, connect);
            world.inject(stranger(1), connect);
        }
        assert_eq!((world.server.len(), world.server.stats().accepted), before);
    };
    replay(&mut world);
    let now = world.now;
    world.server.close(now, id, 1);
    world.run(500);
    replay(&mut world);
    for _ in 0..15 {
        world.run(1_000);
        replay(&mut world);
    }
    assert!(world.server.is_empty());
}

#[test]
fn a_duplicated_connect_gets_the_same_answer_byte_for_byte() {
    let link = LinkConfig { duplicate: 1.0, jitter: ms(120), ..path() };
    let mut world = World::pair(3, &link, &SessionConfig::default(), SUITE);
    world.taps = true;
    world.connect();
    world.run(1_000);
    let accepts: BTreeSet<_> = of_kind(&world, kind::ACCEPT, false).into_iter().collect();
    assert_eq!((accepts.len(), world.server.stats().accepted), (1, 1));
}

#[test]
fn packets_replayed_in_any_order_count_once() {
    let mut world = connected(1);
    for number in 0..200u32 {
        world.client().send(on(0), &number.to_le_bytes()).unwrap();
        world.client().send_datagram(&number.to_le_bytes()).unwrap();
        world.drain();
        world.run(5);
    }
    world.run(200); // until nothing is in flight
    let from = world.address(0);
    let mut all: Vec<_> = world.tap.iter().filter(|(.., to, _)| *to == server_address()).cloned().collect();
    let (before, mut rng) = (world.session().stats(), SimRng::new(1, 1));
    for _ in 0..10 {
        for index in 0..all.len() {
            all.swap(index, usize::try_from(rng.next_u64()).unwrap_or(0) % (index + 1));
        }
        for (.., bytes) in &all {
            world.inject(from, bytes);
        }
    }
    let after = world.session().stats();
    assert_eq!(after.received, before.received);
    assert!(after.rejected.duplicate + after.rejected.stale > 2000);
    assert!(world.client().is_connected() && world.session().is_connected());
}

#[test]
fn wrong_tags_change_nothing_but_a_counter() {
    let mut world = connected(1);
    let data = of_kind(&world, kind::DATA, true).pop().unwrap();
    let (from, before) = (world.address(0), world.session().stats());
    let (now, mut forged) = (world.now, data);
    for number in 1..=1_000_000u32 {
        forged[5..9].copy_from_slice(&(number + 1000).to_le_bytes());
        world.server.give(now, from, &forged);
    }
    world.drain();
    let after = world.session().stats();
    assert_eq!(
        (after.received, after.rejected.forged),
        (before.received, before.rejected.forged + 1_000_000)
    );
    world.run(10_000);
    assert!(world.client().is_connected() && world.session().is_connected());
}

#[test]
fn forged_packets_of_every_kind_end_neither_a_session_nor_a_handshake() {
    for stage in 0..40 {
        let mut world = tapped(stage);
        world.run(stage * 5);
        let cid = Hello::decode(&world.tap[0].3).map_or(0, |hello| hello.cid);
        let sid = world.sessions.first().map_or(9, |_| {
            let data = of_kind(&world, kind::DATA, true).pop().unwrap();
            u32::from_le_bytes(data[1..5].try_into().unwrap())
        });
        for forged in forgeries(cid, sid) {
            world.inject_client(0, &forged);
            let from = world.address(0);
            world.inject(from, &forged);
        }
        world.connect();
        world.run(1_500);
        assert!(world.client().is_connected() && world.session().is_connected(), "{stage}");
        for forged in forgeries(cid, sid) {
            world.inject_client(0, &forged);
        }
        assert!(world.client().is_connected());
    }
}

/// From an attacker who sees every packet but has no key.
fn forgeries(cid: u64, sid: u32) -> Vec<Vec<u8>> {
    let suite = SUITE.code();
    let mut all = vec![Vec::new(); 5];
    let challenge = Challenge { suite, cid, client_stamp: 1, epoch: 3, cookie: [9; 16] };
    challenge.encode(&mut all[0]).unwrap();
    let reason = DenyReason::Busy;
    Deny { lowest: 1, highest: 1, reason, cid, retry_after_ms: 0 }.encode(&mut all[1]).unwrap();
    if SUITE != Suite::Checked {
        Accept { suite, cid, msg2: &[7; 80] }.encode(&mut all[2]).unwrap();
    }
    Reset { sid, token: [0; 16] }.encode(&mut all[3]).unwrap();
    Reset { sid, token: [1; 16] }.encode(&mut all[4]).unwrap();
    for phase in [0, 1] {
        let mut data = vec![kind::DATA + phase];
        data.extend_from_slice(&sid.to_le_bytes());
        data.extend_from_slice(&[1, 0, 0, 0, 8, 1, 0, 0]); // CLOSE, in the clear
        data.extend_from_slice(&[0; 30]);
        all.push(data);
    }
    all
}

/// The thief sees each packet, and the thief's copy arrives first.
#[test]
#[cfg(feature = "crypto")] // such a session cannot migrate
fn a_thief_gets_no_session_and_no_more_bytes_than_they_send() {
    let mut world = connected(1);
    world.run(1_000);
    let (thief, home) = (stranger(66), world.address(0));
    let (mut stolen, mut seen) = (0, world.tap.len());
    world.strangers.clear();
    for _ in 0..400 {
        world.client().send_datagram(b"position").unwrap();
        world.drain();
        let copies: Vec<_> = world.tap[seen..]
            .iter()
            .filter(|(_, from, ..)| *from == home)
            .map(|(.., bytes)| bytes.clone())
            .collect();
        for copy in copies {
            stolen += copy.len();
            world.inject(thief, &copy);
        }
        seen = world.tap.len();
        world.run(16);
    }
    let got: usize =
        world.strangers.iter().filter(|(to, _)| *to == thief).map(|(_, bytes)| bytes.len()).sum();
    assert!(got <= stolen && got > 0, "{got} of {stolen}");
    assert_eq!(world.session().peer_addr(), home);
    assert!(!world.events.iter().any(|(.., event)| matches!(event, Event::Moved { .. })));
    world.run(2_000);
    assert!(world.client().is_connected() && world.session().is_connected());
}

#[test]
fn only_a_server_without_the_session_can_reset_it() {
    let config = server_config(&SessionConfig::default(), SUITE);
    let config = ServerConfig { reset_key: Some([3; 16]), ..config };
    let mut world = World::new(1, &config);
    world.add(&path(), &path(), &SessionConfig::default(), client_config(SUITE));
    world.connect();
    world.server = whitewater::session::Server::new(&config, common::sessions::random(9, 9)).unwrap();
    world.run(700);
    let (_, Event::Closed { reason, .. }) = *world.clients[0].events.last().unwrap() else { panic!() };
    assert_eq!(reason, CloseReason::ServerForgot);
    assert!(world.server.stats().resets >= 1);
    let datagram = [&[kind::DATA][..], &[0; 40]].concat();
    let sent = world.strangers.len();
    for number in 0..1000 {
        world.inject(stranger(number), &datagram);
    }
    assert!(world.strangers.len() - sent <= 10, "within the rate limit");
}

#[test]
fn packets_that_no_client_sends_are_only_counted() {
    let mut world = connected(1);
    let before = world.server.stats();
    let mut rng = SimRng::new(5, 5);
    for len in 0..1500usize {
        let bytes: Vec<u8> = (0..len).map(|_| rng.next_u64().to_le_bytes()[0]).collect();
        assert!(Packet::decode(&bytes).is_err() || bytes[0] & 0xf8 == 0xa0);
        world.inject(stranger(1), &bytes);
        world.inject_client(0, &bytes);
    }
    let after = world.server.stats();
    assert!(after.rejected.malformed > before.rejected.malformed + 1400);
    assert_eq!(after.accepted, before.accepted);
    assert!(world.client().is_connected() && world.session().is_connected());
}

/// Session numbers are not reused.
#[test]
fn packets_of_an_old_session_find_no_session() {
    let mut world = connected(1);
    let (id, now) = (world.sessions[0], world.now);
    let data = of_kind(&world, kind::DATA, true);
    world.server.close(now, id, 1);
    world.run(3_000);
    assert!(world.server.connection(id).is_none());
    world.add(&path(), &path(), &SessionConfig::default(), client_config(SUITE));
    assert!(world.run_until(5_000, |world| world.sessions.len() == 2));
    let from = world.address(0);
    for bytes in data {
        world.inject(from, &bytes);
    }
    assert!(world.server.connection(id).is_none());
    assert_eq!(world.server.connection(world.sessions[1]).unwrap().peer_addr(), client_address(2, 1000));
    assert_eq!(world.server.connection(world.sessions[1]).unwrap().stats().rejected.forged, 0);
}

#[test]
fn clients_that_never_follow_up_do_not_block_a_small_server() {
    let config = ServerConfig { max_sessions: 16, ..server_config(&SessionConfig::default(), SUITE) };
    let mut world = World::new(1, &config);
    let path = LinkConfig::with_rtt(ms(20));
    for second in 0..20u16 {
        for host in 1..=2 {
            for number in 0..8 {
                let from = client_address(100 + host, 1000 + 100 * second + number);
                let seed = 5000 + 100 * u64::from(second) + u64::from(10 * u16::from(host) + number);
                let connect = connect_of(&mut world, from, seed, client_config(SUITE));
                world.inject(from, &connect);
            }
        }
        if second == 5 {
            world.add(&path, &path, &SessionConfig::default(), client_config(SUITE));
        }
        world.run(1000);
    }
    let up = world.clients[0].events.iter().find(|(_, event)| *event == Event::Connected).map(|(at, _)| *at);
    assert!(up.is_some_and(|at| at <= Time::from_millis(9_000)), "asked at 6 s, up at {up:?}");
}

/// From a peer with the keys that breaks the rules.
#[test]
fn an_answer_to_no_ping_or_an_old_one_is_no_round_trip() {
    let mut world = World::pair(1, &path(), &SessionConfig::default(), Suite::Checked);
    world.taps = true;
    world.connect();
    world.run(62_000);
    let forge = forger_of_numbers(&world);
    let now = world.now.as_micros();
    let before = world.client().stats();
    assert!(before.rtt_min >= ms(40), "{before:?}");
    for (number, stamp) in (1_000..).zip([now + 1, now + 1_000_000, u64::MAX, 0]) {
        let mut body = Vec::new();
        FrameWriter::new(&mut body, 100).push(&Frame::Pong(stamp)).unwrap();
        world.inject_client(0, &forge(Toward::Client, number, &body));
    }
    let after = world.client().stats();
    assert_eq!(after.received, before.received + 4, "they are authentic");
    assert_eq!((after.rtt, after.rtt_min, after.rttvar), (before.rtt, before.rtt_min, before.rttvar));
}
