//! The calls that share buffers behave like the others, and copy only where documented.

use crate::common;
use crate::common::configs;

use bytes::Bytes;
use common::{Raw, Setup, Talk, flushed, kcp, lossy, numbered, pair, presets, rough};
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::Config;
use whitewater_sim::Drive;

/// The observable result of a run: the bytes sent in both directions, and when every message was read.
fn run(setup: Setup, lens: &[usize]) -> (u64, u64, Vec<Time>) {
    let mut pair = setup.pair();
    let lens = lens.iter().cycle().take(200);
    for (number, len) in lens.enumerate() {
        pair.send(numbered(number, *len));
        if number % 3 == 0 {
            pair.reply(numbered(number, len / 2));
        }
        pair.run_for(Duration::from_millis(4));
    }
    assert!(pair.run_until_idle(Duration::from_secs(900)), "never went quiet");
    if pair.alice.kcp.config().stream {
        pair.assert_streamed()
    } else {
        pair.assert_delivered()
    }
    (pair.links[0].digest(), pair.links[1].digest(), pair.bob.received_at.clone())
}

#[test]
fn shared_buffers_send_the_same_bytes_at_the_same_times() {
    // Around 256 bytes, from which on sharing pays off, and around the mss.
    let lens = [0, 1, 100, 255, 256, 257, 1000, 1376, 1377, 1632, 3000, 20_000];
    for (name, config) in presets() {
        for (drive, seed) in [(Drive::CHECK, 1), (Drive::BEAT, 2), (Drive::CHECK.flushing(), 3)] {
            let setup = Setup { drive, ..Setup::new(config, rough(), seed) };
            assert!(
                run(setup.clone(), &lens) == run(Setup { shares: true, ..setup.clone() }, &lens),
                "{name}"
            );
        }
    }
}

#[test]
fn a_stream_delivers_its_bytes_from_shared_buffers_too() {
    let config = Config { stream: true, snd_wnd: 128, ..configs::classic_turbo() };
    for seed in 1..=5 {
        let setup = Setup::new(config, lossy(0.1), seed);
        let lens = [3, 300, 1, 5000, 255, 256, 0, 1376];
        run(Setup { shares: true, ..setup.clone() }, &lens);
    }
}

#[test]
fn mixed_calls_keep_the_order() {
    for seed in 1..=5 {
        let mut pair = pair(configs::classic_turbo(), lossy(0.1), seed);
        let messages: Vec<_> = (0..100).map(|number| numbered(number, 200 + number * 13)).collect();
        for (number, message) in messages.iter().enumerate() {
            if number % 2 == 0 {
                pair.alice.kcp.send_bytes(message.clone().into()).unwrap();
            } else {
                pair.alice.kcp.send(message).unwrap();
            }
        }
        assert!(pair.run_until_idle(Duration::from_secs(10)), "never went quiet");
        assert!(pair.bob.received == messages);
    }
}

#[test]
fn a_message_of_a_large_segment_is_part_of_its_datagram() {
    let mut bob = kcp(&configs::classic_turbo());
    let message = numbered(1, 1376);
    for sn in [0, 2, 1] {
        let datagram = Bytes::from(Raw::push(sn, &message).bytes());
        bob.input_bytes(Time::ZERO, &datagram).unwrap();
        if sn != 2 {
            let received = bob.recv().unwrap();
            if sn == 0 {
                assert_eq!(received.as_ptr(), datagram[24..].as_ptr());
            }
            assert_eq!(received, message);
        }
    }
    assert_eq!(bob.recv().as_deref(), Some(&message[..]), "parked, and not lost");
    assert_eq!(bob.recv(), None);
}

