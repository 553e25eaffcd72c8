//! A program that cannot send on a channel, or waits until everything has arrived, gets an event, once.

#![expect(clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;

use common::ms;
use common::sessions::{SUITE, World, client_config, in_packets, on, server_config};
use whitewater::channel::SendError;
use whitewater::kcp::Config;
use whitewater::{Channel, ChannelConfig, Event, ServerConfig, SessionConfig, SessionId};
use whitewater_sim::{LinkConfig, Loss};

const STREAM: Channel = Channel::stream(0);

fn world(seed: u64, channel: Channel, kcp: Config) -> World {
    let channels = vec![ChannelConfig { kcp, ..channel.config() }];
    over(seed, &SessionConfig { channels, ..SessionConfig::default() })
}

fn over(seed: u64, session: &SessionConfig) -> World {
    let link = LinkConfig { loss: Loss::Random(0.1), ..LinkConfig::with_rtt(ms(50)) };
    let mut world = World::pair(seed, &link, session, SUITE);
    world.connect();
    world
}

/// How often the server, or the first client, got the event.
fn told(world: &World, is_client: bool) -> usize {
    if is_client {
        return world.clients[0].events.iter().filter(|(_, event)| *event == Event::Writable).count();
    }
    world.events.iter().filter(|(.., event)| *event == Event::Writable).count()
}

#[test]
fn a_channel_that_was_full_says_when_it_has_room_at_either_end() {
    for seed in 1..=10 {
        for is_client in [false, true] {
            let mut world = world(seed, on(0), Config { snd_queue: 16, snd_wnd: 8, ..configs::turbo() });
            let mut sent = 0u32;
            for turn in 0..10 {
                let end = if is_client { world.client() } else { world.session() };
                let full = loop {
                    match end.send(on(0), &sent.to_le_bytes()) {
                        Ok(()) => sent += 1,
                        Err(error) => break error,
                    }
                };
                assert_eq!(full, SendError::Full { channel: 0 }, "seed {seed}");
                world.drain();
                assert!(
                    world.run_until(5_000, |world| told(world, is_client) > turn),
                    "seed {seed}: not told"
                );
            }
            assert!(sent > 10 * 8, "seed {seed}: half of the queue each time, {sent}");
            world.run(2_000);
            assert_eq!(told(&world, is_client), 10, "seed {seed}: once each time");
        }
    }
}

#[test]
fn delivery_is_reported_once_everything_has_arrived_and_the_end_comes_last() {
    for seed in 1..=10 {
        let mut world = world(seed, STREAM, configs::turbo());
        let client = world.client();
        client.send(STREAM, &[7; 20_000]).unwrap();
        client.send_end(STREAM).unwrap();
        let missing = Channel::stream(9);
        assert!(!client.is_delivered(STREAM) && client.send_end(missing).is_err());
        assert!(client.is_delivered(missing), "of a channel that is not there nothing is under way");
        world.drain();
        assert!(world.run_until(10_000, |world| told(world, true) == 1), "seed {seed}");
        assert!(world.client().is_delivered(STREAM));
        let (mut buf, mut received, server) = ([0; 2000], 0, world.session());
        let end = loop {
            match server.recv_into(STREAM, &mut buf).unwrap() {
                0 => break server.recv_into(STREAM, &mut buf),
                len => received += len,
            }
        };
        assert!(received == 20_000 && end.is_err(), "seed {seed}: {received}");
    }
}

#[test]
fn a_session_out_of_memory_reports_when_it_has_room_again() {
    let session = SessionConfig { send_memory: 20_000, ..SessionConfig::default() };
    let mut world = World::pair(1, &LinkConfig::with_rtt(ms(50)), &session, SUITE);
    world.connect();
    while world.client().send(on(0), &[1; 1000]).is_ok() {}
    world.drain();
    assert!(world.run_until(1_000, |world| told(world, true) == 1), "not told");
    assert!(world.client().send(on(0), &[1; 9000]).is_ok(), "half of it at least");
    world.drain();
    world.run(2_000);
    assert_eq!(told(&world, true), 1, "nobody waits");
}

#[test]
fn a_channel_in_packets_that_was_full_says_once_when_half_of_it_is_free() {
    let channels = vec![in_packets(on(0))];
    let session = SessionConfig { channels, ..SessionConfig::default() };
    for seed in 1..=10 {
        let mut world = over(seed, &session);
        let mut sent = 0;
        while world.client().send(on(0), &[1; 10]).is_ok() {
            sent += 1;
        }
        assert_eq!(sent, 256, "seed {seed}");
        world.drain();
        assert!(world.run_until(5_000, |world| told(world, true) == 1), "seed {seed}: not told");
        assert!((0..128).all(|_| world.client().send(on(0), &[1; 10]).is_ok()), "seed {seed}");
        world.drain();
        world.run(5_000);
        assert_eq!(told(&world, true), 1, "seed {seed}: nobody waits");
    }
}

