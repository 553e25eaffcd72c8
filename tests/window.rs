//! The windows of both ends limit what is in flight and what is held, and a closed one reopens.

use crate::common;
use crate::common::configs;

use common::{Raw, Setup, Talk, clean, flushed, kcp, lossy, numbered, numbers, pair};
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::wire::Command;
use whitewater::kcp::{Config, Kcp};
use whitewater::machine::DatagramQueue;
use whitewater_sim::Drive;

#[test]
fn no_more_than_the_send_window_is_in_flight() {
    let mut alice = kcp(&Config { snd_wnd: 5, ..configs::classic_turbo() });
    for number in 0..20 {
        alice.send(&numbered(number, 100)).unwrap();
    }
    assert_eq!(numbers(&flushed(&mut alice, 0), Command::Push), [0, 1, 2, 3, 4]);
    assert_eq!(flushed(&mut alice, 10), []);
    alice.input(Time::from_millis(20), &Raw { una: 2, ..Raw::ack(3, 0) }.bytes()).unwrap();
    // 3 is acknowledged, but the window starts at 2.
    assert_eq!(numbers(&flushed(&mut alice, 20), Command::Push), [5, 6]);
    assert_eq!((alice.stats().in_flight, alice.stats().snd_queue), (4, 13));
}

#[test]
fn no_more_than_the_peers_window_is_in_flight() {
    let mut alice = kcp(&configs::classic_turbo());
    alice.input(Time::ZERO, &Raw::wins(3).bytes()).unwrap();
    for number in 0..20 {
        alice.send(&numbered(number, 100)).unwrap();
    }
    assert_eq!(numbers(&flushed(&mut alice, 0), Command::Push), [0, 1, 2]);
    alice.input(Time::from_millis(10), &Raw::wins(7).bytes()).unwrap();
    assert_eq!(numbers(&flushed(&mut alice, 10), Command::Push), [3, 4, 5, 6]);
    alice.input(Time::from_millis(20), &Raw::wins(1).bytes()).unwrap();
    assert_eq!(flushed(&mut alice, 20), [], "it shrank below what is in flight");
}

#[test]
fn a_late_segment_does_not_override_a_newer_window() {
    let mut alice = kcp(&configs::turbo());
    for (sn, wnd) in [(0, 100), (1, 128), (2, 7), (3, 7)] {
        alice.input(Time::ZERO, &Raw { wnd, ..Raw::push(sn, b"next") }.bytes()).unwrap();
        assert_eq!(alice.recv().unwrap(), "next");
    }
    assert_eq!(alice.stats().rmt_wnd, 128);
}

#[test]
fn an_end_whose_window_reopened_is_not_idle_before_four_updates() {
    let mut bob = kcp(&configs::turbo());
    for sn in 0..128 {
        bob.input(Time::ZERO, &Raw::push(sn, b"fills").bytes()).unwrap();
    }
    assert!(flushed(&mut bob, 0).iter().all(|segment| segment.wnd == 0), "closed");
    while bob.recv().is_some() {}
    let (mut now, mut told) = (10, Vec::new());
    while !bob.is_idle() {
        assert!(now < 1_000, "never went quiet");
        bob.update(Time::from_millis(now));
        told.extend(
            common::raw_segments(common::drain(&mut bob))
                .into_iter()
                .map(|segment| (segment.cmd, segment.wnd)),
        );
        now += 10;
    }
    assert_eq!(told, [(Command::Wins, 128); 4]);
}

#[test]
fn a_large_window_is_sent_at_once_and_takes_one_round_trip() {
    let config = Config { snd_wnd: 8192, rcv_wnd: 8192, snd_queue: 8192, ..configs::classic_turbo() };
    let mut pair = pair(config, clean(), 1);
    pair.alice.kcp.input(Time::ZERO, &Raw::wins(8192).bytes()).unwrap();
    for number in 0..8192 {
        pair.send(numbered(number, 64));
    }
    assert!(pair.run_until_idle(Duration::from_secs(1)), "never went quiet");
    pair.assert_delivered();
    assert_eq!((pair.resends(), pair.links[0].stats().sent), (0, 8192 / 15 + 1));
    assert!(pair.now() <= Time::from_millis(80), "{}", pair.now());
}

