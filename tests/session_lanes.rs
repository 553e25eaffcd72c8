//! A lane that always has more to send takes nothing of the others: neither their room, nor their turn.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test that panics has found something"
)]

use crate::common;

use common::ms;
use common::sessions::{SUITE, World};
use std::time::Duration;
use whitewater::pace::PaceConfig;
use whitewater::session::{Blob, Connection, SessionConfig};
use whitewater::sim::{Bottleneck, LinkConfig};
use whitewater::Time;

const GAME: usize = 0;

fn lanes(count: usize, session: SessionConfig) -> SessionConfig {
    SessionConfig { lanes: vec![SessionConfig::default().lanes[0]; count], ..session }
}

/// 10 Mbit/s with a queue of 50 ms, and a round trip of 20 ms.
fn narrow() -> LinkConfig {
    let bottleneck = Some(Bottleneck { rate: 10_000_000, queue: 64_000 });
    LinkConfig { bottleneck, ..LinkConfig::with_rtt(ms(20)) }
}

/// Fills what a lane takes.
fn fill(end: &mut Connection<Blob>, lane: usize, len: usize) {
    while end.send(lane, &vec![9; len]).is_ok() {}
}

/// Ten seconds of a game at 60 Hz on lane 0, of 100 bytes, while the lanes from 1 on always have more to send, and the same of datagrams;
/// returns how long each message took, in ascending order, and how many bytes of the others arrived.
fn play(seed: u64, link: &LinkConfig, session: &SessionConfig, greedy: usize, floods: bool) -> (Vec<Duration>, usize) {
    const COUNT: u32 = 600;
    let mut world = World::pair(seed, link, session, SUITE);
    world.connect();
    let (start, mut took, mut sent, mut bulk) = (world.now, Vec::new(), 0u32, 0);
    let mut buf = vec![0; 20_000];
    for tick in 0..30_000u64 {
        let client = world.client();
        // Who is greedy asks first, at each opportunity; what the game is refused it asks for again each ms.
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
    assert_eq!((sent, took.len()), (COUNT, COUNT as usize), "seed {seed}: not all arrived");
    took.sort_unstable();
    (took, bulk)
}

fn p99(took: &[Duration]) -> Duration {
    took[took.len() * 99 / 100]
}

#[test]
fn a_game_over_a_wide_path_does_not_notice_how_many_lanes_are_greedy() {
    let wide = LinkConfig { bottleneck: Some(Bottleneck { rate: 1_000_000_000, queue: 4 << 20 }), ..LinkConfig::with_rtt(ms(20)) };
    for greedy in [1, 4, 15] {
        let session = lanes(1 + greedy, SessionConfig::default());
        let (alone, _) = play(1, &wide, &session, 0, false);
        let (beside, bulk) = play(1, &wide, &session, greedy, false);
        println!("{greedy} greedy lanes: p99 {:?}, alone {:?}, {bulk} bytes of the others", p99(&beside), p99(&alone));
        assert!(p99(&beside) <= p99(&alone) + ms(10), "{greedy}: {:?}, alone {:?}", p99(&beside), p99(&alone));
        assert!(bulk > 10 << 20, "{greedy}: {bulk} bytes");
    }
}

#[test]
fn all_of_a_game_arrives_over_10_mbit_s_beside_greedy_lanes_and_on_time_where_pacing_leaves_room() {
    for greedy in [1, 4, 15] {
        let session = lanes(1 + greedy, SessionConfig::default());
        let (alone, _) = play(1, &narrow(), &session, 0, false);
        let (beside, bulk) = play(1, &narrow(), &session, greedy, false);
        println!("{greedy} greedy lanes: p99 {:?}, alone {:?}, {bulk} bytes of the others", p99(&beside), p99(&alone));
        // Half of what the path carries: its queue stays empty, and the game is first.
        let pacing = Some(PaceConfig { good_rate: 500, ..PaceConfig::default() });
        let session = SessionConfig { pacing, ..session };
        let (alone, _) = play(1, &narrow(), &session, 0, false);
        let (beside, bulk) = play(1, &narrow(), &session, greedy, false);
        println!("{greedy} greedy lanes, paced: p99 {:?}, alone {:?}, {bulk} bytes of the others", p99(&beside), p99(&alone));
        assert!(p99(&beside) <= p99(&alone) + ms(10), "{greedy}: {:?}, alone {:?}", p99(&beside), p99(&alone));
        assert!(bulk > 3_000_000, "{greedy}: {bulk} bytes");
    }
}
