//! The text that goes with the close of a session.

use crate::common;

use common::ms;
use common::sessions::{SUITE, Toward, World, default_kcp, forger, on, ordered};
use whitewater::inside::session::wire::CLOSE_TEXT_MAX;
use whitewater::kcp::{Config, Recovery};
use whitewater::session::{CloseTextError, Suite, Undelivered, code};
use whitewater::{CloseReason, Event, SessionConfig};
use whitewater_sim::{LinkConfig, Loss};

fn connected(seed: u64, loss: f64, suite: Suite) -> World {
    let link = LinkConfig { loss: Loss::Random(loss), ..LinkConfig::with_rtt(ms(80)) };
    let mut world = World::pair(seed, &link, &SessionConfig::default(), suite);
    world.taps = true;
    world.connect();
    world.run(1_000);
    world
}

#[test]
fn either_end_can_read_the_close_text_of_the_other() {
    for seed in 1..=50 {
        let text = format!("gone to bed, {}", "ö".repeat(50));
        let mut world = connected(seed, 0.3, SUITE);
        let (now, id) = (world.now, world.sessions[0]);
        world.server.close_with(now, id, 7, &text).unwrap();
        world.run(3_000);
        if world.clients[0].closed() == Some(CloseReason::Peer(7)) {
            assert_eq!(world.client().close_text(), text, "seed {seed}");
        } else {
            assert!(
                world.clients[0].session.state() == whitewater::session::ClientState::Up,
                "each CLOSE was lost"
            );
        }

        let mut world = connected(seed, 0.0, SUITE);
        let now = world.now;
        world.clients[0].session.close_with(now, 8, &text).unwrap();
        assert!(world.run_until(1_000, |world| world.events.len() > 1));
        assert_eq!(world.session().close_text(), text);
        world.run(500);
        assert_eq!(
            (world.clients[0].closed(), world.client().close_text()),
            (Some(CloseReason::Local(8)), "")
        );
    }
}

#[test]
fn a_close_without_text_has_none() {
    let mut world = connected(1, 0.0, SUITE);
    let (now, id) = (world.now, world.sessions[0]);
    world.server.close(now, id, 7);
    assert_eq!(world.client().close_text(), "");
    world.run(500);
    assert_eq!((world.clients[0].closed(), world.client().close_text()), (Some(CloseReason::Peer(7)), ""));
}

#[test]
fn an_invalid_close_text_changes_nothing() {
    let mut world = connected(1, 0.0, SUITE);
    let (now, id) = (world.now, world.sessions[0]);
    let (most, long) = ("x".repeat(CLOSE_TEXT_MAX), "ö".repeat(65));
    let too_long = Err(CloseTextError::TooLong { len: 130, max: 128 });
    assert_eq!(world.server.close_with(now, id, 7, &long), too_long);
    assert_eq!(world.clients[0].session.close_with(now, 7, &long), too_long);
    for text in ["two\nlines", "\u{1b}[2J", "\u{7f}", "\u{80}", "a\u{9f}"] {
        assert_eq!(world.server.close_with(now, id, 7, text), Err(CloseTextError::Control), "{text:?}");
    }
    world.run(500);
    assert!(world.client().is_connected() && world.session().is_connected());
    world.server.close_with(now, id, 7, &most).unwrap();
    assert_eq!(world.server.close_with(now, id, 8, "too late"), Ok(()), "the first one counts");
    world.run(500);
    assert_eq!(
        (world.clients[0].closed(), world.client().close_text()),
        (Some(CloseReason::Peer(7)), &*most)
    );
}

/// A peer that has the keys but breaks the rules.
#[test]
fn an_invalid_text_from_the_peer_ends_the_session_and_is_not_shown() {
    let texts: [&[u8]; 5] = [b"\xff\xfe", b"\x1b]0;owned\x07", b"\xc2\x85", b"cut \xc3", b"a\0b"];
    let long = [b'x'; CLOSE_TEXT_MAX + 1];
    for text in texts.into_iter().chain([&long[..]]) {
        let mut world = connected(1, 0.0, Suite::Checked);
        let forge = forger(&world);
        let body = [&[8, 7, 0, u8::try_from(text.len()).unwrap()], text].concat();
        let datagram = forge(Toward::Client, &body);
        world.inject_client(0, &datagram);
        world.run(2_000);
        assert_eq!(
            (world.clients[0].closed(), world.client().close_text()),
            (Some(CloseReason::Protocol), "")
        );
    }
    let mut world = connected(1, 0.0, Suite::Checked);
    let datagram = forger(&world)(Toward::Client, b"\x08\x07\x00\x06\xc3\xb6 \xc2\xa0.");
    world.inject_client(0, &datagram);
    world.run(2_000);
    assert_eq!(
        (world.clients[0].closed(), world.client().close_text()),
        (Some(CloseReason::Peer(7)), "ö \u{a0}.")
    );
}