#[test]
fn unread_data_closes_the_window_and_takes_at_most_two_windows() {
    for drive in [Drive::CHECK, Drive::BEAT, Drive::CHECK.flushing()] {
        let config = Config { snd_wnd: 1024, ..configs::classic_turbo() };
        let mut pair = Setup { drive, ..Setup::new(config, lossy(0.05), 2) }.pair();
        pair.bob.reads = false;
        for number in 0..600 {
            pair.send(numbered(number, 100));
        }
        pair.run_for(Duration::from_secs(4));
        let bob = pair.bob.kcp.stats();
        assert_eq!((bob.rcv_queue, pair.alice.kcp.stats().rmt_wnd), (128, 0), "{drive:?}");
        assert!(bob.rcv_buf <= 128, "{drive:?}: {} held behind a full queue", bob.rcv_buf);
        pair.bob.reads = true;
        pair.read(usize::MAX);
        assert!(pair.run_until_idle(Duration::from_secs(20)), "{drive:?}: never went quiet");
        pair.assert_delivered();
    }
}

#[test]
fn a_closed_window_is_probed_after_5_s_and_then_1_5_times_as_long_up_to_2_minutes() {
    let mut alice = kcp(&configs::classic_turbo());
    alice.update(Time::ZERO);
    alice.input(Time::ZERO, &Raw::wins(0).bytes()).unwrap();
    alice.send(b"waits").unwrap();
    let (mut now, mut asked, mut updates) = (Time::ZERO, vec![10], 0);
    while let Some(at) = alice.check(now).filter(|at| *at < Time::from_millis(1_000_000)) {
        now = at;
        alice.update(now);
        updates += 1;
        let sent = common::raw_segments(common::drain(&mut alice));
        assert!(sent.iter().all(|segment| segment.cmd == Command::Wask), "{sent:?}");
        asked.extend(sent.iter().map(|_| now.as_millis()));
    }
    let waits: Vec<_> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(waits[..9], [5000, 7500, 11_250, 16_875, 25_312, 37_968, 56_952, 85_428, 120_000]);
    assert!(waits[9..].iter().all(|wait| *wait == 120_000), "{waits:?}");
    assert_eq!(updates, asked.len(), "one wake-up per probe, and one to start");
}

#[test]
fn a_closed_window_reopens_within_a_round_trip_of_the_read() {
    for (read, wins) in [(1, 1), (128, 128)] {
        let mut pair = pair(Config { snd_wnd: 128, ..configs::classic_turbo() }, clean(), 1);
        pair.bob.reads = false;
        for number in 0..200 {
            pair.send(numbered(number, 100));
        }
        pair.run_for(Duration::from_secs(2));
        assert_eq!(pair.alice.kcp.stats().rmt_wnd, 0);
        let (start, resends) = (pair.now(), pair.resends());
        pair.read(read);
        assert!(pair.run_until(Duration::from_secs(1), |pair| pair.alice.kcp.stats().rmt_wnd == wins));
        assert!(pair.now().since(start) <= Duration::from_millis(40), "{:?}", pair.now().since(start));
        pair.bob.reads = true;
        pair.read(usize::MAX);
        assert!(pair.run_until_idle(Duration::from_secs(2)), "never went quiet");
        pair.assert_delivered();
        assert_eq!(pair.resends(), resends);
    }
}

#[test]
fn a_lost_window_update_costs_the_wait_for_the_next_probe() {
    let mut pair = pair(Config { snd_wnd: 128, ..configs::classic_turbo() }, clean(), 1);
    pair.bob.reads = false;
    for number in 0..200 {
        pair.send(numbered(number, 100));
    }
    pair.run_for(Duration::from_secs(1));
    assert_eq!((pair.alice.kcp.stats().rmt_wnd, pair.alice.kcp.wait_snd()), (0, 72));
    pair.links[1].set(lossy(1.0)).unwrap();
    pair.read(128);
    pair.run_for(Duration::from_secs(1));
    pair.links[1].set(clean()).unwrap();
    pair.bob.reads = true;
    assert!(pair.run_until_idle(Duration::from_secs(10)), "never went quiet");
    pair.assert_delivered();
    // Closed after 40 ms, probed 5 s later; then one round trip for the probe and two for the rest.
    assert!((5.0..5.3).contains(&pair.now().since(Time::ZERO).as_secs_f64()), "{}", pair.now());
}

