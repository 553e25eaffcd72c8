//! What a client that cannot be admitted is told, and what somebody else can say in the server's name.

use crate::common;

use common::ms;
use common::sessions::{PSK, SUITE, World, client_config, in_packets, on, server_address, server_config};
use std::collections::BTreeSet;
use whitewater::inside::session::wire::{Deny, kind};
use whitewater::session::DenyReason;
use whitewater::{Channel, ChannelConfig, ClientConfig, CloseReason, SessionConfig};
use whitewater_sim::{LinkConfig, Loss};

fn path(loss: f64) -> LinkConfig {
    LinkConfig { loss: Loss::Random(loss), ..LinkConfig::with_rtt(ms(120)) }
}

fn config() -> SessionConfig {
    SessionConfig::default()
}

#[test]
fn another_protocol_id_is_reported_on_the_same_host_and_gets_no_answer_elsewhere() {
    for (ip, is_told) in [([127, 0, 0, 1], true), ([10, 0, 0, 1], false), ([192, 0, 2, 1], false)] {
        let mut world = World::new(1, &server_config(&config(), SUITE));
        let other = SessionConfig { protocol_id: 9, ..config() };
        world.add(&path(0.0), &path(0.0), &other, client_config(SUITE));
        world.rebind(0, (ip, 1000).into());
        world.run(3_000);
        assert!(world.server.stats().rejected.protocol >= 10);
        let ends = is_told.then_some(CloseReason::Denied(DenyReason::Protocol));
        assert_eq!((world.clients[0].closed(), world.server.stats().denials > 1), (ends, is_told));
    }
}

#[test]
fn a_wrong_secret_makes_no_session_and_ends_in_an_error_within_3_s() {
    if SUITE.needs_psk() {
        let mut world = World::new(1, &server_config(&config(), SUITE));
        let wrong = ClientConfig { psk: Some([8; 32].into()), ..client_config(SUITE) };
        assert_ne!(wrong.psk, Some(PSK.into()));
        world.add(&path(0.0), &path(0.0), &config(), wrong);
        world.run(3_000);
        assert!(world.server.is_empty() && world.server.stats().rejected.handshake > 5);
        let reason = world.clients[0].closed().unwrap();
        assert_eq!(reason, CloseReason::Denied(DenyReason::Secret));
        assert_eq!(reason.to_string(), "the server has another secret or another key");
    }
}

/// Whoever sees the packets can say no in the server's name, before the cookie and after it.
#[test]
fn a_forged_denial_of_the_secret_stops_no_client_that_the_server_answers() {
    for seed in 0..20 {
        let mut world = World::new(seed, &server_config(&config(), SUITE));
        world.taps = true;
        world.add(&path(0.3), &path(0.3), &config(), client_config(SUITE));
        let hello = world.tap.iter().find(|(.., bytes)| bytes[0] == kind::HELLO).unwrap().3.clone();
        let cid = u64::from_le_bytes(hello[12..20].try_into().unwrap());
        let mut deny = Vec::new();
        let reason = DenyReason::Secret;
        Deny { lowest: 1, highest: 1, reason, cid, retry_after_ms: 0 }.encode(&mut deny).unwrap();
        for _ in 0..12 {
            world.inject_client(0, &deny);
            world.run(100);
        }
        assert!(
            world.run_until(1_800, |world| world.is_up()),
            "seed {seed}: {:?}",
            world.clients[0].closed()
        );
    }
}

#[test]
fn ends_with_other_channels_are_told_at_once_what_differs() {
    let with = |second: ChannelConfig| SessionConfig { channels: vec![on(0).into(), second], ..config() };
    let bytes = |channel: Channel| with(channel.into());
    let (ordered, typed) = (bytes(on(1)), with(Channel::<u16>::ordered(1).into()));
    let longer = with(ChannelConfig { max_message: 2 << 20, ..on(1).config() });
    for (client, server, text) in [
        (ordered.clone(), bytes(Channel::unreliable(1)), "channel 1 is ordered here and unreliable there"),
        (bytes(Channel::stream(1)), ordered.clone(), "channel 1 is a stream here and ordered there"),
        (
            with(in_packets(on(1))),
            ordered.clone(),
            "channel 1 is ordered, in packets, here and ordered there",
        ),
        (typed, ordered.clone(), "channel 1 has messages of another type here than there"),
        (ordered.clone(), longer, "channel 1 has other knobs here than there"),
        (config(), ordered.clone(), "channel 1 is missing here and ordered there"),
        (ordered, config(), "channel 1 is ordered here and missing there"),
    ] {
        let mut world = World::new(1, &server_config(&server, SUITE));
        world.add(&path(0.0), &path(0.0), &client, client_config(SUITE));
        assert!(world.run_until(500, |world| world.clients[0].closed().is_some()), "{text}");
        let reason = world.clients[0].closed().unwrap();
        assert!(matches!(reason, CloseReason::Denied(DenyReason::Shape(_))), "{reason:?}");
        assert_eq!(reason.to_string(), text);
        let stats = world.server.stats();
        assert_eq!((stats.rejected.shape, stats.accepted, world.server.len()), (1, 0, 0));
    }
}

/// Strangers learn nothing of the channels: their first message is not read.
#[test]
fn a_client_without_the_secret_is_told_of_that_and_nothing_of_channels() {
    if SUITE.needs_psk() {
        let mut world = World::new(1, &server_config(&config(), SUITE));
        world.taps = true;
        let other = SessionConfig {
            channels: (0..32).map(|number| Channel::<[u8]>::unreliable(number).config()).collect(),
            ..config()
        };
        let wrong = ClientConfig { psk: Some([8; 32].into()), ..client_config(SUITE) };
        world.add(&path(0.0), &path(0.0), &other, wrong);
        world.run(3_000);
        let from_server = world.tap.iter().filter(|(_, from, ..)| *from == server_address());
        let kinds: BTreeSet<_> = from_server.map(|(.., bytes)| bytes[0]).collect();
        assert_eq!(kinds, [kind::CHALLENGE, kind::DENY].into());
        assert_eq!(world.server.stats().rejected.shape, 0);
    }
}
