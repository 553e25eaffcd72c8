//! Messages are split into segments and reassembled, whole or not at all; a stream is split anywhere and
//! loses nothing.

use crate::common;
use crate::common::configs;

use common::{Raw, Talk, clean, flushed, kcp, lossy, numbered, pair, presets, raw_segments};
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::wire::Command;
use whitewater::kcp::{self, Config, RecvError};

/// Minimum mtu, so that many fragments are few bytes.
fn small() -> Config {
    Config { mtu: 50, snd_wnd: 256, rcv_wnd: 256, ..configs::classic_turbo() }
}

const MSS: usize = 26;

#[test]
fn messages_of_1_to_127_fragments_arrive_whole_and_cost_a_header_per_fragment() {
    let mut pair = pair(small(), clean(), 1);
    let mut segments = 0;
    for count in 1..=127 {
        for len in [(count - 1) * MSS + 1, count * MSS - 1, count * MSS] {
            pair.send(numbered(len, len));
            segments += count as u64;
            assert!(pair.run_until_idle(Duration::from_secs(2)), "{len} bytes: never went quiet");
            let alice = pair.alice.kcp.stats();
            assert_eq!((alice.segments_sent, pair.resends()), (segments, 0), "{len} bytes");
        }
    }
    pair.assert_delivered();
    let payload: usize = pair.alice.sent.iter().map(Vec::len).sum();
    assert_eq!(pair.alice.kcp.stats().bytes_sent, payload as u64 + 24 * segments);
}

#[test]
fn fragments_count_down_to_0_and_all_but_the_last_are_full() {
    let mut alice = kcp(&small());
    alice.send(&numbered(1, 4 * MSS + 3)).unwrap();
    let sent: Vec<_> =
        flushed(&mut alice, 0).iter().map(|push| (push.sn, push.frg, push.data.len())).collect();
    assert_eq!(sent, [(0, 4, 26), (1, 3, 26), (2, 2, 26), (3, 1, 26), (4, 0, 3)]);
}

#[test]
fn a_message_of_128_fragments_is_refused_and_leaves_nothing_behind() {
    let (mut alice, fresh) = (kcp(&small()), kcp(&small()));
    let max = 127 * MSS;
    for len in [max + 1, 128 * MSS, 1 << 20] {
        assert_eq!(alice.send(&vec![0; len]), Err(kcp::SendError::TooLong { len, max }));
        assert_eq!(alice.send_bytes(vec![0; len].into()), Err(kcp::SendError::TooLong { len, max }));
    }
    assert_eq!((alice.wait_snd(), alice.stats()), (0, fresh.stats()));
    assert_eq!((alice.check(Time::ZERO), flushed(&mut alice, 0)), (None, Vec::new()));
    assert_eq!(alice.send(&vec![0; max]), Ok(max));
}

#[test]
fn messages_of_every_size_arrive_whole_under_loss() {
    for (name, config) in presets() {
        for seed in 1..=3 {
            let config = Config { snd_wnd: 128, ..config };
            let mut pair = pair(config, lossy(0.1), seed);
            let mss = usize::from(config.mss());
            let edges = [mss - 1, mss, mss + 1, 2 * mss - 1, 2 * mss, 2 * mss + 1];
            // With repairs, a longer message is cut into shorter segments.
            let longest = 127 * if ["auto", "repairs"].contains(&name) { mss - 5 } else { mss };
            let lens = [0, 1].into_iter().chain(edges).chain([40_000, 0, longest, 5]);
            for (number, len) in lens.enumerate() {
                pair.send(numbered(number, len));
            }
            assert!(pair.run_until_idle(Duration::from_secs(900)), "{name}: never went quiet");
            pair.assert_delivered();
            let resends = pair.alice.resends();
            assert!((8..=120).contains(&resends), "{name}: {resends} resends of 172 segments");
        }
    }
}

#[test]
fn the_largest_message_gets_through_the_smallest_windows() {
    let config = Config { snd_wnd: 1, rcv_wnd: 128, ..small() };
    let mut pair = pair(config, clean(), 1);
    for number in 0..3 {
        pair.send(numbered(number, 127 * MSS));
    }
    assert!(pair.run_until_idle(Duration::from_secs(60)), "never went quiet");
    pair.assert_delivered();
    assert_eq!((pair.resends(), pair.alice.kcp.stats().segments_sent), (0, 3 * 127));
}

#[test]
fn an_empty_message_is_a_message_and_costs_a_header() {
    let mut pair = pair(configs::classic_turbo(), clean(), 1);
    for len in [0, 3, 0, 0] {
        pair.send(numbered(1, len));
    }
    assert!(pair.run_until_idle(Duration::from_secs(1)), "never went quiet");
    pair.assert_delivered();
    assert_eq!(pair.alice.kcp.stats().bytes_sent, 4 * 24 + 3);
    pair.bob.reads = false;
    pair.send(Vec::new());
    pair.run_for(Duration::from_secs(1));
    assert_eq!((pair.bob.kcp.peek_size(), pair.bob.kcp.recv_into(&mut [])), (Some(0), Ok(0)));
    assert_eq!(pair.bob.kcp.recv_into(&mut []), Err(RecvError::NoMessage));
}

