//! Repairs of session packets: lost packets are rebuilt without a round trip, at a limited price that ends
//! with the loss, and no loss is hidden because of it. All in virtual time.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

#[cfg(test)]
mod common;

use common::configs;
use common::sessions::{
    SUITE, Toward, World, client_address, client_config, forger, forger_of_numbers, in_packets, on, ordered,
    server_address, server_config,
};
use common::{ms, path, repairing as kcp_repairing};
use insta::assert_snapshot;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;
use whitewater::inside::session::wire::{Frame, FrameWriter, Frames, LossFrame, Packet};
use whitewater::kcp::{Config, Congestion, Modern, Recovery};
use whitewater::pace::{MaxRate, Mode};
use whitewater::packet::Seq16;
use whitewater::session::{ConnectionStats, Suite};
use whitewater::{ChannelConfig, Repairs, SessionConfig, Time};
use whitewater_sim::{LinkConfig, Loss};

/// What carries a game's messages from the client to the server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Carrier {
    Kcp,
    Packets,
    Datagrams,
}

/// Messages of one size, one at a time.
#[derive(Clone, Copy, Debug)]
struct Flow {
    carrier: Carrier,
    gap: u64,
    size: usize,
}

const INPUTS: Flow = Flow { carrier: Carrier::Datagrams, gap: 16, size: 40 };

/// The result of a flow.
#[derive(Debug, Default)]
struct Came {
    /// The number of each received message, and how long it took.
    latencies: Vec<(u64, Duration)>,
    sent: u64,
}

impl Came {
    /// Share of the messages sent that arrived within this many ms.
    fn within(&self, millis: u64) -> f64 {
        let soon = self.latencies.iter().filter(|(_, latency)| *latency <= ms(millis)).count();
        soon as f64 / self.sent as f64
    }

    /// Checks that no message came twice.
    fn assert_once(&self) {
        let numbers: BTreeSet<_> = self.latencies.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers.len(), self.latencies.len(), "a message came twice");
    }
}

fn repairing(percent: u8) -> SessionConfig {
    with(Repairs::Budget(percent))
}

fn with(repairs: Repairs) -> SessionConfig {
    SessionConfig { repairs, ..plain() }
}

/// Without repairs of any kind.
fn plain() -> SessionConfig {
    let recovery = Recovery::Modern(Modern { repairs: Repairs::Off, ..Modern::default() });
    let by_kcp = ChannelConfig { kcp: Config { recovery, ..Config::default() }, ..on(0).into() };
    let channels = vec![by_kcp, in_packets(on(1))];
    SessionConfig { channels, repairs: Repairs::Off, ..SessionConfig::default() }
}

/// Runs a flow for so many ms, then waits for its last messages.
fn run(world: &mut World, flow: Flow, millis: u64) -> Came {
    let mut came = Came::default();
    run_for(world, flow, millis, &mut came);
    world.run_until(1_000, |world| receive(world, &mut came));
    came
}

fn run_for(world: &mut World, flow: Flow, millis: u64, came: &mut Came) {
    for _ in 0..millis / flow.gap {
        let (now, mut message) = (world.now, vec![7; flow.size]);
        message[..8].copy_from_slice(&now.as_micros().to_le_bytes());
        message[8..16].copy_from_slice(&came.sent.to_le_bytes());
        match flow.carrier {
            Carrier::Kcp => world.client().send(on(0), &message).unwrap(),
            Carrier::Packets => world.client().send(on(1), &message).unwrap(),
            Carrier::Datagrams => drop(world.client().send_datagram(&message).unwrap()),
        }
        came.sent += 1;
        world.drain();
        world.run_until(flow.gap, |world| receive(world, came));
    }
}

fn receive(world: &mut World, came: &mut Came) -> bool {
    let (now, mut buf) = (world.now, [0; 1500]);
    let mut note = |message: &[u8]| {
        let number = |at: usize| u64::from_le_bytes(message[at..at + 8].try_into().unwrap());
        came.latencies.push((number(8), now.since(Time::from_micros(number(0)))));
    };
    let session = world.session();
    while let Ok(len) = session.recv_into(on(0), &mut buf).or_else(|_| session.recv_datagram_into(&mut buf)) {
        note(&buf[..len]);
    }
    while let Some(message) = session.recv(on(1)) {
        note(&message);
    }
    while world.client().pop_delivered().is_some() {}
    false
}

