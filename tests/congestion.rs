//! A congestion controller sees what really happens, and its window and rate are obeyed.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;

use common::{
    Pair, Raw, Setup, Talk, Unlimited, clean, drain, flushed, kcp, lossy, numbered, numbers, pair,
    raw_segments, rough,
};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::congestion::{Ack, CongestionControl, Loss, PACING_BURST, Sent};
use whitewater::kcp::wire::Command;
use whitewater::kcp::{Config, Congestion, Sn};
use whitewater_sim::Drive;

/// What a controller was told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Event {
    Sent(Sent),
    Ack(Ack),
    Loss(Loss),
    Rtt(Time, Duration),
    AppLimited(u32),
    Tick(Time, u16),
}

/// A controller whose window and rate are set from outside, and that records what it sees.
#[derive(Clone, Debug, Default)]
struct Recorder(Arc<Mutex<Recording>>);

#[derive(Debug, Default)]
struct Recording {
    window: u32,
    rate: Option<u64>,
    events: Vec<Event>,
}

impl Recorder {
    fn new(window: u32, rate: Option<u64>) -> Self {
        Self(Arc::new(Mutex::new(Recording { window, rate, events: Vec::new() })))
    }

    fn set_rate(&self, rate: Option<u64>) {
        self.0.lock().unwrap().rate = rate;
    }

    fn set_window(&self, window: u32) {
        self.0.lock().unwrap().window = window;
    }

    /// What it was told since the last call.
    fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.0.lock().unwrap().events)
    }

    fn see(&self, event: Event) {
        self.0.lock().unwrap().events.push(event);
    }
}

impl CongestionControl for Recorder {
    fn window(&self) -> u32 {
        self.0.lock().unwrap().window
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.see(Event::Ack(*ack));
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.see(Event::Loss(*loss));
    }

    fn on_rtt(&mut self, now: Time, rtt: Duration) {
        self.see(Event::Rtt(now, rtt));
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.see(Event::Sent(*sent));
    }

    fn on_app_limited(&mut self, in_flight: u32) {
        self.see(Event::AppLimited(in_flight));
    }

    fn on_tick(&mut self, now: Time, mss: u16) {
        self.see(Event::Tick(now, mss));
    }

    fn pacing_rate(&self) -> Option<u64> {
        self.0.lock().unwrap().rate
    }
}

fn sent(events: &[Event]) -> Vec<(Sn, u16, u16, u32)> {
    let sent = events.iter().filter_map(|event| match event {
        Event::Sent(Sent { sn, len, xmit, in_flight, .. }) => Some((*sn, *len, *xmit, *in_flight)),
        _ => None,
    });
    sent.collect()
}

