//! What a session costs in memory: in total next to nothing while idle, and no allocations while busy.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;
use crate::common::machine::Whole as _;
use rand::Rng;
use std::time::Duration;

use allocation_counter::measure;
use common::ms;
use common::sessions::{
    SUITE, World, client_address, client_config, in_packets, on, ordered, random, server_address,
    server_config,
};
use whitewater::kcp::{self, Config, Conv};
use whitewater::machine::Machine as _;
use whitewater::session::{Client, Connection, Server, Suite};
use whitewater::{Channel, ClientConfig, SessionConfig, Time};
use whitewater_sim::{LinkConfig, Loss, SimRng};

/// A channel by KCP, and this one in packets.
const PACKETS: Channel = Channel::ordered(1);

fn both() -> SessionConfig {
    SessionConfig { channels: vec![on(0).into(), in_packets(PACKETS)], ..SessionConfig::default() }
}

/// Heap bytes that a value owns.
fn heap<T>(value: T) -> i64 {
    -measure(|| drop(value)).bytes_current
}

fn suites() -> impl Iterator<Item = Suite> {
    [Suite::Checked]
        .into_iter()
        .chain(Suite::ALL)
        .filter(|suite| !suite.needs_server_key())
        .filter(|suite| suite.is_built_in())
}

/// Additional bytes per session that ciphers in pure Rust keep, compared with `ring`.
const IN_RUST: i64 = if cfg!(feature = "ring") { 0 } else { 48 };

/// A server with `clients` connected clients.
fn crowd(clients: usize, suite: Suite, session: &SessionConfig) -> World {
    let path = LinkConfig::with_rtt(ms(20));
    let mut world = World::new(1, &server_config(session, suite));
    for _ in 0..clients {
        world.add(&path, &path, session, client_config(suite));
    }
    let all_up = |world: &mut World| world.sessions.len() == clients;
    assert!(world.run_until(5_000, all_up), "{} of {clients}", world.sessions.len());
    world
}

/// Bytes of the server per session, and all of a client's.
fn each(mut world: World, suite: Suite, session: &SessionConfig) -> (i64, i64) {
    let clients = i64::try_from(world.clients.len()).unwrap();
    let client = world.clients.pop().unwrap().session;
    let client = i64::try_from(size_of_val(&client)).unwrap() + heap(client);
    let (used, empty) = (world.server, World::new(1, &server_config(session, suite)).server);
    ((heap(used) - heap(empty)) / clients, client)
}

#[test]
fn an_idle_session_takes_at_most_1_kib_of_its_server_and_1280_bytes_if_encrypted() {
    for suite in suites() {
        let session = SessionConfig::default();
        let mut world = crowd(64, suite, &session);
        world.run(30_000);
        let (server, client) = each(world, suite, &session);
        println!("{suite:?}: {server} bytes of the server, {client} of the client");
        let most = if suite == Suite::Checked { 1024 } else { 1280 + IN_RUST };
        assert!(server <= most, "{suite:?}: {server} bytes");
    }
}

#[test]
fn a_session_that_used_everything_takes_at_most_3400_bytes_when_idle_again() {
    for suite in suites() {
        let session = both();
        let mut world = crowd(128, suite, &session);
        for _ in 0..50 {
            for id in world.sessions.clone() {
                let server = world.server.connection_mut(id).unwrap();
                server.send(on(0), &[1; 2000]).unwrap();
                server.send_datagram(&[2; 500]).unwrap();
                server.send(PACKETS, &[3; 50]).unwrap();
            }
            for client in &mut world.clients {
                client.session.connection_mut().unwrap().send(on(0), &[4; 3000]).unwrap();
            }
            world.drain();
            world.run(50);
            let mut buf = [0; 3000];
            for id in world.sessions.clone() {
                while world.server.connection_mut(id).unwrap().recv_into(on(0), &mut buf).is_ok() {}
            }
            for client in &mut world.clients {
                let client = client.session.connection_mut().unwrap();
                while client.recv_into(on(0), &mut buf).is_ok() {}
                while client.recv_datagram_into(&mut buf).is_ok() {}
                while client.recv(PACKETS).is_some() {}
            }
        }
        world.drain();
        world.run(30_000);
        let (server, client) = each(world, suite, &session);
        println!("{suite:?}: {server} bytes of the server, {client} of the client");
        assert!(server <= 3400 + IN_RUST, "{suite:?}: {server} bytes");
    }
}

