//! Every limit in docs/BEHAVIOUR.md, reached: what happens then, and that nothing exceeds it.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

#[cfg(test)]
mod common;

use crate::common::machine::Whole as _;
use allocation_counter::measure;
use common::configs;
use common::rogue::{Rogue, open_server};
use common::sessions::{
    SUITE, World, client_address, client_config, default_kcp, in_packets, on, ordered, server_config,
};
use common::{Raw, ms};
use std::time::{Duration, Instant};
use whitewater::channel::SendError;
use whitewater::inside::session::wire::{Data, Frame, Hello, KcpPart};
use whitewater::kcp::Config;
use whitewater::kcp::wire::Command;
use whitewater::packet::Seq16;
use whitewater::session::Suite;
use whitewater::{Channel, ChannelConfig, CloseReason, Event, ServerConfig, SessionConfig};
use whitewater_sim::LinkConfig;

/// The document names a test for each limit; a wrong name would prove nothing.
#[test]
fn every_test_that_the_document_names_exists() {
    let document = include_str!("../docs/BEHAVIOUR.md").split("## Limits of sessions").nth(1).unwrap();
    let names = document.split('`').skip(1).step_by(2).filter(|name| name.matches('_').count() > 4);
    let tests = [
        include_str!("session_limits.rs"),
        include_str!("attacks/handshake.rs"),
        include_str!("attacks/keys.rs"),
        include_str!("attacks/headers.rs"),
        include_str!("attacks/memory.rs"),
        include_str!("attacks/network.rs"),
        include_str!("attacks/work.rs"),
        include_str!("../src/channel/packed/send.rs"),
        include_str!("../src/session/connection/path.rs"),
        include_str!("../src/session/server/names.rs"),
        include_str!("../src/session/server/proxies.rs"),
        include_str!("../src/session/server/tickets.rs"),
        include_str!("../src/session/seal/tests/noise.rs"),
        include_str!("session_close.rs"),
        include_str!("session_early.rs"),
        include_str!("session_events.rs"),
        include_str!("session_fec.rs"),
        include_str!("session_greedy.rs"),
        include_str!("session_loss.rs"),
        include_str!("session_memory.rs"),
        include_str!("session_paths.rs"),
        include_str!("session_race.rs"),
        include_str!("session_timers.rs"),
        include_str!("session.rs"),
        include_str!("../crates/web/tests/hostile.rs"),
        include_str!("../crates/web/tests/server.rs"),
        include_str!("../crates/web/src/server/doors.rs"),
    ];
    let mut count = 0;
    for name in names {
        let heads = ["#[test]\nfn ", "#[test]\n    fn "].map(|head| format!("{head}{name}()"));
        let is_in = |test: &&str| heads.iter().any(|head| test.contains(head));
        assert!(tests.iter().any(is_in), "{name}");
        count += 1;
    }
    assert!(count >= 25, "{count} names");
}

fn path() -> LinkConfig {
    LinkConfig::with_rtt(ms(40))
}

fn connected(session: &SessionConfig) -> World {
    let mut world = World::pair(1, &path(), session, SUITE);
    world.connect();
    world
}

/// A session whose channel has windows of `count` segments.
fn windows(count: u16) -> SessionConfig {
    let kcp = Config { snd_wnd: count, rcv_wnd: count, snd_queue: 1 << 20, ..configs::turbo() };
    SessionConfig { channels: ordered([kcp]), send_memory: 1 << 28, ..SessionConfig::default() }
}

fn rogue(session: SessionConfig) -> (World, Rogue) {
    let mut world = open_server(ServerConfig::insecure(session));
    let rogue = Rogue::connect(&mut world, 1).unwrap();
    assert_eq!(world.sessions.len(), 1);
    (world, rogue)
}

#[test]
fn unacknowledged_data_on_a_channel_has_a_limit() {
    let mut world = connected(&SessionConfig::default());
    let mut sent = 0;
    let refused = loop {
        match world.client().send(on(0), &[1; 1000]) {
            Ok(_) => sent += 1,
            Err(error) => break error,
        }
    };
    let max = 256 << 10;
    assert_eq!(refused, SendError::Full { channel: 0 });
    assert!((250..=262).contains(&sent), "{sent} messages");
    assert!(world.client().memory() <= max + max / 10, "{} bytes", world.client().memory());
    world.drain();
    let mut buf = [0; 1000];
    let read = |world: &mut World| {
        while world.session().recv_into(on(0), &mut buf).is_ok() {
            sent -= 1;
        }
        sent == 0
    };
    assert!(world.run_until(5_000, read));
    world.run(100);
    assert_eq!(world.client().send(on(0), &[1; 1000]), Ok(()), "and room again");
}

