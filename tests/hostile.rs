//! Whatever a hostile or broken peer sends costs a bounded amount, and what cannot be honest changes nothing.
//! For the memory it can fill, see tests/memory.rs.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;

use common::{Raw, Talk, drain, flushed, kcp, lossy, numbered, numbers, pair, repairing};
use rand::{Rng, RngExt};
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::wire::Command;
use whitewater::kcp::{Config, InputError, Kcp, Rejected, Sn, Stats};
use whitewater::machine::DatagramQueue;
use whitewater_sim::SimRng;

/// When everything happens unless stated otherwise.
const NOW: Time = Time::from_millis(5_000_100);

/// An end in mid-session: it has data sent and waiting, it has received segments in and out of order, and it
/// owes acknowledgements.
fn busy() -> Kcp<DatagramQueue> {
    busy_with(configs::classic_turbo())
}

fn busy_with(config: Config) -> Kcp<DatagramQueue> {
    let mut kcp = kcp(&Config { snd_wnd: 8, ..config });
    kcp.input(Time::from_millis(5_000_000), &Raw::push(0, b"first").bytes()).unwrap();
    for number in 0..12 {
        kcp.send(&numbered(number, 50 * number)).unwrap();
    }
    kcp.update(Time::from_millis(5_000_000));
    let segments = [
        Raw { una: 2, ..Raw::ack(3, 5_000_000) },
        Raw { una: 2, frg: 2, ..Raw::push(1, b"begun") },
        Raw { una: 2, ..Raw::push(7, b"ahead") },
    ];
    kcp.input(Time::from_millis(5_000_050), &Raw::datagram(&segments)).unwrap();
    drain(&mut kcp);
    kcp
}

/// A datagram that such an end accepts.
fn honest() -> Vec<u8> {
    Raw::datagram(&[
        Raw { una: 3, ..Raw::ack(4, 5_000_000) },
        Raw { una: 3, frg: 1, ts: 77, ..Raw::push(2, b"middle") },
        Raw { una: 3, ..Raw::wask() },
    ])
}

/// The state without the counter of rejections.
fn state(kcp: &Kcp<DatagramQueue>) -> (Stats, Option<Time>, Option<usize>, [usize; 2]) {
    let mut stats = kcp.stats();
    stats.rejected = Rejected::default();
    (stats, kcp.check(NOW), kcp.peek_size(), [kcp.wait_snd(), usize::from(kcp.is_idle())])
}

/// What the end does from here on, left alone.
fn future(kcp: &mut Kcp<DatagramQueue>) -> (Vec<Vec<u8>>, Vec<Option<bytes::Bytes>>, Stats) {
    for wait in [0, 10, 200, 1000, 10_000] {
        kcp.update(NOW + Duration::from_millis(wait));
        kcp.flush(NOW + Duration::from_millis(wait));
    }
    let read = (0..3).map(|_| kcp.recv()).collect();
    (drain(kcp), read, state(kcp).0)
}

/// Passes `datagram` to a busy end. If it is rejected, that end must behave like a twin that never saw it.
/// Returns the error.
fn refused(datagram: &[u8]) -> Option<InputError> {
    let (mut kcp, mut twin) = (busy(), busy());
    let before = state(&kcp);
    let error = kcp.input(NOW, datagram).err()?;
    assert_eq!(state(&kcp), before, "{error}");
    assert_eq!(kcp.stats().rejected.total(), 1, "{error}");
    assert!(future(&mut kcp) == future(&mut twin), "{error}");
    Some(error)
}

/// The error for a datagram that must be rejected.
fn error_of(segments: &[Raw]) -> InputError {
    refused(&Raw::datagram(segments)).expect("an error")
}

#[test]
fn a_rejected_datagram_changes_nothing_whichever_byte_is_wrong() {
    let honest = honest();
    assert_eq!(busy().input(NOW, &honest), Ok(()));
    let (mut errors, mut taken) = (0, 0);
    for at in 0..honest.len() {
        let byte = honest[at];
        let near = [byte ^ 1, byte ^ 0x80, byte.wrapping_add(1), byte.wrapping_sub(1)];
        for value in [0, 1, 0x7f, 0x80, 0xff].into_iter().chain(near).filter(|value| *value != byte) {
            let mut bad = honest.clone();
            bad[at] = value;
            if refused(&bad).is_some() {
                errors += 1;
            } else {
                taken += 1;
            }
        }
    }
    // The conversations, commands, acknowledgements and lengths of three segments.
    assert!(errors > 3 * 8 * 4 && taken > 3 * 8 * 4, "{errors} refused, {taken} taken");
}