fn connected(seed: u64, link: &LinkConfig, config: &SessionConfig) -> World {
    let mut world = World::pair(seed, link, config, SUITE);
    world.connect();
    world
}

/// The statistics of both ends: client, server.
fn stats(world: &mut World) -> [ConnectionStats; 2] {
    [world.client().stats(), world.session().stats()]
}

#[test]
fn most_lost_packets_are_rebuilt_without_a_round_trip() {
    // A resend takes one and a half round trips: 90 ms.
    for (seed, carrier) in (1..).zip([Carrier::Datagrams, Carrier::Kcp, Carrier::Packets]) {
        let flow = Flow { carrier, ..INPUTS };
        let [without, with] = [plain(), repairing(100)].map(|config| {
            let mut world = connected(seed, &path(0.1), &config);
            let came = run(&mut world, flow, 60_000);
            came.assert_once();
            (came.within(80), stats(&mut world))
        });
        assert!(without.0 < 0.91, "{carrier:?}, seed {seed}: {} soon", without.0);
        assert!(with.0 > 0.97, "{carrier:?}, seed {seed}: {} soon", with.0);
        let [client, server] = with.1;
        assert!(server.repairs.rebuilt > 200 && client.repairs.rebuilt_by_peer > 150);
        assert_eq!((client.repairs.refused_total(), server.repairs.refused_total()), (0, 0));
        let price = client.bytes_sent as f64 / without.1[0].bytes_sent as f64;
        assert!(price < 2.4, "{carrier:?}, seed {seed}: {price} times the bytes");
    }
}

#[test]
fn repairs_of_packets_stay_within_their_budget() {
    for percent in [0, 5, 10, 30, 100] {
        for (seed, loss) in (1..).zip([0.02, 0.1, 0.4]) {
            let mut world = connected(seed, &path(loss), &repairing(percent));
            for flow in [INPUTS, Flow { size: 1000, gap: 40, ..INPUTS }] {
                run(&mut world, flow, 20_000);
            }
            let [client, _] = stats(&mut world);
            let repairs = client.repairs.bytes + 28 * client.repairs.sent_alone;
            let rest = client.bytes_sent + 28 * client.sent - repairs;
            let most = rest * u64::from(percent) / 100;
            assert!(repairs <= most, "{percent} %, seed {seed}: {repairs} of {most} bytes");
            assert_eq!(repairs > 0, percent > 0);
        }
    }
}

#[test]
fn without_loss_repairs_cost_neither_bytes_nor_memory() {
    for flow in
        [INPUTS, Flow { carrier: Carrier::Kcp, ..INPUTS }, Flow { carrier: Carrier::Packets, ..INPUTS }]
    {
        let [without, with] = [plain(), repairing(100)].map(|config| {
            let mut world = connected(1, &path(0.0), &config);
            assert_eq!(run(&mut world, flow, 10_000).within(40), 1.0);
            stats(&mut world)
        });
        for (without, with) in without.iter().zip(&with) {
            assert_eq!((without.bytes_sent, without.sent), (with.bytes_sent, with.sent), "{flow:?}");
            assert!(with.memory <= without.memory + 700, "{} and {} bytes", without.memory, with.memory);
        }
    }
}

#[test]
fn repairs_end_when_the_loss_ends() {
    for carrier in [Carrier::Datagrams, Carrier::Kcp] {
        let flow = Flow { carrier, ..INPUTS };
        let sent_after = [plain(), repairing(50)].map(|config| {
            let mut world = connected(3, &path(0.1), &config);
            run(&mut world, flow, 20_000);
            assert_eq!(stats(&mut world)[0].repairs.sent > 0, config.repairs != Repairs::Off);
            world.set_links(0, &path(0.0), &path(0.0));
            run(&mut world, flow, 12_000);
            let before = stats(&mut world);
            run(&mut world, flow, 20_000);
            let after = stats(&mut world);
            assert_eq!(before[0].repairs, after[0].repairs, "no repairs are sent or reported");
            [0, 1].map(|end| after[end].bytes_sent - before[end].bytes_sent)
        });
        // With a different past, acknowledgements of KCP may ride in other datagrams, and pings may
        // differ.
        let most = if carrier == Carrier::Kcp { 500 } else { 60 };
        let more = |end: usize| sent_after[1][end].abs_diff(sent_after[0][end]);
        assert!(more(0) <= most && more(1) <= most, "{carrier:?}: {sent_after:?} bytes");
    }
}

