//! What an observer of a path reads in the headers of packets, and how they tell one session's packets from another's.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common;

use common::ms;
use common::sessions::{
    SUITE, Tapped, World, client_address, client_config, on, server_address, server_config,
};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;
use whitewater::inside::session::wire::{Data, Packet};
use whitewater::machine::Machine;
use whitewater::session::Server;
use whitewater::{CloseReason, Event, ServerConfig, SessionConfig};
use whitewater_sim::{LinkConfig, Loss, SimRng};

/// Plays for 20 s with a key update every 64 packets. Returns the headers as they left: to the server, and back.
fn headers_seen(seed: u64, masks: [bool; 2]) -> [Vec<Data>; 2] {
    let path = LinkConfig::with_rtt(ms(40));
    let [at_client, at_server] =
        masks.map(|mask_headers| SessionConfig { mask_headers, key_update: 64, ..SessionConfig::default() });
    let mut world = World::new(seed, &server_config(&at_server, SUITE));
    world.taps = true;
    world.add(&path, &path, &at_client, client_config(SUITE));
    world.connect();
    for _ in 0..600 {
        world.client().send(on(0), b"to the server").unwrap();
        world.session().send(on(0), b"to the client").unwrap();
        world.run(33);
        while world.client().recv(on(0)).is_some() {}
        while world.session().recv(on(0)).is_some() {}
    }
    assert!(world.client().is_connected() && world.client().stats().key_updates >= 5);
    assert_eq!(world.client().stats().rejected.forged + world.session().stats().rejected.forged, 0);
    [true, false].map(|to_server| {
        let data = |(_, _, to, bytes): &Tapped| match Packet::decode(bytes) {
            Ok(Packet::Data(header, _)) if (*to == server_address()) == to_server => Some(header),
            _ => None,
        };
        world.tap.iter().filter_map(data).collect()
    })
}

/// How many of the headers have the number after the last one's, and how often the phase changes.
fn read(headers: &[Data]) -> (usize, usize) {
    let pairs = || headers.windows(2);
    let next = pairs().filter(|pair| pair[1].pn == pair[0].pn.wrapping_add(1)).count();
    (next, pairs().filter(|pair| pair[0].phase != pair[1].phase).count())
}

#[test]
fn an_observer_reads_neither_numbers_nor_key_phases() {
    for seed in 1..=3 {
        for headers in headers_seen(seed, [true, true]) {
            let (count, (next, changes)) = (headers.len(), read(&headers));
            assert!(count >= 600 && next == 0, "{next} of {count} follow each other");
            assert!(
                (count * 2 / 5..=count * 3 / 5).contains(&changes),
                "the phase changes {changes} of {count}"
            );
            let above = headers.windows(2).filter(|pair| pair[1].pn > pair[0].pn).count();
            assert!((count * 2 / 5..=count * 3 / 5).contains(&above), "{above} of {count} are higher");
        }
    }
}

#[test]
fn either_end_may_choose_headers_in_clear() {
    for masks in [[true, false], [false, true], [false, false]] {
        for headers in headers_seen(1, masks) {
            let (next, changes) = read(&headers);
            let skipped = headers.len() - 1 - next;
            assert!(skipped > 0 && skipped <= headers.len() / 32, "{masks:?}: {skipped} numbers of 64 each");
            assert!((5..=20).contains(&changes), "{masks:?}: {changes} updates");
        }
    }
}

fn elsewhere(host: u8) -> SocketAddr {
    client_address(100 + host, 2000 + u16::from(host))
}

/// A client on a path that loses this share of all datagrams, and what is recorded of it from the first one on.
fn playing(seed: u64, loss: f64, session: &SessionConfig) -> World {
    let path = LinkConfig { loss: Loss::Random(loss), ..LinkConfig::with_rtt(ms(80)) };
    let config = ServerConfig { reset_key: Some([5; 16]), ..server_config(session, SUITE) };
    let mut world = World::new(seed, &config);
    world.taps = true;
    world.add(&path, &path, session, client_config(SUITE));
    world.connect();
    world
}

