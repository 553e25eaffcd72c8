//! The traps of ikcp.c that no other file covers. docs/DEVIATIONS.md says how each of T1 to T30 is handled;
//! the tests are
//!
//! - T1, T27 in `congestion.rs`; T2 in `mtu.rs`; T3, T5, T6, T16, T17 in `hostile.rs`,
//! - T10, T11 in `dead_link.rs`; T20, T21, T25 in `fragments.rs`; T24 in `backpressure.rs`, its
//!   memory in `memory.rs`; T29, T30 in `cost.rs`; T8 beside `Config::check`,
//! - T26, a log formatted into a fixed buffer, cannot occur: the `log` crate formats,
//! - all others here.
//!
//! What is copied on purpose is tested as it is in ikcp.c, so that it does not change unnoticed.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;

use common::{CONV, Raw, Talk, clean, drain, flushed, kcp, numbered, numbers, pair, presets, raw_segments};
use std::time::Duration;
use whitewater::inside::congestion::KcpControl;
use whitewater::kcp::congestion::CongestionControl;
use whitewater::kcp::wire::{Command, conv_of};
use whitewater::kcp::{Config, Congestion, Conv, Kcp, Sn};
use whitewater::machine::DatagramQueue;
use whitewater::{ConfigError, Time};

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// `count` segments of 10 bytes in flight since time 0.
fn in_flight(config: &Config, count: usize) -> Kcp<DatagramQueue> {
    let mut alice = kcp(config);
    for number in 0..count {
        alice.send(&numbered(number, 10)).unwrap();
    }
    assert_eq!(flushed(&mut alice, 0).len(), count);
    alice
}

#[test]
fn a_restarted_receiver_acks_what_it_cannot_deliver() {
    // T4. Bare KCP cannot detect a restart; a session has a handshake.
    let mut bob = kcp(&configs::classic_turbo());
    bob.input(ms(0), &Raw::push(50, b"from before the restart").bytes()).unwrap();
    assert_eq!(flushed(&mut bob, 10), [Raw { ts: 0, ..Raw::ack(50, 0) }]);
    assert_eq!((bob.peek_size(), bob.stats().rcv_buf), (None, 1));
    // A number in an old window lies beyond the new one, and is not acknowledged.
    bob.input(ms(20), &Raw::push(128, b"from long before").bytes()).unwrap();
    assert_eq!(flushed(&mut bob, 20), []);
}

#[test]
fn acks_of_one_datagram_count_as_one_from_the_first() {
    // T7. 0 to 5 are sent, 1 is lost.
    let acks: Vec<_> = [0, 2, 3, 4, 5].map(|sn| Raw { una: 1, ..Raw::ack(sn, 0) }).to_vec();
    let resent = |datagrams: &[Vec<u8>]| {
        let mut alice = in_flight(&Config { fast_resend: 1, ..configs::classic_turbo() }, 6);
        for datagram in datagrams {
            alice.input(ms(30), datagram).unwrap();
        }
        numbers(&flushed(&mut alice, 30), Command::Push)
    };
    assert!(resent(&[Raw::datagram(&acks)]).is_empty());
    assert_eq!(resent(&acks.iter().map(Raw::bytes).collect::<Vec<_>>()), [1]);
}

#[test]
fn the_peers_window_is_taken_from_any_segment_however_old() {
    // T9. A reordered datagram closes it until the probe after 5 s.
    let mut pair = pair(configs::classic_turbo(), clean(), 1);
    pair.send_numbered(5);
    assert!(pair.run_until_idle(Duration::from_secs(1)), "never went quiet");
    let stale = Raw { una: 1, wnd: 0, ..Raw::ack(0, 0) };
    let time = pair.alice.time(pair.now());
    pair.alice.kcp.input(time, &stale.bytes()).unwrap();
    let start = pair.now();
    pair.send_numbered(1);
    assert!(pair.run_until_idle(Duration::from_secs(10)), "never went quiet");
    pair.assert_delivered();
    let wait = pair.now().since(start);
    assert!((Duration::from_millis(5000)..Duration::from_millis(5200)).contains(&wait), "{wait:?}");
}

