//! Datagrams as long as the path carries: how quickly and with how many probes that is found, and what a
//! narrowing path costs.

#![expect(clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;

use common::ms;
use common::sessions::{SUITE, World, on, ordered};
use std::time::Duration;
use whitewater::kcp::Config;
use whitewater::machine::Machine as _;
use whitewater::pace::{MaxRate, Mode};
use whitewater::session::ConnectionStats;
use whitewater::{SessionConfig, Time};
use whitewater_sim::{Bottleneck, LinkConfig, Loss};

const RTT: Duration = Duration::from_millis(60);
const IP_AND_UDP: usize = 28;
/// Size of a message, bytes: enough segments to fill datagrams.
const MESSAGE: usize = 20_000;

/// A path that carries IP packets of up to `mtu` bytes.
fn path(mtu: usize, loss: f64) -> LinkConfig {
    let bottleneck = Some(Bottleneck { rate: 8_000_000, queue: 256_000 });
    LinkConfig {
        mtu: Some(mtu + IP_AND_UDP),
        loss: Loss::Random(loss),
        bottleneck,
        ..LinkConfig::with_rtt(RTT)
    }
}

fn config() -> SessionConfig {
    let channels = ordered([Config { snd_wnd: 64, snd_queue: 1024, ..configs::turbo() }]);
    SessionConfig { path_mtu: Some(1472), channels, ..SessionConfig::default() }
}

fn connected(seed: u64, link: &LinkConfig, config: &SessionConfig) -> World {
    let mut world = World::pair(seed, link, config, SUITE);
    world.connect();
    world
}

/// What the client sends on its channel, and how much of it has arrived.
#[derive(Default)]
struct Bulk {
    sent: usize,
    came: usize,
    /// The longest time without a message, and when the last one came.
    last: Option<Time>,
    gap: Duration,
}

fn message(number: usize) -> Vec<u8> {
    (0..MESSAGE).map(|at| (number.wrapping_mul(31) + at + (at >> 8)).to_le_bytes()[0]).collect()
}

impl Bulk {
    /// Keeps the send queue full for this many ms, and checks what arrives.
    fn run(&mut self, world: &mut World, ms: u64) {
        self.run_until(world, ms, |_| false);
    }

    fn run_until(&mut self, world: &mut World, ms: u64, mut done: impl FnMut(&mut World) -> bool) -> bool {
        let mut buf = vec![0; MESSAGE];
        world.run_until(ms, |world| {
            while world.client().send(on(0), &message(self.sent)).is_ok() {
                self.sent += 1;
            }
            self.take(world, &mut buf);
            done(world)
        })
    }

    fn take(&mut self, world: &mut World, buf: &mut [u8]) {
        while let Ok(len) = world.session().recv_into(on(0), buf) {
            assert!(buf[..len] == message(self.came), "message {}", self.came);
            self.came += 1;
            self.gap = self.gap.max(world.now.since(self.last.unwrap_or(world.now)));
            self.last = Some(world.now);
        }
    }

    /// Waits until everything has arrived.
    fn finish(&mut self, world: &mut World, ms: u64) {
        let mut buf = vec![0; MESSAGE];
        let all = world.run_until(ms, |world| {
            self.take(world, &mut buf);
            self.came == self.sent
        });
        assert!(all, "{} of {}", self.came, self.sent);
    }
}

fn stats(world: &mut World) -> ConnectionStats {
    world.client().stats()
}

