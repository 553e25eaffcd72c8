//! What a session reports about its path is true at both ends, whoever sends and whatever they send; and what
//! it costs to know.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;
use rand::Rng;

use common::ms;
use common::sessions::{
    SUITE, Toward, World, client_config, forger_of_numbers, in_packets, on, server_config,
};
use std::collections::BTreeSet;
use std::time::Duration;
use whitewater::SessionConfig;
use whitewater::inside::session::wire::{AckFrame, Data, EcnFrame, Frame, FrameWriter};
use whitewater::packet::Seq16;
use whitewater::session::{Connection, ConnectionStats, Suite};
use whitewater_sim::{LinkConfig, LinkStats, Loss, SimRng};

/// What is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Datagrams,
    Messages,
    Kcp,
}

const KINDS: [Kind; 3] = [Kind::Datagrams, Kind::Messages, Kind::Kcp];

/// Who sends: the client, the server.
const TALKERS: [[bool; 2]; 3] = [[false, true], [true, false], [true, true]];

/// Loss in percent, up and down.
const LOSSES: [[u8; 2]; 7] = [[0, 0], [5, 0], [0, 5], [5, 5], [20, 0], [0, 20], [20, 20]];

fn config() -> SessionConfig {
    SessionConfig { channels: vec![on(0).into(), in_packets(on(1))], ..SessionConfig::default() }
}

fn link(rtt: u64, percent: u8) -> LinkConfig {
    let loss = if percent == 0 { Loss::None } else { Loss::Random(f64::from(percent) / 100.0) };
    LinkConfig { loss, ..LinkConfig::with_rtt(ms(rtt)) }
}

/// A connected session over a path of 60 ms.
fn world(seed: u64, lost: [u8; 2], config: &SessionConfig) -> World {
    let mut world = World::new(seed, &server_config(config, SUITE));
    world.add(&link(60, lost[0]), &link(60, lost[1]), config, client_config(SUITE));
    world.connect();
    world
}

fn say(connection: &mut Connection, _now: whitewater::Time, kind: Kind) {
    let said = vec![7; 60];
    match kind {
        Kind::Datagrams => drop(connection.send_datagram(&said).unwrap()),
        // What is lost on the way makes them wait; there is always more to say.
        Kind::Messages => drop(connection.send(on(1), &said)),
        Kind::Kcp => drop(connection.send(on(0), &said)),
    }
}

fn hear(connection: &mut Connection) {
    let mut room = [0; 1500];
    while connection.recv_datagram_into(&mut room).is_ok() || connection.recv_into(on(0), &mut room).is_ok() {
    }
    while connection.recv(on(1)).is_some() {}
}

/// Sends for this long, every 16 ms.
fn talk(world: &mut World, talks: [bool; 2], kind: Kind, millis: u64) {
    for _ in 0..millis / GAP {
        let now = world.now;
        for (end, talks) in talks.into_iter().enumerate() {
            let connection = if end == 0 { world.client() } else { world.session() };
            if talks {
                say(connection, now, kind);
            }
            hear(connection);
        }
        world.drain();
        world.run(GAP);
    }
}

const GAP: u64 = 16;

/// The statistics of both ends, the client first.
fn stats(world: &mut World) -> [ConnectionStats; 2] {
    [world.client().stats(), world.session().stats()]
}

/// What happened to the datagrams that they sent.
fn links(world: &World) -> [LinkStats; 2] {
    [world.up_stats(0), world.down_stats(0)]
}

/// The share lost between two looks at the links.
fn truth(before: &LinkStats, after: &LinkStats) -> f64 {
    (after.lost_in_all() - before.lost_in_all()) as f64 / (after.sent - before.sent) as f64
}

