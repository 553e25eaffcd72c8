//! A busy channel takes neither room nor turns from the others.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "a test that panics has found something"
)]

use crate::common;
use crate::common::machine::Whole as _;

use common::ms;
use common::sessions::{SUITE, World, default_kcp, on, ordered};
use std::time::Duration;
use whitewater::pace::MaxRate;
use whitewater::session::Connection;
use whitewater::{Channel, Event, SessionConfig, Time};
use whitewater_sim::{Bottleneck, LinkConfig};

const GAME: Channel = on(0);

fn channels(count: u8, session: SessionConfig) -> SessionConfig {
    SessionConfig { channels: ordered((0..count).map(|_| default_kcp())), ..session }
}

/// 10 Mbit/s with a queue of 50 ms, and a round trip of 20 ms.
fn narrow() -> LinkConfig {
    let bottleneck = Some(Bottleneck { rate: 10_000_000, queue: 64_000 });
    LinkConfig { bottleneck, ..LinkConfig::with_rtt(ms(20)) }
}

/// Fills what a channel takes.
fn fill(end: &mut Connection, number: u8, len: usize) {
    while end.send(on(number), &vec![9; len]).is_ok() {}
}

/// Ten seconds of a game at 60 Hz with 100 bytes per message on channel 0, while the other channels, and optionally
/// datagrams, always have more to send. Returns how long each message took, in ascending order, and how many
/// bytes of the others arrived.
fn play(
    seed: u64,
    link: &LinkConfig,
    session: &SessionConfig,
    greedy: u8,
    floods: bool,
) -> (Vec<Duration>, usize) {
    const COUNT: u32 = 600;
    let mut world = World::pair(seed, link, session, SUITE);
    world.connect();
    let (start, mut took, mut sent, mut bulk) = (world.now, Vec::new(), 0u32, 0);
    let mut buf = vec![0; 20_000];
    for tick in 0..30_000u64 {
        let client = world.client();
        // Who is greedy asks first, at each opportunity; what the game is refused it asks for again each ms.
        (1..=greedy).for_each(|number| fill(client, number, 10_000));
        while floods && client.send_datagram(&[7; 1000]).is_ok() {}
        while u64::from(sent) * 1000 / 60 <= tick && sent < COUNT {
            let due = start + Duration::from_micros(u64::from(sent) * 1_000_000 / 60);
            let mut message = [0; 100];
            message[..8].copy_from_slice(&due.as_micros().to_le_bytes());
            message[8..12].copy_from_slice(&sent.to_le_bytes());
            if client.send(GAME, &message).is_err() {
                break;
            }
            sent += 1;
        }
        world.drain();
        world.run(1);
        let now = world.now;
        let server = world.session();
        while server.recv_into(GAME, &mut buf).is_ok() {
            assert_eq!(buf[8..12], (took.len() as u32).to_le_bytes(), "seed {seed}");
            let due = Time::from_micros(u64::from_le_bytes(buf[..8].try_into().unwrap()));
            took.push(now.since(due));
        }
        for number in 1..=greedy {
            while let Ok(len) = server.recv_into(on(number), &mut buf) {
                bulk += len;
            }
        }
        while let Ok(len) = server.recv_datagram_into(&mut buf) {
            bulk += len;
        }
        if took.len() == COUNT as usize {
            break;
        }
    }
    assert_eq!((sent, took.len()), (COUNT, COUNT as usize), "seed {seed}: not everything arrived");
    took.sort_unstable();
    (took, bulk)
}

fn p99(took: &[Duration]) -> Duration {
    took[took.len() * 99 / 100]
}

/// Asserts how much later than alone the game arrives beside greedy channels; returns the bytes of those.
fn bulk_beside(path: &LinkConfig, session: &SessionConfig, greedy: u8, most: Duration) -> usize {
    let (alone, _) = play(1, path, session, 0, false);
    let (beside, bulk) = play(1, path, session, greedy, false);
    let (alone, beside) = (p99(&alone), p99(&beside));
    println!("{greedy} greedy channels: p99 {beside:?}, alone {alone:?}, {bulk} bytes of the others");
    assert!(beside <= alone + most, "{greedy}: {beside:?}, alone {alone:?}");
    bulk
}

#[test]
fn a_game_over_a_wide_path_does_not_notice_how_many_channels_are_greedy() {
    let wide = LinkConfig {
        bottleneck: Some(Bottleneck { rate: 1_000_000_000, queue: 4 << 20 }),
        ..LinkConfig::with_rtt(ms(20))
    };
    for greedy in [1, 4, 15] {
        let session = channels(1 + greedy, SessionConfig::default());
        let bulk = bulk_beside(&wide, &session, greedy, ms(10));
        assert!(bulk > 10 << 20, "{greedy}: {bulk} bytes");
    }
}