#[test]
fn a_controller_counts_only_transmitted_segments_as_in_flight() {
    let recorder = Recorder::new(3, None);
    let mut alice = kcp(&configs::classic_turbo());
    alice.install(Box::new(recorder.clone()));
    for number in 0..6 {
        alice.send(&numbered(number, 100 + number)).unwrap();
    }

    // Its window applies although the config has none, and what was sent is in flight.
    assert_eq!(numbers(&flushed(&mut alice, 0), Command::Push), [0, 1, 2]);
    let events = recorder.take();
    let first = [(Sn(0), 100, 1, 1), (Sn(1), 101, 1, 2), (Sn(2), 102, 1, 3)];
    assert_eq!((sent(&events), events.len()), (first.to_vec(), 4));
    assert!(matches!(events[0], Event::Sent(Sent { now: Time::ZERO, .. })));
    assert_eq!(events[3], Event::Tick(Time::ZERO, 1376), "not limited by the application, since three wait");

    // A datagram acknowledges the first and, out of order, the third.
    let now = Time::from_millis(60);
    let acks = [Raw { una: 1, wnd: 77, ..Raw::ack(0, 0) }, Raw { una: 1, wnd: 77, ..Raw::ack(2, 0) }];
    alice.input(now, &Raw::datagram(&acks)).unwrap();
    let events = recorder.take();
    let rtt = Event::Rtt(now, Duration::from_millis(60));
    assert_eq!(events[..2], [rtt, rtt]);
    let [Event::Ack(ack)] = events[2..] else { panic!("{events:?}") };
    assert_eq!((ack.now, ack.segments, ack.bytes, ack.in_flight), (now, 1, 202, 3));
    assert_eq!((ack.rmt_wnd, ack.mss), (77, 1376));

    // Two more fit despite the missing one: what has arrived is no longer in flight.
    assert_eq!(numbers(&flushed(&mut alice, 60), Command::Push), [3, 4]);
    assert_eq!(sent(&recorder.take()), [(Sn(3), 103, 1, 2), (Sn(4), 104, 1, 3)]);

    // The missing one times out and leaves alone.
    assert_eq!(numbers(&flushed(&mut alice, 200), Command::Push), [1]);
    let events = recorder.take();
    assert_eq!(sent(&events), [(Sn(1), 101, 2, 3)]);
    let [Event::Loss(loss), Event::Tick(..)] = events[1..] else { panic!("{events:?}") };
    assert_eq!((loss.timeouts, loss.fast, loss.in_flight, loss.prior_window), (1, 0, 4, 3));
    assert_eq!((loss.now, loss.fast_resend, loss.mss), (Time::from_millis(200), 2, 1376));

    // One is acknowledged out of order, which does not move `una`.
    let now = Time::from_millis(205);
    alice.input(now, &Raw { una: 1, ..Raw::ack(3, 200) }.bytes()).unwrap();
    let [Event::Rtt(..), Event::Ack(ack)] = recorder.take()[..] else { panic!() };
    assert_eq!((ack.now, ack.segments, ack.bytes, ack.in_flight), (now, 0, 103, 3));

    // All are acknowledged; the last one leaves, and there is more room than data.
    alice.input(Time::from_millis(210), &Raw { una: 5, ..Raw::wins(128) }.bytes()).unwrap();
    let [Event::Ack(ack)] = recorder.take()[..] else { panic!() };
    assert_eq!((ack.segments, ack.bytes, ack.in_flight), (4, 205, 2), "two had been counted before");
    assert_eq!(numbers(&flushed(&mut alice, 210), Command::Push), [5]);
    let events = recorder.take();
    assert_eq!(sent(&events), [(Sn(5), 105, 1, 1)]);
    assert_eq!(events[1..], [Event::AppLimited(1), Event::Tick(Time::from_millis(210), 1376)]);
}

#[test]
fn a_controller_sees_fast_resends_as_such() {
    let recorder = Recorder::new(100, None);
    let mut alice = kcp(&configs::classic_turbo());
    alice.install(Box::new(recorder.clone()));
    for number in 0..5 {
        alice.send(&numbered(number, 10)).unwrap();
    }
    flushed(&mut alice, 0);
    for sn in [1, 2] {
        alice.input(Time::from_millis(30), &Raw::ack(sn, 0).bytes()).unwrap();
    }
    recorder.take();
    assert_eq!(numbers(&flushed(&mut alice, 30), Command::Push), [0]);
    let events = recorder.take();
    assert_eq!(sent(&events), [(Sn(0), 10, 2, 3)]);
    let loss = events.iter().find_map(|event| if let Event::Loss(loss) = event { Some(*loss) } else { None });
    let loss = loss.unwrap();
    assert_eq!((loss.timeouts, loss.fast, loss.in_flight, loss.prior_window), (0, 1, 5, 100));
}

