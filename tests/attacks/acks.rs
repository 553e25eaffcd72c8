//! Whoever acknowledges what has not arrived is sent no more than others.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that panics has found something"
)]

use crate::common;

use common::Raw;
use common::rogue::{Packet, Rogue, open_server};
use common::sessions::{START, World, client_address, default_kcp, in_packets, on, ordered};
use std::time::Duration;
use whitewater::channel::Resend;
use whitewater::inside::session::wire::{AckFrame, FEATURE_REPAIRS, Frame};
use whitewater::kcp::wire::Command;
use whitewater::kcp::{Config, Recovery};
use whitewater::packet::Seq16;
use whitewater::session::Suite;
use whitewater::{ChannelConfig, CloseReason, Repairs, ServerConfig, SessionConfig, Time};
use whitewater_sim::{LinkConfig, Loss};

const RTT: u64 = 50;
const SECONDS: u64 = 10;

/// Gives the first channel as much as it takes.
fn fill(world: &mut World, bytes: &[u8]) {
    while world.session().send(on(0), bytes).is_ok() {}
    world.drain();
}

/// A session whose first channel is carried by KCP as this.
fn by_kcp(kcp: Config) -> SessionConfig {
    SessionConfig { channels: ordered([kcp]), ..SessionConfig::default() }
}

/// KCP as `ikcp_nodelay(1, 10, 2, 1)` has it, with the same windows.
fn classic() -> Config {
    let Config { snd_wnd, rcv_wnd, .. } = default_kcp();
    Config::classic().nodelay(1, 10, 2, true).wndsize(snd_wnd, rcv_wnd)
}

/// What a client is sent that is honest and reads everything at once, in bytes a second.
fn honest(session: &SessionConfig) -> f64 {
    let path = LinkConfig::with_rtt(Duration::from_millis(RTT));
    let mut world = World::pair(1, &path, session, Suite::Checked);
    world.connect();
    for _ in 0..SECONDS * 1000 {
        fill(&mut world, &[1; 1000]);
        world.run(1);
        while world.client().recv(on(0)).is_some() {}
    }
    world.down_stats(0).bytes as f64 / SECONDS as f64
}

/// A client that is a round trip away.
fn far(world: &mut World) -> Rogue {
    let rtt = Duration::from_millis(RTT);
    let rogue = Rogue::join_from_afar(world, client_address(1, 666), 1, FEATURE_REPAIRS, rtt).unwrap();
    world.strangers.clear();
    rogue
}

/// How a client misbehaves: it gets what it has received and knows what it has been sent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lie {
    /// Says that all of it has arrived.
    Una,
    /// Acknowledges each segment, with the time at which it probably left.
    Names,
    /// The same, and knows that time.
    Guesses,
    /// The same, and says that all has arrived.
    GuessesAll,
    /// Acknowledges honestly what arrives, and says that all has.
    Both,
}

/// What a client is sent that acknowledges what is under way, in bytes a second, and how many ACKs came too early.
fn hostile(lie: Lie, session: &SessionConfig) -> (f64, u32) {
    let is_by_time = session.channels[0].kcp.recovery != Recovery::Classic;
    let mut world = open_server(ServerConfig::insecure(session.clone()));
    let mut rogue = far(&mut world);
    let (mut sent, mut named) = (0, 0);
    let mut under_way: Vec<(Time, Raw)> = Vec::new();
    let raw = |cmd, sn, ts, una| Raw { cmd, frg: 0, wnd: 512, ts, sn, una, data: Vec::new() };
    let (ack, una) = (|sn, ts| raw(Command::Ack, sn, ts, 0), |una| raw(Command::Wins, 0, 0, una));
    for _ in 0..SECONDS * 1000 {
        fill(&mut world, &[1; 1000]);
        let (segments, bytes) = rogue.received(&mut world);
        sent += bytes;
        let now = world.now;
        under_way.extend(
            segments.into_iter().filter(|segment| !segment.data.is_empty()).map(|segment| (now, segment)),
        );
        let here = |(left, _): &(Time, Raw)| now.since(*left) >= Duration::from_millis(RTT);
        let came: Vec<_> =
            under_way.extract_if(.., |segment| here(segment)).map(|(_, segment)| segment).collect();
        let nxt = came
            .iter()
            .chain(under_way.iter().map(|(_, segment)| segment))
            .map(|segment| segment.sn + 1)
            .max();
        let nxt = nxt.unwrap_or(0).max(named);
        let time = if is_by_time { now.as_micros() } else { now.as_millis() } as u32;
        let lies: Vec<_> = match lie {
            Lie::Una => vec![una(nxt)],
            Lie::Names => (named..nxt).map(|sn| ack(sn, time - if is_by_time { 700 } else { 0 })).collect(),
            Lie::Guesses | Lie::GuessesAll => under_way
                .iter()
                .map(|(_, segment)| segment)
                .filter(|segment| segment.sn >= named)
                .map(|segment| Raw {
                    una: if lie == Lie::GuessesAll { nxt } else { 0 },
                    ..ack(segment.sn, segment.ts)
                })
                .collect(),
            Lie::Both => came.iter().map(|segment| ack(segment.sn, segment.ts)).chain([una(nxt)]).collect(),
        };
        named = named.max(nxt);
        for lies in lies.chunks(40) {
            rogue.segments(&mut world, lies);
        }
        world.run(1);
    }
    assert_eq!(world.closed(), None, "whoever lies harms only themselves");
    let early = world.session().kcp_stats(on(0)).unwrap().early_acks;
    (sent as f64 / world.now.since(START).as_secs_f64(), early)
}

