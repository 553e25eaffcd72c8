//! What messages take at who receives them. Long ones that come to a server from many sessions at once, and together are more than its memory,
//! arrive one after the other, and nobody holds it for ever.

use crate::common;
use crate::common::machine::Whole as _;

use common::ms;
use common::rogue::{Rogue, open_server};
use common::sessions::{SUITE, World, client_config, in_packets, on, server_config};
use std::collections::BTreeSet;
use whitewater::inside::session::wire::Frame;
use whitewater::kcp::Config;
use whitewater::message::BitWriter;
use whitewater::session::Suite;
use whitewater::{Channel, ChannelConfig, CloseReason, Event, ServerConfig, SessionConfig, SessionId};
use whitewater_sim::{LinkConfig, Loss};

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
    let mut world =
        World::new(1, &ServerConfig { memory, max_sessions: 32, ..server_config(session, SUITE) });
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

/// Each client sends a long message on each of three channels, at once. None may hold up the others of its session.
#[test]
fn long_messages_on_several_channels_of_a_session_arrive_one_after_the_other() {
    let channels = [1, 2, 3].map(|channel| ChannelConfig { max_message: MAX, ..on(channel).config() });
    let session =
        SessionConfig { channels: [&[SMALL.into()], &channels[..]].concat(), ..SessionConfig::default() };
    let memory = 4 * u64::from(MAX);
    for clients in [2, 4] {
        let mut world = crowd(clients, memory, &session);
        for client in &mut world.clients {
            let client = client.session.connection_mut().unwrap();
            (1..=3).for_each(|channel| client.send(on(channel), &[7; MAX as usize]).unwrap());
        }
        world.drain();
        let (mut got, mut most, start) = (BTreeSet::new(), 0, world.now);
        let all = |world: &mut World| {
            most = most.max(world.server.stats().memory);
            for id in world.sessions.clone() {
                let Some(end) = world.server.connection_mut(id) else { continue };
                for channel in 1..=3 {
                    if let Some(message) = end.recv(on(channel)) {
                        assert!(message.len() == MAX as usize && got.insert((id, channel)));
                    }
                }
            }
            got.len() == 3 * clients || !ended(world).is_empty()
        };
        assert!(world.run_until(60_000, all), "{clients}: {} came, {:?}", got.len(), ended(&world));
        println!(
            "{clients}: {} in {:?}, {most} bytes at most, {:?}",
            got.len(),
            world.now.since(start),
            ended(&world)
        );
        assert_eq!(ended(&world), [], "{clients}: nobody had to go");
        assert!(most <= memory + SLACK, "{clients}: {most} bytes");
    }
}

/// Clients that begin a long message and say no more of it.
#[test]
fn who_holds_the_memory_and_does_not_go_on_has_to_go_and_the_others_go_on() {
    let session = session(on(1).config());
    let config = ServerConfig {
        memory: 4 * u64::from(MAX),
        max_sessions: 32,
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

/// Buffers are used again, so a short message may lie in one that has held a long one.
#[test]
fn messages_in_packets_count_for_as_much_as_their_buffers_take() {
    const COUNT: usize = 64;
    let packets = in_packets(on(0));
    let session = SessionConfig { channels: vec![packets], ..SessionConfig::default() };
    let mut world = World::pair(1, &LinkConfig::with_rtt(ms(20)), &session, SUITE);
    world.connect();
    for len in [1100, 1] {
        (0..COUNT).for_each(|_| world.client().send(on(0), &vec![1; len]).unwrap());
        world.drain();
        world.run(1_000);
        let held = world.session().memory();
        println!("{held} bytes with {COUNT} messages of {len}");
        assert!(held >= COUNT * 1100, "{held} bytes with {COUNT} messages of {len}");
        let got = std::iter::from_fn(|| world.session().recv(on(0))).count();
        assert_eq!(got, COUNT);
    }
}

#[test]
fn a_peer_whose_messages_in_packets_are_none_of_the_channel_ends_its_session() {
    let packets = ChannelConfig { max_message: 100, ..in_packets(on(0)) };
    let message = |len: usize| {
        let mut payload = BitWriter::new(Vec::new());
        payload.bool(true).unwrap();
        payload.int(1, 1..=64).unwrap();
        payload.int(0, 0..=u16::MAX).unwrap();
        payload.bool(true).unwrap();
        payload.int(len, 0..=2047).unwrap();
        payload.bytes(&vec![7; len]).unwrap();
        payload.finish()
    };
    for (what, payload, is_good) in [
        ("the longest message", message(100), true),
        ("a longer one", message(101), false),
        ("half of one", message(100)[..50].to_vec(), false),
        ("nothing", vec![0], false),
    ] {
        let session = SessionConfig { channels: vec![packets], ..SessionConfig::default() };
        let mut world = open_server(ServerConfig::insecure(session));
        let mut rogue = Rogue::connect(&mut world, 1).unwrap();
        rogue.send(&mut world, &[Frame::Packed(&payload)]);
        world.run(1_100);
        let expected = if is_good { None } else { Some(CloseReason::Protocol) };
        assert_eq!(world.closed(), expected, "{what}");
    }
}

/// Segments of a datagram that every path carries, and a queue that has room for little more than one part.
#[test]
fn a_long_message_leaves_without_a_pause_whatever_its_segments_and_its_queue() {
    let kcps = [64, 1024].map(|snd_queue| Config { snd_queue, ..Config::default() });
    for (way, (kcp, max_datagram)) in ways()
        .into_iter()
        .flat_map(|way| kcps.into_iter().flat_map(move |kcp| [576, 1200].map(|max| (way, (kcp, max)))))
    {
        let name =
            format!("{:?}, {}, {} in the queue, {max_datagram}", way.carrier, way.channel, kcp.snd_queue);
        let session = SessionConfig { max_datagram, ..session(ChannelConfig { kcp, ..way }) };
        let long: Channel = way.channel.of().unwrap();
        for loss in [0.0, 0.05] {
            let path = LinkConfig { loss: Loss::Random(loss), ..LinkConfig::with_rtt(ms(60)) };
            let mut world = World::pair(1, &path, &session, SUITE);
            world.connect();
            world.client().send(long, &[7; 300_000]).unwrap();
            world.drain();
            let start = world.now;
            let come = |world: &mut World| world.session().recv(long).is_some();
            assert!(world.run_until(20_000, come), "{name}");
            let took = world.now.since(start);
            println!("{name}, {loss} lost: {took:?}");
            // A window of 128 segments a round trip, and a quarter more; with loss, three times as long.
            let segments = 300_000 / (u32::from(max_datagram) - 100) + 1;
            let most = ms(66) * (segments / 128 + 2) * if loss > 0.0 { 15 } else { 5 } / 4;
            assert!(took <= most, "{name}, {loss} lost: {took:?}, {most:?} at most");
        }
    }
}
