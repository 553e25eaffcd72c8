//! Everything at once in one session: channels by KCP and in packets, of every kind, unreliable datagrams. Each keeps its
//! promise whatever gets lost, reports what arrived, and all share datagrams.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common;

use common::ms;
use common::sessions::{SUITE, World, in_packets, on};
use std::collections::BTreeSet;
use std::time::Duration;
use whitewater::channel::Resend;
use whitewater::kcp::Sn;
use whitewater::pace::{MaxRate, Mode};
use whitewater::packet::Seq16;
use whitewater::{Channel, ChannelConfig, SessionConfig};
use whitewater_sim::{LinkConfig, Loss};

fn path(loss: f64) -> LinkConfig {
    LinkConfig { jitter: ms(5), loss: Loss::Random(loss), in_order: false, ..LinkConfig::with_rtt(ms(60)) }
}

/// Carried by KCP.
const KCP: [Channel; 2] = [Channel::ordered(0), Channel::ordered(1)];
/// One of each kind, in packets.
const PACKED: [Channel; 4] = [ORDERED, UNORDERED, SEQUENCED, UNRELIABLE];
const ORDERED: Channel = Channel::ordered(2);
const UNORDERED: Channel = Channel::unordered(3);
const SEQUENCED: Channel = Channel::sequenced(4);
const UNRELIABLE: Channel = Channel::unreliable(5);

/// Two channels carried by KCP and one of each kind in packets, these with receipts.
fn mixed() -> SessionConfig {
    let packed = PACKED.map(|channel| ChannelConfig { receipts: true, ..in_packets(channel) });
    let channels = KCP.map(Channel::config).into_iter().chain(packed).collect();
    SessionConfig { channels, ..SessionConfig::default() }
}

fn connected(seed: u64, loss: f64, session: &SessionConfig) -> World {
    let mut world = World::pair(seed, &path(loss), session, SUITE);
    world.connect();
    world.run(1_000);
    world
}

/// What the server received, and what the client was told about that.
#[derive(Default)]
struct Seen {
    /// By the number of the channel.
    got: [Vec<u32>; 6],
    datagrams: Vec<u32>,
    told: [BTreeSet<u32>; 6],
    told_datagrams: BTreeSet<u32>,
    /// For each message on channel 0, where it ends.
    marks: Vec<Sn>,
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[..4].try_into().unwrap())
}

fn message(number: u32, len: usize) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.resize(len.max(4), number.to_le_bytes()[0]);
    bytes
}

impl Seen {
    /// One tick of a game: a message of each kind, and now and then something large.
    fn send(&mut self, world: &mut World, tick: u32) {
        let client = world.client();
        client.send(on(0), &message(tick, 60)).unwrap();
        self.marks.push(client.sent_up_to(on(0)).unwrap());
        if tick.is_multiple_of(50) {
            client.send(on(1), &message(tick / 50, 20_000)).unwrap();
        }
        for channel in PACKED {
            client.send(channel, &message(tick, 40)).unwrap();
        }
        client.send_datagram(&message(tick, 100)).unwrap();
    }

    fn take(&mut self, world: &mut World) {
        let mut buf = vec![0; 20_000];
        let server = world.session();
        for channel in KCP {
            while let Ok(len) = server.recv_into(channel, &mut buf) {
                assert!(buf[4..len].iter().all(|byte| *byte == buf[0]), "as it was sent");
                self.got[usize::from(channel.number())].push(number(&buf));
            }
        }
        for channel in PACKED {
            while let Some(message) = server.recv(channel) {
                self.got[usize::from(channel.number())].push(number(&message));
            }
        }
        while server.recv_datagram_into(&mut buf).is_ok() {
            self.datagrams.push(number(&buf));
        }
        let client = world.client();
        for channel in PACKED {
            while let Some(Seq16(id)) = client.pop_delivered_message(channel) {
                assert!(self.told[usize::from(channel.number())].insert(id.into()), "told twice");
            }
        }
        while let Some(id) = client.pop_delivered() {
            assert!(self.told_datagrams.insert(u32::try_from(id.0).unwrap()), "reported twice");
        }
        let acked = client.acked_up_to(on(0)).unwrap();
        let known = self.marks.iter().filter(|mark| !acked.is_before(**mark)).count();
        assert!(known <= self.got[0].len(), "{known} of channel 0 are said to have arrived");
    }