/// What the server counts for its sessions, and what they really hold besides the fixed part of each.
fn counted_and_held(world: &World) -> (u64, u64) {
    let held = |id| u64::try_from(world.server.connection(id).unwrap().memory()).unwrap();
    (world.server.stats().memory, world.server.clients().map(held).sum())
}

fn read_all(end: &mut Connection) {
    let mut buf = [0; 4000];
    while end.recv_into(on(0), &mut buf).is_ok()
        || end.recv_datagram_into(&mut buf).is_ok()
        || end.recv(PACKETS).is_some()
    {}
}

#[test]
fn the_memory_of_sessions_is_counted_within_2_kib_and_exactly_once_polled() {
    const SESSIONS: usize = 8;
    for (seed, most) in (1..=6).zip(2..) {
        let session = both();
        let (mut world, mut rng) = (crowd(SESSIONS, Suite::Checked, &session), SimRng::new(seed, 0));
        world.run(8_000);
        let (counted, held) = counted_and_held(&world);
        let fixed = counted - held;
        for _ in 0..5_000 {
            let mut any = |below: u64| usize::try_from(rng.next_u64() % below).unwrap();
            let (each, kind, bytes) = (any(8), any(8), vec![1; any(3000) + 1]);
            let server = world.server.connection_mut(world.sessions[each]).unwrap();
            let client = world.clients[each].session.connection_mut().unwrap();
            // With some seeds, only small ones.
            match kind.min(most) {
                0 => read_all(server),
                1 => read_all(client),
                2 => _ = client.send_datagram(&[1]),
                3 => _ = server.send_datagram(&[1; 5]),
                4 => _ = client.send(on(0), &[1; 3]),
                5 => _ = client.send(on(0), &bytes),
                6 => _ = server.send(on(0), &bytes),
                _ => _ = server.send(PACKETS, &[3; 50]),
            }
            world.drain();
            world.run(1);
            let (counted, held) = counted_and_held(&world);
            let least = (fixed + held).saturating_sub(2048 * SESSIONS as u64);
            assert!(counted >= least, "seed {seed}: {counted} of {held} and {fixed}");
        }
        world.run(2_000);
        let (counted, held) = counted_and_held(&world);
        assert_eq!(counted, held + fixed, "seed {seed}");
        let (now, ids) = (world.now, world.sessions.clone());
        ids.into_iter().for_each(|id| world.server.close(now, id, 1));
        world.drain();
        world.run(10_000);
        assert_eq!((world.server.len(), world.server.stats().memory), (0, 0), "seed {seed}");
    }
}

/// Both ends of one session in the same place.
fn tick(now: Time, client: &mut Client, server: &mut Server, bufs: &mut (Vec<u8>, [u8; 2000])) {
    let (here, there) = (client_address(1, 1000), server_address());
    let (datagram, message) = bufs;
    let end = client.connection_mut().unwrap();
    end.send(on(0), &[1; 300]).unwrap();
    end.send(on(0), &[2; 1900]).unwrap();
    end.send_datagram(&[3; 200]).unwrap();
    client.handle_timeout(now);
    server.handle_timeout(now);
    for _ in 0..3 {
        while client.emit_to(now, datagram).is_some() {
            server.give(now, here, datagram);
        }
        while server.emit_to(now, datagram).is_some() {
            client.give(now, there, datagram);
        }
    }
    while let Some((id, _)) = server.poll_event() {
        let end = server.connection_mut(id).unwrap();
        while end.recv_into(on(0), message).is_ok() || end.recv_datagram_into(message).is_ok() {}
    }
    while client.poll_event().is_some() {}
    while client.connection_mut().unwrap().pop_delivered().is_some() {}
}