/// The path has 2 Mbit/s and a queue of 300 ms.
#[test]
fn all_of_a_game_arrives_over_10_mbit_s_beside_greedy_channels_and_on_time_where_max_rate_leaves_room() {
    for greedy in [1, 4, 15] {
        let session = channels(1 + greedy, SessionConfig::default());
        // All channels together fill the queue of the path, in which the game must wait, plus a round trip if
        // its datagram is dropped there.
        bulk_beside(&narrow(), &session, greedy, ms(122));
        // Half of what the path carries: its queue stays empty, and the game goes first.
        let session = SessionConfig { max_rate: Some(MaxRate::new(500)), ..session };
        let bulk = bulk_beside(&narrow(), &session, greedy, ms(10));
        assert!(bulk > 3_000_000, "{greedy}: {bulk} bytes");
    }
}

/// What a channel can hold at most while the others hold nothing, and the share of each channel.
fn shares(session: &SessionConfig) -> (usize, usize) {
    let (all, count) = (session.send_memory as usize, session.channels.len());
    (all - (count - 1) * (all / 4 / count), all / 4 / count)
}

/// Two connected ends whose server answers nothing, so that sent data stays held.
fn deaf(session: &SessionConfig) -> World {
    let mut world = World::pair(1, &narrow(), session, SUITE);
    world.connect();
    world.frozen = true;
    world
}

/// Bytes that messages of `len` bytes hold on a channel, each in a segment of its own, without those.
fn held(end: &Connection, number: u8, len: usize) -> usize {
    let kcp = end.kcp_stats(on(number)).unwrap();
    (kcp.in_flight + kcp.snd_queue) as usize * len
}

#[test]
fn no_channel_takes_the_share_of_another_and_all_together_hold_no_more_than_the_limit() {
    for count in [2, 5, 16] {
        let session = channels(count, SessionConfig::default());
        let (most, own) = shares(&session);
        let mut world = deaf(&session);
        let client = world.client();
        for number in (0..count).rev() {
            fill(client, number, 500); // the least urgent first
        }
        let held: Vec<_> = (0..count).map(|number| held(client, number, 500)).collect();
        let (last, others) = held.split_last().unwrap();
        let all_but_segments = |share: usize| share * 15 / 16 - 500..=share;
        assert!(all_but_segments(most).contains(last), "{held:?} of {most}");
        assert!(others.iter().all(|held| all_but_segments(own).contains(held)), "{held:?} of {own}");
        assert!(held.iter().sum::<usize>() <= session.send_memory as usize, "{held:?}");
    }
}

#[test]
fn what_a_channel_waits_for_no_other_takes_however_often_it_asks() {
    let session = channels(3, SessionConfig { send_memory: 100 << 10, ..SessionConfig::default() });
    let (_, own) = shares(&session);
    let long = vec![1; 16_000];
    assert!(long.len() > own + own / 2, "more than its share, which is {own} bytes");
    for seed in 1..=3 {
        let mut world = World::pair(seed, &narrow(), &session, SUITE);
        world.connect();
        let (mut buf, mut got) = (vec![0; 200_000], [0; 3]);
        // Asked for after everybody else at each opportunity.
        let mut sent = 0;
        for _ in 0..10_000 {
            let client = world.client();
            fill(client, 1, 1000);
            fill(client, 2, 1000);
            sent += usize::from(sent < 31 && client.send(on(0), &long).is_ok());
            world.drain();
            world.run(1);
            for (number, got) in (0..).zip(&mut got) {
                while let Ok(len) = world.session().recv_into(on(number), &mut buf) {
                    *got += len;
                }
            }
            if got[0] == 31 * 16_000 {
                break;
            }
        }
        assert_eq!((sent, got[0]), (31, 31 * 16_000), "seed {seed}: {got:?} bytes");
        assert!(
            got[1].min(got[2]) >= 100_000,
            "seed {seed}: {got:?} bytes: nobody else stands still meanwhile"
        );
    }
}

