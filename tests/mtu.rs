//! The mtu may change at any time: existing segments keep their size, new ones use the new mtu.

use crate::common;
use crate::common::configs;

use common::{Raw, Setup, Talk, clean, drain, flushed, kcp, lossy, numbered, pair};
use rand::RngExt;
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::{Config, InputError};
use whitewater_sim::SimRng;

/// Sizes of the datagrams that a flush at `ms` sends.
fn sizes(alice: &mut whitewater::kcp::Kcp<whitewater::machine::DatagramQueue>, ms: u64) -> Vec<usize> {
    alice.flush(Time::from_millis(ms));
    drain(alice).iter().map(Vec::len).collect()
}

#[test]
fn a_smaller_mtu_keeps_queued_segments_whole() {
    let (mut alice, mut bob) = (kcp(&configs::classic_turbo()), kcp(&configs::classic_turbo()));
    let messages = [numbered(0, 1376), numbered(1, 3), numbered(2, 3000), numbered(3, 100)];
    for message in &messages[..3] {
        alice.send(message).unwrap();
    }
    alice.configure(&Config { mtu: 50, ..configs::classic_turbo() }).unwrap();
    alice.send(&messages[3]).unwrap();
    alice.flush(Time::ZERO);
    let datagrams = drain(&mut alice);
    // Each of the larger ones alone, in a datagram that the old mtu allowed; the new ones fit the new mtu.
    assert_eq!(
        datagrams.iter().map(Vec::len).collect::<Vec<_>>(),
        [1400, 27, 1400, 1400, 272, 50, 50, 50, 46]
    );
    for datagram in &datagrams {
        bob.input(Time::ZERO, datagram).unwrap();
    }
    let received: Vec<_> = std::iter::from_fn(|| bob.recv()).collect();
    assert_eq!(received, messages);
}

#[test]
fn a_smaller_mtu_keeps_segments_in_flight_whole() {
    let mut alice = kcp(&configs::classic_turbo());
    let message = numbered(0, 5000);
    alice.send(&message).unwrap();
    let first = flushed(&mut alice, 0);
    alice.configure(&Config { mtu: 100, ..configs::classic_turbo() }).unwrap();
    let again = flushed(&mut alice, 200);
    let same = |push: &Raw| Raw { ts: 0, ..push.clone() };
    assert_eq!(again.iter().map(same).collect::<Vec<_>>(), first);
    assert_eq!(alice.stats().resends_timeout, 4);
}

#[test]
fn a_larger_mtu_packs_waiting_segments_tighter_and_makes_new_ones_larger() {
    let small = Config { mtu: 124, ..configs::classic_turbo() };
    let mut alice = kcp(&small);
    alice.send(&numbered(0, 1000)).unwrap();
    alice.configure(&Config { mtu: 1240, ..small }).unwrap();
    alice.send(&numbered(1, 1216)).unwrap();
    assert_eq!(sizes(&mut alice, 0), [1240, 1240]); // ten segments of 124 bytes, one of 1240
}

#[test]
fn a_stream_fills_segments_up_to_the_current_mtu() {
    let config = |mtu| Config { mtu, stream: true, ..configs::classic_turbo() };
    let mut alice = kcp(&config(124));
    alice.send(&numbered(0, 30)).unwrap();
    alice.configure(&config(224)).unwrap();
    alice.send(&numbered(1, 180)).unwrap(); // 170 of it fill up the first
    alice.configure(&config(50)).unwrap();
    alice.send(&numbered(2, 20)).unwrap(); // 16 of it fill up the second
    let pushes = flushed(&mut alice, 0);
    assert_eq!(pushes.iter().map(|push| push.data.len()).collect::<Vec<_>>(), [200, 26, 4]);
    let bytes: Vec<_> = pushes.into_iter().flat_map(|push| push.data).collect();
    assert_eq!(bytes, [numbered(0, 30), numbered(1, 180), numbered(2, 20)].concat());
}

