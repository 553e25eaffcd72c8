//! Properties of every controller.

use super::{Ack, CongestionControl, Cubic, Delay, Loss, Sent};
use crate::seq::Sn;
use crate::time::Time;
use proptest::prelude::*;
use std::time::Duration;

/// Something that a controller is told, with any number that a peer can cause.
#[derive(Clone, Debug)]
enum Event {
    Ack(u32, u32, u32),
    Loss(u32, u32, u32),
    Rtt(u64),
    Sent(u16),
    Needless,
    Tick,
}

/// A loss in which no segment was resent.
const fn loss(now: Time) -> Loss {
    Loss { now, timeouts: 0, fast: 0, in_flight: 0, prior_window: 0, fast_resend: 2, mss: 1000 }
}

fn event() -> impl Strategy<Value = Event> {
    let any_or_few = || prop_oneof![any::<u32>(), 0u32..10_000];
    prop_oneof![
        4 => (any_or_few(), any_or_few(), any_or_few()).prop_map(|(a, b, c)| Event::Ack(a, b, c)),
        1 => (any_or_few(), any_or_few(), any_or_few()).prop_map(|(a, b, c)| Event::Loss(a, b, c)),
        4 => prop_oneof![any::<u64>(), 0u64..300_000].prop_map(Event::Rtt),
        2 => (0u16..=65_483).prop_map(Event::Sent),
        1 => Just(Event::Needless),
        1 => Just(Event::Tick),
    ]
}

fn tell(control: &mut dyn CongestionControl, now: Time, mss: u16, event: &Event) {
    match *event {
        Event::Ack(segments, bytes, in_flight) => {
            control.on_ack(&Ack { now, segments, bytes, in_flight, rmt_wnd: 128, mss });
        }
        Event::Loss(timeouts, fast, in_flight) => {
            control.on_loss(&Loss { timeouts, fast, in_flight, mss, ..loss(now) });
        }
        Event::Rtt(micros) => control.on_rtt(now, Duration::from_micros(micros)),
        Event::Sent(len) => control.on_sent(&Sent { now, sn: Sn(0), len, xmit: 1, in_flight: 1 }),
        Event::Needless => control.on_needless(now),
        Event::Tick => control.on_tick(now, mss),
    }
}

/// Two seconds of full windows, acknowledged after 60 ms. Returns the end of that time.
fn fill(control: &mut impl CongestionControl) -> Time {
    let (mut now, round) = (Time::from_millis(1), Duration::from_millis(60));
    control.on_tick(now, 1000);
    for _ in 0..2000 / 60 {
        let in_flight = control.window();
        (0..4).for_each(|sn| control.on_sent(&Sent { now, sn: Sn(sn), len: 1000, xmit: 1, in_flight }));
        now = now + round;
        control.on_rtt(now, round);
        control.on_ack(&Ack { now, segments: 4, bytes: 4000, in_flight, rmt_wnd: 9999, mss: 1000 });
    }
    now
}

#[test]
fn delay_slows_down_when_more_is_lost_than_arrives() {
    let mut control = Delay::new();
    let now = fill(&mut control);
    let before = control.window();
    control.on_loss(&Loss { fast: 2 * before, ..loss(now) });
    let (now, rtt) = (now + Duration::from_millis(60), Duration::from_millis(60));
    control.on_rtt(now, rtt);
    control.on_ack(&Ack { now, segments: 1, bytes: 1000, in_flight: before, rmt_wnd: 9999, mss: 1000 });
    assert!((before * 6 / 10..before * 8 / 10).contains(&control.window()), "{before}, {}", control.window());
}

#[test]
fn cubic_is_reduced_once_a_round_trip_and_to_the_least_when_all_is_lost() {
    let mut control = Cubic::new();
    let now = fill(&mut control);
    let before = control.window();
    let (mut once, flight) = (control, Loss { in_flight: before, ..loss(now) });
    (0..2).for_each(|_| once.on_loss(&Loss { fast: 1, ..flight }));
    assert_eq!((once.window(), once.ssthresh()), (before * 7 / 10, Some(before * 7 / 10)));
    control.on_loss(&Loss { timeouts: before, ..flight });
    assert_eq!(control.window(), 4);
}

