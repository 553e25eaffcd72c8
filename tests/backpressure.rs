//! Every queue has a limit; reaching it is a temporary error that accepts nothing.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;

use common::{Raw, Talk, drain, flushed, kcp, lossy, numbered, pair};
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::{self, Config, Conv, InputError, Kcp};
use whitewater::machine::DatagramQueue;

/// `alice` with `count` segments of one byte waiting.
fn filled(config: &Config, count: usize) -> Kcp<DatagramQueue> {
    let mut alice = kcp(config);
    for _ in 0..count {
        alice.send(b"x").unwrap();
    }
    alice
}

#[test]
fn every_queue_has_a_limit() {
    let config = Config { snd_queue: 10, snd_queue_bytes: 2000, ..configs::classic_turbo() };
    let full = |segments, bytes| Err(kcp::SendError::Full { segments, bytes });

    let mut by_segments = filled(&config, 10);
    assert_eq!(by_segments.send(b"one more"), full(10, 10));
    assert_eq!(by_segments.send(b""), full(10, 10), "an empty message takes a segment");

    let mut by_bytes = kcp(&config);
    assert_eq!(by_bytes.send(&[0; 1990]), Ok(1990));
    assert_eq!(by_bytes.send(&[0; 11]), full(2, 1990));
    assert_eq!(by_bytes.send(&[0; 10]), Ok(10), "up to the limit");
    assert_eq!((by_bytes.send(&[0]), by_bytes.send(b"")), (full(3, 2000), Ok(0)));

    let mut receiver = kcp(&Config { rcv_mtu: 1400, ..config });
    let too_long = Err(InputError::TooLong { have: 1401, max: 1400 });
    assert_eq!(receiver.input(Time::ZERO, &[0; 1401]), too_long);
    // For the lists of acknowledgements and of received segments, see tests/hostile.rs. Waiting datagrams:
    let mut sender = Kcp::new(config_conv(), &config, DatagramQueue::with_limit(1400)).unwrap();
    sender.send(&[0; 1376]).unwrap();
    sender.send(&[0; 500]).unwrap();
    sender.flush(Time::ZERO);
    assert_eq!((sender.output().len(), sender.output().dropped()), (1, 1));
}

fn config_conv() -> Conv {
    Conv(common::CONV)
}

#[test]
fn a_refused_message_leaves_nothing_behind() {
    for stream in [false, true] {
        let config =
            Config { snd_queue: 10, snd_queue_bytes: 3000, stream, snd_wnd: 4, ..configs::classic_turbo() };
        let build = || {
            let mut alice = kcp(&config);
            alice.send(&numbered(1, 1300)).unwrap();
            alice.send(&numbered(2, 1500)).unwrap();
            alice
        };
        let (mut alice, mut twin) = (build(), build());
        for len in [201, 300, 5000, 17_000, 1 << 20] {
            let message = numbered(3, len);
            assert!(
                matches!(
                    alice.send(&message),
                    Err(kcp::SendError::Full { .. } | kcp::SendError::TooLong { .. })
                ),
                "{len}"
            );
            assert!(alice.send_bytes(message.into()).is_err(), "{len}");
            assert_eq!((alice.stats(), alice.check(Time::ZERO)), (twin.stats(), twin.check(Time::ZERO)));
        }
        for ms in [0, 200, 500] {
            alice.flush(Time::from_millis(ms));
            twin.flush(Time::from_millis(ms));
            assert_eq!(drain(&mut alice), drain(&mut twin));
        }
    }
}

#[test]
fn a_message_is_accepted_whole_or_not_at_all() {
    let config = Config { mtu: 50, snd_queue: 10, ..configs::classic_turbo() };
    let mut alice = filled(&config, 6);
    assert_eq!(alice.send(&[0; 4 * 26 + 1]), Err(kcp::SendError::Full { segments: 6, bytes: 6 }));
    assert_eq!((alice.send(&[0; 4 * 26]), alice.wait_snd()), (Ok(104), 10));
}