#[test]
fn loss_is_within_2_percent_of_the_truth_after_10_s_at_both_ends_for_any_traffic() {
    for talks in TALKERS {
        for kind in KINDS {
            for lost in LOSSES {
                for seed in 0..6 {
                    let mut world = world(seed, lost, &config());
                    let before = links(&world);
                    talk(&mut world, talks, kind, 10_000);
                    let after = links(&world);
                    for (end, stats) in stats(&mut world).into_iter().enumerate() {
                        let truth = truth(&before[end], &after[end]);
                        let found = stats.loss;
                        assert!(
                            found.is_some_and(|found| (found - truth).abs() <= 0.02),
                            "{kind:?} by {talks:?}, {lost:?} % lost, seed {seed}, end {end}: {found:?} and not {truth:.3}, \
                             {} of {} judged",
                            stats.packets_lost,
                            stats.packets_judged,
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn loss_follows_a_path_that_changes_within_10_s() {
    for talks in TALKERS {
        for kind in KINDS {
            for seed in 0..4 {
                let mut world = world(seed, [0, 0], &config());
                talk(&mut world, talks, kind, 10_000);
                for percent in [20, 0] {
                    world.set_links(0, &link(60, percent), &link(60, percent));
                    let before = links(&world);
                    talk(&mut world, talks, kind, 10_500);
                    let after = links(&world);
                    for (end, stats) in stats(&mut world).into_iter().enumerate() {
                        let (truth, found) = (truth(&before[end], &after[end]), stats.loss.unwrap());
                        let packets = after[end].sent - before[end].sent;
                        let under_way = 3.0 / packets as f64; // of an end that sends only acknowledgements, this is a lot
                        assert!(
                            (found - truth).abs() <= 0.02 + under_way,
                            "{kind:?} by {talks:?}, seed {seed}, end {end}: {found:.3} and not {truth:.3}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn the_round_trip_follows_a_path_that_changes_within_two_keepalives_at_both_ends() {
    let (mut looks, mut late) = (0, 0);
    for talks in TALKERS {
        for kind in KINDS {
            for lost in LOSSES {
                // The path changes at any time between two pings.
                for seed in 0..16 {
                    let mut world = world(seed, lost, &config());
                    talk(&mut world, talks, kind, 3_000 + 32 * seed);
                    for rtt in [300, 60] {
                        world.set_links(0, &link(rtt, lost[0]), &link(rtt, lost[1]));
                        talk(&mut world, talks, kind, 1_008);
                        looks += 1;
                        let wrong = has_wrong_rtt(&mut world, rtt);
                        let may_be_late = lost != [0, 0]; // by chance all its pings got lost
                        late += u32::from(wrong.is_some());
                        assert!(
                            wrong.is_none() || may_be_late,
                            "{kind:?} by {talks:?}, {lost:?} % lost, seed {seed}: {wrong:?} and not {rtt} ms"
                        );
                    }
                }
            }
        }
    }
    assert!(late * 100 <= looks, "{late} of {looks} were late");
}

/// The round trip of an end that is not within 10 % of this one.
fn has_wrong_rtt(world: &mut World, rtt: u64) -> Option<Duration> {
    let found = stats(world).map(|stats| stats.rtt);
    found.into_iter().find(|found| (found.as_secs_f64() * 1e3 / rtt as f64 - 1.0).abs() > 0.1)
}

#[test]
fn one_message_followed_only_by_acknowledgements_shows_no_loss() {
    for ack_delay in [10, 40] {
        let config = SessionConfig { ack_delay: ms(ack_delay), ..config() };
        let mut world = world(1, [0, 0], &config);
        let now = world.now;
        say(world.client(), now, Kind::Datagrams);
        for _ in 0..20 {
            talk(&mut world, [false, true], Kind::Datagrams, 1_000);
            let [client, server] = stats(&mut world);
            assert!(client.packets_lost + server.packets_lost == 0, "{client:?}");
            assert_eq!((client.loss.unwrap_or_default(), server.loss.unwrap_or_default()), (0.0, 0.0));
        }
        assert!(stats(&mut world).iter().all(|stats| stats.loss.is_some()));
    }
}

#[test]
fn an_end_that_cannot_know_its_loss_reports_none() {
    let mut world = world(1, [20, 20], &config());
    let losses = |world: &mut World| stats(world).map(|stats| stats.loss);
    assert_eq!(losses(&mut world), [None, None], "nothing was sent");
    world.run(10_000);
    assert_eq!(losses(&mut world), [None, None], "at rest");
    talk(&mut world, [true, true], Kind::Datagrams, 300);
    assert_eq!(losses(&mut world), [None, None], "too little was sent");
    talk(&mut world, [true, true], Kind::Datagrams, 2_000);
    assert!(losses(&mut world).iter().all(Option::is_some));
    world.run(9_000);
    world.run(2_000);
    assert_eq!(losses(&mut world), [None, None], "it was sent long ago");
    // An end that hears nothing cannot know whether packets or their acknowledgements get lost.
    talk(&mut world, [true, false], Kind::Datagrams, 5_000);
    world.set_links(0, &link(60, 0), &link(60, 100));
    talk(&mut world, [true, false], Kind::Datagrams, 11_000);
    assert_eq!(world.client().stats().loss, None, "nothing is received");
}

#[test]
fn packets_lost_in_an_outage_count_and_lost_acknowledgements_do_not() {
    for talks in TALKERS {
        for kind in KINDS {
            for outage in [[100, 0], [0, 100]] {
                let mut world = world(3, [0, 0], &config());
                let before = links(&world);
                talk(&mut world, talks, kind, 5_000);
                world.set_links(0, &link(60, outage[0]), &link(60, outage[1]));
                talk(&mut world, talks, kind, 1_200);
                world.set_links(0, &link(60, 0), &link(60, 0));
                talk(&mut world, talks, kind, 3_000);
                let after = links(&world);
                for (end, stats) in stats(&mut world).into_iter().enumerate() {
                    let (truth, found) = (truth(&before[end], &after[end]), stats.loss.unwrap());
                    assert!(
                        (found - truth).abs() <= 0.02,
                        "{kind:?} by {talks:?}, {outage:?}, end {end}: {found:.3} and not {truth:.3}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_path_that_reorders_loses_nothing() {
    for kind in KINDS {
        let mut world = world(2, [0, 0], &config());
        let uneven = LinkConfig { jitter: ms(40), in_order: false, ..link(60, 0) };
        world.set_links(0, &uneven, &uneven);
        talk(&mut world, [true, true], kind, 10_000);
        for stats in stats(&mut world) {
            assert!(stats.loss.is_some_and(|loss| loss <= 0.01), "{kind:?}: {:?}", stats.loss);
        }
    }
}

#[test]
fn a_standstill_does_not_count_as_a_round_trip() {
    for talks in TALKERS {
        for kind in KINDS {
            for who in ["client", "server", "path"] {
                let mut world = World::new(4, &server_config(&config(), SUITE));
                world.add(&link(2, 0), &link(2, 0), &config(), client_config(SUITE));
                world.connect();
                talk(&mut world, talks, kind, 3_000);
                let held = link(16_000, 0);
                match who {
                    "client" => world.clients[0].frozen = true,
                    "server" => world.frozen = true,
                    _ => world.set_links(0, &held, &held),
                }
                for _ in 0..500 {
                    if who == "server" && talks[1] || who == "client" && talks[0] {
                        world.run(GAP);
                    } else {
                        talk(&mut world, talks, kind, GAP);
                    }
                }
                world.clients[0].frozen = false;
                world.frozen = false;
                world.set_links(0, &link(2, 0), &link(2, 0));
                talk(&mut world, talks, kind, 1_008);
                let wrong = has_wrong_rtt(&mut world, 2);
                assert!(wrong.is_none(), "{kind:?} by {talks:?}, {who}: {wrong:?}");
                // What left before the path was free again arrives now.
                talk(&mut world, talks, kind, 8_000);
                let wrong = has_wrong_rtt(&mut world, 2);
                assert!(wrong.is_none(), "{kind:?} by {talks:?}, {who}, later: {wrong:?}");
            }
        }
    }
}

/// Datagrams in 20 s, and bytes per second, of both ends.
fn price(talks: [bool; 2], kind: Kind) -> [(u64, u64); 2] {
    let mut world = world(1, [0, 0], &config());
    talk(&mut world, talks, kind, 5_008);
    let before = stats(&mut world);
    talk(&mut world, talks, kind, 20_000);
    let after = stats(&mut world);
    let mut ends = before.iter().zip(&after);
    [(); 2].map(|()| {
        let (before, after) = ends.next().unwrap();
        (after.sent - before.sent, (after.bytes_sent - before.bytes_sent) / 20)
    })
}

#[test]
fn measuring_the_path_costs_no_datagram_and_with_acknowledged_packets_no_byte() {
    // Bytes per second without it, for the talker and the listener. A ping takes 9 bytes, twice per second,
    // and an answer 31.
    let at_rest = price([false, false], Kind::Datagrams);
    let overhead = if SUITE == Suite::Checked { 0 } else { 12 };
    assert_eq!(at_rest, [(10, (22 + overhead) / 2); 2], "a ping each two seconds, and its answer");
    for (kind, talker, listener, both, more) in [
        (Kind::Datagrams, 4625, 1937, 5312, [64, 18, 0]),
        (Kind::Messages, 4937, 1937, 5625, [64, 18, 0]),
        (Kind::Kcp, 6125, 2375, 7625, [86, 86, 86]),
    ] {
        for talks in TALKERS {
            for ((datagrams, bytes), talks_itself) in price(talks, kind).into_iter().zip(talks) {
                let (before, more) = match (talks == [true, true], talks_itself) {
                    (true, _) => (both, more[2]),
                    (_, true) => (talker, more[0]),
                    _ => (listener, more[1]),
                };
                let datagrams = datagrams / 20;
                let most = before + more + (datagrams + 1) * overhead;
                // Acknowledgements of KCP and of datagrams that have nothing to ride with wait for each other.
                let alone = kind != Kind::Messages && !talks_itself;
                assert!(
                    if alone { datagrams < 30 } else { datagrams == 62 },
                    "{kind:?} by {talks:?}: {datagrams}"
                );
                assert!(bytes <= most, "{kind:?} by {talks:?}: {bytes} bytes per second, more than {most}");
            }
        }
    }
}

/// The numbers of the client's packets.
fn numbers_sent(world: &World) -> BTreeSet<u32> {
    let from_client = world.tap.iter().filter(|(_, from, ..)| *from == world.address(0));
    from_client.filter_map(|(.., datagram)| Some(Data::decode(datagram).ok()?.0.pn)).collect()
}

/// A peer may report whatever it likes: it can only spoil what this end knows about the path.
#[test]
fn reports_of_a_hostile_peer_cost_no_memory_or_time_and_stay_in_range() {
    // With another suite nobody else could seal for the server.
    let mut world = World::pair(1, &link(60, 0), &config(), Suite::Checked);
    world.taps = true;
    world.connect();
    talk(&mut world, [true, true], Kind::Datagrams, 3_000);
    let forge = forger_of_numbers(&world);
    let memory = world.client().memory();
    let mut rng = SimRng::new(1, 1);
    for number in 0..500 {
        let used = numbers_sent(&world);
        let mut body = Vec::new();
        let mut writer = FrameWriter::new(&mut body, 1000);
        for _ in 0..10 {
            let mut any = || rng.next_u64().to_le_bytes();
            let [a, b, c, d, ..] = any();
            // Of numbers that were used: another one would end the session.
            let newest = *used.iter().rev().nth(usize::from(a % 100)).unwrap();
            let is_used = |age: &u32| used.contains(&(newest - 1 - age));
            let bits = u32::from_le_bytes([a, b, c, d])
                & (0..32).filter(is_used).fold(0, |bits, age| bits | 1 << age);
            let ack = Seq16(u16::try_from(newest & 0xffff).unwrap());
            let delay = u16::from_le_bytes([c, d]);
            writer.push(&Frame::Ack(AckFrame { ack, bits, delay })).unwrap();
            let [a, b, c, d, kind, ..] = any();
            let unmarked = u32::from_le_bytes([a, b, c, d]) >> (kind % 32);
            if kind & 1 == 0 {
                writer.push(&Frame::Ecn(EcnFrame { unmarked, ..EcnFrame::default() })).unwrap();
            }
            writer.push(&Frame::Ping(u64::from_le_bytes(any()))).unwrap();
            writer.push(&Frame::Pong(u64::from_le_bytes(any()) % world.now.as_micros())).unwrap();
        }
        let datagram = forge(Toward::Client, 1_000 + number, &body);
        let before = world.client().stats().sent;
        world.inject_client(0, &datagram);
        let stats = world.client().stats();
        assert!(stats.sent <= before + 1, "{} answers", stats.sent - before);
        assert!(stats.loss.is_none_or(|loss| (0.0..=1.0).contains(&loss)), "{:?}", stats.loss);
        assert!(stats.packets_lost <= stats.packets_judged, "{stats:?}");
        assert!(stats.packets_judged <= 2 * stats.sent + 1024, "{stats:?}");
        world.now = world.now + ms(1);
    }
    assert!(world.client().is_connected());
    assert!(world.client().memory() <= memory + 1000, "{} bytes of {memory}", world.client().memory());
}