#[test]
fn cubic_undoes_a_reduction_only_if_all_that_was_resent_had_arrived() {
    for (needless, is_undone) in [(2, false), (3, true)] {
        let mut control = Cubic::new();
        let now = fill(&mut control);
        let (before, threshold) = (control.window(), control.ssthresh());
        let flight = Loss { in_flight: before, ..loss(now) };
        control.on_loss(&Loss { timeouts: 1, ..flight });
        control.on_loss(&Loss { timeouts: 2, ..flight }); // of the same round trip
        assert!(control.window() < before);
        (0..needless).for_each(|_| control.on_needless(now));
        assert_eq!((control.window() == before, control.ssthresh() == threshold), (is_undone, is_undone));
    }
}

#[test]
fn cubic_stays_in_slow_start_when_its_first_window_gets_lost_once() {
    let (mut control, round) = (Cubic::new(), Duration::from_millis(60));
    let mut now = Time::from_millis(1);
    control.on_tick(now, 1000);
    for is_in_slow_start in [true, false] {
        control.on_sent(&Sent { now, sn: Sn(0), len: 1000, xmit: 1, in_flight: 1 });
        let in_flight = control.window();
        now = now + round;
        control.on_loss(&Loss { fast: in_flight - 1, in_flight, ..loss(now) });
        assert_eq!(control.window(), (in_flight * 7 / 10).max(4), "reduced");
        assert_eq!(control.ssthresh().is_none(), is_in_slow_start);
        control.on_rtt(now + round, round);
        control.on_ack(&Ack {
            now: now + round,
            segments: 1,
            bytes: 1000,
            in_flight,
            rmt_wnd: 9999,
            mss: 1000,
        });
        now = now + round;
    }
}

#[test]
fn cubic_slows_slow_start_down_before_it_ends_it() {
    let mut control = Cubic::new();
    let mut now = Time::from_millis(1);
    control.on_tick(now, 1000);
    let mut grows = |control: &mut Cubic, round: u64| {
        let (in_flight, round) = (control.window(), Duration::from_millis(round));
        now = now + round;
        control.on_sent(&Sent { now, sn: Sn(0), len: 1000, xmit: 1, in_flight });
        (0..8).for_each(|_| control.on_rtt(now, round));
        let (segments, bytes) = (in_flight, 1000 * in_flight);
        control.on_ack(&Ack { now, segments, bytes, in_flight, rmt_wnd: 9999, mss: 1000 });
        control.window() * 100 / in_flight
    };
    let mut run = |rounds: &[u64]| -> Vec<u32> { rounds.iter().map(|&ms| grows(&mut control, ms)).collect() };
    run(&[60]); // the first message tells how long segments are
    assert_eq!(run(&[60, 60]), [200, 200]);
    // 60 + 60 / 8 ms: it grows by a quarter, and goes on as before when round trips are shorter again.
    assert_eq!(run(&[68, 68, 60]), [125, 124, 200]);
    let last = run(&[68, 68, 68, 68, 68]);
    assert!(last.iter().all(|grown| (124..=125).contains(grown)), "{last:?}");
    assert!(run(&[68])[0] <= 101, "five rounds later it is over");
}

proptest! {
    #[test]
    fn no_numbers_close_the_window_or_stop_the_pacing(
        mss in 26u16..=65_483,
        events in prop::collection::vec((prop_oneof![0u64..100_000, any::<u32>().prop_map(u64::from)], event()), 1..300),
    ) {
        let controls: [Box<dyn CongestionControl>; 2] = [Box::new(Delay::new()), Box::new(Cubic::new())];
        for mut control in controls {
            let mut now = Time::ZERO;
            for (step, event) in &events {
                now = now + Duration::from_micros(*step);
                tell(&mut *control, now, mss, event);
                prop_assert!(control.window() > 0 && control.pacing_rate() != Some(0), "{control:?}");
            }
        }
    }
}