#[test]
fn acknowledging_what_has_not_arrived_opens_no_window() {
    for (session, most) in [(SessionConfig::default(), 1.5), (by_kcp(classic()), 2.5)] {
        let honest = honest(&session);
        for lie in [Lie::Una, Lie::Names, Lie::Both] {
            let (sent, early) = hostile(lie, &session);
            println!("{lie:?}: {sent:.0} bytes a second, an honest client {honest:.0}; {early} early");
            assert!(sent <= most * honest, "{lie:?}: {sent}, and {honest} to an honest one");
            assert!(early >= 100, "{lie:?}: {early}");
        }
    }
}

/// Whoever knows when the server sends can name each transmission, but is not believed sooner than half a
/// round trip later.
#[test]
fn guessing_all_transmissions_opens_no_window_sooner_than_after_half_a_round_trip() {
    let session = SessionConfig::default();
    let honest = honest(&session);
    for lie in [Lie::Guesses, Lie::GuessesAll] {
        let (sent, early) = hostile(lie, &session);
        println!("{lie:?}: {sent:.0} bytes a second, an honest client {honest:.0}; {early} early");
        assert!(sent <= 2.5 * honest && early >= 100, "{sent}, and {honest} to an honest one; {early} early");
    }
}

/// Round trips may grow or shrink at any time, and resends may prove needless.
#[test]
fn an_honest_peer_is_believed_however_its_path_changes() {
    for (seed, session) in
        (0..4).flat_map(|seed| [(seed, SessionConfig::default()), (seed, by_kcp(classic()))])
    {
        let is_by_time = session.channels[0].kcp.recovery != Recovery::Classic;
        let rtts = [1500, 20, 900, 60, 2500, 5];
        let path = |rtt| LinkConfig {
            jitter: Duration::from_millis(rtt / 3),
            ..LinkConfig::with_rtt(Duration::from_millis(rtt))
        };
        let mut world = World::pair(seed, &path(rtts[0]), &session, Suite::Checked);
        world.connect();
        let mut got = 0;
        for rtt in rtts.into_iter().cycle().take(24) {
            world.set_links(0, &path(rtt), &path(rtt));
            for _ in 0..300 {
                fill(&mut world, &[1; 1000]);
                world.run(10);
                while world.client().recv(on(0)).is_some() {
                    got += 1;
                }
            }
        }
        assert_eq!(world.closed(), None, "seed {seed}");
        println!("seed {seed}, by time {is_by_time}: {got} messages");
        assert!(!is_by_time || got > 50_000, "seed {seed}: {got} messages");
    }
}

/// An acknowledgement that came too early counts later. Whoever sent it does not repeat it.
#[test]
fn an_honest_acknowledgement_that_comes_too_early_costs_no_resend() {
    for session in [SessionConfig::default(), by_kcp(classic())] {
        let path = |rtt| LinkConfig::with_rtt(Duration::from_millis(rtt));
        let mut world = World::pair(1, &path(200), &session, Suite::Checked);
        world.connect();
        world.run(2300); // no ping is under way
        world.set_links(0, &path(20), &path(20));
        for _ in 0..10 {
            world.session().send(on(0), &[1; 100]).unwrap();
        }
        world.drain();
        let start = world.now;
        assert!(world.run_until(1000, |world| world.session().is_delivered(on(0))));
        let (stats, took) = (world.session().kcp_stats(on(0)).unwrap(), world.now.since(start));
        println!("{took:?}, {} early", stats.early_acks);
        assert!(took <= Duration::from_millis(110), "half of the round trip that was proven: {took:?}");
        assert_eq!((stats.resends_timeout, stats.resends_fast), (0, 0));
        assert!(stats.early_acks > 0);
    }
}