#[test]
fn rebuilt_packets_still_count_as_lost() {
    let max_rate = MaxRate { bad_rate: 70, loss: Some(5), ..MaxRate::new(200) };
    for (seed, loss) in (3..).zip([0.0, 0.15]) {
        let config = SessionConfig { max_rate: Some(max_rate), ..repairing(100) };
        let mut world = connected(seed, &path(loss), &config);
        let came = run(&mut world, INPUTS, 30_000);
        let [client, server] = stats(&mut world);
        let is_bad = client.mode == Some(Mode::Bad);
        assert_eq!(is_bad, loss > 0.0, "seed {seed}: the limit sees the loss");
        let share = client.packets_lost as f64 / client.packets_judged as f64;
        assert!((share - loss).abs() < 0.04, "seed {seed}: {share} lost");
        // The loss leads to bad mode, in which repairs end, so packets are only rebuilt before that.
        assert_eq!(server.repairs.rebuilt > 0, loss > 0.0, "seed {seed}");
        assert!(came.within(200) > 0.84, "seed {seed}");
    }
    let mut world = connected(9, &path(0.1), &repairing(100));
    let came = run(&mut world, INPUTS, 60_000);
    let [client, _] = stats(&mut world);
    let share = client.packets_lost as f64 / client.packets_judged as f64;
    assert!(came.within(200) > 0.99 && (0.08..0.12).contains(&share), "{share} lost");
    assert!((0.05..0.2).contains(&(f64::from(client.repairs.loss_told) / 255.0)));
}

/// Mean number of segments in flight of a channel with congestion control, over a path with this loss.
fn mean_window(loss: f64, config: &SessionConfig) -> f64 {
    let channels = ordered([Config { congestion: Congestion::Kcp, ..configs::turbo() }]);
    let mut world =
        World::new(5, &server_config(&SessionConfig { channels: channels.clone(), ..config.clone() }, SUITE));
    let path = |loss| LinkConfig { loss: Loss::Random(loss), ..LinkConfig::with_rtt(ms(200)) };
    world.add(&path(loss), &path(0.0), &SessionConfig { channels, ..config.clone() }, client_config(SUITE));
    world.connect();
    let (mut sum, flow) = (0, Flow { carrier: Carrier::Kcp, ..INPUTS });
    for _ in 0..200 {
        run_for(&mut world, flow, 200, &mut Came::default());
        sum += world.client().kcp_stats(on(0)).unwrap().cwnd;
    }
    f64::from(sum) / 200.0
}

#[test]
fn congestion_control_learns_of_rebuilt_packets() {
    let clean = mean_window(0.0, &repairing(100));
    let (plain, repaired) = (mean_window(0.03, &plain()), mean_window(0.03, &repairing(100)));
    assert!(repaired < 1.15 * plain && repaired < clean / 2.0, "{clean}, {plain} and {repaired} segments");
}

#[test]
fn channels_do_not_resend_rebuilt_messages() {
    let resends = [plain(), repairing(100)].map(|config| {
        let mut world = connected(4, &path(0.1), &config);
        let came = run(&mut world, Flow { carrier: Carrier::Packets, ..INPUTS }, 60_000);
        assert_eq!(came.latencies.len() as u64, came.sent);
        world.client().channel_stats(on(1)).resends
    });
    assert!(resends[1] < resends[0] / 2, "{resends:?} resends");
}

