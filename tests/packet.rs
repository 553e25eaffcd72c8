//! Packets over bad links: reports about them are true, and match what the links do.

use crate::common;

use common::{PacketEnd, at, ms, packet_pair};
use std::collections::BTreeSet;
use std::time::Duration;
use whitewater::Time;
use whitewater::pace::Mode;
use whitewater::packet::PacketConfig;
use whitewater_sim::{Bottleneck, LinkConfig, Loss, Pair};

const HZ_60: Duration = Duration::from_micros(16_667);

fn small(_: u32) -> usize {
    100
}

/// A path with a round trip of 60 ms, without jitter, and with this loss in each direction.
fn lossy(loss: f64) -> LinkConfig {
    LinkConfig { loss: Loss::Random(loss), ..LinkConfig::with_rtt(ms(60)) }
}

fn both(every: Duration) -> [Option<Duration>; 2] {
    [Some(every); 2]
}

/// Checks that no number comes twice. Returns the set of numbers.
fn distinct(numbers: &[u32]) -> BTreeSet<u32> {
    let set: BTreeSet<_> = numbers.iter().copied().collect();
    assert_eq!(set.len(), numbers.len(), "a duplicate");
    set
}

/// What holds on every link: packets arrive at most once, only received ones are acknowledged, once, and none
/// is reported lost twice.
fn check_truth(pair: &Pair<PacketEnd, PacketEnd>) {
    let Pair { alice, bob, .. } = pair;
    for (from, to) in [(alice, bob), (bob, alice)] {
        let (received, acked) = (distinct(&to.received), distinct(&from.acked));
        assert!(acked.is_subset(&received), "acknowledged, but not received");
        distinct(&from.lost);
    }
}

#[test]
fn an_ack_is_reported_once_and_only_for_what_arrived() {
    let twice = LinkConfig {
        duplicate: 0.3,
        reorder: 0.2,
        late: ms(300),
        jitter: ms(50),
        in_order: false,
        ..lossy(0.3)
    };
    for seed in 1..=5 {
        for (name, link, least) in [
            ("mobile", LinkConfig::mobile(), 0.92),
            ("20 %", lossy(0.2), 0.79),
            ("reordered and doubled", twice.clone(), 0.6),
            ("90 %", lossy(0.9), 0.05),
        ] {
            let mut pair = packet_pair(&PacketConfig::default(), both(HZ_60), small, &link, seed);
            pair.run_to(at(60_000));
            check_truth(&pair);
            let acked = pair.alice.acked.len() as f64 / f64::from(pair.alice.sent);
            assert!(acked > least, "{name}, seed {seed}: {acked}");
            let stats = pair.alice.endpoint.stats();
            assert_eq!(stats.acked - pair.alice.acked.len() as u64, 0, "all of them are reported");
        }
    }
}

#[test]
fn at_99_percent_loss_over_two_wraps_no_report_is_false() {
    let mut pair = packet_pair(&PacketConfig::default(), both(ms(10)), small, &lossy(0.99), 1);
    pair.run_to(Time::from_millis(1_400_000));
    check_truth(&pair);
    assert!(pair.alice.sent > 2 << 16);
    assert!(pair.alice.acked.len() > 200, "{}", pair.alice.acked.len());
}

/// The counted loss is within 2 % of the link's, the smoothed one within 15 %.
#[test]
fn the_measured_loss_is_that_of_the_outgoing_direction() {
    for (seed, loss) in [(1, 0.0), (2, 0.05), (3, 0.1), (4, 0.2), (5, 0.4)] {
        let config = PacketConfig::default();
        let mut pair = packet_pair(&config, both(HZ_60), small, &lossy(0.1), seed);
        pair.links[0].set(lossy(loss)).unwrap();
        for second in 4..=60 {
            pair.run_to(at(second * 1000));
            let stats = pair.alice.endpoint.stats();
            assert!(
                (stats.loss - loss).abs() <= 0.15,
                "seed {seed}: {} at {second} s, link {loss}",
                stats.loss
            );
        }
        let stats = pair.alice.endpoint.stats();
        let counted = stats.lost as f64 / (stats.sent - 60) as f64;
        let link = pair.links[0].stats();
        let real = link.lost as f64 / link.sent as f64;
        println!("link {loss}: {real:.3}, counted {counted:.3}");
        assert!((counted - real).abs() <= 0.02, "seed {seed}: {counted}, link {real}");
    }
}