/// A session whose only channel is in packets.
fn packed(channel: ChannelConfig) -> SessionConfig {
    SessionConfig { channels: vec![channel], ..SessionConfig::default() }
}

/// Sends what the channel takes, and a few datagrams.
fn give(world: &mut World) {
    for _ in 0..2 {
        let _ = world.session().send_datagram(&[2; 1000]);
    }
    fill(world, &[1; 1000]);
}

/// How a client lies about packets.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Tale {
    /// Says that all have arrived as soon as they are sent.
    Early,
    /// Says that all have arrived, while its path loses half of them.
    Lossless,
    /// Tells what has arrived.
    Truth,
}

impl Tale {
    /// What the ACKs of this client say to have arrived. `now`: the packets that have been sent by now, and when;
    /// `told`: what was told before.
    fn told(self, now: Time, sent: &[(Time, Packet)], told: u64) -> Vec<u64> {
        let here = |left: &Time| self == Self::Early || now.since(*left) >= Duration::from_millis(RTT);
        let arrived: Vec<_> =
            sent.iter().filter(|(left, _)| here(left)).map(|(_, packet)| packet.pn).collect();
        match (self, arrived.last()) {
            (Self::Truth, _) => arrived.into_iter().filter(|pn| *pn >= told).collect(),
            (_, Some(last)) => (told..=*last).collect(),
            (_, None) => Vec::new(),
        }
    }
}

/// ACKs of these packets.
fn acks(arrived: &[u64]) -> Vec<Frame<'static>> {
    let mut frames = Vec::new();
    let mut rest = arrived;
    while let [before @ .., newest] = rest {
        let from = before.partition_point(|pn| newest - pn > 32);
        let bits = before[from..].iter().fold(0, |bits, pn| bits | 1 << (newest - pn - 1));
        frames.push(Frame::Ack(AckFrame { ack: Seq16(*newest as u16), bits, delay: 0 }));
        rest = &before[..from];
    }
    frames.reverse();
    frames
}

/// What a client of packets is sent, in bytes, in how long, how many bytes it has sent for it, and how it ended.
fn in_packets_to(tale: Tale, session: &SessionConfig) -> (usize, Duration, usize, Option<CloseReason>) {
    let mut world = open_server(ServerConfig::insecure(session.clone()));
    let mut rogue = far(&mut world);
    let (mut bytes, mut spent, mut told) = (0, 0, 0);
    let mut sent: Vec<(Time, Packet)> = Vec::new();
    for _ in 0..SECONDS * 1000 {
        if world.closed().is_some() {
            break;
        }
        give(&mut world);
        let (packets, count) = rogue.packets(&mut world);
        bytes += count;
        sent.extend(packets.into_iter().map(|packet| (world.now, packet)));
        let lies = tale.told(world.now, &sent, told);
        told = lies.last().map_or(told, |last| last + 1);
        sent.retain(|(_, packet)| packet.pn >= told);
        for frames in acks(&lies).chunks(4) {
            rogue.send(&mut world, frames);
            spent += 20 + 9 * frames.len();
        }
        rogue.send(&mut world, &[Frame::Ping(0)]);
        world.run(1);
    }
    (bytes, world.now.since(START), spent, world.closed())
}

#[test]
fn acknowledging_packets_that_have_not_arrived_ends_the_session() {
    let repairs = [Repairs::Off, Repairs::Auto];
    for (channel, repairs) in
        [on(0), whitewater::Channel::unordered(0)].into_iter().flat_map(|on| repairs.map(|with| (on, with)))
    {
        let session = SessionConfig { repairs, ..packed(in_packets(channel)) };
        let (honest, during, ..) = in_packets_to(Tale::Truth, &session);
        println!("{channel:?}, {repairs:?}: an honest client {honest} bytes in {during:?}");
        for tale in [Tale::Early, Tale::Lossless] {
            let (bytes, during, spent, closed) = in_packets_to(tale, &session);
            println!("{tale:?}: {bytes} bytes in {during:?} for {spent}, {closed:?}");
            assert_eq!(closed, Some(CloseReason::Protocol), "{tale:?}");
            assert!(bytes < 400_000, "{tale:?}: {bytes} bytes");
        }
    }
}

