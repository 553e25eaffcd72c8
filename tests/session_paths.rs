//! A client whose address changes: how soon data flows again, what is kept from the old path, and that a mere
//! copier gets nothing. Every datagram of every run is checked: no address gets more bytes than it sent
//! before it has answered.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;

use common::ms;
use common::sessions::{SUITE, World, client_address, on};
use std::net::SocketAddr;
use std::time::Duration;
use whitewater::session::{ClientState, Suite};
use whitewater::{CloseReason, Event, SessionConfig};
use whitewater_sim::{LinkConfig, Loss};

const RTT: Duration = Duration::from_millis(120);

fn path(loss: f64) -> LinkConfig {
    LinkConfig { loss: Loss::Random(loss), ..LinkConfig::with_rtt(RTT) }
}

fn connected(seed: u64, loss: f64, config: &SessionConfig) -> World {
    let mut world = World::pair(seed, &path(loss), config, SUITE);
    world.connect();
    world.run(2_000);
    world
}

fn moves(world: &World) -> usize {
    world.events.iter().filter(|(.., event)| matches!(event, Event::Moved { .. })).count()
}

fn elsewhere(host: u8) -> SocketAddr {
    client_address(host, 7000)
}

/// A tick of a game at both ends: one datagram each way, and what has arrived. Returns the numbers that the
/// client received.
fn tick(world: &mut World, number: u32, client: &[u8]) -> Vec<u32> {
    world.client().send_datagram(client).unwrap();
    let mut state = [0; 100];
    state[..4].copy_from_slice(&number.to_le_bytes());
    world.session().send_datagram(&state).unwrap();
    world.drain();
    world.run(16);
    let (mut came, mut buf) = (Vec::new(), [0; 200]);
    while world.session().recv_datagram_into(&mut buf).is_ok() {}
    while let Ok(100) = world.client().recv_datagram_into(&mut buf) {
        came.push(u32::from_le_bytes(buf[..4].try_into().unwrap()));
    }
    came
}

#[test]
fn data_flows_both_ways_within_two_round_trips_and_a_tenth_of_a_second() {
    for seed in 1..=10 {
        let mut world = connected(seed, 0.0, &SessionConfig::default());
        let mut buf = [0; 100];
        for number in 0..50 {
            tick(&mut world, number, &[0; 100]);
        }
        world.rebind(0, elsewhere(77));
        let start = world.now;
        world.session().send(on(0), b"to the new address").unwrap();
        world.client().send(on(0), b"from the new address").unwrap();
        world.drain();
        let mut there = false;
        let both = |world: &mut World| {
            there |= world.session().recv_into(on(0), &mut buf).is_ok();
            there && world.client().recv_into(on(0), &mut buf).is_ok()
        };
        assert!(world.run_until(5_000, both), "seed {seed}");
        let took = world.now.since(start);
        assert!(took <= 2 * RTT + ms(100), "seed {seed}: {took:?}");
        assert_eq!(world.session().peer_addr(), elsewhere(77));
    }
}

/// The client's own packets pay for copies of what goes to the old address, so it waits one round trip and
/// not two.
#[test]
fn data_goes_to_the_new_address_before_it_is_proven() {
    let mut world = connected(1, 0.0, &SessionConfig::default());
    for number in 0..50 {
        tick(&mut world, number, &[0; 150]);
    }
    world.rebind(0, elsewhere(77));
    let start = world.now;
    let mut first = None;
    for number in 1000..1030 {
        let came = tick(&mut world, number, &[0; 150]);
        if came.iter().any(|number| *number >= 1000) {
            first.get_or_insert((world.now, world.session().stats().moves));
        }
    }
    let (at, moves) = first.unwrap();
    assert_eq!(moves, 0, "not migrated yet");
    assert!(at.since(start) <= RTT + ms(3 * 16), "{:?}", at.since(start));
}