#[test]
fn a_changing_mtu_loses_and_damages_nothing() {
    for stream in [false, true] {
        let (mut resends, mut segments) = (0, 0);
        for seed in 1..=10 {
            let config = Config { stream, snd_wnd: 128, ..configs::classic_turbo() };
            let mut pair = pair(config, lossy(0.05), seed);
            let mut rng = SimRng::new(seed, 9);
            for number in 0..100 {
                let mtu = [50, 51, 75, 200, 576, 1200, 1400, 1500][rng.random_range(0..8)];
                pair.alice.configure(|config| config.mtu = mtu);
                pair.send(numbered(number, rng.random_range(0..127 * 26)));
                pair.run_for(Duration::from_millis(rng.random_range(0..20)));
            }
            assert!(pair.run_until_idle(Duration::from_secs(60)), "never went quiet");
            if stream {
                pair.assert_streamed()
            } else {
                pair.assert_delivered()
            }
            let (alice, bob) = (pair.alice.kcp.stats(), pair.bob.kcp.stats());
            assert_eq!(bob.rejected.total(), 0, "{bob:?}");
            (resends, segments) = (resends + pair.resends(), segments + alice.snd_una.0);
        }
        let price = f64::from(resends) / f64::from(segments);
        assert!((0.04..0.15).contains(&price), "{price} resends a segment");
    }
}

#[test]
fn no_datagram_exceeds_the_largest_mtu_so_far() {
    let mut alice = kcp(&configs::classic_turbo());
    let mut largest = 0;
    let mut rng = SimRng::new(7, 1);
    for round in 0..200 {
        let mtu = u16::try_from(50 + rng.random_range(0..1350)).unwrap();
        alice.configure(&Config { mtu, snd_wnd: u16::MAX, ..configs::classic_turbo() }).unwrap();
        largest = largest.max(usize::from(mtu));
        alice.send(&numbered(round, rng.random_range(0..2 * usize::from(mtu)))).unwrap();
        let sizes = sizes(&mut alice, 0);
        assert!(sizes.iter().all(|size| *size <= largest), "{sizes:?} of {largest}");
        alice.input(Time::ZERO, &Raw { una: alice.stats().snd_nxt.0, ..Raw::wins(65_535) }.bytes()).unwrap();
        assert_eq!((alice.wait_snd(), alice.stats().resends_timeout), (0, 0));
    }
}

#[test]
fn a_datagram_above_rcv_mtu_is_rejected_and_one_of_exactly_rcv_mtu_is_not() {
    let config = Config { mtu: 1400, rcv_mtu: 1400, ..configs::classic_turbo() };
    let mut bob = kcp(&config);
    let push = |len| Raw::push(0, &numbered(1, len)).bytes();
    assert_eq!(bob.input(Time::ZERO, &push(1377)), Err(InputError::TooLong { have: 1401, max: 1400 }));
    assert_eq!((bob.stats().rejected.too_long, bob.stats().bytes_received), (1, 0));
    assert_eq!(bob.input(Time::ZERO, &push(1376)), Ok(()));
    bob.configure(&Config { rcv_mtu: 65_507, ..config }).unwrap();
    let large = Raw::push(1, &numbered(1, 65_483)).bytes();
    assert_eq!(bob.input(Time::ZERO, &large), Ok(()));
    assert_eq!((bob.recv().map(|message| message.len()), bob.peek_size()), (Some(1376), Some(65_483)));
}

#[test]
fn the_largest_mtu_carries_the_largest_messages() {
    let config = Config {
        mtu: 65_507,
        rcv_mtu: 65_507,
        snd_wnd: 128,
        snd_queue_bytes: 1 << 25,
        ..configs::classic_turbo()
    };
    let links = [lossy(0.1), clean()];
    let mut pair = Setup { links, ..Setup::new(config, clean(), 1) }.pair();
    let len = 127 * 65_483;
    pair.send(numbered(1, len));
    pair.send(numbered(2, len));
    assert!(pair.run_until_idle(Duration::from_secs(10)), "never went quiet");
    pair.assert_delivered();
    assert!((15..=60).contains(&pair.resends()), "{} of 254", pair.resends());
}