#[test]
fn a_rebuilt_packet_that_arrives_late_counts_once() {
    // A third is overtaken, some are duplicated, and everything ever sent is replayed at the end.
    let link = LinkConfig { jitter: ms(60), in_order: false, duplicate: 0.1, ..path(0.1) };
    for seed in 1..=5 {
        let mut world = World::pair(seed, &link, &repairing(100), SUITE);
        world.taps = true;
        world.connect();
        let mut came = run(&mut world, INPUTS, 20_000);
        let before = stats(&mut world)[1];
        assert!(before.repairs.rebuilt > 100 && before.rejected.duplicate > 100, "seed {seed}: {before:?}");
        let tapped = world.tap.clone();
        for (.., to, datagram) in tapped.iter().filter(|(_, from, ..)| *from == client_address(1, 1000)) {
            assert_eq!(*to, server_address());
            world.inject(client_address(1, 1000), datagram);
        }
        receive(&mut world, &mut came);
        came.assert_once();
        let new = stats(&mut world)[1].received - before.received;
        assert!(new <= 50, "seed {seed}: {new} packets that were lost were not rebuilt");
    }
}

#[test]
fn the_memory_of_repairs_is_limited_and_freed() {
    let memory = 128 << 10;
    let config = repairing(100);
    for (seed, loss) in (1..).zip([0.1, 0.5]) {
        let mut most = [0, 0];
        let mut world = connected(seed, &path(loss), &config);
        let idle = stats(&mut world).map(|stats| stats.memory);
        for flow in [INPUTS, Flow { size: 1100, gap: 4, ..INPUTS }] {
            for _ in 0..10 {
                run(&mut world, flow, 1_000);
                let held = stats(&mut world).map(|stats| stats.memory);
                most = [most[0].max(held[0]), most[1].max(held[1])];
            }
        }
        assert!(stats(&mut world)[1].repairs.rebuilt > 0);
        // The log doubles as it grows; on top come waiting repairs, at most 96, and equations.
        let limit = 200_000 + 2 * memory + 96 * 1200 + 60_000;
        assert!(most.iter().all(|held| *held <= limit), "seed {seed}: {most:?} bytes");
        world.set_links(0, &path(0.0), &path(0.0));
        world.run(20_000);
        let rest = stats(&mut world).map(|stats| stats.memory);
        assert!(rest[0] <= idle[0] + 6_000 && rest[1] <= idle[1] + 6_000, "{idle:?} and {rest:?} bytes");
    }
}

#[test]
fn every_suite_carries_repairs() {
    for suite in [Suite::Checked]
        .into_iter()
        .chain(Suite::ALL)
        .filter(|suite| !suite.needs_server_key())
        .filter(|suite| suite.is_built_in())
    {
        let config = SessionConfig { key_update: 100, ..repairing(100) };
        let mut world = World::pair(6, &path(0.1), &config, suite);
        world.connect();
        let came = run(&mut world, INPUTS, 10_000);
        came.assert_once();
        assert!(came.within(200) > 0.98, "{suite:?}: {}", came.within(200));
    }
}

#[test]
fn a_peer_without_repairs_is_sent_none() {
    for configs in [[repairing(100), plain()], [plain(), repairing(100)]] {
        let mut world = World::new(7, &server_config(&configs[1], SUITE));
        world.add(&path(0.1), &path(0.1), &configs[0], client_config(SUITE));
        world.connect();
        let mut lost = 0;
        for carrier in [Carrier::Kcp, Carrier::Packets, Carrier::Datagrams] {
            let came = run(&mut world, Flow { carrier, ..INPUTS }, 5_000);
            lost = came.sent - came.latencies.len() as u64;
            assert!(lost == 0 || carrier == Carrier::Datagrams);
        }
        assert!(lost > 10, "lost packets stay lost");
        let repairs = stats(&mut world).map(|stats| stats.repairs);
        assert_eq!(repairs, [Default::default(); 2]);
    }
}

/// Without repairs of packets, or with them, and a channel by KCP that has repairs of its own, like another one.
fn protecting_itself(repairs: Repairs) -> SessionConfig {
    let kcp = kcp_repairing(30);
    let channels =
        vec![ChannelConfig { kcp, ..on(0).into() }, in_packets(on(1)), ChannelConfig { kcp, ..on(2).into() }];
    SessionConfig { channels, repairs, ..plain() }
}