#[test]
fn with_a_congestion_window_the_first_flush_sends_no_data() {
    // T12.
    for (name, config) in presets().map(|(name, config)| (name, configs::classic(config))) {
        let mut alice = kcp(&config);
        alice.send(b"hello").unwrap();
        assert_eq!(
            flushed(&mut alice, 0).len(),
            usize::from(config.congestion == Congestion::None),
            "{name}"
        );
        assert_eq!(
            flushed(&mut alice, 10).len(),
            usize::from(config.congestion != Congestion::None),
            "{name}"
        );
    }
}

#[test]
fn slow_start_ends_at_2_and_grows_one_step_per_datagram() {
    // T13. The window at the start of each of 8 round trips with one cumulative acknowledgement.
    let mut alice = kcp(&configs::classic_normal());
    for number in 0..100 {
        alice.send(&numbered(number, 1376)).unwrap();
    }
    alice.flush(ms(0));
    let mut flights = Vec::new();
    for round in 1..=8 {
        flights.push(flushed(&mut alice, round * 100).len());
        let una = alice.stats().snd_nxt.0;
        let ack = Raw { una, ..Raw::ack(una - 1, u32::try_from(round).unwrap() * 100) };
        alice.input(ms(round * 100 + 50), &ack.bytes()).unwrap();
    }
    assert_eq!(flights, [1, 2, 2, 4, 4, 4, 4, 4]);
}

#[test]
fn input_measures_with_the_time_it_is_passed() {
    // T14. Last updated at 0, acknowledged at 37.5 ms, and not at the next update.
    let mut alice = kcp(&Config { interval: 100, ..configs::classic_turbo() });
    alice.send(b"ping").unwrap();
    alice.update(ms(0));
    assert_eq!(drain(&mut alice).len(), 1);
    alice.input(Time::from_micros(37_500), &Raw { una: 1, ..Raw::ack(0, 0) }.bytes()).unwrap();
    assert_eq!(alice.stats().srtt, Duration::from_millis(37));
    assert_eq!(alice.stats().min_rtt, Some(Duration::from_millis(37)));
    // What a flush sends carries the time of the flush and is resent by it.
    alice.send(b"pong").unwrap();
    let sent = flushed(&mut alice, 61);
    assert_eq!((sent[0].ts, alice.check(ms(61)).is_some()), (61, true));
    let rto = u64::try_from(alice.stats().rto.as_millis()).unwrap();
    assert_eq!(flushed(&mut alice, 61 + rto - 1), []);
    assert_eq!(flushed(&mut alice, 61 + rto).len(), 1);
}

#[test]
fn a_round_trip_of_0_ms_does_not_count_as_a_sample() {
    // T15. On a LAN each sample starts over until one is not 0.
    let mut alice = in_flight(&configs::classic_turbo(), 4);
    for (sn, at, srtt) in [(0, 0, 0), (1, 0, 0), (2, 8, 8), (3, 16, 9)] {
        alice.input(ms(at), &Raw { una: sn + 1, ..Raw::ack(sn, 0) }.bytes()).unwrap();
        assert_eq!(alice.stats().srtt, Duration::from_millis(srtt), "{sn}");
    }
    assert_eq!(alice.stats().min_rtt, Some(Duration::ZERO));
}

#[test]
fn questions_and_answers_about_windows_carry_the_last_ack_of_the_flush() {
    // T18.
    let mut bob = kcp(&configs::classic_turbo());
    let segments =
        [Raw { ts: 776, ..Raw::push(0, b"a") }, Raw { ts: 777, ..Raw::push(1, b"b") }, Raw::wask()];
    bob.input(ms(0), &Raw::datagram(&segments)).unwrap();
    let sent = flushed(&mut bob, 10);
    assert_eq!(sent[2], Raw { cmd: Command::Wins, ..sent[1].clone() });
    assert_eq!((sent[2].sn, sent[2].ts, sent[2].una), (1, 777, 2));
    bob.input(ms(20), &Raw::wask().bytes()).unwrap();
    assert_eq!(flushed(&mut bob, 20), [Raw { una: 2, wnd: 126, ..Raw::wins(0) }]);
}