#[test]
fn a_channel_has_at_most_a_thousand_segments_waiting() {
    let mut world = connected(&SessionConfig::default());
    let count = (0..).take_while(|_| world.client().send(on(0), b"x").is_ok()).count();
    assert_eq!(count, 1024);
    assert_eq!(world.client().send(on(0), b"x"), Err(SendError::Full { channel: 0 }));
}

/// What a peer can make a session hold: the session's count is within 10 % of what is allocated, and both are
/// within the limit.
#[test]
fn whatever_a_peer_sends_a_session_stays_within_its_memory_limit_and_counts_it() {
    type Attack = fn(u32) -> Raw;
    let attacks: [(&str, Attack); 5] = [
        ("bytes with gaps between them", |n| Raw::push(2 * n + 1, &[1])),
        ("nothing, with gaps", |n| Raw::push(2 * n + 1, &[])),
        ("messages that are never read", |n| Raw::push(n, &[1; 1100])),
        ("the first of a hundred fragments, again and again", |n| Raw {
            frg: 99,
            ..Raw::push(100 * n, &[1; 1100])
        }),
        ("far ahead first", |n| Raw::push(8000 - n, &[1; 1100])),
    ];
    let limit = 256 << 10;
    for (name, attack) in attacks {
        let (mut world, mut rogue) = rogue(windows(8192));
        let before = i64::try_from(world.session().memory()).unwrap();
        let datagrams: Vec<_> = (0..4000)
            .map(|n| {
                let bytes = rogue.channel(0, &[attack(n)]);
                rogue.sealed(&world, &[Frame::Kcp(&bytes)])
            })
            .collect();
        let (now, address) = (world.now, rogue.address);
        world.session(); // counted, and listed
        world.drain();
        let mut buf = Vec::with_capacity(1500);
        let heap = measure(|| {
            for datagram in &datagrams {
                world.server.give(now, address, datagram);
                while world.server.emit_to(now, &mut buf).is_some() {}
            }
        });
        assert_eq!(world.closed(), None, "{name}");
        let counted = i64::try_from(world.session().memory()).unwrap() - before;
        let real = heap.bytes_current;
        let rejected = world.session().kcp_stats(on(0)).unwrap().rejected;
        println!("{name}: {counted} bytes counted, {real} allocated, {} refused", rejected.window);
        assert!(real <= limit + limit / 10 + 4096, "{name}: {real} bytes");
        // Promised room is counted but not yet allocated.
        let promised = if name.contains("gaps") || name.contains("fragments") || name.contains("ahead") {
            limit
        } else {
            0
        };
        assert!(counted + 4096 >= real - real / 10, "{name}: {counted} of {real}");
        assert!(counted <= real + real / 10 + 4096 + promised, "{name}: {counted} of {real}");
        assert!(rejected.window > 0 || rejected.fragment_chain > 0 || real < limit, "{name}");
    }
}

/// Each field of a segment as a table: either the session ends at once with the right reason, or nothing
/// happens at all.
#[test]
fn segments_that_no_honest_peer_sends_end_the_session_and_odd_ones_do_not() {
    use CloseReason::{Protocol, StreamCorrupt};
    let push = |sn: u32| Raw::push(sn, b"x");
    let cases: Vec<(&str, Vec<Raw>, Option<CloseReason>)> = vec![
        ("una beyond what was sent", vec![Raw { una: 9, ..push(0) }], Some(Protocol)),
        // Of numbers, the low 24 bits are sent.
        ("una half the numbers ahead", vec![Raw { una: (1 << 23) - 1, ..push(0) }], Some(Protocol)),
        ("una half the numbers ago", vec![Raw { una: 1 << 23, ..push(0) }], None),
        ("an old una", vec![Raw { una: u32::MAX, ..push(0) }], None),
        ("an ACK of what was not sent", vec![Raw::ack(9, 0)], Some(Protocol)),
        ("an ACK of what was acknowledged", vec![Raw { una: 1, ..Raw::ack(0, 0) }; 2], None),
        ("an ACK half the numbers ahead", vec![Raw::ack((1 << 23) - 1, 0)], Some(Protocol)),
        ("an ACK half the numbers ago", vec![Raw::ack(1 << 23, 0)], None),
        ("an ACK with a time from the future", vec![Raw::ack(0, u32::from(u16::MAX) / 2)], None),
        ("an ACK with a time half the clock ago", vec![Raw::ack(0, 1 << 15)], None),
        ("an ACK of what was rebuilt", vec![Raw::ack(0, 1 << 16)], None),
        ("a bad segment after a good one", vec![push(0), Raw { una: 9, ..push(1) }], Some(Protocol)),
        ("a number beyond the window", vec![push(128)], None),
        ("a number half the numbers ahead", vec![push((1 << 23) - 1)], None),
        ("a number half the numbers ago", vec![push(1 << 23)], None),
        ("an old number", vec![push(u32::MAX), push(0)], None),
        ("fragments that do not fit the window", vec![Raw { frg: 128, ..push(0) }], Some(StreamCorrupt)),
        ("the most fragments there are", vec![Raw { frg: 255, ..push(0) }], Some(StreamCorrupt)),
        (
            "fragments 1, 7, 0",
            vec![Raw { frg: 1, ..push(0) }, Raw { frg: 7, ..push(1) }],
            Some(StreamCorrupt),
        ),
        ("a window of none", vec![Raw::wins(0)], None),
        ("a window of all", vec![Raw::wins(u16::MAX)], None),
        ("a question for the window, twice", vec![Raw::wask(), Raw::wask()], None),
    ];
    for (name, segments, reason) in cases {
        let (mut world, mut rogue) = rogue(SessionConfig::default());
        world.session().send(on(0), b"one segment").unwrap();
        world.drain();
        rogue.segments(&mut world, &segments);
        assert_eq!(
            world.closed().or_else(|| {
                world.run(1_100);
                world.closed()
            }),
            reason,
            "{name}"
        );
    }
}