#[test]
fn round_trips_start_over_for_another_host_but_not_for_another_port() {
    for (to, keeps) in [(client_address(1, 9), true), (elsewhere(77), false)] {
        let mut world = connected(1, 0.0, &SessionConfig::default());
        for number in 0..60 {
            world.session().send(on(0), &[1; 500]).unwrap();
            tick(&mut world, number, &[0; 50]);
        }
        let [channel, session] =
            [world.session().kcp_stats(on(0)).unwrap().srtt, world.session().stats().rtt];
        assert!(channel >= RTT && session >= RTT, "{channel:?} {session:?}");
        world.rebind(0, to);
        world.client().send_datagram(b"here").unwrap();
        world.drain();
        assert!(world.run_until(1_000, |world| world.session().stats().moves == 1));
        let channel = world.session().kcp_stats(on(0)).unwrap().srtt;
        assert_eq!((channel >= RTT, channel.is_zero()), (keeps, !keeps), "{channel:?}");
        for number in 0..60 {
            tick(&mut world, number, &[0; 50]);
        }
        assert!(world.session().stats().rtt >= RTT, "measured again");
    }
}

#[test]
fn data_in_flight_during_a_migration_arrives_once_and_in_order() {
    for seed in 1..=20 {
        let mut world = connected(seed, 0.1, &SessionConfig::default());
        let (mut sent, mut came, mut buf) = (0u32, 0u32, [0; 600]);
        for round in 0..200u8 {
            if round % 40 == 20 {
                world.rebind(0, client_address(1 + round % 3, 3000 + u16::from(round)));
            }
            let mut message = [0; 600];
            message[..4].copy_from_slice(&sent.to_le_bytes());
            world.session().send(on(0), &message).unwrap();
            sent += 1;
            world.drain();
            world.run(30);
            while world.client().recv_into(on(0), &mut buf).is_ok() {
                assert_eq!(buf[..4], came.to_le_bytes(), "seed {seed}");
                came += 1;
            }
        }
        let all = |world: &mut World| {
            while world.client().recv_into(on(0), &mut buf).is_ok() {
                assert_eq!(buf[..4], came.to_le_bytes(), "seed {seed}");
                came += 1;
            }
            came == sent
        };
        assert!(world.run_until(20_000, all), "seed {seed}: {came} of {sent}");
    }
}

/// The client says something, and time passes.
fn speak(world: &mut World, ms: u64) {
    let _ = world.client().send(on(0), &[1]); // fails if it has closed
    world.drain();
    world.run(ms);
}

#[test]
fn at_most_four_migrations_happen_in_ten_seconds() {
    let mut world = connected(1, 0.0, &SessionConfig::default());
    let start = world.now;
    for number in 0..9u16 {
        world.rebind(0, client_address(1, 2000 + number));
        speak(&mut world, 1_000);
    }
    assert_eq!(moves(&world), 4);
    assert!(world.client().is_connected() && world.session().is_connected());
    (0..8).for_each(|_| speak(&mut world, 500));
    assert_eq!((moves(&world), world.session().peer_addr()), (5, world.address(0)));
    let fifth = world.events.iter().rev().find(|(.., event)| matches!(event, Event::Moved { .. }));
    assert!(fifth.unwrap().0.since(start) >= Duration::from_secs(10));
}

/// Each of these copies arrives before the original. The old address keeps sending, so no candidate lives
/// long, and the session stays.
#[test]
fn a_thiefs_address_is_dropped_when_the_old_address_sends_or_nothing_comes() {
    let mut world = connected(1, 0.0, &SessionConfig::default());
    world.taps = true;
    let (thief, home) = (client_address(99, 9), world.address(0));
    world.client().send_datagram(&[1; 1000]).unwrap();
    world.drain();
    let copy = world.tap.iter().rev().find(|(_, from, ..)| *from == home).unwrap().3.clone();
    world.strangers.clear();
    world.inject(thief, &copy);
    for number in 0..60 {
        world.session().send_datagram(&[2; 50]).unwrap();
        world.drain();
        world.run(16);
        assert_eq!(world.session().peer_addr(), home, "tick {number}");
    }
    let got: usize =
        world.strangers.iter().filter(|(to, _)| *to == thief).map(|(_, bytes)| bytes.len()).sum();
    assert!((34..=copy.len()).contains(&got), "{got} of {}", copy.len());
    world.strangers.clear();
    world.run(2_000);
    assert!(world.strangers.is_empty(), "the candidate was dropped, or the old address sent something");
    assert_eq!(moves(&world), 0);
}