#[test]
fn a_datagram_is_kept_as_long_as_its_large_messages_and_no_longer() {
    let mut bob = kcp(&configs::classic_turbo());
    let two = Raw::datagram(&[Raw::push(0, &numbered(1, 600)), Raw::push(1, &numbered(2, 600))]);
    let datagram = Bytes::from(two);
    bob.input_bytes(Time::ZERO, &datagram).unwrap();
    assert!(!datagram.is_unique());
    let first = bob.recv().unwrap();
    drop(first);
    assert!(!datagram.is_unique(), "the second message shares it as well");
    let mut buf = [0; 600];
    assert_eq!((bob.recv_into(&mut buf), buf.to_vec()), (Ok(600), numbered(2, 600)));
    assert!(datagram.is_unique());
}

#[test]
fn small_payloads_and_parts_are_copied_so_that_no_datagram_is_kept() {
    let mut bob = kcp(&configs::classic_turbo());
    let small = Bytes::from(Raw::push(0, &numbered(1, 255)).bytes());
    bob.input_bytes(Time::ZERO, &small).unwrap();
    let filler = Raw { data: vec![0; 1100], ..Raw::wins(128) };
    let part = Bytes::from(Raw::datagram(&[Raw::push(1, &numbered(2, 300)), filler]));
    bob.input_bytes(Time::ZERO, &part).unwrap();
    assert!(small.is_unique() && part.is_unique());
    assert_eq!(bob.recv().unwrap(), numbered(1, 255));
    assert_eq!(bob.recv().unwrap(), numbered(2, 300));
}

#[test]
fn a_sent_message_is_shared_until_it_is_acknowledged() {
    let mut alice = kcp(&Config { snd_wnd: 2, ..configs::classic_turbo() });
    let message = Bytes::from(numbered(1, 4000)); // three segments
    alice.send_bytes(message.clone()).unwrap();
    assert!(!message.is_unique());
    let sent = flushed(&mut alice, 0);
    assert_eq!(sent.iter().flat_map(|push| push.data.clone()).collect::<Vec<_>>(), message[..2752]);
    let again = flushed(&mut alice, 200);
    assert_eq!(
        again.iter().map(|push| &push.data).collect::<Vec<_>>(),
        [&message[..1376], &message[1376..2752]]
    );
    for (una, unique) in [(1, false), (2, false), (3, true)] {
        alice.input(Time::from_millis(200), &Raw { una, ..Raw::wins(128) }.bytes()).unwrap();
        flushed(&mut alice, 200);
        assert_eq!(message.is_unique(), unique, "una {una}");
    }
}

#[test]
fn out_of_order_acks_release_what_they_acknowledge() {
    let mut alice = kcp(&configs::classic_turbo());
    let messages: Vec<_> = (0..5).map(|number| Bytes::from(numbered(number, 300))).collect();
    for message in &messages {
        alice.send_bytes(message.clone()).unwrap();
    }
    flushed(&mut alice, 0);
    let mut held = vec![true; 5];
    for sn in [3, 1, 4, 0, 2] {
        alice.input(Time::from_millis(5), &Raw::ack(sn, 0).bytes()).unwrap();
        held[sn as usize] = false;
        assert_eq!(messages.iter().map(|message| !message.is_unique()).collect::<Vec<_>>(), held, "{sn}");
    }
}

#[test]
fn a_short_message_is_copied_and_its_buffer_released_at_once() {
    let mut alice = kcp(&configs::classic_turbo());
    let message = Bytes::from(numbered(1, 255));
    assert_eq!(alice.send_bytes(message.clone()), Ok(255));
    assert!(message.is_unique());
    assert_eq!(flushed(&mut alice, 0)[0].data, message);
}

#[test]
fn a_bad_datagram_is_not_kept() {
    let mut bob = kcp(&configs::classic_turbo());
    let bad = Raw::datagram(&[Raw::push(0, &numbered(1, 1000)), Raw { una: 1, ..Raw::wins(1) }]);
    let bad = Bytes::from(bad);
    assert!(bob.input_bytes(Time::ZERO, &bad).is_err());
    assert!(bad.is_unique());
}