#[test]
fn a_datagram_is_rejected_exactly_if_one_of_its_segments_is() {
    // Equal headers as in one flush, where one check may do for several; then with any byte of any of them
    // changed.
    let alike = [
        [3, 4, 5].map(|sn| Raw { una: 3, ..Raw::ack(sn, 5_000_000) }),
        [2, 3, 4].map(|sn| Raw { una: 3, frg: 1, ..Raw::push(sn, b"data") }),
        [0, 0, 0].map(|_| Raw { una: 3, ..Raw::wask() }),
    ];
    for segments in alike {
        let len = segments[0].bytes().len();
        let datagram = Raw::datagram(&segments);
        assert_eq!(busy().input(NOW, &datagram), Ok(()));
        for at in (0..datagram.len()).filter(|at| !(20..24).contains(&(at % len))) {
            for flip in [1, 8, 0x80, 0xff] {
                let mut bad = datagram.clone();
                bad[at] ^= flip;
                let one_is = bad.chunks(len).any(|segment| busy().input(NOW, segment).is_err());
                assert_eq!(refused(&bad).is_some(), one_is, "byte {at} by {flip}: {:?}", segments[0]);
            }
        }
    }
}

#[test]
fn a_truncated_datagram_is_rejected_unless_it_ends_after_a_segment() {
    let honest = honest();
    for len in 0..honest.len() {
        let tail = len.checked_sub(24).map(|rest| if rest < 30 { rest } else { rest - 30 });
        let whole = tail.is_some_and(|tail| tail < 24); // a tail too short for a header is skipped, as in ikcp.c
        assert_eq!(refused(&honest[..len]).is_none(), whole, "{len} bytes");
    }
    let long = [honest, vec![0; 1500]].concat();
    assert_eq!(refused(&long), Some(InputError::TooLong { have: long.len(), max: 1500 }));
}

/// As in ikcp.c, by timing, and with repairs.
fn recoveries() -> [Config; 3] {
    [configs::classic_turbo(), configs::turbo(), repairing(50)]
}

#[test]
fn noise_never_panics_and_changes_nothing_if_rejected() {
    for config in recoveries() {
        let mut rng = SimRng::new(1, 1);
        let mut kcp = busy_with(config);
        for round in 0..20_000 {
            let mut datagram = honest();
            datagram.extend(Raw { sn: 2, data: vec![2, 7, 0, 9, 0, 1], ..Raw::wins(9) }.bytes());
            for _ in 0..=rng.random_range(0..4) {
                let at = rng.random_range(0..datagram.len());
                datagram[at] = rng.next_u64().to_le_bytes()[0];
            }
            let before = state(&kcp);
            if kcp.input(NOW, &datagram).is_err() {
                assert_eq!(state(&kcp), before);
            }
            let stats = kcp.stats();
            assert!(stats.rcv_queue <= 128 && stats.rcv_buf <= 128 && stats.in_flight <= 12, "{stats:?}");
            if round % 100 == 0 {
                drop(future(&mut kcp));
                kcp = busy_with(config);
            }
        }
    }
}

#[test]
fn una_beyond_snd_nxt_is_refused() {
    // 0 to 7 are sent, of which 2 to 7 are unacknowledged; 8 to 11 wait.
    let snd_nxt = busy().stats().snd_nxt;
    assert_eq!(snd_nxt, Sn(8));
    for una in [9, 12, 1000, i32::MAX.cast_unsigned(), i32::MAX.cast_unsigned() + 8] {
        for segment in [Raw::wins(128), Raw::wask(), Raw::ack(2, 0), Raw::push(2, b"data")] {
            let error = error_of(&[Raw { una, ..segment }]);
            assert_eq!(error, InputError::Una { una: Sn(una), snd_nxt });
        }
    }
    let mut kcp = busy();
    kcp.input(NOW, &Raw { una: 8, ..Raw::wins(128) }.bytes()).unwrap();
    assert_eq!((kcp.stats().snd_una, kcp.stats().in_flight), (Sn(8), 0), "up to snd_nxt it is accepted");
}

#[test]
fn an_old_una_is_no_error_and_frees_nothing() {
    for una in [0, 1, u32::MAX, (1 << 31) + 9] {
        let mut kcp = busy();
        kcp.input(NOW, &Raw { una, ..Raw::wins(128) }.bytes()).unwrap();
        assert_eq!((kcp.stats().snd_una, kcp.stats().in_flight), (Sn(2), 5), "{una}");
    }
}