/// Each rule of compact headers: a frame that breaks one ends the session, and is counted.
#[test]
fn frames_that_are_no_compact_segments_end_the_session_and_are_counted() {
    for (name, bytes) in [
        ("nothing", &[][..]),
        ("half a header", &[0; 5]),
        ("a channel that there is not", &[0x86, 9]),
        ("channel 0 in a byte of its own", &[0x86, 0]),
        ("a channel in the second segment", &[6, 0x86, 1]),
        ("the next PUSH of none", &[1]),
        ("the last ACK without una", &[2, 1, 2]),
        ("a fragment that is the last", &[8, 0, 1, 2, 3, 4, 5]),
        ("a length of what has no data", &[0x46, 0, 0, 6]),
        ("a length that is too long", &[0x40, 1, 2, 3, 4, 5, 9, 0, 1]),
        ("a length of the last segment", &[0x40, 1, 2, 3, 4, 5, 1, 0, 7]),
        ("a repair of nothing", &[7, 1, 2, 3, 4, 5]),
        ("more segments than fit into a packet", &[6; 100]),
    ] {
        let (mut world, mut rogue) = rogue(SessionConfig::default());
        world.session().send(on(0), b"one segment").unwrap();
        rogue.send(&mut world, &[Frame::Kcp(bytes)]);
        assert_eq!(world.session().stats().segments_refused, 1, "{name}");
        world.run(1_100);
        assert_eq!(world.closed(), Some(CloseReason::Protocol), "{name}");
    }
}

/// A segment takes a byte at least, but all of a packet are no more than if each had 24.
#[test]
fn segments_of_a_packet_are_no_more_than_if_their_headers_were_whole() {
    let session = SessionConfig { path_mtu: None, ..SessionConfig::default() };
    let most = usize::from(session.max_datagram) - 28;
    let frames = |count: usize| [Frame::Kcp(&[6; 20])].repeat(count);
    for (count, refused) in [(most / 480, 0), (most / 480 + 1, 1)] {
        let (mut world, mut rogue) = rogue(session.clone());
        rogue.send(&mut world, &frames(count));
        assert_eq!(world.session().stats().segments_refused, refused, "{count} frames");
        assert_eq!(world.session().is_connected(), refused == 0);
    }
    // Of joined frames two count.
    let (mut world, mut rogue) = rogue(SessionConfig::default());
    let half = [6; 20];
    let part = |number, id| Frame::KcpPart(KcpPart { number: Seq16(number), id, last: 1 }, &half);
    let parts: Vec<_> = (0..5).flat_map(|number| [part(number, 0), part(number, 1)]).collect();
    rogue.send(&mut world, &parts);
    assert!(world.session().is_connected());
    assert_eq!(world.session().stats().parts_refused, 6);
    assert_eq!(world.session().kcp_stats(on(0)).unwrap().segments_received, 80);
}

/// A part of a frame that is longer than the path carries: part `id` of frame `number`, whose last part is
/// `last`.
fn part(rogue: &mut Rogue, world: &mut World, number: u16, (id, last): (u8, u8), bytes: &[u8]) {
    rogue.send(world, &[Frame::KcpPart(KcpPart { number: Seq16(number), id, last }, bytes)]);
}

