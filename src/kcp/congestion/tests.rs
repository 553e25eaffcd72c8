//! Properties of every controller.

use super::{Ack, CongestionControl, Copa, Cubic, Loss, Sent};
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
fn copa_slows_down_when_more_is_lost_than_arrives() {
    let mut control = Copa::new();
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

proptest! {
    #[test]
    fn no_numbers_close_the_window_or_stop_the_pacing(
        mss in 26u16..=65_483,
        events in prop::collection::vec((prop_oneof![0u64..100_000, any::<u32>().prop_map(u64::from)], event()), 1..300),
    ) {
        let controls: [Box<dyn CongestionControl>; 2] = [Box::new(Copa::new()), Box::new(Cubic::new())];
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