#[test]
fn the_events_of_a_controller_add_up_to_the_statistics() {
    for seed in 1..=5 {
        let recorder = Recorder::new(20, None);
        let mut pair = pair(configs::classic_turbo(), rough(), seed);
        pair.alice.kcp.install(Box::new(recorder.clone()));
        pair.send_numbered(300);
        assert!(pair.run_until_idle(Duration::from_secs(20)), "never went quiet");
        pair.assert_delivered();
        let (events, stats) = (recorder.take(), pair.alice.kcp.stats());
        let sent = sent(&events);
        let first = sent.iter().filter(|(_, _, xmit, _)| *xmit == 1);
        assert!(first.map(|(sn, ..)| sn.0).eq(0..300), "each first transmission is reported once, in order");
        assert_eq!(sent.len(), 300 + pair.alice.resends() as usize);
        let bytes: u64 = sent.iter().map(|(_, len, ..)| u64::from(*len) + 24).sum();
        assert_eq!(bytes, stats.bytes_sent);
        assert!(sent.iter().all(|(.., in_flight)| (1..=20).contains(in_flight)));
        let (mut timeouts, mut fast, mut acked, mut rtts) = (0, 0, 0, 0);
        for event in &events {
            match event {
                Event::Loss(loss) => (timeouts, fast) = (timeouts + loss.timeouts, fast + loss.fast),
                Event::Ack(ack) => acked += ack.segments,
                Event::Rtt(_, rtt) => {
                    assert!(Some(*rtt) >= stats.min_rtt);
                    rtts += 1;
                }
                _ => {}
            }
        }
        assert_eq!((timeouts, fast, acked), (stats.resends_timeout, stats.resends_fast, 300));
        assert_eq!(rtts, stats.segments_received, "bob sends acknowledgements only");
    }
}

#[test]
fn the_window_of_a_controller_is_obeyed_and_may_change() {
    let recorder = Recorder::new(4, None);
    let mut alice = kcp(&configs::classic_turbo());
    alice.install(Box::new(recorder.clone()));
    for number in 0..50 {
        alice.send(&numbered(number, 10)).unwrap();
    }
    for (window, sends) in [(4, 4), (0, 0), (3, 0), (10, 6), (1000, 22), (u32::MAX, 0)] {
        recorder.set_window(window);
        assert_eq!(flushed(&mut alice, 0).len(), sends, "window {window}; snd_wnd is 32");
    }
}

#[test]
fn without_a_limit_only_the_windows_of_both_ends_apply() {
    let congestion = Congestion::Own(|| Box::new(Unlimited));
    let mut alice = kcp(&Config { congestion, ..configs::classic_turbo() });
    for number in 0..200 {
        alice.send(&numbered(number, 10)).unwrap();
    }
    assert_eq!(flushed(&mut alice, 0).len(), 32, "already in the first flush");
    alice.configure(&Config { snd_wnd: 500, ..*alice.config() }).unwrap();
    assert_eq!(flushed(&mut alice, 0).len(), 96);
    assert_eq!((alice.stats().cwnd, alice.stats().ssthresh), (u32::MAX, None));
}

/// Sends `count` messages of `len` bytes, paced at `rate`, to a peer that acknowledges at once. Returns the
/// transmissions: when, number, how often.
fn paced(rate: u64, len: usize, count: usize, drive: Drive) -> (Pair, Vec<(Time, u32, u16)>) {
    let recorder = Recorder::new(1000, Some(rate));
    let mut pair = Setup { drive, ..Setup::new(configs::classic_turbo(), clean(), 1) }.pair();
    pair.alice.kcp.install(Box::new(recorder.clone()));
    for number in 0..count {
        pair.send(numbered(number, len));
    }
    assert!(pair.run_until_idle(Duration::from_secs(10_000)), "never went quiet");
    pair.assert_delivered();
    let sends = recorder.take().into_iter().filter_map(|event| match event {
        Event::Sent(Sent { now, sn, xmit, .. }) => Some((now, sn.0, xmit)),
        _ => None,
    });
    let sends = sends.collect();
    (pair, sends)
}

#[test]
fn a_paced_segment_is_not_a_lost_one() {
    // A budget of one to two segments per flush. In ikcp.c the second leaves after the third.
    let (pair, sends) = paced(100_000, 600, 30, Drive::BEAT);
    assert!(sends.iter().map(|(_, sn, _)| *sn).eq(0..30), "out of order: {sends:?}");
    assert!(sends.iter().all(|(.., xmit)| *xmit == 1), "counted as sent before it was: {sends:?}");
    assert_eq!(pair.resends(), 0);
    // 2000 bytes at once, then 1000 per flush.
    let flushes: Vec<_> =
        sends.chunk_by(|a, b| a.0 == b.0).map(|flush| (flush[0].0.as_millis(), flush.len())).collect();
    assert_eq!(flushes[..6], [(0, 4), (10, 1), (20, 2), (30, 2), (40, 1), (50, 2)]);
}