#[test]
fn an_ack_for_an_unsent_segment_is_refused() {
    let snd_nxt = Sn(8);
    for sn in [8, 9, 1000, i32::MAX.cast_unsigned()] {
        let error = error_of(&[Raw::ack(sn, 5_000_090)]);
        assert_eq!(error, InputError::AckUnsent { sn: Sn(sn), snd_nxt });
    }
    // One that was acknowledged before, or freed by una, is late but no error.
    for sn in [0, 1, 3, u32::MAX] {
        assert_eq!(refused(&Raw::ack(sn, 5_000_000).bytes()), None);
    }
}

#[test]
fn an_echo_older_than_two_rtos_is_no_sample() {
    // The clock shows 5,000,100 ms. Echoes older than 120 s or from the future are not sampled.
    for (ts, sampled, counted) in [
        (5_000_040, true, 0),
        (5_000_100, true, 0),
        (4_880_100, true, 0),
        (4_880_099, false, 1),
        (0, false, 1),
        (5_000_101, false, 0),
        (u32::MAX, false, 1),
        (5_000_100 + (1 << 31), false, 0),
        (5_000_101 + (1 << 31), false, 1),
    ] {
        let mut kcp = busy();
        let before = kcp.stats();
        kcp.input(NOW, &Raw { una: 2, ..Raw::ack(4, ts) }.bytes()).unwrap();
        let after = kcp.stats();
        assert_eq!(
            (after.srtt, after.rttvar, after.rto) != (before.srtt, before.rttvar, before.rto),
            sampled,
            "{ts}"
        );
        assert_eq!((after.rejected.ts_age, after.in_flight), (counted, before.in_flight - 1), "{ts}");
        assert!(after.rto <= Duration::from_secs(60), "{ts}");
    }
}

#[test]
fn the_worst_accepted_round_trip_fades_within_a_few_dozen_samples() {
    let mut kcp = kcp(&configs::classic_turbo());
    let mut now = NOW;
    for number in 0..60 {
        kcp.send(b"x").unwrap();
        kcp.flush(now);
        now = now + Duration::from_millis(50);
        let ts = if number == 0 { 4_880_200 } else { 5_000_100 + 50 * number };
        kcp.input(now, &Raw { una: number + 1, ..Raw::ack(number, ts) }.bytes()).unwrap();
        let rto = kcp.stats().rto;
        assert!(rto <= Duration::from_secs(60));
        if number == 59 {
            assert!(rto < Duration::from_secs(1), "{rto:?}");
        }
    }
}

#[test]
fn a_bad_later_segment_changes_nothing() {
    let good = [
        vec![Raw { una: 5, ..Raw::ack(5, 5_000_000) }],
        vec![Raw { una: 2, ..Raw::push(2, b"new") }, Raw::wins(0)],
        vec![Raw::wask()],
    ];
    let bad = [Raw { una: 9, ..Raw::wins(128) }, Raw::ack(8, 0), Raw { frg: 128, ..Raw::push(3, b"") }];
    for good in &good {
        assert_eq!(refused(&Raw::datagram(good)), None);
        for bad in &bad {
            let mut segments = good.clone();
            segments.push(bad.clone());
            error_of(&segments);
        }
        let datagram = Raw::datagram(good);
        let other = Raw::wins(128).bytes();
        for (at, value) in [(0, 0), (4, 85), (4, 80), (20, 1)] {
            let mut other = other.clone();
            other[at] = value;
            assert!(refused(&[datagram.clone(), other].concat()).is_some());
        }
    }
}

#[test]
fn a_fragment_beyond_the_window_is_refused() {
    for (frg, rcv_wnd) in [(128, 128), (200, 128), (255, 255), (200, 200)] {
        let mut bob = kcp(&Config { rcv_wnd, ..configs::classic_turbo() });
        let poison = Raw { frg, ..Raw::push(0, b"never whole") };
        assert_eq!(bob.input(NOW, &poison.bytes()), Err(InputError::Fragment { frg, rcv_wnd }));
        assert_eq!(bob.stats().rejected.fragment, 1);
        bob.input(NOW, &Raw::push(0, b"whole").bytes()).unwrap();
        assert_eq!(bob.recv().as_deref(), Some(&b"whole"[..]));
    }
    let mut bob = kcp(&Config { rcv_wnd: 256, ..configs::classic_turbo() });
    for sn in 0..=255 {
        bob.input(NOW, &Raw { frg: u8::try_from(255 - sn).unwrap(), ..Raw::push(sn, b"x") }.bytes()).unwrap();
    }
    assert_eq!(bob.recv(), Some(vec![b'x'; 256].into()), "as large as the window may be");
    assert_eq!(
        refused(&Raw { frg: 128, ..Raw::push(0, b"") }.bytes()).map(|_| ()),
        Some(()),
        "of a duplicate"
    );
}