#[test]
fn closing_without_a_connection_sends_nothing() {
    let dead = LinkConfig { loss: Loss::Random(1.0), ..LinkConfig::default() };
    let mut world = World::pair(1, &dead, &SessionConfig::default(), SUITE);
    let (now, long) = (world.now, "x".repeat(200));
    assert!(
        world.clients[0].session.close_with(now, 7, &long).is_err() && world.clients[0].closed().is_none()
    );
    world.clients[0].session.close_with(now, 7, "never mind").unwrap();
    world.drain();
    assert_eq!(world.clients[0].closed(), Some(CloseReason::Local(7)));
}

#[test]
fn a_client_closed_at_once_still_learns_that_everything_arrived() {
    let mut world = connected(1, 0.0, SUITE);
    world.client().send(on(0), b"last words").unwrap();
    world.client().send_datagram(b"and a datagram").unwrap();
    world.drain();
    let (id, mut buf) = (world.sessions[0], [0; 100]);
    let close_at_once = |world: &mut World| {
        let (now, heard) = (world.now, world.session().recv_into(on(0), &mut buf).is_ok());
        if heard {
            world.server.close(now, id, 3);
        }
        heard
    };
    assert!(world.run_until(1_000, close_at_once));
    world.run(2_000);
    let told = world.client().pop_delivered().is_some();
    let closed = world.clients[0].events.iter().find_map(|(_, event)| match event {
        Event::Closed { reason, undelivered } => Some((*reason, undelivered.is_empty())),
        _ => None,
    });
    assert_eq!((closed, told), (Some((CloseReason::Peer(3), true)), true));
}

/// The path becomes much shorter, so an acknowledgement comes sooner than is believed, and with it a close.
#[test]
fn what_a_peer_acknowledged_before_it_closed_is_delivered_however_soon_that_came() {
    for recovery in [Config::default().recovery, Recovery::Classic] {
        let channels = ordered([Config { recovery, ..default_kcp() }]);
        let session = SessionConfig { channels, ..SessionConfig::default() };
        let mut early = 0;
        for wait in (2_000..2_500).step_by(50) {
            let mut world = World::pair(1, &LinkConfig::with_rtt(ms(200)), &session, SUITE);
            world.connect();
            world.run(wait);
            let short = LinkConfig::with_rtt(ms(20));
            world.set_links(0, &short, &short);
            world.session().send(on(0), b"listen").unwrap();
            world.drain();
            world.run(5);
            world.session().send(on(0), b"last words").unwrap();
            let is_last =
                |world: &mut World| world.client().recv(on(0)).is_some_and(|it| *it == *b"last words");
            assert!(world.run_until(1_000, is_last));
            let now = world.now;
            world.clients[0].session.close(now, 42);
            world.run(1_000);
            let (.., event) = world.events.last().unwrap();
            let undelivered = Undelivered::default();
            let expected = Event::Closed { reason: CloseReason::Peer(42), undelivered };
            assert_eq!(*event, expected, "{recovery:?}, {wait} ms");
            early += world.session().kcp_stats(on(0)).unwrap().early_acks;
        }
        assert!(early > 0, "{recovery:?}");
    }
}

#[test]
fn a_code_of_the_library_is_refused_and_a_close_that_cannot_fail_has_none() {
    let mut world = connected(1, 0.0, SUITE);
    let (now, id) = (world.now, world.sessions[0]);
    for code in [code::RESERVED, code::PROTOCOL, u16::MAX] {
        let refused = Err(CloseTextError::Reserved { code });
        assert_eq!(world.server.close_with(now, id, code, ""), refused);
        assert_eq!(world.server.kick(now, id, code, ""), refused);
        assert_eq!(world.clients[0].session.close_with(now, code, ""), refused);
        assert_eq!(world.clients[0].session.kick(now, code, ""), refused);
    }
    world.run(500);
    assert!(world.client().is_connected() && world.session().is_connected());
    world.server.close(now, id, code::PROTOCOL);
    world.run(500);
    assert_eq!(world.clients[0].closed(), Some(CloseReason::Peer(0)));
}