#[test]
fn a_clock_that_steps_back_stops_the_flushes_for_at_most_10_s() {
    // T19. `Time` must come from a monotonic clock; without one nothing is lost for good.
    for (back, silent) in [(5000, 5010), (9990, 10_000), (10_000, 0), (60_000, 0)] {
        let mut alice = kcp(&configs::classic_turbo());
        alice.update(ms(100_000));
        alice.send(b"hello").unwrap();
        let start = 100_000 - back;
        let sent = (start..start + 20_000).find(|at| {
            alice.update(ms(*at));
            !drain(&mut alice).is_empty()
        });
        assert_eq!(sent, Some(start + silent), "{back} ms back");
    }
}

#[test]
fn a_clock_that_jumps_ahead_times_out_what_is_in_flight_once() {
    // T19, the other way round.
    let mut alice = in_flight(&configs::classic_turbo(), 10);
    alice.update(ms(3_600_000));
    assert_eq!(numbers(&raw_segments(drain(&mut alice)), Command::Push), (0..10).collect::<Vec<_>>());
    alice.update(ms(3_600_010));
    assert_eq!(drain(&mut alice), Vec::<Vec<u8>>::new());
    assert_eq!(alice.stats().resends_timeout, 10);
}

#[test]
fn a_timeout_does_not_clear_the_count_of_later_acks() {
    // T22. One later ACK before the timeout and one after it cause a fast resend.
    let mut alice = in_flight(&configs::classic_turbo(), 4);
    alice.input(ms(30), &Raw::ack(1, 0).bytes()).unwrap();
    assert_eq!(numbers(&flushed(&mut alice, 200), Command::Push), [0, 2, 3]);
    alice.input(ms(230), &Raw::ack(2, 200).bytes()).unwrap();
    assert_eq!(numbers(&flushed(&mut alice, 230), Command::Push), [0]);
    assert_eq!((alice.stats().resends_timeout, alice.stats().resends_fast), (3, 1));
}

#[test]
fn timeouts_use_up_the_fast_resends_of_a_segment() {
    // T23. After `fast_limit` transmissions of any kind, later ACKs have no effect.
    for (timeouts, fast) in [(0, 3), (2, 1), (3, 0)] {
        let mut alice = in_flight(&Config { fast_resend: 1, fast_limit: 3, ..configs::classic_turbo() }, 20);
        let mut now = 0;
        for _ in 0..timeouts {
            now += 10_000;
            flushed(&mut alice, now);
        }
        now += 1;
        for sn in 1..10 {
            alice.input(ms(now), &Raw::ack(sn, u32::try_from(now).unwrap()).bytes()).unwrap();
            flushed(&mut alice, now);
        }
        assert_eq!(alice.stats().resends_fast, fast, "after {timeouts} timeouts");
    }
}

#[test]
fn a_timeout_halves_the_window_as_it_was_before_the_flush() {
    // T28. Grown to 9 by the peer's window, with one segment in flight.
    let mut control = KcpControl::default();
    control.on_tick(ms(0), 1376);
    let mut alice = kcp(&Config { snd_wnd: 4, ..configs::classic_normal() });
    alice.flush(ms(0));
    let mut now = 0;
    while alice.stats().cwnd < 9 {
        alice.send(b"x").unwrap();
        now += 10;
        flushed(&mut alice, now);
        let una = alice.stats().snd_nxt.0;
        alice.input(ms(now), &Raw { una, ..Raw::wins(128) }.bytes()).unwrap();
    }
    let cwnd = alice.stats().cwnd;
    alice.send(b"lost").unwrap();
    flushed(&mut alice, now);
    flushed(&mut alice, now + 1000);
    assert_eq!((alice.stats().cwnd, alice.stats().ssthresh), (1, Some(cwnd / 2)), "not of snd_wnd, 4");
}

