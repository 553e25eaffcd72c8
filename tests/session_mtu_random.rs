//! Paths that narrow and widen at any time, clients that migrate, and a close in the middle of it: everything
//! sent on any channel arrives whole and in order, and the end that closes knows what arrived.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;
use rand::Rng;

use common::ms;
use common::sessions::{SUITE, World, client_address, on, ordered};
use whitewater::kcp::Config;
use whitewater::pace::MaxRate;
use whitewater::session::{Connection, Suite, Undelivered};
use whitewater::{CloseReason, Event, SessionConfig};
use whitewater_sim::{Bottleneck, LinkConfig, Loss, SimRng};

const CHANNELS: usize = 2;
const LONGEST: usize = 20_000;

fn path(mtu: usize, loss: f64) -> LinkConfig {
    let bottleneck = Some(Bottleneck { rate: 8_000_000, queue: 256_000 });
    LinkConfig { mtu: Some(mtu + 28), loss: Loss::Random(loss), bottleneck, ..LinkConfig::with_rtt(ms(40)) }
}

fn message(seed: u64, end: usize, channel: usize, number: u64) -> Vec<u8> {
    let mut rng = SimRng::new(seed ^ number << 8, (2 * end + channel) as u64);
    let len = if rng.next_u64().is_multiple_of(2) { 2000 } else { LONGEST };
    let len = 1 + usize::try_from(rng.next_u64() % len as u64).unwrap();
    (0..len).map(|at| (at as u64 ^ at as u64 >> 8 ^ number).to_le_bytes()[0]).collect()
}

/// What each end has sent on each channel, and what arrived.
struct Run {
    seed: u64,
    sent: [[u64; CHANNELS]; 2],
    came: [[u64; CHANNELS]; 2],
    buf: Vec<u8>,
}

impl Run {
    fn take(&mut self, world: &mut World) {
        let id = world.sessions[0];
        for end in 0..2 {
            for channel in 0..CHANNELS {
                while let Some(len) = ends(world, id, 1 - end)
                    .and_then(|to| to.recv_into(on(u8::try_from(channel).unwrap()), &mut self.buf).ok())
                {
                    let expected = message(self.seed, end, channel, self.came[end][channel]);
                    assert!(
                        self.buf[..len] == expected,
                        "seed {}: of end {end}, channel {channel}",
                        self.seed
                    );
                    self.came[end][channel] += 1;
                }
            }
        }
    }
}

fn ends(world: &mut World, id: whitewater::SessionId, end: usize) -> Option<&mut Connection> {
    if end == 0 { world.clients[0].session.connection_mut() } else { world.server.connection_mut(id) }
}

fn closed(event: &Event) -> Option<(CloseReason, Undelivered)> {
    if let Event::Closed { reason, undelivered } = event { Some((*reason, *undelivered)) } else { None }
}

fn run(seed: u64) {
    let mut rng = SimRng::new(seed, 77);
    let mut one_of = |count: u64| rng.next_u64() % count;
    let channels = ordered([
        Config { snd_wnd: 64, snd_queue: 1024, ..configs::turbo() },
        Config {
            snd_wnd: 256,
            snd_queue: 1024,
            ..if one_of(2) == 0 { configs::fast() } else { configs::turbo() }
        },
    ]);
    let max_rate = (one_of(3) == 0).then(|| MaxRate { bad_rate: 200, ..MaxRate::new(500) });
    let config = SessionConfig { path_mtu: Some(1472), channels, max_rate, ..SessionConfig::default() };
    let mut world = World::pair(seed, &path(1472, 0.0), &config, SUITE);
    world.connect();
    let id = world.sessions[0];
    let mut run = Run { seed, sent: [[0; CHANNELS]; 2], came: [[0; CHANNELS]; 2], buf: vec![0; LONGEST] };
    let mut port = 2000;
    for round in 0..40 {
        for _ in 0..one_of(12) {
            let (end, channel) = (usize::try_from(one_of(2)).unwrap(), usize::try_from(one_of(2)).unwrap());
            let message = message(seed, end, channel, run.sent[end][channel]);
            let sent = ends(&mut world, id, end).unwrap().send(on(u8::try_from(channel).unwrap()), &message);
            run.sent[end][channel] += u64::from(sent.is_ok());
        }
        let mut link = || {
            path(
                [1200, 1208, 1252, 1372, 1460, 1472][usize::try_from(one_of(6)).unwrap()],
                [0.0, 0.05][usize::try_from(one_of(2)).unwrap()],
            )
        };
        let (up, down) = (link(), link());
        if one_of(4) == 0 {
            world.set_links(0, &up, &down);
        }
        if !matches!(SUITE, Suite::Checked) && one_of(12) == 0 && port < 2003 && round < 30 {
            port += 1;
            let host = u8::try_from(1 + one_of(3)).unwrap();
            world.rebind(0, client_address(host, port));
            ends(&mut world, id, 0).unwrap().send_datagram(b"here").unwrap();
        }
        world.drain();
        world.run_until(1 + one_of(300), |world| {
            run.take(world);
            false
        });
        assert_eq!(world.clients[0].closed().or(world.closed()), None, "seed {seed}");
    }
    let (now, closer) = (world.now, one_of(2));
    if closer == 0 {
        world.clients[0].session.close(now, 7)
    } else {
        world.server.close(now, id, 7)
    }
    world.drain();
    world.run_until(20_000, |world| {
        run.take(world);
        false
    });
    let client = world.clients[0].events.iter().find_map(|(_, event)| closed(event)).unwrap();
    let server = world.events.iter().find_map(|(_, _, event)| closed(event)).unwrap();
    let closer = usize::try_from(closer).unwrap();
    let (here, there) = if closer == 0 { (client, server) } else { (server, client) };
    assert_eq!((here.0, there.0), (CloseReason::Local(7), CloseReason::Peer(7)), "seed {seed}");
    if here.1.is_empty() {
        assert_eq!(run.came[closer], run.sent[closer], "seed {seed}");
    }
    if there.1.is_empty() {
        assert_eq!(run.came[1 - closer], run.sent[1 - closer], "seed {seed}");
    }
}

#[test]
fn everything_arrives_whatever_the_mtu_of_the_path_does() {
    let first = std::env::var("SESSION_SEED").map_or(0, |seed| seed.parse().unwrap());
    let runs = std::env::var("MTU_SOAK").map_or(40, |runs| runs.parse().unwrap());
    (first..first + runs).for_each(run);
}