/// Plays for so many ticks of 33 ms: a message and a datagram each way.
fn play(world: &mut World, ticks: usize) {
    for _ in 0..ticks {
        let _ = world.client().send(on(0), b"to the server");
        let _ = world.session().send(on(0), b"to the client");
        let _ = world.client().send_datagram(&[1; 40]);
        let _ = world.session().send_datagram(&[2; 80]);
        world.drain();
        world.run(33);
        while world.client().recv(on(0)).is_some() || world.client().recv_datagram().is_some() {}
        while world.session().recv(on(0)).is_some() || world.session().recv_datagram().is_some() {}
    }
}

/// The client is in another network from now on, and knows.
fn goes(world: &mut World, to: SocketAddr) {
    let now = world.now;
    world.rebind(0, to);
    world.clients[0].session.path_changed(now);
    world.drain();
}

/// How many pairs of datagrams of two networks have the same 4 bytes at the same place.
fn in_common(world: &World, networks: [SocketAddr; 2]) -> usize {
    let [here, there] = networks.map(|at| {
        let mut groups = HashMap::<(usize, [u8; 4]), usize>::new();
        for (.., bytes) in world.tap.iter().filter(|(_, from, to, _)| *from == at || *to == at) {
            let of_datagram = bytes[1..].windows(4).map(|group| group.try_into().unwrap());
            of_datagram.enumerate().for_each(|group| *groups.entry(group).or_default() += 1);
        }
        groups
    });
    assert!(here.len() > 5_000 && there.len() > 5_000, "{} and {}", here.len(), there.len());
    here.iter().map(|(group, count)| count * there.get(group).copied().unwrap_or_default()).sum()
}

/// A number of 4 bytes that both networks have would be in tens of thousands of pairs. By chance there is one in 700 runs.
#[test]
fn nothing_in_the_bytes_of_two_networks_tells_that_a_client_has_moved() {
    for (seed, loss) in [(1, 0.0), (2, 0.0), (3, 0.3), (4, 0.3), (5, 0.3)] {
        let mut world = playing(seed, loss, &SessionConfig::default());
        play(&mut world, 60);
        let mut networks = vec![world.address(0)];
        for host in 1..=2 {
            goes(&mut world, elsewhere(host));
            play(&mut world, 100);
            networks.push(world.address(0));
            assert_eq!(world.session().peer_addr(), world.address(0), "seed {seed}");
        }
        for (index, here) in networks.iter().enumerate() {
            for there in &networks[..index] {
                let pairs = in_common(&world, [*here, *there]);
                assert!(pairs <= 1, "seed {seed}: {pairs} of {here} and {there}");
            }
        }
        assert!(world.client().is_connected() && world.session().stats().moves >= 2);
    }
}

#[test]
fn with_headers_in_clear_or_without_a_word_of_the_client_the_number_stays() {
    let in_clear = SessionConfig { mask_headers: false, ..SessionConfig::default() };
    for (session, is_told) in [(in_clear, true), (SessionConfig::default(), false)] {
        let mut world = playing(1, 0.0, &session);
        play(&mut world, 60);
        let before = world.address(0);
        if is_told {
            goes(&mut world, elsewhere(1));
        } else {
            world.rebind(0, elsewhere(1));
        }
        play(&mut world, 60);
        assert!(in_common(&world, [before, elsewhere(1)]) > 10_000);
        assert!(world.client().is_connected() && world.session().peer_addr() == elsewhere(1));
    }
}

/// Bytes that the server and the client have sent.
fn bytes_sent(world: &mut World) -> [u64; 2] {
    [world.session().stats().bytes_sent, world.client().stats().bytes_sent]
}