/// What waits behind a long message, and finds no room: who asks again each time it is told would else ask for ever.
#[test]
fn who_found_no_room_behind_a_long_message_is_told_once_when_there_is_some() {
    for channel in [on(0).config(), in_packets(on(0))] {
        for seed in 1..=5 {
            let mut world =
                over(seed, &SessionConfig { channels: vec![channel], ..SessionConfig::default() });
            world.client().send(on(0), &vec![1; 1 << 20]).unwrap();
            for turn in 1.. {
                let mut sent = 0;
                while world.client().send(on(0), &[2; 3000]).is_ok() {
                    sent += 1;
                }
                assert!(sent > 0, "seed {seed}, {turn}: told that there is room and there is none");
                world.drain();
                let mut buf = vec![0; 1 << 20];
                let read = |world: &mut World| {
                    while world.session().recv_into(on(0), &mut buf).is_ok() {}
                    told(world, true) >= turn
                };
                assert!(world.run_until(10_000, read), "seed {seed}, {turn}: not told");
                if turn == 5 {
                    break;
                }
            }
        }
    }
}

/// A server whose memory another session has taken.
#[test]
fn who_found_no_memory_is_told_when_there_is_some() {
    let kcp = Config { snd_wnd: 8192, rcv_wnd: 8192, snd_queue: 1 << 20, ..configs::turbo() };
    let channels = [ChannelConfig { kcp, ..on(0).config() }, on(1).config(), in_packets(on(2))];
    let channels = channels.map(|channel| ChannelConfig { max_message: 100_000, ..channel }).to_vec();
    let session = SessionConfig { channels, send_memory: 1 << 22, ..SessionConfig::default() };
    for (channel, len) in [(on(1), 1000), (on(1), 100_000), (on(2), 100), (on(2), 100_000)] {
        let name = format!("{len} bytes on {channel:?}");
        let config = ServerConfig { memory: 1 << 20, max_sessions: 2, ..server_config(&session, SUITE) };
        let mut world = World::new(1, &config);
        let link = LinkConfig::with_rtt(ms(50));
        let clients = [(); 2].map(|()| world.add(&link, &link, &session, client_config(SUITE)));
        assert!(world.run_until(5_000, |world| world.sessions.len() == 2));
        world.run(500);
        let of = |world: &World, client| {
            let is =
                |id: &&SessionId| world.server.connection(**id).unwrap().peer_addr() == world.address(client);
            *world.sessions.iter().find(is).unwrap()
        };
        let [greedy, poor] = clients.map(|client| of(&world, client));
        world.clients[0].frozen = true;
        let mut count = 0;
        while world.server.connection_mut(greedy).unwrap().send(on(0), &[1; 1000]).is_ok() {
            count += 1;
            world.drain();
        }
        assert!(count > 500, "{name}: {count}");
        world.run(300); // one that stands still for a second has to go
        let end = world.server.connection_mut(poor).unwrap();
        while end.send(channel, &vec![2; len]).is_ok() {}
        assert_eq!(
            end.send(channel, &vec![2; len]),
            Err(SendError::Full { channel: channel.number() }),
            "{name}"
        );
        world.drain();
        let told = |world: &World| {
            world.events.iter().filter(|(_, id, event)| *id == poor && *event == Event::Writable).count()
        };
        let before = told(&world);
        world.clients[0].frozen = false;
        let is_told = |world: &mut World| {
            for client in &mut world.clients {
                let client = client.session.connection_mut().unwrap();
                while (0..3).any(|number| client.recv(on(number)).is_some()) {}
            }
            told(world) > before
        };
        assert!(world.run_until(10_000, is_told), "{name}: not told");
        assert!(
            world.server.connection_mut(poor).unwrap().send(channel, &vec![2; len]).is_ok(),
            "{name}: told, and no room"
        );
    }
}

/// All of what a stream is given, or a message of many segments, needs more than half of a queue.
#[test]
fn who_found_no_room_for_much_at_once_is_told_when_there_is_room_for_all_of_it() {
    let kcp = Config { snd_queue: 16, snd_wnd: 8, ..configs::turbo() };
    for (channel, seed) in
        [STREAM, on(0)].into_iter().flat_map(|channel| (1..=5).map(move |seed| (channel, seed)))
    {
        let mut world = world(seed, channel, kcp);
        for turn in 1..=10 {
            while world.client().send(channel, &[1; 14_000]).is_ok() {}
            world.drain();
            let is_told = |world: &mut World| {
                while world.session().recv(channel).is_some() {}
                told(world, true) >= turn
            };
            assert!(world.run_until(10_000, is_told), "{channel:?}, seed {seed}, {turn}: not told");
            let sent = world.client().send(channel, &[1; 14_000]);
            assert_eq!(
                sent,
                Ok(()),
                "{channel:?}, seed {seed}, {turn}: told that there is room and there is none"
            );
        }
    }
}
