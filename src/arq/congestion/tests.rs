//! What holds for every controller.

use super::{Ack, CongestionControl, Copa, Cubic, GoodBad, Loss, Sent};
use crate::pace::PaceConfig;
use crate::seq::Sn;
use crate::time::Time;
use proptest::prelude::*;
use std::time::Duration;

/// Something that a controller is told, with any number that a peer can bring about.
#[derive(Clone, Debug)]
enum Event {
    Ack(u32, u32, u32),
    Loss(u32, u32, u32),
    Rtt(u64),
    Sent(u16),
    Tick,
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
            control.on_loss(&Loss { timeouts, fast, in_flight, mss, ..Loss::none(now) });
        }
        Event::Rtt(micros) => control.on_rtt(now, Duration::from_micros(micros)),
        Event::Sent(len) => control.on_sent(&Sent { now, sn: Sn(0), len, xmit: 1, in_flight: 1 }),
        Event::Tick => control.on_tick(now, mss),
    }
}

proptest! {
    #[test]
    fn no_numbers_close_the_window_or_stop_the_pacing(
        mss in 26u16..=65_483,
        events in prop::collection::vec((prop_oneof![0u64..100_000, any::<u32>().prop_map(u64::from)], event()), 1..300),
    ) {
        let good_bad = GoodBad::new(&PaceConfig { loss: Some(1), ..PaceConfig::default() }).unwrap();
        let controls: [Box<dyn CongestionControl>; 3] =
            [Box::new(Copa::new()), Box::new(Cubic::new()), Box::new(good_bad)];
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