#[test]
fn channels_that_protect_themselves_are_not_protected_twice() {
    let flow = Flow { carrier: Carrier::Kcp, ..INPUTS };
    let [without, with] = [Repairs::Off, Repairs::Budget(100)].map(|repairs| {
        let mut world = connected(1, &path(0.1), &protecting_itself(repairs));
        run(&mut world, flow, 30_000);
        stats(&mut world)
    });
    for (without, with) in without.iter().zip(&with) {
        assert!(with.kcp.repairs_sent > 0 || with.kcp.rebuilt > 0);
        assert_eq!(with.repairs, Default::default(), "nothing is counted, asked for, or sent");
        assert_eq!((with.bytes_sent, with.sent), (without.bytes_sent, without.sent), "nor acknowledged");
        assert_eq!(with.memory, without.memory, "nor remembered");
    }
}

#[test]
fn what_channels_that_protect_themselves_send_earns_no_repairs() {
    let [both, datagrams] = [true, false].map(|both| {
        let mut world = connected(2, &path(0.1), &protecting_itself(Repairs::Budget(100)));
        let mut came = Came::default();
        for _ in 0..1000 {
            if both {
                for _ in 0..4 {
                    world.client().send(on(2), &[7; 300]).unwrap();
                    world.run(4);
                    while world.session().recv(on(2)).is_some() {}
                }
            } else {
                world.run(16);
            }
            run_for(&mut world, Flow { gap: 1, ..INPUTS }, 1, &mut came);
        }
        let [client, server] = stats(&mut world);
        assert!(server.repairs.rebuilt > 50, "{:?}", server.repairs);
        client.repairs.bytes + 28 * client.repairs.sent_alone
    });
    assert!(both < datagrams * 5 / 4, "{both} and {datagrams} bytes");
}

#[test]
fn a_deadline_gets_99_of_100_datagrams_to_the_peer_in_time() {
    for (seed, (loss, within)) in (1..).zip([(0.02, 100), (0.05, 100), (0.1, 100), (0.1, 60), (0.2, 120)]) {
        let mut world = connected(seed, &path(loss), &with(Repairs::Deadline(within)));
        run(&mut world, INPUTS, 30_000); // to find out how many repairs that takes
        let came = run(&mut world, INPUTS, 120_000);
        let share = came.within(within.into());
        println!("{loss}, {within} ms: {share}, {:?}", stats(&mut world)[0].repairs);
        assert!((0.985..).contains(&share), "{loss}, {within} ms: {share}");
    }
}

#[test]
fn automatic_repairs_rebuild_most_for_little() {
    for (seed, (loss, most)) in (1..).zip([(0.01, 0.7), (0.05, 0.3), (0.1, 0.2), (0.2, 0.2)]) {
        let [without, with] = [Repairs::Off, Repairs::Auto].map(|repairs| {
            let mut world = connected(seed, &path(loss), &with(repairs));
            let came = run(&mut world, INPUTS, 60_000);
            let [client, _] = stats(&mut world);
            (1.0 - came.within(1000), client.bytes_sent + 28 * client.sent)
        });
        let (lost, price) = (with.0 / without.0, with.1 as f64 / without.1 as f64);
        println!("{loss}: {lost} of the loss, {price} times the bytes");
        assert!(
            lost < most && price < 1.0 + 4.0 * loss,
            "{loss}: {lost} of the loss, {price} times the bytes"
        );
    }
}

/// A repair is longer than what it covers. It still fits into a datagram of its own.
#[test]
fn the_longest_datagram_is_as_long_as_without_repairs_and_is_rebuilt() {
    let longest = 1163;
    for (path_mtu, repairs) in [(None, 0), (None, 100), (Some(1472), 100)] {
        let config = SessionConfig { path_mtu, ..repairing(repairs) };
        let mut world = connected(3, &path(0.1), &config);
        let refused = world.client().send_datagram(&[7; 1164]).unwrap_err();
        assert!(refused.to_string().contains("1163"), "{refused}");
        let came = run(&mut world, Flow { size: longest, gap: 20, ..INPUTS }, 20_000);
        came.assert_once();
        let [client, server] = stats(&mut world);
        println!("{path_mtu:?}: {:?} and {:?}", client.repairs, server.repairs);
        assert_eq!(client.mtu > 1200, path_mtu.is_some());
        assert_eq!(server.repairs.rebuilt > 60, repairs > 0, "{path_mtu:?}: {:?}", server.repairs);
    }
}