#[test]
fn traffic_allocates_nothing_in_a_steady_state() {
    for suite in suites() {
        let session = SessionConfig {
            channels: ordered([Config { mtu: 1200, ..configs::turbo() }]),
            ..SessionConfig::default()
        };
        let config = ClientConfig { session: session.clone(), ..client_config(suite) };
        let mut server = Server::new(&server_config(&session, suite), random(1, 1)).unwrap();
        let mut client = Client::new(&config, random(1, 2)).unwrap();
        let (mut now, mut buf) = (Time::from_millis(1000), Vec::new());
        client.connect(now, &[server_address()]).unwrap();
        for _ in 0..20 {
            while client.emit_to(now, &mut buf).is_some() {
                server.give(now, client_address(1, 1000), &buf);
            }
            while server.emit_to(now, &mut buf).is_some() {
                client.give(now, server_address(), &buf);
            }
            now = now + ms(16);
        }
        let mut bufs = (buf, [0; 2000]);
        let mut ticks = |count| {
            for _ in 0..count {
                now = now + ms(16);
                tick(now, &mut client, &mut server, &mut bufs);
            }
        };
        ticks(2000);
        let allocated = measure(|| ticks(2000));
        println!("{suite:?}: {} allocations in 2000 ticks", allocated.count_total);
        assert_eq!(allocated.count_total, 0, "{suite:?}");
    }
}

#[test]
fn an_idle_bare_kcp_peer_takes_at_most_1_kib_and_needs_no_wake_ups() {
    // In a table that grows by doubling, just over half full is the worst case.
    for count in [900, 1000, 1800] {
        let limits =
            kcp::PeersConfig { kcp: configs::turbo(), max_peers: count, ..kcp::PeersConfig::registered() };
        let mut peers = kcp::Peers::new(&limits, &mut random(1, 1)).unwrap();
        let mut now = Time::from_millis(1000);
        let made = measure(|| {
            for index in 0..count {
                let address =
                    client_address(u8::try_from(index % 250).unwrap(), 1000 + u16::try_from(index).unwrap());
                peers.register(now, address, Conv(7)).unwrap();
            }
            while peers.emit(now).is_some() {}
            // What is not needed is freed after 2 s, and then there is nothing to do until they have been
            // silent for too long.
            while let Some(at) = peers.poll_timeout().filter(|at| *at < Time::from_millis(30_000)) {
                now = at;
                peers.handle_timeout(now);
                while peers.emit(now).is_some() {}
            }
        });
        let each = made.bytes_current / i64::try_from(count).unwrap();
        println!("{each} bytes of each of {count}");
        assert!(each <= 1024, "{each} bytes of each of {count}");
        assert!(now <= Time::from_millis(3100), "the last wake-up is at {now:?}");
    }
}

#[test]
fn a_session_of_unreliable_datagrams_takes_at_most_8_kb_at_30_hz_whatever_gets_lost() {
    for loss in [0.0, 0.1, 0.5] {
        let link =
            LinkConfig { loss: Loss::Random(loss), ..LinkConfig::with_rtt(Duration::from_millis(100)) };
        let mut world = World::pair(1, &link, &SessionConfig::default(), SUITE);
        world.connect();
        let (mut most, mut buf, mut arrived) = ([0; 2], [0; 1200], [0; 2]);
        for tick in 0..30 * 60 {
            world.client().send_datagram(&[1; 32]).unwrap();
            world.session().send_datagram(&[2; 200]).unwrap();
            world.drain();
            world.run(33);
            for end in 0..2 {
                let session = if end == 0 { world.client() } else { world.session() };
                while session.recv_datagram_into(&mut buf).is_ok() {}
                while session.pop_delivered().is_some() {
                    arrived[end] += 1;
                }
                if tick > 0 {
                    most[end] = most[end].max(session.memory());
                }
            }
        }
        println!("{loss}: {most:?} bytes, {arrived:?} known to have arrived");
        assert!(most.iter().all(|most| *most <= 8192), "{loss}: {most:?}");
        // The share of datagrams whose acknowledgement arrives: each is told in several packets.
        let expected = 0.9 * 1800.0 * (1.0 - loss);
        assert!(arrived.iter().all(|arrived| f64::from(*arrived) > expected), "{loss}: {arrived:?}");
    }
}