#[test]
fn a_receive_window_that_the_wire_cannot_represent_is_refused() {
    // T8. 65,536 would be sent as 0. The type of the setting makes that impossible.
    assert_eq!(Config { rcv_wnd: u16::MAX, ..configs::classic_turbo() }.check(), Ok(()));
    let error = Config { rcv_wnd: 127, ..configs::classic_turbo() }.check().unwrap_err();
    assert!(matches!(error, ConfigError { field: "rcv_wnd", value: 127, min: 128, max: 65_535, .. }));
    let mut bob = kcp(&Config { rcv_wnd: u16::MAX, ..configs::classic_turbo() });
    bob.input(ms(0), &Raw::wask().bytes()).unwrap();
    assert_eq!(flushed(&mut bob, 0), [Raw::wins(u16::MAX)]);
}

#[test]
fn an_invalid_config_changes_nothing() {
    let mut alice = kcp(&configs::classic_turbo());
    assert!(alice.configure(&Config { mtu: 1000, interval: 1, ..configs::classic_turbo() }).is_err());
    assert_eq!(*alice.config(), configs::classic_turbo());
    let bad = Config { dead_link: 0, ..configs::classic_turbo() };
    assert!(Kcp::new(Conv(1), &bad, DatagramQueue::new()).is_err());
}

#[test]
fn flush_needs_no_update_before() {
    // Q22.
    let mut alice = kcp(&configs::classic_turbo());
    alice.send(b"at once").unwrap();
    alice.flush(ms(12_345));
    let sent = raw_segments(drain(&mut alice));
    assert_eq!(sent, [Raw { ts: 12_345, ..Raw::push(0, b"at once") }]);
}

#[test]
fn conv_of_needs_a_whole_header() {
    let datagram = Raw::push(0, b"data").bytes();
    for len in 0..24 {
        assert_eq!(conv_of(&datagram[..len]), None, "{len} bytes");
    }
    for len in 24..=datagram.len() {
        assert_eq!(conv_of(&datagram[..len]), Some(Conv(CONV)), "{len} bytes");
    }
}

#[test]
fn a_probe_runs_with_nothing_to_send_and_ends_when_the_window_opens() {
    // Q13.
    let mut alice = kcp(&configs::classic_turbo());
    alice.update(ms(0));
    alice.input(ms(0), &Raw::wins(0).bytes()).unwrap();
    alice.update(ms(10));
    assert_eq!(alice.check(ms(10)), Some(ms(5010)));
    alice.update(ms(5010));
    assert_eq!(raw_segments(drain(&mut alice)), [Raw::wask()]);
    alice.input(ms(5050), &Raw::wins(1).bytes()).unwrap();
    assert_eq!(alice.check(ms(5050)), None);
}

#[test]
fn min_rto_applies_from_the_next_sample_on() {
    // Q21.
    let mut alice = in_flight(&configs::classic_turbo(), 3);
    let ack = |sn: u32| Raw { una: sn + 1, ..Raw::ack(sn, 0) }.bytes();
    alice.input(ms(5), &ack(0)).unwrap();
    assert_eq!(alice.stats().rto, Duration::from_millis(30), "the least with nodelay");
    alice.configure(&Config { min_rto: Some(70), ..configs::classic_turbo() }).unwrap();
    assert_eq!(alice.stats().rto, Duration::from_millis(30));
    alice.input(ms(5), &ack(1)).unwrap();
    assert_eq!(alice.stats().rto, Duration::from_millis(70));
    alice.configure(&Config { nodelay: 0, ..configs::classic_turbo() }).unwrap();
    alice.input(ms(5), &ack(2)).unwrap();
    assert_eq!((alice.stats().rto, alice.stats().snd_una), (Duration::from_millis(100), Sn(3)));
}