/// A session that asks for repairs and gets none, since its peer sends none. Nothing was lost so far, for long enough that
/// one loss is not many.
fn asking() -> World {
    let mut world = World::pair(1, &path(0.0), &repairing(0), Suite::Checked);
    world.taps = true;
    world.connect();
    assert_eq!(told(&mut world, 0, 1000, 4), []);
    world
}

/// The client sends `packets` packets, one every `gap` ms; the last of every `lost` of them is lost, or none
/// if that is 0. Returns what the server reported: when, in ms, and the share, in 1/255.
fn told(world: &mut World, lost: u32, packets: u32, gap: u64) -> Vec<(u64, u8)> {
    let start = world.now;
    world.tap.clear();
    for number in 1..=packets {
        let is_lost = number.checked_rem(lost) == Some(0);
        world.set_links(0, &path(if is_lost { 1.0 } else { 0.0 }), &path(0.0));
        world.client().send_datagram(&[7; 40]).unwrap();
        world.drain();
        world.set_links(0, &path(0.0), &path(0.0));
        world.run(gap);
        while world.session().recv_datagram_into(&mut [0; 40]).is_ok() {}
    }
    let mut told = Vec::new();
    for (at, _, _, datagram) in world.tap.iter().filter(|(_, from, ..)| *from == server_address()) {
        let Ok(Packet::Data(_, sealed)) = Packet::decode(datagram) else { continue };
        for frame in Frames::parse(&sealed[..sealed.len() - 4]).unwrap() {
            if let Frame::Loss(LossFrame { share, .. }) = frame {
                told.push((at.as_millis() - start.as_millis(), share));
            }
        }
    }
    told
}

#[test]
fn repairs_are_asked_for_from_a_loss_of_1_percent_to_half_of_it() {
    // The average is over 128 packets. With one lost of 250 it is at most 0.9 %, with one of 100 at least 0.6 %.
    let mut world = asking();
    assert_eq!(told(&mut world, 250, 1000, 16), [], "0.4 %");
    for (lost, share) in [(20, 9..=16), (50, 3..=7)] {
        told(&mut world, lost, 500, 16);
        let less = told(&mut world, lost, 500, 16);
        assert!((15..=26).contains(&less.len()), "one of {lost}, 8 s: {less:?}");
        assert!(less.iter().all(|(_, told)| share.contains(told)), "one of {lost}: {less:?}");
    }
    // Around 1 %, which is 2.55 in 1/255, they are asked for again and again.
    let shares: Vec<u8> = told(&mut world, 100, 1500, 16).into_iter().map(|(_, share)| share).collect();
    let runs: Vec<&[u8]> = shares.chunk_by(|one, other| (*one == 0) == (*other == 0)).collect();
    let (on, off): (Vec<&[u8]>, Vec<&[u8]>) = runs.into_iter().partition(|run| run[0] > 0);
    assert!(on.len() >= 3 && on[1..].iter().all(|run| run[0] >= 3), "from 1 % on: {shares:?}");
    assert!(
        on.iter().all(|run| *run.iter().min().unwrap() >= 1) && shares.contains(&1),
        "to half of it: {shares:?}"
    );
    assert!(off.len() >= 2 && off.iter().all(|run| run.len() == 3), "{shares:?}");
    let little = told(&mut world, 250, 500, 16);
    assert!(little.len() <= 15 && little.last().unwrap().1 == 0, "0.4 %: {little:?}");
    assert_eq!(told(&mut world, 250, 1000, 16), [], "0.4 % again");
}

#[test]
fn loss_is_reported_every_100_ms_while_it_changes_then_every_500_ms() {
    let mut world = asking();
    let more = told(&mut world, 2, 1000, 4);
    let thrice = |told: &[(u64, u8)]| told.len() == 3 && told[2].0 - told[0].0 <= 40; // an ACK leaves every 12 ms
    assert!(thrice(&more[..3]), "that there is a loss: {more:?}");
    let mut soon = 0;
    for two in more[2..].windows(2) {
        let changed = two[1].1.abs_diff(two[0].1) > two[1].1 / 4;
        let least = if changed { 100 } else { 500 };
        soon += u32::from(changed);
        assert!((least..=520).contains(&(two[1].0 - two[0].0)), "{two:?} of {more:?}");
    }
    assert!((4..=6).contains(&soon) && more.len() <= 14, "in 4 s: {more:?}");
    let same = told(&mut world, 2, 2500, 4);
    assert!((19..=20).contains(&same.len()), "in 10 s: {same:?}");
    let less = told(&mut world, 0, 1500, 4);
    let (some, none) = less.split_at(less.len() - 3);
    assert!(thrice(none) && none.iter().all(|(_, share)| *share == 0), "{less:?}");
    assert!(some.iter().all(|(_, share)| *share > 0) && some.len() <= 16, "{less:?}");
    assert_eq!(told(&mut world, 0, 2500, 4), []);
}