#[test]
fn a_slow_reader_gets_everything_and_never_more_than_it_has_room_for() {
    for (seed, loss) in [(1, 0.0), (2, 0.1)] {
        let config = Config { snd_wnd: 256, ..configs::classic_turbo() };
        let mut pair = pair(config, lossy(loss), seed);
        pair.bob.reads = false;
        for number in 0..1000 {
            pair.send(numbered(number, 100));
        }
        while pair.bob.received.len() < 1000 {
            pair.run_for(Duration::from_millis(50));
            pair.read(20);
            let bob = pair.bob.kcp.stats();
            assert!(bob.rcv_queue <= 128 && bob.rcv_buf <= 128, "{bob:?}");
            assert!(pair.now() < Time::from_millis(20_000), "{bob:?}");
        }
        assert!(pair.run_until_idle(Duration::from_secs(10)), "never went quiet");
        pair.assert_delivered();
        let (resends, window) = (pair.resends(), pair.bob.kcp.stats().rejected.window);
        assert_eq!(window, 0, "a segment left that the window had no room for");
        assert!(resends <= if loss > 0.0 { 400 } else { 0 }, "{resends} of 1000 at {loss}");
    }
}

#[test]
fn windows_may_change_while_running() {
    for seed in 1..=10 {
        let config = Config { snd_wnd: 256, rcv_wnd: 256, ..configs::classic_turbo() };
        let mut pair = pair(config, lossy(0.1), seed);
        let windows = [(8, 128), (300, 1024), (1, 200), (64, 4096), (32, 128), (256, 256)];
        for (step, (snd_wnd, rcv_wnd)) in windows.into_iter().enumerate() {
            for number in 0..100 {
                pair.send(numbered(100 * step + number, 300));
                pair.reply(numbered(100 * step + number, 100));
            }
            pair.alice.configure(|config| config.snd_wnd = snd_wnd);
            pair.bob.configure(|config| config.rcv_wnd = rcv_wnd);
            pair.run_for(Duration::from_millis(300));
            let bob = pair.bob.kcp.stats();
            assert!(bob.rcv_queue + bob.rcv_buf <= 2 * 4096, "{bob:?}");
        }
        assert!(pair.run_until_idle(Duration::from_secs(20)), "never went quiet");
        pair.assert_delivered();
    }
}

#[test]
fn a_smaller_send_window_sends_nothing_until_the_data_in_flight_fits() {
    let mut alice = kcp(&Config { snd_wnd: 64, ..configs::classic_turbo() });
    for number in 0..100 {
        alice.send(&numbered(number, 10)).unwrap();
    }
    assert_eq!(flushed(&mut alice, 0).len(), 64);
    alice.configure(&Config { snd_wnd: 10, ..*alice.config() }).unwrap();
    for (una, new) in [(30, 0), (54, 0), (55, 1), (64, 9), (65, 1)] {
        alice.input(Time::from_millis(20), &Raw { una, ..Raw::wins(128) }.bytes()).unwrap();
        assert_eq!(flushed(&mut alice, 20).len(), new, "una {una}");
    }
}

#[test]
fn a_smaller_receive_window_keeps_received_data() {
    let config = Config { snd_wnd: 512, rcv_wnd: 512, ..configs::classic_turbo() };
    let mut pair = pair(config, clean(), 1);
    pair.bob.reads = false;
    pair.alice.kcp.input(Time::ZERO, &Raw::wins(512).bytes()).unwrap();
    for number in 0..600 {
        pair.send(numbered(number, 50));
    }
    pair.run_for(Duration::from_millis(35)); // the first 512 have arrived, and nothing has gone back
    pair.bob.configure(|config| config.rcv_wnd = 128);
    pair.run_for(Duration::from_millis(200));
    assert_eq!((pair.bob.kcp.stats().rcv_queue, pair.alice.kcp.stats().rmt_wnd), (512, 0));
    pair.read(384);
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.alice.kcp.stats().rmt_wnd, 0, "completely full now");
    pair.bob.reads = true;
    pair.read(1);
    assert!(pair.run_until_idle(Duration::from_secs(1)), "never went quiet");
    pair.read(usize::MAX);
    assert!(pair.run_until_idle(Duration::from_secs(1)), "never went quiet");
    pair.assert_delivered();
    assert_eq!(pair.resends(), 0);
}

#[test]
fn a_larger_receive_window_admits_segments_parked_behind_a_full_queue() {
    let mut bob = kcp(&configs::classic_turbo());
    for sn in 0..256 {
        bob.input(Time::ZERO, &Raw::push(sn, &sn.to_le_bytes()).bytes()).unwrap();
    }
    assert_eq!((bob.stats().rcv_queue, bob.stats().rcv_buf), (128, 128));
    bob.configure(&Config { rcv_wnd: 512, ..configs::classic_turbo() }).unwrap();
    let mut buf = [0; 4];
    for sn in 0..256u32 {
        assert_eq!((bob.recv_into(&mut buf), buf), (Ok(4), sn.to_le_bytes()));
    }
    assert_eq!(numbers(&flushed(&mut bob, 10), Command::Ack).len(), 256);
}