/// A round trip is that of the path plus the time until the peer's next packet: at 60 per second, half of
/// 16.7 ms on average.
#[test]
fn a_round_trip_includes_half_the_peers_send_interval() {
    // With loss, the next packet may be lost as well, or have nothing newer to report.
    for (seed, rtt, loss, longest) in
        [(1, 20, 0.0, 17), (2, 60, 0.05, 50), (3, 150, 0.2, 100), (4, 300, 0.0, 17)]
    {
        let link = LinkConfig { jitter: ms(4), ..LinkConfig { delay: ms(rtt / 2), ..lossy(loss) } };
        // Intervals without a common multiple, so that every wait until the next packet occurs.
        let every = [Some(HZ_60), Some(Duration::from_micros(16_001))];
        let mut pair = packet_pair(&PacketConfig::default(), every, small, &link, seed);
        pair.run_to(at(5_000));
        for second in 6..=60 {
            pair.run_to(at(second * 1000));
            let stats = pair.alice.endpoint.stats();
            let expected = rtt as f64 + 4.0 + 8.0;
            let found = stats.rtt.as_secs_f64() * 1e3;
            assert!(
                (found - expected).abs() < 8.0,
                "seed {seed}: {found:.1} ms at {second} s, {expected} expected"
            );
            assert!(
                stats.rtt_min >= ms(rtt) && stats.rtt_max < ms(rtt + 8 + longest),
                "seed {seed}: {stats:?}"
            );
            assert!(stats.jitter < ms(8), "seed {seed}: {:?}", stats.jitter);
        }
    }
}

/// Within 10 % of what is sent and of what gets through.
#[test]
fn the_measured_bandwidths_match_the_datagrams() {
    let mut pair = packet_pair(&PacketConfig::default(), both(HZ_60), |_| 500, &lossy(0.2), 7);
    pair.run_to(at(10_000));
    let mut means = [0.0; 3];
    for second in 11..=60 {
        pair.run_to(at(second * 1000));
        let stats = pair.alice.endpoint.stats();
        assert!((stats.sent_bandwidth / (60.0 * 512.0) - 1.0).abs() < 0.1, "{}", stats.sent_bandwidth);
        let found = [stats.sent_bandwidth, stats.received_bandwidth, stats.acked_bandwidth];
        means.iter_mut().zip(found).for_each(|(mean, found)| *mean += found / 50.0);
    }
    let [sent, received, acked] = means;
    println!("sent {sent:.0}, received {received:.0}, acked {acked:.0} bytes per second");
    assert!((received / sent - 0.8).abs() < 0.05 && (acked / sent - 0.8).abs() < 0.05);
    let total = pair.links[0].stats().bytes as f64 / 60.0;
    assert!((sent / total - 1.0).abs() < 0.02, "{total}");
}

#[test]
fn a_silent_end_acknowledges_everything_by_keepalives_alone() {
    let mut pair = packet_pair(&PacketConfig::default(), [Some(HZ_60), None], small, &lossy(0.1), 3);
    pair.run_to(at(60_000));
    check_truth(&pair);
    let received = distinct(&pair.bob.received).len();
    let (acked, stats) = (pair.alice.acked.len(), pair.bob.endpoint.stats());
    println!("{received} received, {acked} acknowledged by {} packets", stats.sent);
    assert!(acked + 20 >= received, "{acked} of {received}");
    assert_eq!((stats.sent, pair.bob.sent), (stats.keepalives, 0));
    assert!((570..=600).contains(&stats.keepalives), "10 a second: {}", stats.keepalives);
    let price = pair.links[1].stats().bytes / 60;
    assert!(price <= 150, "{price} bytes per second");
}

#[test]
fn an_endpoint_without_traffic_sleeps_forever() {
    let config = PacketConfig { keepalive: None, ..PacketConfig::default() };
    let mut pair = packet_pair(&config, [None; 2], small, &lossy(0.0), 1);
    assert_eq!(pair.next_event(), None);
    pair.alice.endpoint.send(Time::ZERO, b"1234").unwrap();
    pair.run_to(at(5_000));
    assert_eq!(
        (pair.bob.received.len(), pair.next_event()),
        (1, None),
        "the loss is counted, and that is all"
    );
    assert_eq!(pair.alice.endpoint.stats().lost, 1);
}

/// Good, then a path that becomes slow, then one that is fast again for 4 s.
#[test]
fn the_mode_follows_the_path() {
    let slow = LinkConfig::with_rtt(ms(400));
    let mut pair = packet_pair(&PacketConfig::default(), both(HZ_60), small, &lossy(0.0), 1);
    pair.run_to(at(5_000));
    let state = |pair: &Pair<PacketEnd, PacketEnd>| pair.alice.endpoint.stats().pace;
    assert_eq!((state(&pair).mode, pair.alice.endpoint.rate()), (Mode::Good, 30));
    pair.links.iter_mut().for_each(|link| link.set(slow.clone()).unwrap());
    let fell = pair.run_until(ms(1000), |pair| state(pair).mode == Mode::Bad);
    assert!(fell && pair.alice.endpoint.rate() == 10);
    let since = state(&pair).since.unwrap();
    assert!((5_200..5_700).contains(&since.as_millis()), "{since}: smoothed over ten packets");
    pair.run_to(at(10_000));
    pair.links.iter_mut().for_each(|link| link.set(lossy(0.0)).unwrap());
    assert!(pair.run_until(ms(10_000), |pair| state(pair).mode == Mode::Good));
    let returned = state(&pair).since.unwrap();
    assert!((14_100..14_700).contains(&returned.as_millis()), "{returned}");
}