/// What a client that has gone bad might send in an unencrypted session. It is counted by reason and has no
/// other effect.
#[test]
fn invalid_repairs_are_counted_and_change_nothing() {
    for config in [repairing(100), plain()] {
        let mut world = World::pair(8, &path(0.1), &config, Suite::Checked);
        world.taps = true;
        world.connect();
        run(&mut world, INPUTS, 5_000);
        let (forge, before) = (forger_of_numbers(&world), stats(&mut world)[1]);
        let inject = |world: &mut World, number, frame: &Frame<'_>| {
            let mut body = Vec::new();
            FrameWriter::new(&mut body, 1200).push(frame).unwrap();
            world.inject(client_address(1, 1000), &forge(Toward::Server, number, &body));
        };
        let payloads: [&[u8]; 6] = [
            b"",
            &[0, 1, 2, 3, 4],
            &[65, 1, 2, 3, 4],
            &[0x82, 0, 3, 0, 0, 0],
            &[1, 0, 9, 9, 9, 9, 9],
            &[1, 0, 0, 0, 0], // the sum of an empty packet alone
        ];
        for (payload, number) in payloads.into_iter().zip(1000..) {
            inject(&mut world, number, &Frame::Repair(950, payload));
        }
        inject(&mut world, 1006, &Frame::Repair(1006, &[1, 0, 0, 0, 0])); // of itself
        inject(&mut world, 1007, &Frame::Loss(LossFrame { newest: Seq16(9), rebuilt: 0, share: 255 }));
        let after = stats(&mut world)[1].repairs;
        let rejected = after.rejected;
        let counts = [rejected.truncated, rejected.span, rejected.holes, rejected.contradictory];
        let others = [rejected.beyond_window, after.refused, rejected.total()];
        let is_on = config.repairs != Repairs::Off;
        assert_eq!((counts, others), if is_on { ([1, 2, 1, 1], [1, 1, 6]) } else { ([0; 4], [0; 3]) });
        assert_eq!(after.rebuilt, before.repairs.rebuilt);
        assert!(
            world.session().is_connected() && world.session().recv_datagram_into(&mut [0; 1500]).is_err()
        );
    }
}

/// Only 16 bits of a packet number are reported: after half of that range they would mean a packet that was
/// never sent.
#[test]
fn a_report_of_an_old_rebuilt_packet_ends_no_session() {
    let mut world = connected(5, &path(0.1), &repairing(50));
    run(&mut world, INPUTS, 5_000);
    assert!(stats(&mut world)[1].repairs.rebuilt > 0);
    world.set_links(0, &path(0.0), &path(0.0));
    run(&mut world, Flow { gap: 1, size: 16, ..INPUTS }, 40_000);
    world.set_links(0, &path(0.1), &path(0.1));
    let before = stats(&mut world)[1].repairs.rebuilt;
    run(&mut world, INPUTS, 5_000);
    assert!(world.client().is_connected() && world.session().is_connected());
    assert!(stats(&mut world)[1].repairs.rebuilt > before);
}

/// Reporting a packet as rebuilt that was never sent is as invalid as acknowledging one.
#[test]
fn reporting_packets_that_were_never_sent_ends_the_session() {
    let mut world = World::pair(8, &path(0.0), &repairing(100), Suite::Checked);
    world.taps = true;
    world.connect();
    run(&mut world, INPUTS, 1_000);
    let mut body = Vec::new();
    let loss = LossFrame { newest: Seq16(5000), rebuilt: 1, share: 1 };
    FrameWriter::new(&mut body, 1200).push(&Frame::Loss(loss)).unwrap();
    let forged = forger(&world)(Toward::Server, &body);
    world.inject(client_address(1, 1000), &forged);
    assert!(!world.session().is_connected());
}