#[test]
fn other_numbers_cost_42_bytes_for_a_session_and_as_few_for_a_move() {
    let in_clear = SessionConfig { mask_headers: false, ..SessionConfig::default() };
    let [with, without] = [SessionConfig::default(), in_clear].map(|session| {
        let mut world = playing(1, 0.0, &session);
        play(&mut world, 60);
        let before = bytes_sent(&mut world);
        goes(&mut world, elsewhere(1));
        play(&mut world, 200);
        let after = bytes_sent(&mut world);
        [before, [after[0] - before[0], after[1] - before[1]]]
    });
    let more = [0, 1].map(|index| [0, 1].map(|end| with[index][end].saturating_sub(without[index][end])));
    let [[of_server, of_client], [of_move, of_answers]] = more;
    assert!(of_server <= 42 && of_client <= 50, "{more:?}");
    assert!(of_move <= 42 + 20 && of_answers <= 50, "{more:?}"); // the token, another number; a byte for each copy
}

/// The numbers in packets to the server from an address.
fn sids(world: &World, from: SocketAddr) -> Vec<u32> {
    let mut sids: Vec<u32> = Vec::new();
    for (_, _, _, bytes) in world.tap.iter().filter(|(_, at, ..)| *at == from) {
        match Packet::decode(bytes) {
            Ok(Packet::Data(Data { sid, .. }, _)) if sids.last() != Some(&sid) => sids.push(sid),
            _ => {}
        }
    }
    sids
}

/// The last packet of a client from an address.
fn packet_from(world: &World, at: SocketAddr) -> Vec<u8> {
    let is_data = |bytes: &[u8]| matches!(Packet::decode(bytes), Ok(Packet::Data(..)));
    world.tap.iter().rev().find(|(_, from, _, bytes)| *from == at && is_data(bytes)).unwrap().3.clone()
}

/// The answers of the server to a stranger's datagram.
fn answers(world: &mut World, from: SocketAddr, datagram: &[u8]) -> Vec<Vec<u8>> {
    world.strangers.clear();
    world.inject(from, datagram);
    world.strangers.iter().filter(|(to, _)| *to == from).map(|(_, bytes)| bytes.clone()).collect()
}

#[test]
fn a_number_is_unknown_after_the_next_but_one_and_nobody_ends_the_session_with_it() {
    let mut world = playing(1, 0.0, &SessionConfig::default());
    play(&mut world, 60);
    let (first, home) = (world.address(0), sids(&world, world.address(0))[0]);
    let old = packet_from(&world, first);
    goes(&mut world, elsewhere(1));
    play(&mut world, 100);
    assert_eq!(answers(&mut world, first, &old), Vec::<Vec<u8>>::new(), "a replay, of a number still known");
    goes(&mut world, elsewhere(2));
    play(&mut world, 100);
    let unknown = world.server.stats().rejected.unknown;
    assert_eq!(answers(&mut world, first, &old), Vec::<Vec<u8>>::new(), "so soon");
    assert_eq!(world.server.stats().rejected.unknown, unknown + 1);
    world.run(263_000);
    let told = answers(&mut world, first, &old);
    assert!(matches!(Packet::decode(&told[0]), Ok(Packet::Reset(reset)) if reset.sid == home), "{told:?}");
    world.inject_client(0, &told[0]);
    // Even one that is for where the client is now.
    let here = world.address(0);
    world.server.handle_datagram(world.now, here.into(), &mut old.clone());
    world.audited(here, old.len());
    play(&mut world, 60);
    assert!(world.client().is_connected() && world.session().is_connected());
    assert!(world.session().peer_addr() == here && world.clients[0].session.rejected().stranger >= 2);
}

/// Sends packets of which the server no longer knows the number, ten times a second each. Returns after how long each is
/// first answered.
fn first_reset(world: &mut World, packets: &[Vec<u8>]) -> Vec<Duration> {
    let (start, prober) = (world.now, client_address(200, 1));
    let mut first = vec![None; packets.len()];
    while first.contains(&None) && world.now.since(start) < ms(300_000) {
        for (packet, first) in packets.iter().zip(&mut first) {
            if first.is_none() && !answers(world, prober, packet).is_empty() {
                *first = Some(world.now.since(start));
            }
        }
        world.run(100);
        world.tap.clear();
    }
    first.into_iter().map(|first| first.unwrap()).collect()
}