/// Sends so many datagrams to a client that reads them. Returns the number of the last packet.
fn pour(world: &mut World, rogue: &mut Rogue, datagrams: u32) -> u64 {
    let mut last = 0;
    for _ in 0..datagrams / 16 {
        for _ in 0..16 {
            world.session().send_datagram(&[2; 10]).unwrap();
        }
        world.drain();
        last = rogue.packets(world).0.last().map_or(last, |packet| packet.pn);
        rogue.send(world, &[Frame::Ping(0)]);
        world.run(1);
    }
    last
}

/// The ACK that a packet has arrived.
fn ack_of(pn: u64) -> [Frame<'static>; 1] {
    [Frame::Ack(AckFrame { ack: Seq16(pn as u16), bits: 0, delay: 0 })]
}

#[test]
fn an_acknowledgement_that_comes_many_packets_late_ends_no_session() {
    let mut world = open_server(ServerConfig::insecure(packed(in_packets(on(0)))));
    let mut rogue = far(&mut world);
    let early = pour(&mut world, &mut rogue, 160);
    let held = rogue.sealed(&world, &ack_of(early));
    for _ in 0..10 {
        let last = pour(&mut world, &mut rogue, 3300);
        rogue.send(&mut world, &ack_of(last));
    }
    world.inject(rogue.address, &held);
    assert_eq!(world.closed(), None, "packets overtook that of the ACK");

    let next = pour(&mut world, &mut rogue, 160);
    pour(&mut world, &mut rogue, 33_000);
    rogue.send(&mut world, &ack_of(next));
    assert_eq!(world.closed(), None, "it is the newest, but the path has become very long");
    assert_eq!(world.session().stats().false_acks, 0);

    let last = pour(&mut world, &mut rogue, 160);
    rogue.send(&mut world, &ack_of(last));
    rogue.send(&mut world, &ack_of(last + 9));
    world.run(1);
    assert_eq!(world.session().stats().false_acks, 1, "that was never sent");
    world.run(2000);
    assert_eq!(world.closed(), Some(CloseReason::Protocol));
}

/// How a client makes a round trip look shorter.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Hurry {
    /// Not at all.
    None,
    /// Says that its ACKs have waited for long.
    Delay,
    /// Answers PINGs that it has not got.
    Pong,
}

/// What a client is sent that acknowledges only what comes in the first second, in bytes a second from then on.
fn unacknowledged(hurry: Hurry) -> (f64, Option<CloseReason>) {
    let channel = ChannelConfig { resend: Resend::Rtt(125), ..in_packets(on(0)) };
    let mut world = open_server(ServerConfig::insecure(packed(channel)));
    let mut rogue = far(&mut world);
    let (mut bytes, mut under_way) = (0, Vec::new());
    for ms in 0..SECONDS * 1000 {
        if world.closed().is_some() {
            break;
        }
        fill(&mut world, &[1; 1000]);
        let (packets, count) = rogue.packets(&mut world);
        bytes += if ms >= 1000 { count } else { 0 };
        let now = world.now;
        under_way.extend(packets.into_iter().map(|packet| (now, packet)));
        let here = |(left, _): &(Time, Packet)| now.since(*left) >= Duration::from_millis(RTT);
        let came: Vec<_> =
            under_way.extract_if(.., |packet| here(packet)).map(|(_, packet)| packet).collect();
        let mut frames: Vec<_> = came.iter().filter_map(|packet| packet.ping).map(Frame::Pong).collect();
        if ms < 1000 {
            let mut acks = acks(&came.iter().map(|packet| packet.pn).collect::<Vec<_>>());
            for ack in &mut acks {
                if let (Frame::Ack(ack), Hurry::Delay) = (ack, hurry) {
                    ack.delay = u16::MAX;
                }
            }
            frames.extend(acks);
        }
        if hurry == Hurry::Pong {
            frames.push(Frame::Pong(now.as_micros() - 1));
        }
        frames.push(Frame::Ping(0));
        for frames in frames.chunks(4) {
            rogue.send(&mut world, frames);
        }
        world.run(1);
    }
    (bytes as f64 / (SECONDS - 1) as f64, world.closed())
}

/// A client that acknowledges nothing is sent the same again after each round trip.
#[test]
fn a_round_trip_that_looks_shorter_than_it_is_makes_nothing_be_sent_sooner() {
    let (plain, closed) = unacknowledged(Hurry::None);
    println!("{plain:.0} bytes a second, {closed:?}");
    for hurry in [Hurry::Delay, Hurry::Pong] {
        let (sent, closed) = unacknowledged(hurry);
        println!("{hurry:?}: {sent:.0} bytes a second, {closed:?}");
        assert!(sent <= 2.2 * plain, "{hurry:?}: {sent}, and {plain} otherwise");
        assert_eq!(closed, None, "{hurry:?}");
    }
}