#[test]
fn an_incomplete_message_is_no_message() {
    let (mut alice, mut bob) = (kcp(&small()), kcp(&small()));
    let message = numbered(1, 100);
    alice.send(&message).unwrap();
    let fragments = flushed(&mut alice, 0);
    assert_eq!(fragments.len(), 4);
    let mut buf = [0; 100];
    for arrives in [1, 0, 3, 2] {
        assert_eq!((bob.peek_size(), bob.recv()), (None, None));
        assert_eq!(bob.recv_into(&mut buf), Err(RecvError::NoMessage));
        assert_eq!(bob.peek(&mut buf), Err(RecvError::NoMessage));
        bob.input(Time::ZERO, &fragments[arrives].bytes()).unwrap();
    }
    assert_eq!(bob.peek_size(), Some(100));
    let too_small = RecvError::BufferTooSmall { have: 99, need: 100 };
    assert_eq!(bob.recv_into(&mut buf[..99]), Err(too_small));
    assert_eq!(bob.peek(&mut buf[..99]), Err(too_small));
    assert_eq!((bob.peek(&mut buf), buf.to_vec()), (Ok(100), message.clone()));
    buf.fill(0);
    assert_eq!((bob.recv_into(&mut buf), buf.to_vec()), (Ok(100), message));
    assert_eq!(bob.recv_into(&mut buf), Err(RecvError::NoMessage));
}

#[test]
fn a_stream_fills_up_segments_and_its_bytes_arrive_intact() {
    let config = Config { stream: true, ..configs::classic_turbo() };
    let mut pair = pair(config, clean(), 1);
    for number in 0..1000 {
        pair.send(numbered(number, 10));
    }
    assert!(pair.run_until_idle(Duration::from_secs(1)), "never went quiet");
    pair.assert_streamed();
    let alice = pair.alice.kcp.stats();
    assert_eq!((alice.segments_sent, alice.bytes_sent), (8, 10_000 + 8 * 24), "10,000 bytes are 8 segments");
    assert_eq!(
        pair.bob.received.iter().map(Vec::len).collect::<Vec<_>>(),
        [vec![1376; 7], vec![368]].concat()
    );
}

#[test]
fn a_stream_of_random_sends_arrives_intact_under_loss() {
    for (name, config) in presets() {
        for seed in 1..=3 {
            let config = Config { stream: true, snd_wnd: 128, ..config };
            let mut pair = pair(config, lossy(0.1), seed);
            for number in 0..60 {
                pair.send(numbered(number, number * 379 % 5000));
                pair.reply(numbered(number, number % 3));
                pair.run_for(Duration::from_millis(5));
            }
            assert!(pair.run_until_idle(Duration::from_secs(900)), "{name}: never went quiet");
            pair.assert_streamed();
            let stats = pair.alice.kcp.stats();
            let bytes: usize = pair.alice.sent.iter().map(Vec::len).sum();
            let sent_once = stats.snd_una.0 as usize;
            assert!(sent_once <= bytes / 1376 + 60, "{name}: {sent_once} segments of {bytes} bytes");
        }
    }
}

#[test]
fn an_empty_send_adds_nothing_to_a_stream() {
    let mut alice = kcp(&Config { stream: true, ..configs::classic_turbo() });
    assert_eq!((alice.send(b""), alice.wait_snd(), alice.check(Time::ZERO)), (Ok(0), 0, None));
    assert_eq!((alice.send(b"some"), alice.send(b""), alice.wait_snd()), (Ok(4), Ok(0), 1));
    assert_eq!(flushed(&mut alice, 0), [Raw::push(0, b"some")]);
}

#[test]
fn a_full_stream_accepts_what_fills_up_the_last_segment() {
    let config = Config { stream: true, ..small() };
    let mut alice = kcp(&config);
    let data = numbered(1, 200 * MSS);
    let max = 127 * MSS;
    assert_eq!(alice.send(&data), Err(kcp::SendError::TooLong { len: data.len(), max }));
    assert_eq!(alice.send(&data[..20]), Ok(20));
    assert_eq!(alice.send(&data[20..]), Ok(6), "the last segment had room for 6");
    assert_eq!(alice.send(&data[26..]), Err(kcp::SendError::TooLong { len: data.len() - 26, max }));
    assert_eq!(alice.send(&data[26..26 + max]), Ok(max));
    let sent = flushed(&mut alice, 0);
    assert!(sent.iter().all(|push| push.cmd == Command::Push && push.frg == 0 && push.data.len() == MSS));
    assert_eq!(sent.iter().flat_map(|push| push.data.clone()).collect::<Vec<_>>(), data[..26 + max]);
}

#[test]
fn a_sender_that_retries_the_refused_bytes_streams_everything() {
    let config = Config { stream: true, snd_queue: 40, ..small() };
    for seed in 1..=3 {
        let mut pair = pair(config, lossy(0.05), seed);
        let data = numbered(1, 30_000);
        let mut at = 0;
        while at < data.len() {
            let end = data.len().min(at + 500);
            match pair.alice.send(data[at..end].to_vec()) {
                Ok(taken) => at += taken,
                Err(error) => assert!(matches!(error, kcp::SendError::Full { .. }), "{error}"),
            }
            pair.run_for(Duration::from_millis(3));
        }
        assert!(pair.run_until_idle(Duration::from_secs(30)), "never went quiet");
        pair.assert_streamed();
        assert_eq!(pair.alice.sent.concat(), data);
    }
}

#[test]
fn a_datagram_is_filled_up_to_the_mtu_and_no_further() {
    for len in [1, 100, 652, 664, 665, 1376] {
        let mut alice = kcp(&configs::classic_turbo());
        for number in 0..30 {
            alice.send(&numbered(number, len)).unwrap();
        }
        alice.flush(Time::ZERO);
        let datagrams = common::drain(&mut alice);
        let fit = 1400 / (24 + len);
        assert_eq!(datagrams.len(), 30usize.div_ceil(fit), "{len} bytes");
        assert!(datagrams.iter().all(|datagram| datagram.len() <= 1400));
        assert_eq!(raw_segments(&datagrams).len(), 30);
    }
}