#[test]
fn a_broken_fragment_chain_is_dropped() {
    // What arrives, as sn and frg, and whether each is kept.
    let cases: [&[(u32, u8, bool)]; 9] = [
        &[(0, 2, true), (1, 2, false), (1, 0, false), (1, 1, true), (2, 0, true)],
        &[(0, 2, true), (1, 1, true), (2, 1, false), (2, 5, false), (2, 0, true)],
        &[(0, 0, true), (1, 3, true), (2, 0, false), (2, 2, true)],
        &[(1, 1, true), (0, 1, false), (0, 2, true), (2, 0, true)],
        &[(1, 1, true), (0, 0, true), (2, 1, false), (2, 0, true)],
        &[(2, 0, true), (1, 1, true), (0, 0, true)],
        &[(2, 1, true), (0, 0, true), (1, 1, false), (1, 2, true), (3, 0, true)],
        &[(2, 4, true), (1, 4, false), (1, 0, true), (0, 0, true)],
        &[(5, 2, true), (6, 2, false), (6, 1, true), (4, 1, false), (4, 3, true)],
    ];
    for case in cases {
        let mut bob = kcp(&configs::classic_turbo());
        let (mut dropped, mut kept) = (0, Vec::new());
        for (sn, frg, keeps) in case {
            bob.input(NOW, &Raw { frg: *frg, ..Raw::push(*sn, b"part") }.bytes()).unwrap();
            dropped += u32::from(!keeps);
            kept.extend(keeps.then_some(*sn));
            let stats = bob.stats();
            assert_eq!(stats.rejected.fragment_chain, dropped, "{case:?} at {sn}, {frg}");
            assert_eq!(stats.rcv_buf + stats.rcv_queue, u32::try_from(kept.len()).unwrap(), "{case:?}");
        }
        assert_eq!(numbers(&flushed(&mut bob, 5_000_100), Command::Ack), kept, "{case:?}: acknowledged");
    }
}

#[test]
fn a_message_is_never_merged_from_two_or_truncated() {
    let mut bob = kcp(&configs::classic_turbo());
    for (sn, frg, data) in
        [(0, 1, "one "), (1, 1, "two "), (1, 0, "end"), (2, 2, "a"), (3, 0, "b"), (3, 1, "b"), (4, 0, "c")]
    {
        bob.input(NOW, &Raw { frg, ..Raw::push(sn, data.as_bytes()) }.bytes()).unwrap();
    }
    let received: Vec<_> = std::iter::from_fn(|| bob.recv()).collect();
    assert_eq!(received, ["one end", "abc"]);
}

#[test]
fn the_ack_list_is_bounded() {
    // 100,000 segments from further back than any window: one acknowledgement covers all of them.
    let mut bob = kcp(&configs::classic_turbo());
    for sn in 0..100_000u32 {
        let far = Raw { ts: sn, ..Raw::push(u32::MAX - 1000 - sn, b"forged") };
        bob.input(NOW, &far.bytes()).unwrap();
    }
    assert_eq!((bob.stats().duplicates, bob.stats().rejected.ack_overflow), (100_000, 99_999));
    let sent = flushed(&mut bob, 5_000_100);
    assert_eq!((sent.len(), sent[0].cmd, sent[0].una), (1, Command::Ack, 0));

    // A flood of duplicates of segments that were read or are parked: two windows of acknowledgements.
    for rcv_wnd in [128, 1000] {
        let mut bob = kcp(&Config { rcv_wnd, ..configs::classic_turbo() });
        for sn in 0..100 {
            bob.input(NOW, &Raw::push(sn, b"x").bytes()).unwrap();
            bob.recv().unwrap();
        }
        bob.input(NOW, &Raw::push(120, b"parked").bytes()).unwrap();
        drain(&mut bob);
        for _ in 0..3 {
            for sn in (0..100_000).map(|copy| if copy % 3 == 0 { 120 } else { copy % 100 }) {
                bob.input(NOW, &Raw::push(sn, b"x").bytes()).unwrap();
            }
            bob.flush(NOW);
            let datagrams = drain(&mut bob);
            let acks = common::raw_segments(&datagrams).len();
            assert_eq!(acks, 2 * usize::from(rcv_wnd));
            assert_eq!(datagrams.len(), acks.div_ceil(58), "packed as full as possible");
        }
    }
}