/// Whether the client begins at once or has been idle, when a ping leaves at the time of the first probe.
#[test]
fn the_path_mtu_is_found_with_few_probes_in_a_few_seconds() {
    // Bytes that the path carries, maximum number of probes, ms until no more probes are sent.
    for (mtu, most_probes, most_ms) in [
        (1472, 1, 100),
        (1464, 6, 1000),
        (1452, 8, 1500),
        (1432, 10, 2000),
        (1392, 14, 2500),
        (1372, 13, 2500),
        (1337, 15, 2500),
        (1252, 19, 2800),
        (1216, 19, 2800),
        (1200, 18, 2800),
    ] {
        for idle in [0, 1_000] {
            let mut world = connected(1, &path(mtu, 0.0), &config());
            world.run(idle);
            let (mut bulk, start) = (Bulk::default(), world.now);
            let (mut before, mut found) = ((0, 0), start);
            bulk.run_until(&mut world, 4_000, |world| {
                let ConnectionStats { mtu, mtu_probes_lost, .. } = stats(world);
                found = if before == (mtu, mtu_probes_lost) { found } else { world.now };
                before = (mtu, mtu_probes_lost);
                false
            });
            bulk.finish(&mut world, 2_000);
            let (stats, took, of) = (stats(&mut world), found.since(start), format!("{mtu} after {idle} ms"));
            let got = usize::from(stats.mtu);
            assert!(got <= mtu && mtu <= got + 16, "{of}: {got}");
            assert!(stats.mtu_probes <= most_probes && stats.mtu_probes_lost <= 18, "{of}: {stats:?}");
            assert!(took <= ms(most_ms), "{of}: {took:?}");
            assert_eq!(stats.black_holes, 0, "{of}");
            // The first long probe that arrives holds up what is behind it by 1.4 ms, and the timeout of a window that
            // has long been full is 2 ms later than its round trips.
            assert!(world.client().kcp_stats(on(0)).unwrap().resends_timeout <= 1, "{of}");
        }
    }
}

/// From the first HELLO on, which is padded.
#[test]
fn nothing_is_longer_than_max_datagram() {
    for max_datagram in [576, 900] {
        let config = SessionConfig { max_datagram, ..config() };
        let mut world = connected(1, &path(max_datagram.into(), 0.0), &config);
        world.client().send(on(0), &message(1)).unwrap();
        world.drain();
        world.run(2_000);
        assert_eq!(world.session().recv(on(0)).unwrap(), message(1), "{max_datagram}");
    }
}

#[test]
fn each_end_finds_the_mtu_of_its_own_direction() {
    let mut world = World::new(1, &common::sessions::server_config(&config(), SUITE));
    world.add(&path(1452, 0.0), &path(1372, 0.0), &config(), common::sessions::client_config(SUITE));
    world.connect();
    let mut buf = vec![0; MESSAGE];
    world.run_until(4_000, |world| {
        while world.client().send(on(0), &message(0)).is_ok() {}
        while world.session().send(on(0), &message(0)).is_ok() {}
        while world.session().recv_into(on(0), &mut buf).is_ok() {}
        while world.client().recv_into(on(0), &mut buf).is_ok() {}
        false
    });
    assert_eq!((world.client().stats().mtu, world.session().stats().mtu), (1452, 1372));
}

#[test]
fn probing_needs_consent_of_both_ends_and_large_data() {
    let off = SessionConfig { path_mtu: None, ..config() };
    for (client, server) in [(&config(), &off), (&off, &config()), (&off, &off)] {
        let mut world = World::new(1, &common::sessions::server_config(server, SUITE));
        world.taps = true;
        world.add(&path(1472, 0.0), &path(1472, 0.0), client, common::sessions::client_config(SUITE));
        world.connect();
        let mut bulk = Bulk::default();
        bulk.run(&mut world, 1_000);
        bulk.finish(&mut world, 2_000);
        assert!(world.tap.iter().all(|(.., datagram)| datagram.len() <= 1200));
        assert_eq!((stats(&mut world).mtu, stats(&mut world).mtu_probes), (1200, 0));
    }
    let mut world = connected(1, &path(1472, 0.0), &config());
    for _ in 0..200 {
        world.client().send(on(0), &[1; 700]).unwrap(); // never more than a datagram of 1200 takes
        world.client().send_datagram(&[2; 100]).unwrap();
        world.drain();
        world.run(50);
    }
    assert_eq!((stats(&mut world).mtu, stats(&mut world).mtu_probes), (1200, 0));
}

/// It happens with a full send queue and a full window of segments that the path no longer carries.
#[test]
fn a_narrowing_path_costs_half_a_second_and_no_data() {
    for seed in 1..=3 {
        for mtu in [1200, 1372] {
            let mut world = connected(seed, &path(1472, 0.0), &config());
            let mut bulk = Bulk::default();
            bulk.run(&mut world, 1_000 + 37 * seed);
            assert_eq!(stats(&mut world).mtu, 1472);
            bulk.gap = Duration::ZERO;
            world.set_links(0, &path(mtu, 0.0), &path(1472, 0.0));
            bulk.run(&mut world, 3_500);
            bulk.finish(&mut world, 2_000);
            let stats = stats(&mut world);
            let got = usize::from(stats.mtu);
            assert!(got <= mtu && mtu <= got + 16, "seed {seed}, {mtu}: {got}");
            assert_eq!(stats.black_holes, 1, "seed {seed}, {mtu}");
            assert!(bulk.gap <= ms(600), "seed {seed}, {mtu}: nothing came for {:?}", bulk.gap);
        }
    }
}