#[test]
fn a_rate_is_kept_however_small_it_is() {
    for (rate, len, count) in
        [(100_000, 600, 300), (1000, 1376, 30), (100, 1376, 10), (20_000, 10, 3000), (2_000_000, 1376, 3000)]
    {
        for drive in [Drive::CHECK, Drive::BEAT, Drive::CHECK.flushing()] {
            let (pair, sends) = paced(rate, len, count, drive);
            let time = sends.last().unwrap().0.since(Time::ZERO);
            let bytes = (len * (count - 1)) as u64; // what was sent before the last one
            let most = rate * u64::try_from((time + PACING_BURST).as_millis()).unwrap() / 1000 + len as u64;
            assert!(bytes <= most, "{bytes} bytes in {time:?} at {rate}");
            // An overdraft is paid back before the next segment, which delays it by at most a flush.
            let want = Duration::from_millis(bytes * 1000 / rate + 30 + len as u64 * 1000 / rate);
            // Or the window is the limit: at intervals, both ends answer 10 ms later.
            let round_trip = if drive == Drive::BEAT { 80 } else { 60 };
            assert!(
                time <= want.max(Duration::from_millis(round_trip * count as u64 / 32)),
                "{time:?}, not {want:?} at {rate}"
            );
            assert_eq!((pair.resends(), sends.len()), (0, count));
        }
    }
}

#[test]
fn a_rate_of_0_sends_no_data_and_wakes_nobody_until_it_rises() {
    let recorder = Recorder::new(1000, Some(0));
    let mut alice = kcp(&configs::classic_turbo());
    alice.install(Box::new(recorder.clone()));
    alice.send(b"waits").unwrap();
    alice.update(Time::ZERO);
    assert_eq!((drain(&mut alice), alice.check(Time::ZERO)), (Vec::<Vec<u8>>::new(), None));
    for ms in (0..10_000).step_by(10) {
        assert_eq!(flushed(&mut alice, ms), []);
    }
    assert_eq!(
        (alice.stats().snd_nxt, alice.stats().resends_timeout),
        (Sn(0), 0),
        "and nothing counts as lost"
    );
    // Acknowledgements leave nevertheless.
    let now = Time::from_millis(10_000);
    alice.input(now, &Raw::push(0, b"hi").bytes()).unwrap();
    assert_eq!(alice.check(now), Some(now));
    alice.update(now);
    assert_eq!(raw_segments(drain(&mut alice)).len(), 1);
    assert_eq!(alice.check(now), None);

    recorder.set_rate(Some(1000));
    let at = alice.check(now).unwrap();
    assert!(at.since(now) <= Duration::from_millis(10), "{at}");
    alice.update(at);
    assert_eq!(numbers(&raw_segments(drain(&mut alice)), Command::Push), [0]);
}

#[test]
fn a_rate_of_0_also_stops_resends_until_it_rises() {
    let recorder = Recorder::new(1000, None);
    let mut alice = kcp(&configs::classic_turbo());
    alice.install(Box::new(recorder.clone()));
    alice.send(b"gets lost").unwrap();
    assert_eq!(flushed(&mut alice, 0).len(), 1);
    recorder.set_rate(Some(0));
    for ms in (10..2000).step_by(10) {
        assert_eq!(flushed(&mut alice, ms), []);
    }
    assert_eq!((alice.stats().resends_timeout, alice.check(Time::from_millis(2000))), (0, None));
    recorder.set_rate(Some(1_000_000));
    assert_eq!(flushed(&mut alice, 2000).len(), 1);
    assert_eq!(alice.stats().resends_timeout, 1);
}