#[test]
fn a_smaller_receive_window_that_a_read_opens_is_announced() {
    let wide = |rcv_wnd| Config { rcv_wnd, ..configs::classic_turbo() };
    let mut bob = kcp(&wide(512));
    for sn in 0..200 {
        bob.input(Time::ZERO, &Raw::push(sn, b"held").bytes()).unwrap();
    }
    bob.configure(&wide(200)).unwrap();
    flushed(&mut bob, 10);
    assert_eq!(bob.recv_into(&mut [0; 4]), Ok(4));
    let told: Vec<_> = flushed(&mut bob, 20).iter().map(|raw| (raw.cmd, raw.wnd)).collect();
    assert!(told == [(Command::Wins, 1)], "{told:?}");
    bob.configure(&wide(128)).unwrap();
    bob.input(Time::ZERO, &Raw::push(200, b"late").bytes()).unwrap();
    assert_eq!((bob.stats().rcv_queue, bob.stats().rcv_buf), (199, 1));
    for left in (0..200).rev() {
        assert_eq!(bob.recv_into(&mut [0; 4]), Ok(4));
        assert_eq!(bob.stats().rcv_queue + bob.stats().rcv_buf, left);
    }
}

/// A peer whose receive window is 1: segments beyond the number it expects are dropped.
#[test]
fn a_peer_with_a_small_first_window_is_never_sent_more_than_it_accepts() {
    for config in [configs::turbo(), configs::classic_turbo()] {
        // It sends first, and then answers each segment.
        for first in [Raw { wnd: 1, ..Raw::push(0, b"hello") }, Raw::wins(1)] {
            let mut alice = kcp(&config);
            alice.input(Time::ZERO, &first.bytes()).unwrap();
            assert_eq!(alice.stats().rmt_wnd, 1);
            for number in 0..20 {
                alice.send(&numbered(number, 100)).unwrap();
            }
            for una in 0..20 {
                let now = 10 * u64::from(una);
                let sent = flushed(&mut alice, now);
                assert_eq!(numbers(&sent, Command::Push), [una], "{first:?}");
                let ts = sent.last().unwrap().ts;
                let ack = Raw { una: una + 1, wnd: 1, ..Raw::ack(una, ts) };
                alice.input(Time::from_millis(now + 5), &ack.bytes()).unwrap();
            }
            assert_eq!(alice.wait_snd(), 0);
        }
    }
}

#[test]
fn a_peer_with_a_closed_first_window_is_probed_and_sent_nothing() {
    let mut alice = kcp(&configs::turbo());
    alice.input(Time::ZERO, &Raw { wnd: 0, ..Raw::push(0, b"full") }.bytes()).unwrap();
    alice.send(b"waits").unwrap();
    let sent = |alice: &mut Kcp<DatagramQueue>, now| {
        alice.update(now);
        common::raw_segments(common::drain(alice)).iter().map(|raw| raw.cmd).collect::<Vec<_>>()
    };
    assert_eq!(sent(&mut alice, Time::ZERO), [Command::Ack]);
    let asked = alice.check(Time::ZERO).unwrap();
    assert_eq!((asked, sent(&mut alice, asked)), (Time::from_millis(200), vec![Command::Wask]));
    // An update that opens it counts, and older ones do not close it again.
    for wnd in [9, 0] {
        alice.input(asked, &Raw::wins(wnd).bytes()).unwrap();
        assert_eq!(alice.stats().rmt_wnd, 9);
    }
    assert_eq!(sent(&mut alice, asked), [Command::Push]);
}

/// The first one is received while something is in flight, in the kind of datagram that has a fast path.
#[test]
fn the_first_window_received_counts_while_data_is_in_flight() {
    for config in [configs::turbo(), configs::classic_turbo()] {
        let mut alice = kcp(&config);
        alice.send(b"in flight").unwrap();
        assert_eq!(numbers(&flushed(&mut alice, 0), Command::Push), [0]);
        alice.input(Time::from_millis(5), &Raw { wnd: 1, ..Raw::push(0, b"hello") }.bytes()).unwrap();
        assert_eq!(alice.stats().rmt_wnd, 1);
        alice.send(b"waits").unwrap();
        assert!(numbers(&flushed(&mut alice, 6), Command::Push).is_empty());
    }
}