    /// What has come on a channel.
    fn of(&self, channel: Channel) -> &[u32] {
        &self.got[usize::from(channel.number())]
    }

    /// What is said to have come: messages are counted from 0.
    fn told(&self, channel: Channel) -> &BTreeSet<u32> {
        &self.told[usize::from(channel.number())]
    }
}

fn is_rising(numbers: &[u32]) -> bool {
    numbers.windows(2).all(|pair| pair[0] < pair[1])
}

fn set(numbers: &[u32]) -> BTreeSet<u32> {
    let set: BTreeSet<_> = numbers.iter().copied().collect();
    assert_eq!(set.len(), numbers.len(), "none twice");
    set
}

#[test]
fn every_kind_of_channel_keeps_its_promise_under_loss() {
    const TICKS: u32 = 250;
    for (seed, loss) in (1..=3).flat_map(|seed| [0.0, 0.1, 0.3, 0.6].map(|loss| (seed, loss))) {
        let name = format!("seed {seed}, {loss} lost");
        let (mut world, mut seen) = (connected(seed, loss, &mixed()), Seen::default());
        for tick in 0..TICKS {
            seen.send(&mut world, tick);
            world.drain();
            world.run(16);
            seen.take(&mut world);
        }
        let all = |world: &mut World| {
            seen.take(world);
            let reliable = [ORDERED, UNORDERED].iter().all(|channel| {
                seen.of(*channel).len() == TICKS as usize && seen.told(*channel).len() == TICKS as usize
            });
            let client = world.client();
            reliable && client.acked_up_to(on(0)) == client.sent_up_to(on(0)) && seen.of(on(1)).len() == 5
        };
        assert!(world.run_until(30_000, all), "{name}");
        for got in KCP.map(|channel| seen.of(channel)) {
            assert!(got.iter().copied().eq(0..u32::try_from(got.len()).unwrap()), "{name}: in order");
        }
        assert!(seen.of(ORDERED).iter().copied().eq(0..TICKS), "{name}: in order");
        assert_eq!(set(seen.of(UNORDERED)).len(), TICKS as usize, "{name}");
        assert!(is_rising(seen.of(SEQUENCED)), "{name}: never back");
        // What is said to have arrived has; a sequenced one may have come after a newer one, and is dropped.
        let arrived = set(seen.of(UNRELIABLE));
        assert!(seen.told(UNRELIABLE).is_subset(&arrived), "{name}");
        assert!(seen.told_datagrams.is_subset(&set(&seen.datagrams)), "{name}");
        for count in [arrived.len(), seen.datagrams.len()] {
            assert!(count as f64 >= f64::from(TICKS) * (1.0 - loss) * 0.8, "{name}: {count}");
        }
        assert!(
            seen.told(UNRELIABLE).len() * 10 >= arrived.len() * 9,
            "{name}: told {}",
            seen.told(UNRELIABLE).len()
        );
    }
}

#[test]
fn all_kinds_of_a_tick_leave_in_one_datagram() {
    let (mut world, mut seen) = (connected(1, 0.0, &mixed()), Seen::default());
    let clean = LinkConfig::with_rtt(ms(60));
    world.set_links(0, &clean, &clean);
    seen.send(&mut world, 0);
    world.drain();
    world.run(2_000);
    seen.take(&mut world);
    let before = world.client().stats();
    for tick in 1..50 {
        seen.send(&mut world, tick);
        world.drain();
        world.run(16);
        seen.take(&mut world);
    }
    let after = world.client().stats();
    let (datagrams, bytes) = (after.sent - before.sent, after.bytes_sent - before.bytes_sent);
    println!("{datagrams} datagrams for 49 ticks of six messages, {} bytes each", bytes / datagrams);
    assert!(datagrams <= 51, "{datagrams}");
    assert!(bytes <= 49 * 560, "{bytes} bytes for 49 x 320 of messages");
}