/// A client that answers pings and acknowledges nothing that is in packets. What it is sent, in bytes, and for how long.
fn sent_in_vain(resend: Resend) -> (usize, Duration, Option<CloseReason>) {
    let channel = ChannelConfig { resend, ..in_packets(on(0)) };
    let mut world = open_server(ServerConfig::insecure(packed(channel)));
    let mut rogue = far(&mut world);
    let (mut bytes, start) = (0, world.now);
    while world.closed().is_none() && world.now.since(start) < Duration::from_secs(60) {
        fill(&mut world, &[1; 1000]);
        let (packets, count) = rogue.packets(&mut world);
        bytes += count;
        let pongs: Vec<_> = packets.iter().filter_map(|packet| packet.ping).map(Frame::Pong).collect();
        rogue.send(&mut world, if pongs.is_empty() { &[Frame::Ping(0)] } else { &pongs });
        world.run(16);
    }
    (bytes, world.now.since(start), world.closed())
}

/// It is sent the window every 60 or 100 ms for little more than a second, and then one message at a time.
#[test]
fn whoever_acknowledges_nothing_in_packets_is_sent_little_in_vain_and_not_for_long() {
    let window = 256 * 1000;
    for resend in [Resend::After(Duration::ZERO), Resend::After(Duration::from_millis(100)), Resend::Rtt(125)]
    {
        let (bytes, during, closed) = sent_in_vain(resend);
        println!("{resend:?}: {bytes} bytes in {during:?}, {closed:?}");
        assert_eq!(closed, Some(CloseReason::SlowPeer), "{resend:?}");
        assert!(during <= Duration::from_secs(33), "{resend:?}: {during:?}");
        assert!(bytes <= 25 * window, "{resend:?}: {bytes} bytes");
    }
}

/// All that a session carries: a channel by KCP, one in packets, datagrams, and repairs or not.
fn everything(repairs: Repairs) -> SessionConfig {
    let channels = vec![on(0).config(), in_packets(on(1))];
    SessionConfig { channels, repairs, ..SessionConfig::default() }
}

/// Both ends send on all of it for a minute. Returns the session at the server.
fn busy(seed: u64, path: &LinkConfig, session: &SessionConfig) -> World {
    let mut world = World::pair(seed, path, session, common::sessions::SUITE);
    world.connect();
    for _ in 0..60 * 60 {
        for channel in [on(0), on(1)] {
            let _ = world.session().send(channel, &[1; 100]);
            let _ = world.client().send(channel, &[1; 100]);
        }
        let _ = world.session().send_datagram(&[2; 100]);
        let _ = world.client().send_datagram(&[2; 100]);
        world.drain();
        world.run(16);
        while world.client().recv(on(0)).is_some() || world.client().recv(on(1)).is_some() {}
        while world.session().recv(on(0)).is_some() || world.session().recv(on(1)).is_some() {}
        while world.client().recv_datagram().is_some() || world.session().recv_datagram().is_some() {}
    }
    world
}

#[test]
fn no_honest_peer_is_accused_whatever_its_path_does() {
    let path = LinkConfig {
        loss: Loss::Random(0.2),
        duplicate: 0.1,
        jitter: Duration::from_millis(100),
        ..LinkConfig::with_rtt(Duration::from_millis(100))
    };
    for (seed, repairs) in
        [(1, Repairs::Off), (2, Repairs::Budget(30)), (3, Repairs::Auto), (4, Repairs::Deadline(200))]
    {
        let mut world = busy(seed, &path, &everything(repairs));
        assert_eq!(world.closed(), None, "seed {seed}");
        for stats in [world.session().stats(), world.client().stats()] {
            assert_eq!(stats.false_acks, 0, "seed {seed}");
            assert!(
                stats.loss.is_some_and(|loss| (0.1..0.3).contains(&loss)),
                "seed {seed}: {:?}",
                stats.loss
            );
        }
    }
}

/// Skipped numbers count as lost nowhere, and nothing is sent to make up for them.
#[test]
fn a_number_that_is_skipped_is_no_loss() {
    for repairs in [Repairs::Off, Repairs::Budget(30), Repairs::Auto] {
        let mut world = busy(1, &LinkConfig::with_rtt(Duration::from_millis(40)), &everything(repairs));
        for stats in [world.session().stats(), world.client().stats()] {
            assert!(stats.packets_judged > 2000, "{}", stats.packets_judged);
            assert_eq!(
                (stats.packets_lost, stats.loss, stats.repairs.sent, stats.false_acks),
                (0, Some(0.0), 0, 0)
            );
        }
    }
}
