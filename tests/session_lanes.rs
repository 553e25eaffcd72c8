//! A busy lane takes neither room nor turns from the others.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that panics has found something"
)]

use crate::common;
use crate::common::machine::Whole as _;

use common::ms;
use common::sessions::{SUITE, World};
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::Congestion;
use whitewater::pace::PaceConfig;
use whitewater::session::{Blob, Connection, Event, SendError, SessionConfig};
use whitewater_sim::{Bottleneck, LinkConfig};

const GAME: usize = 0;

fn lanes(count: usize, session: SessionConfig) -> SessionConfig {
    SessionConfig { lanes: vec![SessionConfig::default().lanes[0]; count], ..session }
}

/// 10 Mbit/s with a queue of 50 ms, and a round trip of 20 ms.
fn narrow() -> LinkConfig {
    let bottleneck = Some(Bottleneck { rate: 10_000_000, queue: 64_000 });
    LinkConfig { bottleneck, ..LinkConfig::with_rtt(ms(20)) }
}

/// Fills a lane until it refuses more.
fn fill(end: &mut Connection<Blob>, lane: usize, len: usize) {
    while end.send(lane, &vec![9; len]).is_ok() {}
}

/// Ten seconds of a game at 60 Hz with 100 bytes per message on lane 0, while the other lanes, and optionally
/// datagrams, always have more to send. Returns how long each message took, in ascending order, and how many
/// bytes of the others arrived.
fn play(
    seed: u64,
    link: &LinkConfig,
    session: &SessionConfig,
    greedy: usize,
    floods: bool,
) -> (Vec<Duration>, usize) {
    const COUNT: u32 = 600;
    let mut world = World::pair(seed, link, session, SUITE);
    world.connect();
    let (start, mut took, mut sent, mut bulk) = (world.now, Vec::new(), 0u32, 0);
    let mut buf = vec![0; 20_000];
    for tick in 0..30_000u64 {
        let client = world.client();
        // The greedy lanes ask first at each opportunity; the game retries refused messages every ms.
        (1..=greedy).for_each(|lane| fill(client, lane, 10_000));
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
        while server.recv(GAME, &mut buf).is_ok() {
            assert_eq!(buf[8..12], (took.len() as u32).to_le_bytes(), "seed {seed}");
            let due = Time::from_micros(u64::from_le_bytes(buf[..8].try_into().unwrap()));
            took.push(now.since(due));
        }
        for lane in 1..=greedy {
            while let Ok(len) = server.recv(lane, &mut buf) {
                bulk += len;
            }
        }
        while let Ok(len) = server.recv_datagram(&mut buf) {
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

#[test]
fn greedy_lanes_do_not_slow_down_a_game_over_a_wide_path() {
    let wide = LinkConfig {
        bottleneck: Some(Bottleneck { rate: 1_000_000_000, queue: 4 << 20 }),
        ..LinkConfig::with_rtt(ms(20))
    };
    for greedy in [1, 4, 15] {
        let session = lanes(1 + greedy, SessionConfig::default());
        let (alone, _) = play(1, &wide, &session, 0, false);
        let (beside, bulk) = play(1, &wide, &session, greedy, false);
        println!(
            "{greedy} greedy lanes: p99 {:?}, alone {:?}, {bulk} bytes of the others",
            p99(&beside),
            p99(&alone)
        );
        assert!(
            p99(&beside) <= p99(&alone) + ms(10),
            "{greedy}: {:?}, alone {:?}",
            p99(&beside),
            p99(&alone)
        );
        assert!(bulk > 10 << 20, "{greedy}: {bulk} bytes");
    }
}

/// The path has 2 Mbit/s and a queue of 300 ms.
#[test]
fn a_lane_with_copa_leaves_the_queue_of_a_narrow_path_to_the_game() {
    let slow = LinkConfig {
        bottleneck: Some(Bottleneck { rate: 2_000_000, queue: 75_000 }),
        ..LinkConfig::with_rtt(ms(40))
    };
    let mut session = lanes(2, SessionConfig::default());
    let (alone, _) = play(1, &slow, &session, 0, false);
    session.lanes[1].congestion = Congestion::Copa;
    let (beside, bulk) = play(1, &slow, &session, 1, false);
    assert!(p99(&beside) <= p99(&alone) + ms(60), "{:?}, alone {:?}", p99(&beside), p99(&alone));
    assert!(bulk > 1_600_000, "{bulk} bytes in 10 s");
}

#[test]
fn beside_greedy_lanes_over_10_mbit_s_a_game_arrives_and_is_on_time_with_pacing() {
    for greedy in [1, 4, 15] {
        let session = lanes(1 + greedy, SessionConfig::default());
        let (alone, _) = play(1, &narrow(), &session, 0, false);
        let (beside, bulk) = play(1, &narrow(), &session, greedy, false);
        println!(
            "{greedy} greedy lanes: p99 {:?}, alone {:?}, {bulk} bytes of the others",
            p99(&beside),
            p99(&alone)
        );
        // All lanes together fill the queue of the path, in which the game must wait, plus a round trip if
        // its datagram is dropped there.
        assert!(
            p99(&beside) <= p99(&alone) + ms(122),
            "{greedy}: {:?}, alone {:?}",
            p99(&beside),
            p99(&alone)
        );
        // Half of what the path carries: its queue stays empty, and the game goes first.
        let pacing = Some(PaceConfig { good_rate: 500, ..PaceConfig::default() });
        let session = SessionConfig { pacing, ..session };
        let (alone, _) = play(1, &narrow(), &session, 0, false);
        let (beside, bulk) = play(1, &narrow(), &session, greedy, false);
        println!(
            "{greedy} greedy lanes, paced: p99 {:?}, alone {:?}, {bulk} bytes of the others",
            p99(&beside),
            p99(&alone)
        );
        assert!(
            p99(&beside) <= p99(&alone) + ms(10),
            "{greedy}: {:?}, alone {:?}",
            p99(&beside),
            p99(&alone)
        );
        assert!(bulk > 3_000_000, "{greedy}: {bulk} bytes");
    }
}

/// What a lane can hold at most while the others hold nothing, and the share of each lane.
fn shares(session: &SessionConfig) -> (usize, usize) {
    let (all, count) = (session.send_memory as usize, session.lanes.len());
    (all - (count - 1) * (all / 4 / count), all / 4 / count)
}

/// Two connected ends whose server answers nothing, so that sent data stays held.
fn deaf(session: &SessionConfig) -> World {
    let mut world = World::pair(1, &narrow(), session, SUITE);
    world.connect();
    world.frozen = true;
    world
}

fn held(end: &mut Connection<Blob>, lane: usize) -> usize {
    let Err(SendError::Full { held, .. }) = end.send(lane, &[0; 100_000]) else {
        panic!("lane {lane} takes more")
    };
    held
}

#[test]
fn no_lane_takes_anothers_share_and_all_stay_within_the_limit() {
    for count in [2, 5, 16] {
        let session = lanes(count, SessionConfig::default());
        let (most, own) = shares(&session);
        let mut world = deaf(&session);
        let client = world.client();
        for lane in (0..count).rev() {
            fill(client, lane, 500); // the least urgent first
        }
        let held: Vec<_> = (0..count).map(|lane| held(client, lane)).collect();
        assert!((most - 532..=most + 32).contains(&held[count - 1]), "{held:?} of {most}");
        assert!(
            held[..count - 1].iter().all(|held| (own - 532..=own + 32).contains(held)),
            "{held:?} of {own}"
        );
        assert!(held.iter().sum::<usize>() <= session.send_memory as usize + 32 * count, "{held:?}");
    }
}

#[test]
fn room_that_a_lane_waits_for_is_not_taken_by_others() {
    let session = lanes(3, SessionConfig::default());
    for seed in 1..=3 {
        let mut world = World::pair(seed, &narrow(), &session, SUITE);
        world.connect();
        let (mut buf, mut got) = (vec![0; 200_000], [0; 3]);
        // Much more than its share, requested last at each opportunity.
        let (mut sent, long) = (0, vec![1; 100_000]);
        for _ in 0..10_000 {
            let client = world.client();
            fill(client, 1, 1000);
            fill(client, 2, 1000);
            sent += usize::from(sent < 5 && client.send(0, &long).is_ok());
            world.drain();
            world.run(1);
            for (lane, got) in got.iter_mut().enumerate() {
                while let Ok(len) = world.session().recv(lane, &mut buf) {
                    *got += len;
                }
            }
            if got[0] == 500_000 {
                break;
            }
        }
        assert_eq!((sent, got[0]), (5, 500_000), "seed {seed}: {got:?} bytes");
        assert!(got[1].min(got[2]) > 100_000, "seed {seed}: {got:?} bytes: the others stall meanwhile");
    }
}

#[test]
fn room_that_a_lane_waited_for_but_does_not_use_goes_to_the_others() {
    let session = lanes(2, SessionConfig::default());
    let (most, _) = shares(&session);
    let mut world = World::pair(1, &narrow(), &session, SUITE);
    world.connect();
    fill(world.client(), 1, 1000);
    assert!(world.client().send(0, &[1; 200_000]).is_err());
    let rest = session.send_memory as usize - 200_000;
    let mut buf = [0; 1000];
    world.drain();
    let mut read = |world: &mut World| while world.session().recv(1, &mut buf).is_ok() {};
    let has_room = |world: &mut World| {
        read(world);
        held(world.client(), 1) < rest - 5_000
    };
    assert!(world.run_until(5_000, has_room));
    fill(world.client(), 1, 1000);
    assert!(held(world.client(), 1) <= rest, "{} of {rest} bytes", held(world.client(), 1));
    let all_has_come = |world: &mut World| {
        read(world);
        world.client().is_delivered(1)
    };
    assert!(world.run_until(5_000, all_has_come));
    assert!(world.clients[0].events.iter().any(|(_, event)| *event == Event::Writable), "no event");
    world.frozen = true;
    world.run(1_000);
    fill(world.client(), 1, 1000);
    assert!(held(world.client(), 1) > most - 2000, "nobody has used it");
}

/// Every lane has more than may leave, and each gets some, the most urgent the most.
#[test]
fn pacing_starves_no_lane() {
    let pacing = Some(PaceConfig { good_rate: 100, ..PaceConfig::default() });
    let session = lanes(5, SessionConfig { pacing, ..SessionConfig::default() });
    let mut world = World::pair(1, &LinkConfig::with_rtt(ms(20)), &session, SUITE);
    world.connect();
    let (mut buf, mut got) = ([0; 1000], [0; 5]);
    for _ in 0..2_000 {
        (0..5).for_each(|lane| fill(world.client(), lane, 1000));
        while world.client().send_datagram(&[1; 1000]).is_ok() {}
        world.drain();
        world.run(10);
        for (lane, got) in got.iter_mut().enumerate() {
            while world.session().recv(lane, &mut buf).is_ok() {
                *got += 1;
            }
        }
        while world.session().recv_datagram(&mut buf).is_ok() {}
    }
    println!("{got:?} of 2000 datagrams");
    assert!(got.iter().all(|got| *got >= 2000 / 8 / 5 / 2), "{got:?}");
}

/// Datagrams that are queued faster than they leave.
#[test]
fn a_flood_of_datagrams_does_not_stop_lanes_from_sending() {
    let session = lanes(3, SessionConfig::default());
    let mut world = deaf(&session);
    (0..3).for_each(|lane| assert!(world.client().send(lane, &[1; 500]).is_ok()));
    let (now, mut buf) = (world.now, Vec::new());
    let in_flight = |world: &mut World| {
        (0..3).map(|lane| world.client().lane_stats(lane).unwrap().in_flight).sum::<u32>()
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