/// Without encryption it also connects, and stays at the address where it did.
#[test]
fn a_client_may_move_while_it_connects() {
    let times = (0..=600).step_by(10);
    for (ms, suite) in times.flat_map(|ms| [(ms, SUITE), (ms, Suite::Checked)]) {
        let mut world = World::pair(ms, &path(0.0), &SessionConfig::default(), suite);
        world.run(ms);
        world.rebind(0, elsewhere(77));
        let mut buf = [0; 10];
        let up = |world: &mut World| world.clients[0].session.connection().is_some();
        assert!(world.run_until(9_000, up), "{suite:?}, moved after {ms} ms");
        if suite == Suite::Checked {
            continue;
        }
        world.client().send(on(0), b"hello").unwrap();
        world.drain();
        let came = |world: &mut World| {
            let ids = world.sessions.clone();
            ids.into_iter().any(|id| {
                world
                    .server
                    .connection_mut(id)
                    .is_some_and(|session| session.recv_into(on(0), &mut buf) == Ok(5))
            })
        };
        assert!(world.run_until(9_000, came), "moved after {ms} ms");
    }
}

#[test]
fn a_client_may_move_while_keys_are_updated() {
    let config = SessionConfig { key_update: 64, ..SessionConfig::default() };
    for seed in 1..=20 {
        let mut world = connected(seed, 0.1, &config);
        let (mut came, mut buf) = (0u32, [0; 4]);
        for number in 0..300u32 {
            world.client().send(on(0), &number.to_le_bytes()).unwrap();
            if number % 75 == 5 {
                world.rebind(0, client_address(50 + u8::try_from(number / 75).unwrap(), 1));
            }
            world.drain();
            world.run(20);
            while world.session().recv_into(on(0), &mut buf).is_ok() {
                assert_eq!(buf, came.to_le_bytes(), "seed {seed}");
                came += 1;
            }
        }
        let all = |world: &mut World| {
            while world.session().recv_into(on(0), &mut buf).is_ok() {
                came += 1;
            }
            came == 300
        };
        assert!(world.run_until(10_000, all), "seed {seed}: {came}");
        assert!(world.session().stats().key_updates >= 2, "seed {seed}");
        assert!(moves(&world) >= 3, "seed {seed}");
    }
}

#[test]
fn a_client_may_move_while_either_end_closes() {
    for after in [0, 1, 30, 60, 100, 130, 200, 300] {
        for server_closes in [false, true] {
            let mut world = connected(1, 0.0, &SessionConfig::default());
            let (now, id) = (world.now, world.sessions[0]);
            if server_closes {
                world.server.close(now, id, 5);
            } else {
                world.clients[0].session.close(now, 5);
            }
            world.drain();
            world.run(after);
            world.rebind(0, elsewhere(77));
            speak(&mut world, 2_500);
            assert_eq!(
                world.clients[0].session.state(),
                ClientState::Closed,
                "moved {after} ms after the close of the server: {server_closes}"
            );
            let (client, server) = (world.clients[0].closed(), world.closed());
            let (local, peer) = (Some(CloseReason::Local(5)), Some(CloseReason::Peer(5)));
            let expected = if server_closes { (peer, local) } else { (local, peer) };
            assert_eq!((client, server), expected, "moved {after} ms after, {server_closes}");
        }
    }
}