#[test]
fn segments_of_every_command_are_counted_at_both_ends() {
    for config in [configs::classic_turbo(), configs::turbo()] {
        let mut bob = kcp(&config);
        let rows = [Raw::push(0, b"x"), Raw::push(1, b"y"), Raw::wask(), Raw::wask(), Raw::wins(128)];
        bob.input(NOW, &Raw::datagram(&rows)).unwrap();
        assert_eq!((bob.stats().segments_received, bob.stats().segments_sent), (5, 0));
        let sent = flushed(&mut bob, 5_000_100);
        assert_eq!(bob.stats().segments_sent, sent.len() as u64);
        assert_eq!(numbers(&sent, Command::Wins).len(), 1);
    }
}

#[test]
fn an_honest_burst_of_two_windows_is_acknowledged_in_full() {
    let mut bob = kcp(&configs::classic_turbo());
    for sn in 0..256 {
        bob.input(NOW, &Raw::push(sn, b"x").bytes()).unwrap();
        if sn % 100 == 99 {
            while bob.recv().is_some() {}
        }
    }
    let sent = flushed(&mut bob, 5_000_100);
    assert!(numbers(&sent, Command::Ack).into_iter().eq(0..256));
    assert_eq!(bob.stats().rejected.ack_overflow, 0);
}

#[test]
fn without_a_flush_at_most_two_windows_of_acknowledgements_pile_up() {
    let mut bob = kcp(&configs::classic_turbo());
    for sn in 0..1000 {
        bob.input(NOW, &Raw::push(sn, b"next").bytes()).unwrap();
        bob.recv().unwrap();
    }
    assert_eq!(bob.stats().rejected.ack_overflow, 1000 - 256);
    assert!(numbers(&flushed(&mut bob, 5_000_100), Command::Ack).into_iter().eq(0..256));
}

#[test]
fn a_segment_beyond_the_window_is_dropped_without_an_ack() {
    let mut bob = kcp(&configs::classic_turbo());
    for (sn, fits) in [(127, true), (128, false), (1 << 30, false), (i32::MAX.cast_unsigned(), false)] {
        bob.input(NOW, &Raw::push(sn, b"x").bytes()).unwrap();
        assert_eq!(numbers(&flushed(&mut bob, 5_000_100), Command::Ack).len(), usize::from(fits), "{sn}");
    }
    assert_eq!((bob.stats().rejected.window, bob.stats().rcv_buf), (3, 1));
}

#[test]
fn the_receiver_holds_at_most_two_windows_of_segments() {
    for rcv_wnd in [128, 1000] {
        let mut bob = kcp(&Config { rcv_wnd, ..configs::classic_turbo() });
        // Nobody reads, and the peer ignores the window: in order, backwards and with gaps.
        for sn in (0..3000).chain((0..3000).rev()).chain((0..6000).step_by(3)) {
            bob.input(NOW, &Raw::push(sn, b"x").bytes()).unwrap();
            let stats = bob.stats();
            assert!(stats.rcv_queue <= rcv_wnd.into() && stats.rcv_buf <= rcv_wnd.into(), "{stats:?}");
        }
        assert_eq!(bob.stats().rcv_queue, u32::from(rcv_wnd));
        let received = std::iter::from_fn(|| bob.recv()).count();
        assert!((usize::from(rcv_wnd)..=2 * usize::from(rcv_wnd)).contains(&received), "{received}");
    }
}

#[test]
fn of_segments_with_the_same_number_the_first_counts() {
    let mut bob = kcp(&configs::classic_turbo());
    for (sn, data) in [(1, "second"), (1, "forged"), (0, "first"), (0, "forged"), (1, "forged")] {
        bob.input(NOW, &Raw::push(sn, data.as_bytes()).bytes()).unwrap();
    }
    let received: Vec<_> = std::iter::from_fn(|| bob.recv()).collect();
    assert_eq!((received, bob.stats().duplicates), (vec!["first".into(), "second".into()], 3));
}