#[test]
fn a_widening_path_is_noticed_after_ten_minutes_of_use() {
    let mut world = connected(1, &path(1372, 0.0), &config());
    let mut bulk = Bulk::default();
    bulk.run(&mut world, 4_000);
    bulk.finish(&mut world, 2_000);
    assert_eq!(stats(&mut world).mtu, 1372);
    world.set_links(0, &path(1472, 0.0), &path(1472, 0.0));
    for (wait, mtu) in [(300_000, 1372), (300_000, 1472)] {
        world.run(wait);
        bulk.run(&mut world, 500);
        bulk.finish(&mut world, 2_000);
        assert_eq!(stats(&mut world).mtu, mtu);
    }
}

#[test]
fn loss_is_mistaken_for_a_narrow_path_only_briefly() {
    let mut all = [Duration::ZERO; 2];
    for seed in 1..=6 {
        let mut world = connected(seed, &path(1472, 0.2), &config());
        let (mut bulk, mut buf) = (Bulk::default(), vec![0; MESSAGE]);
        bulk.run(&mut world, 1_500);
        let (mut before, mut times) = (world.now, [Duration::ZERO; 2]);
        let mut note = |world: &mut World| {
            times[usize::from(stats(world).mtu > 1400)] += world.now.since(before);
            before = world.now;
        };
        // Many segments in flight, and then one message at a time.
        for _ in 0..5 {
            bulk.run_until(&mut world, 300, |world| {
                note(world);
                false
            });
            bulk.finish(&mut world, 10_000);
            for number in 0..20 {
                world.client().send(on(0), &message(number)[..1400]).unwrap();
                world.drain();
                let came = world.run_until(5_000, |world| {
                    note(world);
                    world.session().recv_into(on(0), &mut buf).is_ok()
                });
                assert!(came, "seed {seed}: message {number}");
            }
        }
        println!("seed {seed}: {times:?}, {} black holes", stats(&mut world).black_holes);
        assert!(times[0] < times[1] / 3, "seed {seed}: {times:?}, {:?}", stats(&mut world));
        (0..2).for_each(|index| all[index] += times[index]);
    }
    assert!(all[0] < all[1] / 10, "{all:?}");
}

/// Nothing arrives for a while, as with a phone in a lift.
#[test]
fn after_an_outage_the_mtu_is_restored_within_half_a_second_with_two_probes() {
    for seed in 1..=3 {
        for outage in [100, 300, 1000, 5000] {
            let mut world = connected(seed, &path(1472, 0.0), &config());
            let mut bulk = Bulk::default();
            bulk.run(&mut world, 1_000 + 37 * seed);
            let end = world.now + ms(outage);
            let out = LinkConfig { outages: vec![world.now..end], ..path(1472, 0.0) };
            world.set_links(0, &out, &out);
            bulk.run(&mut world, outage);
            assert!(
                bulk.run_until(&mut world, 500, |world| stats(world).mtu == 1472),
                "seed {seed}, {outage}"
            );
            bulk.finish(&mut world, 3_000);
            let stats = stats(&mut world);
            assert!(stats.mtu_probes <= 3 && stats.mtu_probes_lost <= 1, "seed {seed}, {outage}: {stats:?}");
        }
    }
}

#[test]
fn lost_probes_do_not_count_as_congestion() {
    let max_rate = MaxRate { bad_rate: 100, loss: Some(1), ..MaxRate::new(500) };
    let mut bad = Vec::new();
    for path_mtu in [None, Some(1472)] {
        let config = SessionConfig { max_rate: Some(max_rate), path_mtu, ..config() };
        let mut world = connected(1, &path(1200, 0.0), &config);
        let (mut bulk, mut before, mut time) = (Bulk::default(), world.now, Duration::ZERO);
        bulk.run_until(&mut world, 10_000, |world| {
            let _ = world.client().send_datagram(b"so that packets are acknowledged");
            let is_bad = stats(world).mode == Some(Mode::Bad);
            time += if is_bad { world.now.since(before) } else { Duration::ZERO };
            before = world.now;
            false
        });
        bulk.finish(&mut world, 10_000);
        assert_eq!(stats(&mut world).mtu_probes_lost >= 15, path_mtu.is_some());
        bad.push(time);
    }
    let [without, with] = bad[..] else { return };
    assert!(with <= without + ms(100), "{with:?} of 10 s in bad mode, {without:?} without probes");
}