fn up_to_12_kib(number: u32) -> usize {
    4 + number as usize * 997 % 12_000
}

#[test]
fn large_packets_arrive_whole_or_not_at_all() {
    let twice = LinkConfig {
        duplicate: 0.2,
        reorder: 0.2,
        late: ms(40),
        jitter: ms(10),
        in_order: false,
        ..lossy(0.0)
    };
    for seed in 1..=3 {
        for (name, link, least, most) in [
            ("clean", lossy(0.0), 1.0, 1.0),
            ("reordered and doubled", twice.clone(), 0.999, 1.0),
            // 5.5 fragments on average, each of which arrives with 95 %.
            ("5 %", lossy(0.05), 0.72, 0.80),
            ("all of it", LinkConfig { loss: Loss::Random(0.05), ..twice.clone() }, 0.72, 0.80),
        ] {
            let mut pair = packet_pair(&PacketConfig::default(), both(HZ_60), up_to_12_kib, &link, seed);
            pair.run_to(at(30_000));
            pair.alice.every = None;
            pair.bob.every = None;
            pair.run_to(at(32_000));
            check_truth(&pair);
            let share = pair.bob.received.len() as f64 / f64::from(pair.alice.sent);
            println!("{name}: {share:.3} of the packets");
            assert!((least..=most).contains(&share), "{name}, seed {seed}: {share}");
            let stats = pair.bob.endpoint.stats();
            let lost = u64::from(pair.alice.sent) - pair.bob.received.len() as u64;
            assert!(stats.abandoned <= lost, "{name}, seed {seed}: {}", stats.abandoned);
            assert_eq!(
                stats.rejected.total(),
                stats.rejected.duplicate + stats.rejected.stale,
                "{name}, seed {seed}"
            );
        }
    }
}

/// A queue too short for a whole packet lets none of the largest through, which the sender sees as loss.
#[test]
fn a_narrow_path_shows_as_loss() {
    let narrow = LinkConfig { bottleneck: Some(Bottleneck { rate: 1_000_000, queue: 8_000 }), ..lossy(0.0) };
    let mut pair = packet_pair(&PacketConfig::default(), [Some(HZ_60), None], |_| 12_000, &narrow, 1);
    pair.run_to(at(10_000));
    assert_eq!((pair.bob.received.len(), pair.alice.endpoint.stats().loss), (0, 1.0));
}

#[test]
fn a_restarted_end_is_heard_after_the_other_has_cleared_its_state() {
    let mut pair = packet_pair(&PacketConfig::default(), both(HZ_60), small, &lossy(0.0), 1);
    pair.run_to(at(30_000));
    pair.alice = PacketEnd::new(&PacketConfig::default(), Some(HZ_60), small);
    pair.run_to(at(30_100));
    let before = pair.bob.received.len(); // including those in flight
    pair.run_to(at(39_900));
    assert_eq!(pair.bob.received.len(), before, "its numbers are old ones");
    pair.run_to(at(41_000));
    pair.bob.received.drain(..before);
    assert!(pair.bob.received.len() > 50, "{}", pair.bob.received.len());
    assert!(pair.alice.acked.len() > 40, "{}", pair.alice.acked.len());
}

/// The numbers wrap while nothing arrives; older acknowledgements would be false by then.
#[test]
fn an_outage_of_a_whole_wrap_brings_no_false_ack() {
    let mut pair = packet_pair(&PacketConfig::default(), both(ms(1)), small, &lossy(0.0), 1);
    pair.run_to(at(2_000));
    let acked = pair.alice.acked.len();
    assert!(acked > 1_900);
    let outages = vec![at(2_000)..at(75_000)];
    pair.links[0].set(LinkConfig { outages, ..lossy(0.0) }).unwrap();
    pair.run_to(at(75_000));
    check_truth(&pair);
    assert!(pair.alice.sent > 1 << 16 && pair.alice.acked.len() <= 2_001);
    pair.run_to(at(76_000));
    check_truth(&pair);
    assert!(pair.alice.acked.len() > 2_800, "{}", pair.alice.acked.len());
}