#[test]
fn data_in_segments_other_than_push_is_skipped() {
    let mut bob = busy();
    let with = |segment| Raw { data: vec![0xa5; 40], frg: 255, sn: 0, ..segment };
    let skipped = [with(Raw::wask()), with(Raw::wins(9)), with(Raw::ack(0, 5_000_050))];
    let last = Raw { frg: 1, ..Raw::push(2, b" and") };
    bob.input(NOW, &Raw::datagram(&[&skipped[..], &[last]].concat())).unwrap();
    assert_eq!((bob.stats().rcv_nxt, bob.stats().rmt_wnd), (Sn(3), 128));
}

#[test]
fn a_flood_of_window_probes_is_answered_once_per_flush() {
    let mut bob = kcp(&configs::classic_turbo());
    for round in 0..3 {
        for _ in 0..10_000 {
            bob.input(NOW, &Raw::wask().bytes()).unwrap();
        }
        assert_eq!(flushed(&mut bob, 5_000_100 + 10 * round), [Raw::wins(128)]);
    }
}

#[test]
fn forged_acks_cause_no_more_resends_than_the_fast_limit() {
    // A datagram of 58 ACKs for the newest of 8192 segments in flight skips over all the others.
    let config = Config { snd_wnd: 8192, rcv_wnd: 8192, snd_queue: 8192, ..configs::classic_turbo() };
    let mut alice = kcp(&config);
    alice.input(NOW, &Raw::wins(8192).bytes()).unwrap();
    for _ in 0..8192 {
        alice.send(&[0; 64]).unwrap();
    }
    assert_eq!(flushed(&mut alice, 5_000_100).len(), 8192);
    let forged: Vec<_> = (8192 - 58..8192).map(|sn| Raw { wnd: 8192, ..Raw::ack(sn, 5_000_100) }).collect();
    let forged = Raw::datagram(&forged);
    assert_eq!(forged.len(), 58 * 24);
    let mut sent = Vec::new();
    for _ in 0..200 {
        alice.input(NOW, &forged).unwrap();
        sent.push(flushed(&mut alice, 5_000_100).len());
    }
    let flight = 8192 - 58;
    assert_eq!(sent[0], 0, "one datagram does not skip anything often enough");
    assert!(sent.iter().all(|count| *count == 0 || *count == flight), "{sent:?}");
    assert_eq!(sent.iter().filter(|count| **count > 0).count(), usize::from(config.fast_limit));
    // The same without flushes in between.
    for _ in 0..10_000 {
        alice.input(NOW, &forged).unwrap();
    }
    assert_eq!((flushed(&mut alice, 5_000_100).len(), alice.is_dead()), (0, false));
}

#[test]
fn an_advertised_window_of_any_size_is_only_a_limit() {
    let mut alice = kcp(&configs::classic_turbo());
    alice.input(NOW, &Raw::wins(65_535).bytes()).unwrap();
    for _ in 0..100 {
        alice.send(b"x").unwrap();
    }
    assert_eq!(flushed(&mut alice, 5_000_100).len(), 32);
}

#[test]
fn an_honest_pair_continues_while_forged_datagrams_are_rejected() {
    for (config, seed) in recoveries().into_iter().flat_map(|config| [1, 2, 3].map(|seed| (config, seed))) {
        let mut pair = pair(config, lossy(0.05), seed);
        let clean = {
            let mut pair = common::pair(config, lossy(0.05), seed);
            pair.send_numbered(300);
            assert!(pair.run_until_idle(Duration::from_secs(10)), "never went quiet");
            (pair.now(), pair.links[0].digest(), pair.links[1].digest())
        };
        pair.send_numbered(300);
        while !pair.is_idle() {
            let now = pair.now();
            for end in [&mut pair.alice, &mut pair.bob] {
                let (time, stats) = (end.time(now), end.kcp.stats());
                for bad in [
                    Raw { una: stats.snd_nxt.0 + 1, ..Raw::wins(0) },
                    Raw { una: stats.snd_una.0, ..Raw::ack(stats.snd_nxt.0, 0) },
                    Raw { frg: 200, ..Raw::push(stats.rcv_nxt.0, b"poison") },
                ] {
                    assert!(end.kcp.input(time, &bad.bytes()).is_err());
                }
            }
            let next = pair.next_event().unwrap();
            pair.run_for(next.since(now));
        }
        pair.assert_delivered();
        assert_eq!((pair.now(), pair.links[0].digest(), pair.links[1].digest()), clean);
    }
}