#[test]
#[cfg(feature = "crypto")] // only authentic packets may move a session
fn probing_restarts_at_1200_for_another_host_but_not_for_another_port() {
    use common::sessions::client_address as host;
    for (to, keeps) in [(host(1, 9), true), (host(77, 7000), false)] {
        let mut world = connected(1, &path(1472, 0.0), &config());
        let (mut buf, mut first) = (vec![0; MESSAGE], None);
        let mut run = |world: &mut World, ms: u64| {
            world.run_until(ms, |world| {
                while world.session().send(on(0), &message(0)).is_ok() {}
                while world.client().recv_into(on(0), &mut buf).is_ok() {}
                if world.session().stats().moves == 1 {
                    first.get_or_insert(world.session().stats().mtu);
                }
                false
            });
        };
        run(&mut world, 1_000);
        assert_eq!(world.session().stats().mtu, 1472);
        world.set_links(0, &path(1392, 0.0), &path(1392, 0.0));
        world.rebind(0, to);
        world.client().send_datagram(b"here").unwrap();
        world.drain();
        run(&mut world, 4_000);
        assert_eq!(first, Some(if keeps { 1472 } else { 1200 }));
        assert_eq!(world.session().stats().mtu, 1392, "black hole or search");
        assert_eq!(world.session().stats().black_holes, u64::from(keeps));
    }
}

/// A probe leaves first, at the same time as the ping, and the new path does not carry it.
#[test]
fn a_client_that_changes_networks_pings_beside_its_probe_and_one_answer_does_not_pass_for_the_other() {
    for seed in 1..=5 {
        let mut world = connected(seed, &path(1472, 0.0), &config());
        let mut bulk = Bulk::default();
        bulk.run(&mut world, 1_000);
        world.set_links(0, &path(1200, 0.0), &path(1200, 0.0));
        let (now, before) = (world.now, stats(&mut world));
        world.clients[0].session.path_changed(now);
        world.drain();
        let after = stats(&mut world);
        let sent = (after.mtu_probes - before.mtu_probes, after.pings - before.pings);
        assert_eq!(sent, (1, 1), "seed {seed}: a probe and a ping");
        bulk.run(&mut world, 2_000);
        let ConnectionStats { mtu, black_holes, mtu_probes_lost, .. } = stats(&mut world);
        assert_eq!((mtu, black_holes), (1200, 0), "seed {seed}");
        assert!(mtu_probes_lost > 0, "seed {seed}");
        bulk.finish(&mut world, 3_000);
    }
}

/// A part of a long message has to fit into the queue, whose segments become shorter.
#[test]
fn no_long_message_is_taken_that_would_stay_when_the_path_becomes_narrower() {
    for snd_queue in 11..=16 {
        let channels = ordered([Config { snd_wnd: 64, snd_queue, ..configs::turbo() }]);
        let mut world = connected(1, &path(1472, 0.0), &SessionConfig { channels, ..config() });
        let mut buf = vec![0; 100_000];
        let mut read = |world: &mut World| world.session().recv_into(on(0), &mut buf);
        for _ in 0..200 {
            let _ = world.client().send(on(0), &[7; 11_000]);
            world.drain();
            world.run(20);
            while read(&mut world).is_ok() {}
        }
        assert!(world.run_until(5_000, |world| read(world).is_err() && world.client().is_delivered(on(0))));
        assert_eq!(stats(&mut world).mtu, 1472);
        let sent = world.client().send(on(0), &[1; 100_000]);
        assert_eq!(sent.is_ok(), snd_queue >= 15, "{snd_queue}: {sent:?}");
        world.drain();
        world.run(40);
        world.set_links(0, &path(1200, 0.0), &path(1472, 0.0));
        let came = world.run_until(10_000, |world| read(world) == Ok(100_000));
        assert_eq!(came, sent.is_ok(), "{snd_queue}");
    }
}
