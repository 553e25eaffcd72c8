//! Long messages that come to a server from many sessions at once, and together are more than its memory: they arrive one after the other,
//! and nobody holds it for ever.

use crate::common;
use crate::common::machine::Whole as _;

use common::ms;
use common::rogue::{Rogue, open_server};
use common::sessions::{SUITE, World, client_config, in_packets, on, server_config};
use std::collections::BTreeSet;
use whitewater::inside::session::wire::Frame;
use whitewater::session::Suite;
use whitewater::{Channel, ChannelConfig, CloseReason, Event, ServerConfig, SessionConfig, SessionId};
use whitewater_sim::LinkConfig;

const SMALL: Channel = Channel::ordered(0);
const MAX: u32 = 1 << 20;
/// What all sessions hold beside the memory that is theirs.
const SLACK: u64 = 256 << 10;

/// Small messages, and long ones each way.
fn session(way: ChannelConfig) -> SessionConfig {
    let way = ChannelConfig { max_message: MAX, ..way };
    SessionConfig { channels: vec![SMALL.into(), way], ..SessionConfig::default() }
}

fn ways() -> [ChannelConfig; 3] {
    [on(1).config(), in_packets(on(1)), Channel::<[u8]>::unordered(1).config()]
}

fn crowd(clients: usize, memory: u64, session: &SessionConfig) -> World {
    let mut world = World::new(1, &ServerConfig { memory, ..server_config(session, SUITE) });
    for _ in 0..clients {
        let path = LinkConfig::with_rtt(ms(60));
        world.add(&path, &path, session, client_config(SUITE));
    }
    assert!(world.run_until(5_000, |world| world.sessions.len() == clients));
    world
}

fn ended(world: &World) -> Vec<(SessionId, CloseReason)> {
    let reason = |(_, id, event): &(_, SessionId, Event)| match event {
        Event::Closed { reason, .. } => Some((*id, *reason)),
        _ => None,
    };
    world.events.iter().filter_map(reason).collect()
}

#[test]
fn long_messages_that_are_more_than_the_memory_together_arrive_one_after_the_other() {
    for way in ways() {
        let (session, memory) = (session(way), 4 * u64::from(MAX));
        let mut world = crowd(8, memory, &session);
        let name = format!("{:?}, {}", way.carrier, way.channel);
        let long: Channel = way.channel.of().unwrap();
        for client in &mut world.clients {
            let client = client.session.connection_mut().unwrap();
            client.send(long, &[7; MAX as usize]).unwrap();
        }
        world.drain();
        let (mut got, mut most) = (BTreeSet::new(), 0);
        let start = world.now;
        let all = |world: &mut World| {
            most = most.max(world.server.stats().memory);
            for id in world.sessions.clone() {
                let Some(end) = world.server.connection_mut(id) else { continue };
                while end.recv(SMALL).is_some() {}
                if let Some(message) = end.recv(long) {
                    assert!(message.len() == MAX as usize && got.insert(id), "{name}");
                }
            }
            got.len() + ended(world).len() == 8
        };
        assert!(world.run_until(60_000, all), "{name}: {} came, {:?}", got.len(), ended(&world));
        println!("{name}: {:?}, {most} bytes at most", world.now.since(start));
        assert_eq!(ended(&world), [], "{name}: nobody had to go");
        assert!(most <= memory + SLACK, "{name}: {most} bytes");
    }
}

/// Clients that begin a long message and say no more of it.
#[test]
fn who_holds_the_memory_and_does_not_go_on_has_to_go_and_the_others_go_on() {
    let session = session(on(1).config());
    let config = ServerConfig {
        memory: 4 * u64::from(MAX),
        sessions_per_address: 64,
        ..ServerConfig::insecure(session.clone())
    };
    let mut world = open_server(config);
    let path = LinkConfig::with_rtt(ms(60));
    world.add(&path, &path, &session, client_config(Suite::Checked));
    world.connect();
    let mut rogues: Vec<_> = (1..=6).map(|number| Rogue::connect(&mut world, number).unwrap()).collect();
    let mut sn = [0; 6];
    for _ in 0..60 {
        for (rogue, sn) in rogues.iter_mut().zip(&mut sn) {
            // A part, in segments whose `frg` counts down; each is sent until it is taken.
            for frg in (0..16).rev() {
                let segment = common::Raw { frg, ..common::Raw::push(*sn, &[1; 1024]) };
                let bytes = rogue.channel(1, &[segment]);
                let datagram = rogue.sealed(&world, &[Frame::Kcp(&bytes)]);
                let (now, from) = (world.now, rogue.address);
                world.audited(from, datagram.len());
                world.server.give(now, from, &datagram);
                *sn += 1;
            }
        }
        world.run(1);
        world.strangers.clear();
    }
    assert_eq!(ended(&world), []);
    let held = world.server.stats().memory;
    assert!(held > 2 << 20, "{held} bytes are held by who does not go on");
    world.client().send(on(1), &[7; MAX as usize]).unwrap();
    world.drain();
    let start = world.now;
    let come = |world: &mut World| {
        for rogue in &mut rogues {
            rogue.send(world, &[Frame::Ping(0)]); // they are there
        }
        world.strangers.clear();
        world
            .sessions
            .clone()
            .into_iter()
            .any(|id| world.server.connection_mut(id).and_then(|end| end.recv(on(1))).is_some())
    };
    assert!(world.run_until(10_000, come), "{:?}", ended(&world));
    println!("{:?}, {:?}", world.now.since(start), ended(&world));
    assert!(ended(&world).iter().all(|(_, reason)| *reason == CloseReason::NoMemory));
}