/// One that is too long for KCP at once needs no room but its own.
#[test]
fn long_messages_do_not_wait_for_those_who_always_have_more_to_send() {
    let session = channels(3, SessionConfig::default());
    let mut least = Vec::new();
    // Which packets a full queue drops is chaotic: a byte more or less changes all of it.
    for queue in (52_000..80_000).step_by(2000) {
        let bottleneck = Some(Bottleneck { rate: 10_000_000, queue });
        let link = LinkConfig { bottleneck, ..LinkConfig::with_rtt(ms(20)) };
        let mut world = World::pair(1, &link, &session, SUITE);
        world.connect();
        let (mut buf, mut got) = (vec![0; 200_000], [0; 3]);
        // Much more than its share, requested last at each opportunity.
        let (mut sent, long) = (0, vec![1; 100_000]);
        for _ in 0..10_000 {
            let client = world.client();
            fill(client, 1, 1000);
            fill(client, 2, 1000);
            sent += usize::from(sent < 5 && client.send(on(0), &long).is_ok());
            world.drain();
            world.run(1);
            for (number, got) in (0..).zip(&mut got) {
                while let Ok(len) = world.session().recv_into(on(number), &mut buf) {
                    *got += len;
                }
            }
            if got[0] == 500_000 {
                break;
            }
        }
        assert_eq!((sent, got[0]), (5, 500_000), "queue of {queue}: {got:?} bytes");
        least.push(got[1].min(got[2]));
    }
    let mean = least.iter().sum::<usize>() / least.len();
    assert!(
        mean > 150_000 && least.iter().filter(|least| **least < 50_000).count() <= 2,
        "{least:?}: the others stall meanwhile"
    );
}

#[test]
fn room_that_a_channel_asked_for_and_does_not_take_is_there_for_the_others() {
    let session = channels(2, SessionConfig { send_memory: 64 << 10, ..SessionConfig::default() });
    let (most, _) = shares(&session);
    let mut world = World::pair(1, &narrow(), &session, SUITE);
    world.connect();
    fill(world.client(), 1, 1000);
    assert!(world.client().send(on(0), &[1; 16_000]).is_err());
    let rest = session.send_memory as usize - 16_000;
    let mut buf = [0; 1000];
    world.drain();
    let mut read = |world: &mut World| while world.session().recv_into(on(1), &mut buf).is_ok() {};
    let has_room = |world: &mut World| {
        read(world);
        held(world.client(), 1, 1000) < rest - 5_000
    };
    assert!(world.run_until(5_000, has_room));
    fill(world.client(), 1, 1000);
    assert!(held(world.client(), 1, 1000) <= rest, "{} of {rest} bytes", held(world.client(), 1, 1000));
    let all_has_come = |world: &mut World| {
        read(world);
        world.client().is_delivered(on(1))
    };
    assert!(world.run_until(5_000, all_has_come));
    assert!(world.clients[0].events.iter().any(|(_, event)| *event == Event::Writable), "no event");
    world.frozen = true;
    world.run(1_000);
    fill(world.client(), 1, 1000);
    assert!(held(world.client(), 1, 1000) > most * 31 / 32 - 2000, "nobody has come for it");
}

/// Every channel has more than may leave, and each gets some, the most urgent the most.
#[test]
fn max_rate_passes_no_channel_over_for_ever() {
    let max_rate = Some(MaxRate::new(100));
    let session = channels(5, SessionConfig { max_rate, ..SessionConfig::default() });
    let mut world = World::pair(1, &LinkConfig::with_rtt(ms(20)), &session, SUITE);
    world.connect();
    let (mut buf, mut got) = ([0; 1000], [0; 5]);
    for _ in 0..2_000 {
        (0..5).for_each(|number| fill(world.client(), number, 1000));
        while world.client().send_datagram(&[1; 1000]).is_ok() {}
        world.drain();
        world.run(10);
        for (number, got) in (0..).zip(&mut got) {
            while world.session().recv_into(on(number), &mut buf).is_ok() {
                *got += 1;
            }
        }
        while world.session().recv_datagram_into(&mut buf).is_ok() {}
    }
    println!("{got:?} of 2000 datagrams");
    assert!(got.iter().all(|got| *got >= 2000 / 8 / 5 / 2), "{got:?}");
}

/// Datagrams that are queued faster than they leave.
#[test]
fn a_flood_of_datagrams_does_not_keep_channels_from_sending() {
    let session = channels(3, SessionConfig::default());
    let mut world = deaf(&session);
    (0..3).for_each(|number| assert!(world.client().send(on(number), &[1; 500]).is_ok()));
    let (now, mut buf) = (world.now, Vec::new());
    let in_flight = |world: &mut World| {
        (0..3).map(|number| world.client().kcp_stats(on(number)).unwrap().in_flight).sum::<u32>()
    };
    let waits = |world: &mut World| world.client().stats().bytes_sent;
    let (before, mut left) = (waits(&mut world), 0);
    while left < 64 {
        while world.client().send_datagram(&[2; 1000]).is_ok() {}
        world.clients[0].session.emit_to(now, &mut buf).unwrap();
        left += 1;
    }
    let bytes = waits(&mut world) - before;
    assert_eq!(in_flight(&mut world), 3);
    assert!(bytes > 64 * 1000, "{bytes}");
}