#[test]
fn mismatched_or_too_long_parts_end_the_session() {
    let cases = [
        ("shorter than another", (0, 2, 100), (1, 2, 99)),
        ("longer than another", (0, 2, 100), (1, 2, 101)),
        ("the last one is the longest", (0, 2, 100), (2, 2, 101)),
        ("longer than the first is the last, which came before", (2, 2, 100), (0, 2, 99)),
        ("of three, and of two", (0, 2, 100), (1, 1, 100)),
        ("of three, and of four", (0, 2, 100), (1, 3, 100)),
        ("too long together", (0, 1, 750), (1, 1, 720)),
        ("too long together, with eight that are to come", (9, 9, 110), (0, 9, 152)),
    ];
    for (name, first, second) in cases {
        let (mut world, mut rogue) = rogue(SessionConfig::default());
        let mut send = |world: &mut World, number, (id, last, len)| {
            part(&mut rogue, world, number, (id, last), &vec![0; len]);
            world.session().is_connected()
        };
        assert!(send(&mut world, 5, first), "{name}");
        assert!(send(&mut world, 6, second), "{name}: of another frame it may be");
        assert!(!send(&mut world, 5, second), "{name}");
        world.run(1_100);
        assert_eq!(world.closed(), Some(CloseReason::Protocol), "{name}");
    }
}

#[test]
fn parts_in_any_order_make_the_frame_and_parts_of_another_do_not() {
    let (mut world, mut rogue) = rogue(SessionConfig::default());
    let frame = rogue.channel(0, &[Raw::push(0, &[7; 1000])]);
    let parts: Vec<_> = frame.chunks(400).collect();
    for number in [5, 6] {
        for id in [2, 0, 0] {
            part(&mut rogue, &mut world, number, (id, 2), parts[usize::from(id)]);
        }
    }
    assert_eq!(world.session().peek_size(on(0)), None, "five parts, and no frame");
    part(&mut rogue, &mut world, 6, (1, 2), parts[1]);
    assert_eq!(world.session().recv_into(on(0), &mut [0; 1000]), Ok(1000));
    assert!(world.session().is_connected());
}

/// An honest end has one frame for each channel, and parts that fill a packet.
#[test]
fn of_a_packet_32_frames_of_segments_and_16_parts_count() {
    let (mut world, mut rogue) = rogue(SessionConfig::default());
    let bytes: Vec<_> = (0..40).map(|sn| rogue.channel(0, &[Raw::push(sn, &[7])])).collect();
    let frames: Vec<_> = bytes.iter().map(|bytes| Frame::Kcp(bytes)).collect();
    rogue.send(&mut world, &frames);
    let read = std::iter::from_fn(|| world.session().recv(on(0))).count();
    assert_eq!(read, 32);
    let parts = (0..40).map(|id| Frame::KcpPart(KcpPart { number: Seq16(9), id, last: 99 }, &[1]));
    rogue.send(&mut world, &parts.collect::<Vec<_>>());
    assert_eq!(world.session().stats().parts_refused, 24);
    rogue.send(&mut world, &frames[32..]);
    let read = std::iter::from_fn(|| world.session().recv(on(0))).count();
    assert_eq!(read, 8, "they can be sent again");
}

#[test]
fn a_datagram_with_a_bad_segment_is_rejected_as_a_whole() {
    let (mut world, mut rogue) = rogue(SessionConfig::default());
    rogue.segments(&mut world, &[Raw::push(0, b"taken?"), Raw { una: 9, ..Raw::push(1, b"") }]);
    assert_eq!(world.session().peek_size(on(0)), None);
    assert_eq!(world.session().kcp_stats(on(0)).unwrap().rejected.una, 1);
}

/// A thousand datagrams of duplicates between two flushes were once answered with one burst of 1.4 MB.
#[test]
fn the_answer_to_a_flood_of_duplicates_is_smaller_than_the_flood() {
    let (mut world, mut rogue) = rogue(SessionConfig::default());
    let flood: Vec<_> = (0..45).map(|sn| Raw::push(sn % 3, b"")).collect();
    let mut sent = 0;
    for _ in 0..1000 {
        let bytes = rogue.channel(0, &flood);
        let datagram = rogue.sealed(&world, &[Frame::Kcp(&bytes)]);
        sent += datagram.len();
        let now = world.now;
        world.server.give(now, rogue.address, &datagram);
    }
    world.drain();
    world.run(10);
    let (_, answered) = rogue.received(&mut world);
    assert!(answered < 10_000, "{answered} bytes for {sent}: two windows of ACKs at most");
}

/// It shows signs of life but acknowledges nothing: an unanswered sender once sent 13 times what it had.
#[test]
fn a_peer_that_acknowledges_nothing_is_dropped_after_twenty_seconds() {
    let (mut world, mut rogue) = rogue(SessionConfig::default());
    let start = world.now;
    for _ in 0..100 {
        world.session().send(on(0), &[1; 1000]).unwrap();
    }
    world.drain();
    let mut sent = 0;
    for _ in 0..60 {
        world.run(500);
        rogue.send(&mut world, &[Frame::Ping(1)]);
        sent += rogue.received(&mut world).1;
    }
    let at = world.events.iter().find(|(.., event)| matches!(event, Event::Closed { .. })).unwrap().0;
    assert_eq!(world.closed(), Some(CloseReason::DeadLink));
    assert!((20..=23).contains(&at.since(start).as_secs()), "{:?}", at.since(start));
    assert!(sent <= 4 * 100_000, "{sent} bytes for 100,000");
}