#[test]
fn an_urgent_channel_does_not_wait_for_a_long_message_nor_for_datagrams_that_max_rate_holds_back() {
    let max_rate = Some(MaxRate::new(100));
    for max_rate in [None, max_rate] {
        let mut world = connected(1, 0.0, &SessionConfig { max_rate, ..mixed() });
        for _ in 0..2 {
            world.client().send(on(1), &[1; 100_000]).unwrap();
        }
        world.drain();
        world.run(50);
        let start = world.now;
        world.client().send(on(0), b"now").unwrap();
        world.drain();
        let mut buf = vec![0; 100_000];
        assert!(world.run_until(5_000, |world| world.session().recv_into(on(0), &mut buf).is_ok()));
        let took = world.now.since(start);
        assert!(
            took <= ms(30 + 5 + 2 * 10 + 5),
            "{max_rate:?}: {took:?}, of which the path takes 35 and two datagrams the rest"
        );
        assert!(world.run_until(5_000, |world| world.session().recv_into(on(1), &mut buf).is_ok()));
    }
}

#[test]
fn a_burst_of_100_ms_leaves_at_once_and_the_rest_evenly() {
    for rate in [20, 80] {
        let max_rate = Some(MaxRate::new(rate));
        let mut world = connected(1, 0.0, &SessionConfig { max_rate, ..mixed() });
        world.run(2_000); // no more than 100 ms is saved up
        world.taps = true;
        for _ in 0..100 {
            world.client().send_datagram(&[2; 600]).unwrap(); // each fills a packet
        }
        world.drain();
        let sent = |world: &World| world.tap.iter().filter(|(.., bytes)| bytes.len() > 600).count();
        let at_once = usize::from(rate) / 10 + 1;
        assert_eq!(sent(&world), at_once, "plus the one that is due");
        for tenths in 1..=10 {
            world.run(100);
            assert_eq!(sent(&world), at_once + tenths * usize::from(rate) / 10);
        }
    }
}

/// With more data than may leave, everything waits but nothing waits forever, and a slow path carries less.
#[test]
fn max_rate_limits_the_total_and_starves_nobody() {
    let max_rate = Some(MaxRate { bad_rate: 10, ..MaxRate::new(40) });
    for (rtt, mode, rate) in [(60, Mode::Good, 40), (400, Mode::Bad, 10)] {
        let mut world = connected(1, 0.0, &SessionConfig { max_rate, ..mixed() });
        let link = LinkConfig::with_rtt(ms(rtt));
        world.set_links(0, &link, &link);
        for round in 0..2 {
            let before = world.client().stats();
            let (mut buf, mut messages, mut datagrams) = ([0; 2000], 0, 0);
            for _ in 0..1000 {
                let client = world.client();
                let _ = client.send(ORDERED, &[1; 600]);
                let _ = client.send_datagram(&[2; 400]);
                let _ = client.send(on(1), &[3; 500]);
                world.drain();
                world.run(10);
                while world.session().recv_into(on(1), &mut buf).is_ok() {
                    messages += 1;
                }
                while world.session().recv_datagram_into(&mut buf).is_ok() {
                    datagrams += 1;
                }
                while world.session().recv(ORDERED).is_some() {}
            }
            let after = world.client().stats();
            if round == 0 {
                continue; // the mode settles
            }
            assert_eq!(after.mode, Some(mode));
            let bytes = after.bytes_sent - before.bytes_sent;
            println!("{rtt} ms: {bytes} bytes in 10 s, {messages} messages by KCP, {datagrams} datagrams");
            assert!(bytes <= rate * 10 * 1472 + 60_000, "{bytes} bytes in 10 s");
            assert!(bytes >= rate * 10 * 800, "{bytes} bytes in 10 s: what may leave does");
            assert!(messages >= rate * 10 / 10, "{messages} messages of the least urgent");
            assert!(datagrams > 0);
        }
    }
}

