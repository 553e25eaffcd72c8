//! Bursts are acknowledged in time, so they are not resent.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;

use common::ms;
use common::rogue::{Rogue, open_server};
use common::sessions::{SUITE, World, in_packets, on};
use whitewater::channel::Resend;
use whitewater::inside::session::wire::Frame;
use whitewater::{ChannelConfig, ServerConfig, SessionConfig};
use whitewater_sim::LinkConfig;

const LONG: usize = 64 << 10;

/// A channel by KCP, and one in packets, whose long messages go by KCP as well.
fn carriers() -> [ChannelConfig; 2] {
    [on(0).config(), in_packets(on(0))]
}

fn one(channel: ChannelConfig) -> SessionConfig {
    SessionConfig { channels: vec![channel], ..SessionConfig::default() }
}

/// Sends a long message that leaves at once over a clean path and returns the bytes that it took.
fn bytes_of_a_long_message(channel: ChannelConfig, rtt: u64) -> u64 {
    let mut world = World::pair(1, &LinkConfig::with_rtt(ms(rtt)), &one(channel), SUITE);
    world.connect();
    let before = world.client().stats().bytes_sent;
    world.client().send(on(0), &vec![3; LONG]).unwrap();
    world.drain();
    assert!(world.run_until(5_000, |world| world.client().is_delivered(on(0))));
    assert_eq!(world.session().recv(on(0)).map(|message| message.len()), Some(LONG));
    world.client().stats().bytes_sent - before
}

#[test]
fn a_long_message_over_a_clean_path_is_sent_once() {
    for channel in carriers() {
        for rtt in [0, 20, 80] {
            let bytes = bytes_of_a_long_message(channel, rtt);
            assert!(bytes < 71_000, "{:?}: {bytes} bytes at {rtt} ms", channel.carrier);
        }
    }
}

#[test]
fn a_long_message_that_a_server_sends_at_once_waits_for_the_round_trip_of_the_handshake() {
    let mut bytes = Vec::new();
    for channel in carriers() {
        let channel = ChannelConfig { resend: Resend::Rtt(150), ..channel };
        let mut world = World::pair(1, &LinkConfig::with_rtt(ms(300)), &one(channel), SUITE);
        assert!(world.run_until(5_000, |world| !world.sessions.is_empty()));
        world.session().send(on(0), &vec![3; LONG]).unwrap();
        assert!(world.run_until(5_000, |world| world.session().is_delivered(on(0))));
        bytes.push((channel.carrier, world.session().stats().bytes_sent));
    }
    assert!(bytes.iter().all(|(_, bytes)| *bytes < 72_000), "{bytes:?} bytes");
}

#[test]
fn datagrams_sent_at_once_all_get_receipts() {
    let mut world = World::pair(1, &LinkConfig::with_rtt(ms(20)), &SessionConfig::default(), SUITE);
    world.connect();
    for _ in 0..60 {
        world.client().send_datagram(&[1; 1000]).unwrap(); // each fills a packet
    }
    world.run(500);
    let received = (0..60).filter(|_| world.session().recv_datagram_into(&mut [0; 1000]).is_ok()).count();
    let receipts = std::iter::from_fn(|| world.client().pop_delivered()).count();
    assert_eq!((received, receipts), (60, 60));
}

/// An ACK covers 32 numbers; waiting for half of that leaves room for more that arrive before it is sent.
#[test]
fn an_acknowledgement_waits_at_most_until_it_lags_15_numbers() {
    let session = SessionConfig { ack_delay: ms(100), ..SessionConfig::default() };
    let mut world = open_server(ServerConfig::insecure(session));
    let mut rogue = Rogue::connect(&mut world, 1).unwrap();
    world.strangers.clear();
    for answers in 1..=4 {
        for _ in 0..15 {
            rogue.send(&mut world, &[Frame::Dgram(b"many")]);
            assert_eq!(world.strangers.len(), answers - 1, "14 numbers behind at most");
        }
        rogue.send(&mut world, &[Frame::Dgram(b"the last")]);
        assert_eq!(world.strangers.len(), answers, "one for sixteen, at once");
    }
    for (lost, is_at_once) in [(13, false), (14, true)] {
        world.strangers.clear();
        rogue.send(&mut world, &[Frame::Dgram(b"first")]);
        (0..lost).for_each(|_| drop(rogue.sealed(&world, &[Frame::Ping(1)])));
        rogue.send(&mut world, &[Frame::Dgram(b"after those lost")]);
        assert_eq!(world.strangers.len(), usize::from(is_at_once), "{lost} lost");
        world.run(99);
        assert_eq!(world.strangers.len(), usize::from(is_at_once), "{lost} lost");
        world.run(1);
        assert_eq!(world.strangers.len(), 1, "after `ack_delay`");
    }
}