#[test]
fn segments_in_flight_do_not_count_and_the_queue_drains_as_the_window_moves() {
    let config = Config { snd_queue: 10, snd_wnd: 4, ..configs::classic_turbo() };
    let mut alice = filled(&config, 10);
    let full = Err(kcp::SendError::Full { segments: 10, bytes: 10 });
    assert_eq!(alice.send(b"x"), full);
    assert_eq!(flushed(&mut alice, 0).len(), 4);
    for _ in 0..4 {
        assert_eq!(alice.send(b"x"), Ok(1));
    }
    assert_eq!((alice.send(b"x"), alice.wait_snd()), (full, 14));
    alice.input(Time::from_millis(9), &Raw { una: 3, ..Raw::wins(128) }.bytes()).unwrap();
    assert_eq!(alice.send(b"x"), full, "room in the window is room in the queue after the next flush");
    assert_eq!(flushed(&mut alice, 10).len(), 3);
    for _ in 0..3 {
        assert_eq!(alice.send(b"x"), Ok(1));
    }
    assert_eq!(alice.send(b"x"), full);
}

#[test]
fn a_stream_may_top_up_a_segment_of_a_full_queue() {
    let config = Config { mtu: 50, snd_queue: 2, stream: true, ..configs::classic_turbo() };
    let mut alice = kcp(&config);
    assert_eq!(alice.send(&[1; 26 + 20]), Ok(46));
    assert_eq!(alice.send(&[2; 7]), Err(kcp::SendError::Full { segments: 2, bytes: 46 }));
    assert_eq!((alice.send(&[2; 6]), alice.wait_snd()), (Ok(6), 2));
    assert_eq!(alice.send(&[3; 1]), Err(kcp::SendError::Full { segments: 2, bytes: 52 }));
}

#[test]
fn an_end_is_an_empty_message_even_in_a_stream_and_takes_a_segment() {
    for stream in [false, true] {
        let config = Config { snd_queue: 2, stream, ..configs::classic_turbo() };
        let (mut alice, mut bob) = (filled(&config, 1), kcp(&config));
        assert_eq!(alice.send_end(), Ok(()));
        assert_eq!(alice.send_end(), Err(kcp::SendError::Full { segments: 2, bytes: 1 }));
        for datagram in flushed(&mut alice, 0) {
            bob.input(Time::ZERO, &datagram.bytes()).unwrap();
        }
        let mut buf = [0; 8];
        assert_eq!([bob.recv_into(&mut buf), bob.recv_into(&mut buf)], [Ok(1), Ok(0)], "stream: {stream}");
        assert!(bob.recv_into(&mut buf).is_err());
    }
}

#[test]
fn a_larger_limit_applies_at_once_and_a_smaller_one_once_the_queue_fits() {
    let config = Config { snd_queue: 5, snd_wnd: 2, ..configs::classic_turbo() };
    let mut alice = filled(&config, 5);
    alice.configure(&Config { snd_queue: 6, ..config }).unwrap();
    assert_eq!(alice.send(b"x"), Ok(1));
    alice.configure(&Config { snd_queue: 3, ..config }).unwrap();
    for (ms, una, waiting) in [(0, 0, 4), (10, 2, 2)] {
        alice.input(Time::from_millis(ms), &Raw { una, ..Raw::wins(128) }.bytes()).unwrap();
        assert_eq!(flushed(&mut alice, ms).len(), 2);
        assert_eq!(alice.stats().snd_queue, waiting);
        assert_eq!(alice.send(b"x").is_ok(), waiting < 3);
    }
}

#[test]
fn a_sender_that_waits_when_the_queue_is_full_gets_everything_through() {
    for seed in 1..=5 {
        let config = Config { snd_queue: 20, snd_queue_bytes: 8000, snd_wnd: 64, ..configs::classic_turbo() };
        let mut pair = pair(config, lossy(0.1), seed);
        let (mut number, mut refused) = (0, 0);
        while number < 1000 {
            match pair.alice.send(numbered(number, number % 700)) {
                Ok(_) => number += 1,
                Err(error) => {
                    assert!(matches!(error, kcp::SendError::Full { .. }), "{error}");
                    refused += 1;
                    pair.run_for(Duration::from_millis(5));
                }
            }
            let stats = pair.alice.kcp.stats();
            assert!(stats.snd_queue <= 20 && stats.in_flight <= 64, "{stats:?}");
        }
        assert!(pair.run_until_idle(Duration::from_secs(10)), "never went quiet");
        pair.assert_delivered();
        assert!(refused > 100, "the queue was full only {refused} times");
        assert!(pair.now() < Time::from_millis(8000), "{}", pair.now());
    }
}