#[test]
fn channel_receipts_do_not_report_expired_messages() {
    let channel =
        ChannelConfig { receipts: true, expire_after: Some(Duration::from_millis(150)), ..in_packets(on(0)) };
    let session = SessionConfig { channels: vec![channel], ..SessionConfig::default() };
    let mut world = connected(5, 0.5, &session);
    let (mut arrived, mut told, mut expired) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for tick in 0..600u32 {
        if tick < 400 {
            world.client().send(on(0), &message(tick, 20)).unwrap();
        }
        world.drain();
        world.run(16);
        while let Some(bytes) = world.session().recv(on(0)) {
            arrived.insert(number(&bytes));
        }
        while let Some(Seq16(id)) = world.client().pop_delivered_message(on(0)) {
            told.insert(u32::from(id));
        }
        while let Some(Seq16(id)) = world.client().pop_expired_message(on(0)) {
            expired.insert(u32::from(id));
        }
    }
    assert!(told.is_subset(&arrived) && told.is_disjoint(&expired));
    assert_eq!(told.len() + expired.len(), 400, "each is reported one way or the other");
    assert!(!expired.is_empty() && told.len() > 150, "{} told, {} given up", told.len(), expired.len());
}

/// Until it is acknowledged, it rides with every message after it, and makes packets of its own only now and then.
#[test]
fn a_message_for_every_packet_makes_none() {
    let channel = ChannelConfig { resend: Resend::After(ms(0)), ..in_packets(on(0)) };
    let session = SessionConfig { channels: vec![channel], ..SessionConfig::default() };
    let mut world = World::pair(1, &LinkConfig::with_rtt(ms(400)), &session, SUITE);
    world.connect();
    world.run(2_000);
    let before = world.session().stats().sent;
    world.session().send(on(0), b"first").unwrap();
    world.run(390);
    let sent = world.session().stats().sent - before;
    assert!((4..=6).contains(&sent), "{sent} packets");
    let resends = world.session().channel_stats(on(0)).resends;
    for _ in 0..10 {
        world.session().send(on(0), b"next").unwrap();
        world.run(16);
    }
    let resends = world.session().channel_stats(on(0)).resends - resends;
    assert!((45..=60).contains(&resends), "{resends} of 45 are sent again");
}

/// While nothing is acknowledged, one message at a time is sent again. Once one is, so are the others.
#[test]
fn what_waits_in_packets_arrives_soon_after_an_outage() {
    for resend in [ms(0), ms(100), ms(1000)] {
        let channel = ChannelConfig { resend: Resend::After(resend), ..in_packets(on(0)) };
        let session = SessionConfig { channels: vec![channel], ..SessionConfig::default() };
        let good = LinkConfig::with_rtt(ms(60));
        let mut world = World::pair(1, &good, &session, SUITE);
        world.connect();
        world.run(1_000);
        let bad = LinkConfig { loss: Loss::Random(1.0), ..good.clone() };
        world.set_links(0, &good, &bad);
        (0..200).for_each(|_| world.session().send(on(0), &[1; 100]).unwrap());
        world.run(10_000);
        let resends = world.session().channel_stats(on(0)).resends;
        world.set_links(0, &good, &good);
        let (start, mut got) = (world.now, 0);
        let all = world.run_until(5_000, |world| {
            while world.client().recv(on(0)).is_some() {
                got += 1;
            }
            got == 200
        });
        let took = world.now.since(start);
        println!("{resend:?}: {resends} resends in vain, then {took:?}");
        assert!(all && took <= resend + ms(500), "{resend:?}: {took:?}, {got}");
        assert!(resends <= 18 * 200, "{resend:?}: {resends}");
    }
}