#[test]
fn whoever_probes_an_old_number_does_not_learn_when_the_client_moved_on() {
    let first = (1..=16).map(|seed| {
        let mut world = playing(seed, 0.0, &SessionConfig::default());
        play(&mut world, 60);
        let old = packet_from(&world, world.address(0));
        for host in 1..=2 {
            goes(&mut world, elsewhere(host));
            play(&mut world, 60);
        }
        first_reset(&mut world, &[old])[0]
    });
    let (mut first, spread) = (first.collect::<Vec<_>>(), ms(263_000));
    first.sort_unstable();
    println!("{first:?}");
    assert!(first[4] > spread / 10 && first[12] < spread.mul_f64(0.9) && first[12] - first[4] > spread / 4);
    assert!(first[15] <= spread);
}

#[test]
fn the_numbers_of_a_session_that_ends_do_not_become_unknown_together() {
    for seed in 1..=4 {
        let mut world = playing(seed, 0.0, &SessionConfig::default());
        play(&mut world, 60);
        let before = packet_from(&world, world.address(0));
        goes(&mut world, elsewhere(1));
        play(&mut world, 60);
        let in_use = packet_from(&world, elsewhere(1));
        let now = world.now;
        world.client().close(now, 1);
        world.run(1_000);
        assert!(world.server.is_empty());
        let first = first_reset(&mut world, &[in_use, before]);
        assert!(first[0].is_zero() && first[1] > ms(1_000), "seed {seed}: {first:?}");
    }
}

/// It wants one after the other, or skips every second one.
#[test]
fn a_client_that_wants_other_numbers_all_the_time_gets_two_in_two_seconds() {
    let memory = [0, 1, 2].map(|each| {
        let mut world = playing(1, 0.0, &SessionConfig::default());
        play(&mut world, 60);
        let at = world.address(0);
        for _ in 0..1_000 {
            let now = world.now;
            for _ in 0..each {
                world.clients[0].session.path_changed(now);
            }
            play(&mut world, 1);
        }
        let count = sids(&world, at).len();
        let most = [1_usize, 36, 18][each];
        assert!((most.div_ceil(2)..=most).contains(&count), "{count} in 33 s");
        assert!(world.client().is_connected() && world.session().stats().rejected.forged == 0);
        world.run(10_000);
        world.server.stats().memory
    });
    assert!(memory.iter().all(|it| *it <= memory[0] + 500), "{memory:?}");
}

#[test]
fn a_server_that_was_restarted_resets_a_client_by_the_number_in_use_and_by_no_other() {
    for moves in [0, 1, 2] {
        let mut world = playing(1, 0.0, &SessionConfig::default());
        play(&mut world, 60);
        let old = packet_from(&world, world.address(0));
        for host in 1..=moves {
            goes(&mut world, elsewhere(host));
            play(&mut world, 100);
        }
        let config =
            ServerConfig { reset_key: Some([5; 16]), ..server_config(&SessionConfig::default(), SUITE) };
        world.server = Server::new(&config, SimRng::new(9, 9)).unwrap();
        let (now, here) = (world.now, world.address(0));
        world.server.handle_datagram(now, here.into(), &mut old.clone());
        world.audited(here, old.len());
        let mut buf = Vec::new();
        let to = world.server.poll_transmit(now, &mut buf).map(|transmit| transmit.address);
        assert_eq!((to, matches!(Packet::decode(&buf), Ok(Packet::Reset(_)))), (Some(here), true));
        world.inject_client(0, &buf);
        assert_eq!(world.client().is_connected(), moves > 0, "by the first number, after {moves} moves");
        world.run(700); // a ping
        assert_eq!(world.clients[0].closed(), Some(CloseReason::ServerForgot), "after {moves} moves");
    }
}