#[test]
fn a_fast_resend_delayed_by_the_budget_leaves_once_there_is_some() {
    let recorder = Recorder::new(1000, None);
    let mut alice = kcp(&configs::classic_turbo());
    alice.install(Box::new(recorder.clone()));
    for number in 0..4 {
        alice.send(&numbered(number, 10)).unwrap();
    }
    alice.update(Time::ZERO);
    recorder.set_rate(Some(0));
    for sn in [1, 2] {
        alice.input(Time::from_millis(20), &Raw::ack(sn, 0).bytes()).unwrap();
    }
    drain(&mut alice);
    for ms in (20..50).step_by(10) {
        alice.update(Time::from_millis(ms));
        assert_eq!((alice.output().len(), alice.check(Time::from_millis(ms))), (0, None));
    }
    recorder.set_rate(Some(1_000_000));
    assert_eq!(alice.check(Time::from_millis(45)), Some(Time::from_millis(50)));
    alice.update(Time::from_millis(50));
    assert_eq!(numbers(&raw_segments(drain(&mut alice)), Command::Push), [0]);
    assert_eq!((alice.stats().resends_fast, alice.stats().resends_timeout), (1, 0));
}

#[test]
fn a_paced_sender_is_woken_no_more_than_once_a_segment_or_an_interval() {
    for rate in [1000, 50_000, 1_000_000] {
        let (pair, sends) = paced(rate, 500, 200, Drive::CHECK);
        let intervals = pair.now().as_millis() / 10;
        assert!(
            u64::from(pair.alice.updates) <= intervals.min(2 * sends.len() as u64) + 2,
            "{}",
            pair.alice.updates
        );
    }
}

#[test]
fn a_paced_sender_delivers_under_loss() {
    for seed in 1..=5 {
        let recorder = Recorder::new(64, Some(200_000));
        let mut pair = pair(Config { snd_wnd: 64, ..configs::classic_turbo() }, lossy(0.1), seed);
        pair.alice.kcp.install(Box::new(recorder));
        pair.send_numbered(500);
        assert!(pair.run_until_idle(Duration::from_secs(20)), "never went quiet");
        pair.assert_delivered();
        let stats = pair.alice.kcp.stats();
        let payload = stats.bytes_sent - 24 * stats.segments_sent;
        let rate = payload as f64 / pair.now().since(Time::ZERO).as_secs_f64();
        assert!(rate <= 220_000.0, "{rate} bytes/s");
        assert!((20..=250).contains(&pair.resends()), "{} resends of 500", pair.resends());
    }
}

#[test]
fn configure_replaces_the_controller_only_by_another_one() {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let own = Congestion::Own(|| {
        MADE.fetch_add(1, Ordering::Relaxed);
        Box::new(Unlimited)
    });
    let mut alice = kcp(&Config { congestion: own, ..Config::default() });
    let mut configure = |congestion, snd_wnd| {
        alice.configure(&Config { congestion, snd_wnd, ..Config::default() }).unwrap();
        (alice.stats().cwnd, MADE.load(Ordering::Relaxed))
    };
    assert_eq!(configure(own, 64), (u32::MAX, 1));
    let delay = configure(Congestion::Delay, 64).0;
    assert!((1..u32::MAX).contains(&delay));
    assert_eq!(configure(own, 64), (u32::MAX, 2));
    assert_eq!(configure(Congestion::Kcp, 64).0, 0, "as after ikcp_create");
}

/// Source: ikcp.c, where `nocwnd` may be set at any time.
#[test]
fn the_window_of_kcp_is_kept_up_to_date_while_it_does_not_apply() {
    let mut pair = pair(Config { congestion: Congestion::None, ..Config::default() }, clean(), 7);
    pair.send_numbered(100);
    assert!(pair.run_until_idle(Duration::from_secs(10)));
    let before = pair.alice.kcp.stats().cwnd;
    let config = Config { congestion: Congestion::Kcp, ..*pair.alice.kcp.config() };
    pair.alice.kcp.configure(&config).unwrap();
    assert!(before > 2 && pair.alice.kcp.stats().cwnd == before, "{before}");
}
