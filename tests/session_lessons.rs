//! Mistakes of other libraries, each with its source, that sessions do not repeat.

use crate::common;
use crate::common::machine::Whole as _;

use common::sessions::{SUITE, World, client_config, on, random, server_address, server_config};
use common::{Raw, ms};
use whitewater::inside::session::wire::kind;
use whitewater::session::Server;
use whitewater::{CloseReason, Event, SessionConfig};
use whitewater_sim::{LinkConfig, Loss};

fn connected() -> World {
    let mut world = World::new(1, &server_config(&SessionConfig::default(), SUITE));
    world.taps = true;
    let path = LinkConfig::with_rtt(ms(40));
    world.add(&path, &path, &SessionConfig::default(), client_config(SUITE));
    world.connect();
    world
}

/// Source: kcp-go sess.go, pull request 155: a packet from the client's address with another conv and sn 0
/// ends the live session.
#[test]
fn a_segment_0_from_the_address_of_a_client_ends_nothing() {
    let mut world = connected();
    let (address, id) = (world.address(0), world.sessions[0]);
    let conv = u32::from_str_radix(&id.to_string(), 16).unwrap();
    let before = world.server.stats();
    for conv in [conv, conv ^ 1, 0, u32::MAX] {
        let segment = Raw::push(0, b"begin anew").of(conv);
        world.inject(address, &segment);
        let frame = [&[kind::DATA][..], &conv.to_le_bytes(), &[0; 4], &[0x81], &segment, &[0; 16]].concat();
        world.inject(address, &frame);
    }
    world.client().send(on(0), b"still here").unwrap();
    world.drain();
    world.run(200);
    let mut room = [0; 20];
    assert_eq!(world.session().recv_into(on(0), &mut room), Ok(10));
    let after = world.server.stats();
    assert_eq!((after.accepted, world.server.len()), (before.accepted, 1));
    let rejected =
        (after.rejected.malformed + after.rejected.unknown, world.session().stats().rejected.total());
    assert_eq!((rejected.0, rejected.1 > 0), (7, true), "each is in a counter: {rejected:?}");
}

/// Source: kcp-go with AEAD and one key for everybody: recorded packets open the session again.
#[test]
fn a_replayed_session_opens_nothing_at_a_server_with_the_same_secret() {
    let mut world = connected();
    world.client().send(on(0), b"once").unwrap();
    world.drain();
    world.run(500);
    let address = world.address(0);
    let recorded: Vec<_> = world.tap.iter().filter(|(_, from, ..)| *from == address).cloned().collect();
    assert!(recorded.len() > 4);
    let mut again = Server::new(&server_config(&SessionConfig::default(), SUITE), random(2, 2)).unwrap();
    let mut buf = Vec::new();
    for _ in 0..3 {
        for (at, from, _, datagram) in &recorded {
            again.give(*at, *from, datagram);
            while again.emit_to(*at, &mut buf).is_some() {}
        }
    }
    assert!(again.is_empty() && again.poll_event().is_none());
    assert_eq!((again.stats().accepted, again.stats().rejected.cookie > 0), (0, true));
}

/// Source: ikcp.c sends 13 times what waits to a vanished peer within a minute: 2.33 MB for 176 KB.
#[test]
fn a_vanished_peer_is_sent_little_more_than_what_waits() {
    let mut world = connected();
    world.run(500);
    let dead = LinkConfig { loss: Loss::Random(1.0), ..LinkConfig::default() };
    world.set_links(0, &dead, &dead);
    world.tap.clear();
    let mut queued = 0;
    while queued < 176_000 && world.client().send(on(0), &[1; 1000]).is_ok() {
        queued += 1000;
    }
    world.drain();
    world.run(60_000);
    let sent: usize =
        world.tap.iter().filter(|(_, _, to, _)| *to == server_address()).map(|(.., bytes)| bytes.len()).sum();
    println!("{sent} bytes for {queued}");
    assert!(queued > 100_000 && sent <= 2 * queued, "{sent} bytes for {queued}");
    let Some((_, Event::Closed { reason, .. })) = world.clients[0].events.last() else {
        panic!("it goes on")
    };
    assert!(matches!(reason, CloseReason::Timeout | CloseReason::DeadLink), "{reason:?}");
}