#[test]
fn a_peer_whose_window_stays_closed_is_dropped_after_half_a_minute() {
    let (mut world, mut rogue) = rogue(SessionConfig::default());
    for _ in 0..200 {
        world.session().send(on(0), &[1; 1000]).unwrap();
    }
    world.drain();
    let start = world.now;
    let mut una = 0;
    for _ in 0..80 {
        let (segments, _) = rogue.received(&mut world);
        let pushed: Vec<_> = segments.iter().filter(|raw| raw.cmd == Command::Push).collect();
        una = pushed.iter().map(|raw| raw.sn + 1).fold(una, u32::max);
        let named = pushed.iter().map(|raw| Raw { una, wnd: 0, ..Raw::ack(raw.sn, raw.ts) });
        let answer: Vec<_> = named.chain([Raw { una, ..Raw::wins(0) }]).collect();
        answer.chunks(40).for_each(|segments| rogue.segments(&mut world, segments));
        world.run(500);
    }
    assert_eq!(world.closed(), Some(CloseReason::SlowPeer));
    let at = world.events.iter().find(|(.., event)| matches!(event, Event::Closed { .. })).unwrap().0;
    assert!((30..=32).contains(&at.since(start).as_secs()), "{:?}", at.since(start));
}

#[test]
fn a_datagram_has_at_most_64_frames() {
    let (mut world, mut rogue) = rogue(SessionConfig::default());
    rogue.send(&mut world, &[Frame::Ping(1); 64]);
    assert_eq!(world.session().stats().received, 2);
    let mut datagram = Vec::new();
    whitewater::inside::session::seal::Seal::begin(&mut datagram);
    for _ in 0..65 {
        datagram.extend_from_slice(&[0x04, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
    rogue.seal_raw(&mut world, datagram);
    world.run(1_100);
    assert_eq!(world.closed(), Some(CloseReason::Protocol));
}

#[test]
fn a_datagram_longer_than_allowed_changes_nothing() {
    let (mut world, mut rogue) = rogue(SessionConfig { path_mtu: None, ..SessionConfig::default() });
    let mut datagram = Vec::new();
    whitewater::inside::session::seal::Seal::begin(&mut datagram);
    datagram.push(0x82); // DGRAM to the end
    datagram.resize(1201, 1);
    rogue.seal_raw(&mut world, datagram);
    assert_eq!((world.session().stats().received, world.server.stats().rejected.malformed), (1, 1));
    assert!(world.session().recv_datagram_into(&mut [0; 1500]).is_err());
}

#[test]
fn of_unread_receipts_the_newest_1024_are_kept() {
    let mut world = connected(&SessionConfig::default());
    let mut sent = 0;
    while sent < 1500 {
        for _ in 0..50 {
            sent = world.client().send_datagram(&[1; 20]).unwrap().0 + 1;
        }
        world.drain();
        world.run(60);
        while world.session().recv_datagram_into(&mut [0; 20]).is_ok() {}
    }
    world.run(500);
    let told: Vec<_> = std::iter::from_fn(|| world.client().pop_delivered()).map(|id| id.0).collect();
    assert!(told.iter().copied().eq(1500 - 1024..1500), "{} told", told.len());
}

#[test]
fn at_most_64_answers_wait_to_be_sent() {
    let mut world = open_server(ServerConfig::insecure(SessionConfig::default()));
    let mut datagram = Vec::new();
    let hello = Hello { suite: 0, protocol_id: 0, cid: 1, client_stamp: 1, size: 512 };
    hello.encode(&mut datagram).unwrap();
    let now = world.now;
    (0..100).for_each(|_| world.server.give(now, client_address(3, 3), &datagram));
    world.audited(client_address(3, 3), 100 * datagram.len());
    assert_eq!(world.server.stats().rejected.replies, 36);
    world.drain();
    assert_eq!(world.strangers.len(), 64);
}

#[test]
fn clients_beyond_the_maximum_are_told_that_the_server_is_busy() {
    let mut world =
        open_server(ServerConfig { max_sessions: 2, ..ServerConfig::insecure(SessionConfig::default()) });
    let came = (1..=4).filter(|number| Rogue::connect(&mut world, *number).is_some()).count();
    let stats = world.server.stats();
    assert_eq!((came, stats.rejected.full, stats.denials, world.server.len()), (2, 2, 2, 2));
}

#[test]
fn at_most_a_hundred_denials_are_sent_per_second() {
    let mut world = open_server(ServerConfig::insecure(SessionConfig::default()));
    for number in 0..3000u32 {
        let mut datagram = Vec::new();
        let hello = Hello { suite: 0x7777, protocol_id: 0, cid: 1, client_stamp: 1, size: 512 };
        hello.encode(&mut datagram).unwrap();
        world.inject(client_address(3, 3), &datagram);
        if number % 3 == 0 {
            world.run(1);
        }
    }
    let stats = world.server.stats();
    assert!((100..=111).contains(&stats.denials), "{} in a second, 10 of them at once", stats.denials);
    assert_eq!(stats.rejected.suite, 3000);
}

#[test]
fn an_unconfirmed_session_takes_at_most_3_kib_and_a_hybrid_one_5() {
    for suite in [Suite::Checked].into_iter().chain(Suite::ALL).filter(|suite| !suite.needs_server_key()) {
        if !suite.is_built_in() {
            continue;
        }
        let session = SessionConfig::default();
        let mut world = World::new(1, &server_config(&session, suite));
        let dead = LinkConfig { loss: whitewater_sim::Loss::Random(1.0), ..path() };
        for _ in 0..64 {
            world.add(&path(), &path(), &session, client_config(suite));
        }
        // Their CONNECTs arrive, and nothing after that.
        world.run_until(1_000, |world| world.server.len() == 64);
        (0..64).for_each(|client| world.set_links(client, &dead, &dead));
        assert_eq!((world.server.len(), world.sessions.len()), (64, 0));
        let server = world.server;
        let heap = -measure(|| drop(server)).bytes_current;
        let empty = World::new(1, &server_config(&session, suite)).server;
        let each = (heap + measure(|| drop(empty)).bytes_current) / 64;
        println!("{suite:?}: {each} bytes");
        assert!(each <= if suite.is_hybrid() { 5120 } else { 3072 }, "{suite:?}: {each} bytes");
    }
}

#[test]
fn at_most_a_hundred_resets_are_sent_per_second() {
    let config =
        ServerConfig { reset_key: Some([1; 16]), ..ServerConfig::insecure(SessionConfig::default()) };
    let mut world = open_server(config);
    for number in 0..3000u32 {
        let mut datagram = Data { phase: false, sid: number, pn: 0 }.encode().to_vec();
        datagram.resize(100, 0);
        world.inject(client_address(3, 3), &datagram);
        if number % 3 == 0 {
            world.run(1);
        }
    }
    let resets = world.server.stats().resets;
    assert!((100..=111).contains(&resets), "{resets} in a second, 10 of them at once");
    assert_eq!(world.server.stats().rejected.unknown, 3000);
}

/// 2 MiB for sixteen sessions, each of which wants an eighth of it, with nobody reading.
#[test]
fn all_sessions_together_stay_within_the_servers_memory_and_continue_when_there_is_room() {
    let limit = 2 << 20;
    let packets = Channel::ordered(1);
    let channels = [on(0).config(), in_packets(packets)];
    let channels = channels.map(|channel| ChannelConfig { max_message: 60_000, ..channel }).to_vec();
    let session = SessionConfig { channels, ..SessionConfig::default() };
    let mut world =
        World::new(1, &ServerConfig { memory: limit, max_sessions: 16, ..server_config(&session, SUITE) });
    for _ in 0..16 {
        world.add(&path(), &path(), &session, client_config(SUITE));
    }
    assert!(world.run_until(5_000, |world| world.sessions.len() == 16));
    let sent: usize = (0..16)
        .map(|client| {
            let client = world.clients[client].session.connection_mut().unwrap();
            (0u32..)
                .take_while(|number| client.send(on(0), &number.to_le_bytes().repeat(250)).is_ok())
                .count()
        })
        .sum();
    assert!(sent > 3000);
    world.drain();
    for _ in 0..100 {
        world.run(100);
        let used = world.server.stats().memory;
        assert!(used <= limit + (64 << 10), "{used} bytes");
    }
    let used = world.server.stats().memory;
    assert!(used >= limit - (128 << 10), "{used} bytes: it is full, but for a long message");
    let window = |client: &common::sessions::Client| {
        client.session.connection().and_then(|end| end.kcp_stats(on(0))).map(|stats| stats.rmt_wnd)
    };
    let windows: Vec<_> = world.clients.iter().filter_map(window).collect();
    assert!(windows.iter().all(|window| *window <= 2), "{windows:?} segments are told");
    assert_eq!(world.session().send(on(0), &[1; 60_000]), Err(SendError::Full { channel: 0 }));
    let refused = (0..600).find_map(|_| world.session().send_datagram(&[1; 100]).err());
    assert!(refused.is_some_and(|refused| refused.is_full()), "before its own 64 KiB: {refused:?}");
    let refused = (0..256).find_map(|_| world.session().send(packets, &[1; 100]).err());
    assert_eq!(refused, Some(SendError::Full { channel: 1 }), "before its own 256");
    assert!(
        world.clients.iter().all(|client| client.session.connection().is_some_and(|end| end.is_connected()))
    );
    // Reading makes room: everything arrives.
    let (mut read, mut buf) = (0, [0; 1000]);
    let all = |world: &mut World| {
        for id in world.sessions.clone() {
            let Some(end) = world.server.connection_mut(id) else { panic!("{id} {:?}", world.closed()) };
            while end.recv_into(on(0), &mut buf).is_ok() {
                read += 1;
            }
        }
        read == sent
    };
    assert!(world.run_until(20_000, all), "{read} of {sent}");
    world.run(10_000);
    let used = world.server.stats().memory;
    assert!(used <= 16 * 6144, "{used} bytes when all is quiet");
    assert_eq!(world.session().send(on(0), &[1; 1000]), Ok(()));
}

/// 4 MiB for 32 sessions with 32 KiB each for itself; three of them want it all.
#[test]
fn greedy_sessions_leave_every_other_its_share_of_memory() {
    let memory = 4 << 20;
    let session = SessionConfig { send_memory: 1 << 30, ..windows(8192) };
    let config = ServerConfig { memory, max_sessions: 32, ..server_config(&session, SUITE) };
    let mut world = World::new(1, &config);
    for _ in 0..8 {
        world.add(&path(), &path(), &SessionConfig::default(), client_config(SUITE));
    }
    assert!(world.run_until(5_000, |world| world.sessions.len() == 8));
    let ids = world.sessions.clone();
    let (greedy, quiet) = ids.split_at(3);
    let (mut sent, mut got, mut buf) = (0u32, vec![0u32; 8], [0; 1000]);
    for _ in 0..1000 {
        for id in greedy {
            while world.server.connection_mut(*id).unwrap().send(on(0), &[9; 1000]).is_ok() {}
        }
        for id in quiet {
            let sent = world.server.connection_mut(*id).unwrap().send(on(0), &sent.to_le_bytes());
            assert_eq!(sent, Ok(()), "{} of {memory} bytes", world.server.stats().memory);
        }
        sent += 1;
        world.drain();
        assert!(world.server.stats().memory <= memory + (64 << 10));
        world.run(10);
        for (client, got) in world.clients.iter_mut().zip(&mut got) {
            let end = client.session.connection_mut().unwrap();
            while let Ok(len) = end.recv_into(on(0), &mut buf) {
                assert!(len == 1000 || buf[..4] == got.to_le_bytes());
                *got += 1;
            }
        }
    }
    assert!(got.iter().all(|got| *got > 990), "{got:?}");
    // A session that comes later also gets its share, as long as there is one.
    assert!(world.server.stats().memory < memory, "{} bytes", world.server.stats().memory);
}

#[test]
fn a_client_joins_and_has_its_share_when_others_have_used_up_the_memory() {
    let mut session = SessionConfig { send_memory: 1 << 22, ..windows(8192) };
    session.channels[0].max_message = 1000;
    let mut world = open_server(ServerConfig {
        memory: 1 << 20,
        max_sessions: 8,
        session,
        ..ServerConfig::insecure(SessionConfig::default())
    });
    let first = Rogue::connect(&mut world, 1);
    assert!(first.is_some());
    let mut taken = 0;
    while world.session().send(on(0), &[1; 1000]).is_ok() {
        taken += 1000;
        world.server.emit_to(world.now, &mut Vec::new());
    }
    assert!(
        (700_000..(1 << 20) - 7 * (32 << 10)).contains(&taken),
        "{taken}: all but the shares of seven others"
    );
    while world.session().send(on(0), &[1; 1]).is_ok() {
        world.server.emit_to(world.now, &mut Vec::new());
    }
    assert!(Rogue::connect(&mut world, 2).is_some());
    let second = world.server.connection_mut(world.sessions[1]).unwrap();
    let sent = (0..).take_while(|_| second.send(on(0), &[1; 1000]).is_ok()).count();
    assert!((20..32).contains(&sent), "{sent} KB of a share of 32 KiB");
    assert!(world.server.stats().memory <= 1 << 20);
}

/// A channel that nobody reads leaves the others room for the longest possible message.
#[test]
fn a_channel_that_is_not_read_does_not_stop_the_others() {
    let channels = ordered([default_kcp(); 4]);
    let mut world = connected(&SessionConfig { channels, send_memory: 1 << 20, ..SessionConfig::default() });
    for _ in 0..120 {
        world.client().send(on(0), &[0; 1000]).unwrap();
    }
    world.drain();
    world.run(2_000);
    for number in 1..4 {
        world.client().send(on(number), &[1; 20_000]).unwrap();
    }
    world.drain();
    world.run(3_000);
    let mut buf = vec![0; 20_000];
    for number in 1..4 {
        assert_eq!(world.session().recv_into(on(number), &mut buf), Ok(20_000), "channel {number}");
    }
    assert!(world.session().memory() <= (256 << 10) + 65_536);
}

/// The time for a datagram full of expensive segments with a given window: the best of several, ns.
fn cost(window: u16, segments: impl Fn(u32) -> Raw) -> f64 {
    let (mut world, mut rogue) = rogue(SessionConfig { receive_memory: 1 << 26, ..windows(window) });
    for _ in 0..window {
        world.session().send(on(0), &[1; 40]).unwrap();
    }
    world.drain();
    rogue.segments(&mut world, &[Raw::wins(window)]);
    let park: Vec<_> = (1..u32::from(window)).map(|sn| Raw::push(sn, b"")).collect();
    for row in park.chunks(40) {
        rogue.segments(&mut world, row);
    }
    world.run(1);
    let mut best = Duration::MAX;
    for round in 0..30 {
        let row: Vec<_> = (0..45).map(|n| segments(45 * round + n)).collect();
        let bytes = rogue.channel(0, &row);
        let datagram = rogue.sealed(&world, &[Frame::Kcp(&bytes)]);
        let (now, address) = (world.now, rogue.address);
        let start = Instant::now();
        world.server.give(now, address, &datagram);
        best = best.min(start.elapsed());
        world.drain();
    }
    assert_eq!(world.closed(), None);
    best.as_secs_f64() * 1e9
}

/// Searching for a segment would cost as many times more as the window is larger: 64 times.
#[test]
fn a_hostile_datagram_costs_the_same_with_every_window() {
    type Segments = fn(u32, u32) -> Raw;
    let kinds: [(&str, Segments); 4] = [
        ("ACKs of the last segments, one of each", |n, window| Raw::ack(window - 1 - n % (window / 2), 0)),
        ("ACKs of one segment", |_, window| Raw::ack(window / 2, 0)),
        ("duplicates of the first parked", |_, _| Raw::push(1, b"")),
        ("duplicates of the last parked", |_, window| Raw::push(window - 1, b"")),
    ];
    for (name, segments) in kinds {
        let [small, middle, large] =
            [128u16, 1024, 8192].map(|window| cost(window, |n| segments(n, window.into())));
        println!("{name}: {small:.0} ns at 128, {middle:.0} at 1024, {large:.0} at 8192");
        assert!(large <= 8.0 * small + 2000.0, "{name}: {small} and {large} ns");
    }
}

#[test]
fn a_message_longer_than_a_session_may_ever_hold_is_too_long_and_of_a_stream_what_fits_is_taken() {
    let stream = Channel::stream(1);
    let channels = vec![on(0).into(), stream.into()];
    let mut world = connected(&SessionConfig { channels, send_memory: 10_000, ..SessionConfig::default() });
    // All but the eighth part of the other channel.
    let too_long = |channel, cure| Err(SendError::TooLong { channel, len: 8751, max: 8750, cure });
    assert_eq!(world.client().send(on(0), &[1; 8751]), too_long(0, "raise `send_memory`"));
    let write = "send less at once with `write`, or raise `send_memory`, and `snd_queue` of its `kcp`";
    assert_eq!(world.client().send(stream, &[1; 8751]), too_long(1, write), "all or nothing");
    assert_eq!(world.client().write(stream, &[1; 10_001]), Ok(8750));
    assert_eq!(world.client().write(stream, &[1; 10_001]), Err(SendError::Full { channel: 1 }));
    assert_eq!(world.client().send(stream, &[1]), Err(SendError::Full { channel: 1 }));
    assert_eq!(world.client().send(on(0), &[1; 1251]), Err(SendError::Full { channel: 0 }));
    assert_eq!(world.client().send(on(0), &[1; 1000]), Ok(()));
}

#[test]
fn a_peer_that_reads_slowly_is_not_dropped() {
    let mut world = connected(&SessionConfig::default());
    let (mut buf, mut read) = ([0; 1000], 0);
    for _ in 0..700 {
        while world.client().send(on(0), &[1; 1000]).is_ok() {}
        world.drain();
        read += usize::from(world.session().recv_into(on(0), &mut buf).is_ok());
        world.drain();
        world.run(100);
        assert_eq!(world.closed(), None, "after {read} messages");
    }
    assert!(read > 650, "{read} messages in 70 s");
}

#[test]
fn a_message_of_more_segments_than_may_ever_wait_is_too_long() {
    let kcp = Config { snd_queue: 4, ..configs::fast() };
    let mut world = connected(&SessionConfig { channels: ordered([kcp]), ..SessionConfig::default() });
    for len in [10_000, 20_000, 300_000] {
        let refused = world.client().send(on(0), &vec![1; len]);
        assert!(
            matches!(refused, Err(SendError::TooLong { channel: 0, len: of, .. }) if of == len),
            "{len}: {refused:?}"
        );
        let words = refused.unwrap_err().to_string();
        assert!(words.ends_with(": raise `snd_queue` and `snd_queue_bytes` of its `kcp`"), "{words}");
    }
}