/// A game's messages over a path of 60 ms with this loss in each direction, by what carries them and by the
/// kind of repairs. Latencies in ms; `kB` counts both directions, including IP and UDP headers, in a run of a
/// minute.
///
/// Accept an intended change with `INSTA_UPDATE=always cargo test --release --test session_fec`, and copy it
/// to docs/TUNING.md.
#[test]
fn the_loss_table_of_sessions_with_inputs_at_60_hz() {
    let inputs = table(INPUTS);
    assert_snapshot!("inputs_60_hz", inputs);
    let block = format!("```text\n{inputs}```\n");
    assert!(include_str!("../docs/TUNING.md").contains(&block), "docs/TUNING.md has not\n{block}");
}

#[test]
fn the_loss_table_of_sessions_with_snapshots_at_20_hz() {
    assert_snapshot!("snapshots_20_hz", table(Flow { gap: 50, size: 1000, ..INPUTS }));
}

fn table(flow: Flow) -> String {
    let bursts = Loss::Bursts { good: ms(1900), bad: ms(100), in_good: 0.005, in_bad: 0.8 };
    let losses =
        [0.0, 0.01, 0.05, 0.1, 0.2].map(|loss| (format!("{:.0} %", loss * 100.0), Loss::Random(loss)));
    let with_kcp = |percent| SessionConfig { channels: ordered([kcp_repairing(percent)]), ..plain() };
    let modes = [
        ("KCP", Carrier::Kcp, plain()),
        ("KCP, its own repairs, 30 %", Carrier::Kcp, with_kcp(30)),
        ("KCP, repairs of packets, 30 %", Carrier::Kcp, repairing(30)),
        ("packets", Carrier::Packets, plain()),
        ("packets, repairs of packets, auto", Carrier::Packets, with(Repairs::Auto)),
        ("packets, repairs of packets, 30 %", Carrier::Packets, repairing(30)),
        ("datagrams", Carrier::Datagrams, plain()),
        ("datagrams, repairs of packets, auto", Carrier::Datagrams, with(Repairs::Auto)),
        ("datagrams, repairs of packets, 30 %", Carrier::Datagrams, repairing(30)),
        ("datagrams, repairs of packets, 100 %", Carrier::Datagrams, repairing(100)),
        ("datagrams, repairs of packets, 80 ms", Carrier::Datagrams, with(Repairs::Deadline(80))),
    ];
    let mut table = format!(
        "{:<6} {:<36} {:>6} {:>6} {:>6} {:>9} {:>7}\n",
        "loss", "carried by", "mean", "p50", "p99", "arrived", "kB"
    );
    for (name, loss) in losses.into_iter().chain([("bursts".to_owned(), bursts)]) {
        let link = LinkConfig { loss, ..path(0.0) };
        for (mode, carrier, config) in &modes {
            let row = row(&link, Flow { carrier: *carrier, ..flow }, config);
            writeln!(table, "{name:<6} {mode:<36} {row}").unwrap();
        }
    }
    table
}

fn row(link: &LinkConfig, flow: Flow, config: &SessionConfig) -> String {
    let (mut all, mut sent, mut bytes) = (Vec::new(), 0, 0);
    for seed in 1..=SEEDS {
        let mut world = World::pair(seed, link, config, Suite::Checked);
        world.connect();
        let came = run(&mut world, flow, 60_000);
        came.assert_once();
        sent += came.sent;
        all.extend(came.latencies.iter().map(|(_, latency)| latency.as_secs_f64() * 1e3));
        bytes += stats(&mut world).iter().map(|stats| stats.bytes_sent + 28 * stats.sent).sum::<u64>();
    }
    all.sort_by(f64::total_cmp);
    let (mean, at) =
        (all.iter().sum::<f64>() / all.len() as f64, |percent| all[(all.len() - 1) * percent / 100]);
    let arrived = 100.0 * all.len() as f64 / sent as f64;
    let kb = bytes as f64 / 1e3 / SEEDS as f64;
    format!("{mean:>6.1} {:>6.1} {:>6.1} {arrived:>7.1} % {kb:>7.0}", at(50), at(99))
}

const SEEDS: u64 = 3;