/// Nothing of the server arrives for two seconds in which it tells its numbers.
#[test]
fn numbers_that_get_lost_are_told_again_until_they_arrive() {
    let mut world = playing(1, 0.0, &SessionConfig::default());
    let good = LinkConfig::with_rtt(ms(80));
    let bad = LinkConfig { loss: Loss::Random(0.97), ..good.clone() };
    world.set_links(0, &good, &bad);
    play(&mut world, 60);
    let home = world.address(0);
    goes(&mut world, elsewhere(1)); // without a number
    world.set_links(0, &good, &good);
    play(&mut world, 120);
    goes(&mut world, elsewhere(2));
    play(&mut world, 60);
    assert!(in_common(&world, [home, elsewhere(2)]) <= 1);
    assert!(in_common(&world, [elsewhere(1), elsewhere(2)]) <= 1);
    let is_moved = |(.., event): &(_, _, Event)| matches!(event, Event::Moved { .. });
    assert_eq!(world.events.iter().filter(|event| is_moved(event)).count(), 2);
}

/// The client is in two networks after one another, and nothing that it sends from the first one arrives in time.
fn goes_through(world: &mut World, [first, last]: [SocketAddr; 2]) {
    let (none, good) =
        (LinkConfig { loss: Loss::Random(1.0), ..LinkConfig::default() }, LinkConfig::with_rtt(ms(80)));
    world.set_links(0, &none, &good);
    goes(world, first);
    play(world, 2);
    goes(world, last);
    world.set_links(0, &good, &good);
}

#[test]
fn a_number_of_which_nothing_arrives_is_replaced_like_a_used_one() {
    let mut world = playing(1, 0.0, &SessionConfig::default());
    play(&mut world, 60);
    let mut seen = sids(&world, world.address(0));
    for host in (1..20).step_by(2) {
        let networks = [elsewhere(host), elsewhere(host + 1)];
        goes_through(&mut world, networks);
        play(&mut world, 100);
        for network in networks {
            let sids = sids(&world, network);
            assert!(sids.len() == 1 && !seen.contains(&sids[0]), "{network}: {sids:x?}, before {seen:x?}");
            seen.extend(sids);
        }
        assert!(world.session().peer_addr() == networks[1] && world.client().is_connected());
    }
}

/// A packet from the network that the client only passed through comes when the client is in the next one.
#[test]
fn a_late_packet_with_the_number_before_leaves_the_newer_one_in_use() {
    let mut world = playing(1, 0.0, &SessionConfig::default());
    play(&mut world, 60);
    goes_through(&mut world, [elsewhere(1), elsewhere(2)]);
    let late = packet_from(&world, elsewhere(1));
    play(&mut world, 20);
    let dropped = |world: &World| world.server.stats().rejected.unknown + world.server.stats().dropped;
    let before = dropped(&world);
    world.inject(elsewhere(1), &late);
    assert_eq!(dropped(&world), before, "it is of the session, and new");
    let newer = packet_from(&world, elsewhere(2));
    play(&mut world, 80);
    goes(&mut world, elsewhere(3));
    play(&mut world, 20);
    let unknown = world.server.stats().rejected.unknown;
    world.inject(elsewhere(2), &newer);
    assert_eq!(world.server.stats().rejected.unknown, unknown, "its number is the one before");
    world.inject(elsewhere(1), &late);
    assert_eq!(world.server.stats().rejected.unknown, unknown + 1, "the one before that");
}

/// Three at once: there are two spare numbers.
#[test]
fn without_a_spare_number_a_client_keeps_its_own_and_goes_on() {
    let mut world = playing(1, 0.0, &SessionConfig::default());
    play(&mut world, 60);
    for host in 1..=3 {
        goes(&mut world, elsewhere(host));
        play(&mut world, 4);
    }
    assert_eq!(sids(&world, elsewhere(2)), sids(&world, elsewhere(3)));
    play(&mut world, 60);
    assert!(world.client().is_connected() && world.session().peer_addr() == elsewhere(3));
}
