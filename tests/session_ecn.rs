//! ECN marks from queues that fill up: with them a flow keeps the path full without loss and with a shorter
//! queue. If a path or a peer tampers with them, they are switched off.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;

use common::sessions::{SUITE, World, client_config, on, ordered, server_config};
use std::time::Duration;
use whitewater::SessionConfig;
use whitewater::kcp::{Config, Congestion};
use whitewater::pace::{MaxRate, Mode};
use whitewater::session::ConnectionStats;
use whitewater_sim::{Bottleneck, EcnPath, LinkConfig, LinkStats};

const RTT: Duration = Duration::from_millis(20);
const RATE: u64 = 2_000_000;

/// A path with a queue of 20 kB, 80 ms.
fn path(ecn: EcnPath) -> LinkConfig {
    let bottleneck = Some(Bottleneck { rate: RATE, queue: 20_000 });
    LinkConfig { bottleneck, ecn, ..LinkConfig::with_rtt(RTT) }
}

fn config(ecn: bool) -> SessionConfig {
    let channels =
        ordered([Config { congestion: Congestion::Kcp, snd_wnd: 1024, rcv_wnd: 1024, ..configs::turbo() }]);
    SessionConfig { ecn, channels, send_memory: 1 << 20, receive_memory: 2 << 20, ..SessionConfig::default() }
}

/// A transfer from a client that keeps its queue full.
struct Run {
    /// Bytes of messages received.
    goodput: u64,
    resends: u64,
    stats: ConnectionStats,
    link: LinkStats,
}

fn run(config: [&SessionConfig; 2], ecn: EcnPath, seconds: u64) -> Run {
    let mut world = World::new(1, &server_config(config[1], SUITE));
    world.add(&path(ecn), &path(EcnPath::Passes), config[0], client_config(SUITE));
    world.connect();
    let (mut goodput, mut buf) = (0, vec![0; 1000]);
    world.run_until(1000 * seconds, |world| {
        while world.client().send(on(0), &[7; 1000]).is_ok() {}
        while let Ok(len) = world.session().recv_into(on(0), &mut buf) {
            goodput += len as u64;
        }
        false
    });
    let channel = world.client().kcp_stats(on(0)).unwrap();
    let resends = u64::from(channel.resends_timeout + channel.resends_fast);
    Run { goodput, resends, stats: world.client().stats(), link: world.up_stats(0) }
}

fn queue_delay(link: &LinkStats) -> Duration {
    link.queue_delay / u32::try_from(link.queued).unwrap()
}

#[test]
fn with_marks_the_path_stays_full_without_loss_and_with_a_shorter_queue() {
    let marks = EcnPath::MarksAbove(8_000);
    let with = run([&config(true), &config(true)], marks, 20);
    let without = run([&config(false), &config(false)], marks, 20);
    assert!(with.stats.ecn && with.stats.congestion_marks > 0 && !without.stats.ecn);
    assert_eq!((with.link.dropped, with.resends), (0, 0));
    assert!(without.link.dropped > 50, "{} dropped", without.link.dropped);
    assert!(with.goodput >= without.goodput, "{} and {} bytes", with.goodput, without.goodput);
    let [with, without] = [queue_delay(&with.link), queue_delay(&without.link)];
    assert!(with < without, "{with:?} and {without:?}");
}

#[test]
fn tampering_with_marks_only_switches_them_off() {
    let off = run([&config(false), &config(false)], EcnPath::Passes, 5);
    for ecn in [EcnPath::Bleaches, EcnPath::MarksAll, EcnPath::Drops] {
        let run = run([&config(true), &config(true)], ecn, 5);
        assert!(!run.stats.ecn, "{ecn:?}");
        assert!(run.goodput >= off.goodput / 10 * 9, "{ecn:?}: {} of {} bytes", run.goodput, off.goodput);
        assert!(run.link.marked <= 20, "{ecn:?}: {} marked", run.link.marked);
    }
}

#[test]
fn nothing_is_marked_unless_both_ends_support_marks() {
    for config in [[&config(true), &config(false)], [&config(false), &config(true)]] {
        let run = run(config, EcnPath::MarksAbove(8_000), 2);
        assert_eq!((run.link.marked, run.stats.ecn), (0, false));
    }
}

#[test]
fn marks_count_as_bad_conditions_for_max_rate() {
    let max_rate = MaxRate { bad_rate: 100, loss: Some(5), ..MaxRate::new(500) };
    let channels = ordered([Config { snd_wnd: 1024, rcv_wnd: 1024, ..configs::turbo() }]);
    let config = SessionConfig { max_rate: Some(max_rate), channels, ..config(true) };
    let mut world = World::new(1, &server_config(&config, SUITE));
    world.add(&path(EcnPath::MarksAbove(8_000)), &path(EcnPath::Passes), &config, client_config(SUITE));
    world.connect();
    let mut bad = false;
    world.run_until(5_000, |world| {
        while world.client().send(on(0), &[7; 1000]).is_ok() {}
        while world.session().recv_into(on(0), &mut [0; 1000]).is_ok() {}
        bad |= world.client().stats().mode == Some(Mode::Bad);
        false
    });
    assert!(bad, "{:?}", world.client().stats());
}

/// Number of datagrams from both ends in 10 s without traffic.
fn idle(world: &mut World) -> u64 {
    let sent = |world: &mut World| world.client().stats().sent + world.session().stats().sent;
    world.run(1_000);
    let before = sent(world);
    world.run(10_000);
    sent(world) - before
}

#[test]
fn marks_on_pure_acknowledgements_are_not_acknowledged() {
    let mut world = World::new(1, &server_config(&config(true), SUITE));
    world.add(&path(EcnPath::Passes), &path(EcnPath::Passes), &config(true), client_config(SUITE));
    world.connect();
    for _ in 0..20 {
        world.client().send(on(0), &[7; 1000]).unwrap();
        world.session().send(on(0), &[7; 1000]).unwrap();
        world.run(50);
    }
    assert!(world.client().stats().ecn && world.session().stats().ecn);
    let without = idle(&mut world);
    // From now on a queue that others keep full marks everything the session sends.
    world.set_links(0, &path(EcnPath::MarksAll), &path(EcnPath::MarksAll));
    world.client().send(on(0), &[7; 1000]).unwrap();
    let with = idle(&mut world);
    assert!(world.client().stats().ecn && world.client().stats().congestion_marks > 0);
    // The message and what acknowledges it.
    assert!(with <= without + 2, "{with} datagrams, without marks {without}");
}
