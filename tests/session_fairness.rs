//! Sessions with much to send do not hold up those with little: sessions, and bare KCP peers, take turns.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;
use crate::common::machine::Whole as _;

use common::ms;
use common::sessions::{SUITE, World, client_address, client_config, on, random, server_config};
use std::collections::HashMap;
use std::net::SocketAddr;
use whitewater::kcp::{self, Config, Conv, PeerId, Peers};
use whitewater::session::Connection;
use whitewater::{ServerConfig, SessionConfig, SessionId, Time};
use whitewater_sim::LinkConfig;

/// Bytes that one sends in a row while others wait.
const QUANTUM: usize = 16 << 10;
const QUIET: usize = 100;

/// A server with `count` connected sessions.
fn crowd(count: usize, config: &ServerConfig) -> World {
    let path = LinkConfig::with_rtt(ms(20));
    let mut world = World::new(1, config);
    for _ in 0..count {
        world.add(&path, &path, &config.session, client_config(SUITE));
    }
    assert!(world.run_until(5_000, |world| world.sessions.len() == count));
    world.run(100);
    world
}

/// Has more to send than ever leaves.
fn refill(session: &mut Connection) {
    while session.send_datagram(&[1; 1000]).is_ok() {}
}

fn session(world: &mut World, id: SessionId) -> &mut Connection {
    world.server.connection_mut(id).unwrap()
}

/// How many datagrams leave until each of `quiet` has sent one while those of `busy` always have more.
fn until_all_have_sent(world: &mut World, busy: &[SessionId], quiet: &[SessionId]) -> usize {
    let (now, mut buf, mut left) = (world.now, Vec::new(), HashMap::new());
    for id in quiet {
        session(world, *id).send(on(0), &[2; 64]).unwrap();
        left.insert(session(world, *id).peer_addr(), ());
    }
    for count in 1.. {
        busy.iter().for_each(|id| refill(session(world, *id)));
        let to = world.server.emit_to(now, &mut buf).unwrap();
        left.remove(&to);
        if left.is_empty() {
            return count;
        }
    }
    unreachable!()
}

#[test]
fn a_busy_session_costs_the_others_only_one_turn() {
    let mut world = crowd(1 + QUIET, &server_config(&SessionConfig::default(), SUITE));
    let ids = world.sessions.clone();
    let (busy, quiet) = ids.split_at(1);
    for round in 0..3 {
        refill(session(&mut world, busy[0]));
        let count = until_all_have_sent(&mut world, busy, quiet);
        assert!(count <= QUIET + QUANTUM / 1000 + 1, "round {round}: {count} datagrams");
    }
}

#[test]
fn busy_sessions_get_equal_shares() {
    let mut world = crowd(8, &server_config(&SessionConfig::default(), SUITE));
    let (ids, now, mut buf) = (world.sessions.clone(), world.now, Vec::new());
    let (mut sent, mut row): (HashMap<SocketAddr, usize>, Vec<usize>) = <_>::default();
    let mut last = None;
    for _ in 0..8 * 20 * QUANTUM / 1000 {
        ids.iter().for_each(|id| refill(session(&mut world, *id)));
        let to = world.server.emit_to(now, &mut buf).unwrap();
        *sent.entry(to).or_default() += buf.len();
        if last.replace(to) == Some(to) {
            *row.last_mut().unwrap() += 1;
        } else {
            row.push(1);
        }
    }
    let (least, most) = (sent.values().min().unwrap(), sent.values().max().unwrap());
    assert!(sent.len() == 8 && most - least <= 2 * QUANTUM, "{least} to {most} bytes");
    // Each sends enough in a row for one batch.
    assert!(row.iter().rev().skip(1).all(|row| (14..=17).contains(row)), "{row:?}");
}

#[test]
fn a_flood_in_ones_own_session_gives_one_event_two_answers_and_bounded_memory() {
    let mut world = crowd(2, &server_config(&SessionConfig::default(), SUITE));
    let (now, mut buf) = (world.now, Vec::new());
    let quiet = world.sessions.iter().copied();
    let [noisy, quiet] = [0, 1].map(|client| {
        let peer = world.address(client);
        quiet.clone().find(|id| world.server.connection(*id).unwrap().peer_addr() == peer).unwrap()
    });
    // Everything that fits into a receive buffer, and then one message from somebody else.
    for _ in 0..2000 {
        let client = world.clients[0].session.connection_mut().unwrap();
        client.send_datagram(&[3; 1000]).unwrap();
        while world.clients[0].session.emit_to(now, &mut buf).is_some() {
            world.server.give(now, world.address(0), &buf);
        }
    }
    world.clients[1].session.connection_mut().unwrap().send(on(0), b"hello").unwrap();
    world.clients[1].session.emit_to(now, &mut buf).unwrap();
    world.server.give(now, world.address(1), &buf);
    // One event each, whatever arrived, and few answers.
    let mut events = Vec::new();
    while let Some((id, _)) = world.server.poll_event() {
        events.push(id);
    }
    assert_eq!(events, [noisy, quiet]);
    assert_eq!(session(&mut world, quiet).recv_into(on(0), &mut [0; 10]), Ok(5));
    let mut answers = 0;
    while world.server.emit_to(now, &mut buf).is_some() {
        answers += 1;
    }
    assert!(answers <= 2, "{answers} answers");
    let held = session(&mut world, noisy).memory();
    assert!(held < 160 << 10, "{held} bytes of unread data");
}

/// Registered peers that nobody answers.
fn peers(count: u32, now: Time) -> (Peers, Vec<PeerId>) {
    let kcp = Config {
        snd_wnd: 4096,
        rcv_wnd: 4096,
        snd_queue: 1 << 20,
        snd_queue_bytes: 1 << 30,
        ..configs::turbo()
    };
    let mut peers =
        Peers::new(&kcp::PeersConfig { kcp, ..kcp::PeersConfig::registered() }, &mut random(1, 1)).unwrap();
    let address = |index: u32| client_address(1 + u8::try_from(index).unwrap(), 9000);
    let ids = (0..count).map(|index| peers.register(now, address(index), Conv(index)).unwrap()).collect();
    (peers, ids)
}

#[test]
fn a_bare_peer_with_a_full_window_costs_the_others_only_one_turn() {
    let now = Time::from_millis(5);
    let (mut peers, ids) = peers(101, now);
    while peers.emit(now).is_some() {}
    // A window of 32 segments, each in a datagram, for a peer that was never heard.
    for _ in 0..500 {
        peers.peer(ids[0]).unwrap().send(&[1; 1300]).unwrap();
    }
    for id in &ids[1..] {
        peers.peer(*id).unwrap().send(&[2; 64]).unwrap();
    }
    let mut order = Vec::new();
    while let Some((datagram, to)) = peers.emit(now) {
        order.push((datagram.len(), to));
    }
    let last_quiet = order.iter().rposition(|(len, _)| *len < 100).unwrap();
    assert!(order.len() > 120, "{} datagrams", order.len());
    assert!(last_quiet < 100 + QUANTUM / 1300 + 1, "the last of the quiet is at {last_quiet}");
}
