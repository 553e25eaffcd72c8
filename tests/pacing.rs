//! Pacing applies to every transmission, wastes nothing, and wakes when there is something to send.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;
use rand::RngExt;

use common::{drain, kcp};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use whitewater::Repairs;
use whitewater::Time;
use whitewater::kcp::congestion::{CongestionControl, PACING_BURST, Sent};
use whitewater::kcp::wire::segments;
use whitewater::kcp::{Config, Conv, Kcp, Modern, Recovery};
use whitewater::machine::DatagramQueue;
use whitewater_sim::{Drive, KcpEnd, Link, LinkConfig, Loss, Pair, Peer, SimRng};

/// A constant rate, and what was sent: when, how long, how often.
#[derive(Clone, Debug)]
struct Steady {
    rate: u64,
    sent: Arc<Mutex<Vec<(Time, u16, u16)>>>,
}

impl CongestionControl for Steady {
    fn window(&self) -> u32 {
        u32::MAX
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.sent.lock().unwrap().push((sent.now, sent.len, sent.xmit));
    }

    fn pacing_rate(&self) -> Option<u64> {
        Some(self.rate)
    }
}

/// A sender that is woken late, and a peer at zero distance with loss in both directions.
struct Late {
    alice: Kcp<DatagramQueue>,
    bob: Kcp<DatagramQueue>,
    steady: Steady,
    rng: SimRng,
    loss: f64,
    now: Time,
    wakes: usize,
}

impl Late {
    fn new(rate: u64, loss: f64, seed: u64) -> Self {
        let recovery = Recovery::Modern(Modern::default());
        let config =
            Config { snd_wnd: 2048, rcv_wnd: 2048, dead_link: u16::MAX, recovery, ..configs::fast() };
        let steady = Steady { rate, sent: Arc::default() };
        let (mut alice, bob) = (kcp(&config), kcp(&config));
        alice.install(Box::new(steady.clone()));
        Self { alice, bob, steady, rng: SimRng::new(seed, 1), loss, now: Time::ZERO, wakes: 0 }
    }

    /// Runs until nothing waits and nothing is in flight, with wake-ups up to `late` after the time that
    /// `check` returned.
    fn run(&mut self, late: Duration) -> Vec<(Time, u16, u16)> {
        while let Some(at) = self.alice.check(self.now) {
            self.now = at.max(self.now) + late.mul_f64(self.rng.random::<f64>());
            self.wakes += 1;
            self.alice.update(self.now);
            for datagram in drain(&mut self.alice) {
                if self.rng.random::<f64>() >= self.loss {
                    self.bob.input(self.now, &datagram).unwrap();
                }
            }
            self.bob.flush(self.now);
            for datagram in drain(&mut self.bob) {
                if self.rng.random::<f64>() >= self.loss {
                    self.alice.input(self.now, &datagram).unwrap();
                }
            }
            assert!(self.wakes < 1_000_000, "never went quiet");
        }
        std::mem::take(&mut self.steady.sent.lock().unwrap())
    }
}

/// Between any two transmissions, at most a full bucket was sent plus what the elapsed time earned.
fn assert_never_bursts(sent: &[(Time, u16, u16)], rate: u64) {
    for (index, (start, ..)) in sent.iter().enumerate() {
        let mut bytes = 0;
        for (now, len, _) in sent.iter().skip(index) {
            let most = u128::from(rate) * (now.since(*start) + PACING_BURST).as_micros() / 1_000_000;
            assert!(bytes <= most, "{bytes} bytes, not {most}, from {start} to {now} at {rate}");
            bytes += u128::from(*len);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_burst_is_never_larger_than_the_bucket(
        rate in prop_oneof![100u64..10_000, 10_000u64..10_000_000],
        sizes in prop::collection::vec(1usize..1376, 1..200),
        late in 0u64..40_000,
        loss in prop_oneof![Just(0.0), 0.0..0.4],
        seed: u64,
    ) {
        let mut late_sender = Late::new(rate, loss, seed);
        for size in &sizes {
            late_sender.alice.send(&vec![0; *size]).unwrap();
        }
        let sent = late_sender.run(Duration::from_micros(late));
        prop_assert!(sent.len() >= sizes.len());
        prop_assert_eq!(sent.iter().any(|(.., xmit)| *xmit > 1), sent.len() > sizes.len());
        assert_never_bursts(&sent, rate);
    }

    /// Budget that a late wake-up left unused is kept for the next one.
    #[test]
    fn waking_late_costs_no_rate(
        rate in 100_000u64..10_000_000,
        size in 1usize..1376,
        late in 0u64..19_000,
        seed: u64,
    ) {
        let mut late_sender = Late::new(rate, 0.0, seed);
        for _ in 0..1000 {
            late_sender.alice.send(&vec![0; size]).unwrap();
        }
        let sent = late_sender.run(Duration::from_micros(late));
        let bytes = (1000 * size) as f64;
        let want = bytes / rate as f64 + 0.02 + size as f64 / rate as f64;
        let took = sent.last().unwrap().0.since(sent[0].0).as_secs_f64();
        prop_assert!(took <= want, "{} s, not {} s", took, want);
    }

    /// When woken at the time that `check` returned, the sender has budget for a segment, and not 1 µs
    /// earlier.
    #[test]
    fn a_paced_sender_wakes_once_per_segment(rate in 1000u64..1_000_000, size in 100usize..1376, seed: u64) {
        let mut sender = Late::new(rate, 0.0, seed);
        for _ in 0..100 {
            sender.alice.send(&vec![0; size]).unwrap();
        }
        let sent = sender.run(Duration::ZERO);
        prop_assert_eq!(sent.len(), 100);
        prop_assert!(sender.wakes <= 100, "{} wake-ups", sender.wakes);
        let each = Duration::from_micros(size as u64 * 1_000_000 / rate);
        for pair in sent.windows(2).filter(|pair| pair[0].0 > Time::ZERO) {
            let gap = pair[1].0.since(pair[0].0);
            prop_assert!(gap.abs_diff(each) <= Duration::from_micros(1), "{:?}, not {:?}", gap, each);
        }
    }
}

/// An end that records what leaves: when and how long.
struct Logged {
    end: KcpEnd,
    now: Time,
    left: Vec<(Time, u16, u16)>,
}

impl Peer for Logged {
    fn input(&mut self, now: Time, datagram: &[u8]) {
        self.now = now;
        self.end.input(now, datagram);
    }

    fn poll(&mut self, now: Time) {
        self.now = now;
        self.end.poll(now);
    }

    fn next_wake(&self, now: Time) -> Option<Time> {
        self.end.next_wake(now)
    }

    fn pop_datagram(&mut self, datagram: &mut Vec<u8>) -> bool {
        let has = self.end.pop_datagram(datagram);
        if has {
            let lens = segments(datagram).map(|segment| u16::try_from(segment.unwrap().data.len()).unwrap());
            self.left.extend(lens.filter(|len| *len > 0).map(|len| (self.now, len, 0)));
        }
        has
    }
}

#[test]
fn repairs_are_paced_like_everything_else() {
    for (rate, seed) in [(20_000, 1), (25_000, 2), (50_000, 3), (500_000, 4)] {
        let recovery = Recovery::Modern(Modern { repairs: Repairs::Budget(100), ..Modern::default() });
        let config = Config { rcv_wnd: 2048, recovery, ..configs::fast() }; // bob never reads
        let end = || KcpEnd::new(Conv(1), &config, Drive::CHECK, Time::ZERO).unwrap();
        let path = LinkConfig { loss: Loss::Random(0.2), ..LinkConfig::with_rtt(Duration::from_millis(60)) };
        let links = [1, 2].map(|stream| Link::new(path.clone(), seed, stream).unwrap());
        let alice = Logged { end: end(), now: Time::ZERO, left: Vec::new() };
        let mut pair = Pair::new(alice, end(), links);
        let steady = Steady { rate, sent: Arc::default() };
        pair.alice.end.kcp_mut().install(Box::new(steady.clone()));
        for _ in 0..1000 {
            pair.alice.end.send(pair.now(), &[0; 200]).unwrap();
            pair.run_for(Duration::from_millis(16));
        }
        pair.run_for(Duration::from_secs(2));
        assert_never_bursts(&pair.alice.left, rate);
        let repairs = usize::try_from(pair.alice.end.kcp().stats().repairs_sent).unwrap();
        assert_eq!(pair.bob.kcp().stats().rcv_nxt.0, 1000, "seed {seed}");
        assert_eq!(pair.alice.left.len(), steady.sent.lock().unwrap().len() + repairs, "seed {seed}");
        assert!(repairs > 100, "seed {seed}: {repairs} repairs");
    }
}

/// Two rates, chosen by the round trip alone, like a game that reduces its send rate when the path is bad and
/// trusts it again after a while.
#[derive(Debug)]
struct GoodOrBad {
    bad_until: Time,
    now: Time,
}

impl CongestionControl for GoodOrBad {
    fn window(&self) -> u32 {
        if self.now < self.bad_until { 16 } else { 64 }
    }

    fn on_rtt(&mut self, now: Time, rtt: Duration) {
        if rtt > Duration::from_millis(250) {
            self.bad_until = now + Duration::from_secs(2);
        }
    }

    fn on_tick(&mut self, now: Time, _mss: u16) {
        self.now = now;
    }

    fn pacing_rate(&self) -> Option<u64> {
        Some(if self.now < self.bad_until { 1000 } else { 3000 })
    }
}

#[test]
fn a_controller_may_have_a_good_and_a_bad_mode() {
    let recovery = Recovery::Modern(Modern::default());
    let config = Config { rcv_wnd: 2048, recovery, ..configs::fast() }; // bob never reads
    let end = || KcpEnd::new(Conv(1), &config, Drive::CHECK, Time::ZERO).unwrap();
    let path = |rtt| LinkConfig::with_rtt(Duration::from_millis(rtt));
    let links = [1, 2].map(|stream| Link::new(path(100), 7, stream).unwrap());
    let mut pair = Pair::new(end(), end(), links);
    let control = GoodOrBad { bad_until: Time::ZERO, now: Time::ZERO };
    pair.alice.kcp_mut().install(Box::new(control));
    for _ in 0..1000 {
        pair.alice.send(Time::ZERO, &[0; 100]).unwrap();
    }
    let mut rates = Vec::new();
    for (rtt, from, to) in [(100, 1, 3), (600, 5, 7), (100, 12, 14)] {
        pair.links[0].set(path(rtt)).unwrap();
        pair.run_to(Time::from_millis(from * 1000));
        let before = pair.links[0].stats().sent;
        pair.run_to(Time::from_millis(to * 1000));
        rates.push((pair.links[0].stats().sent - before) / (to - from));
    }
    assert_eq!(rates, [30, 10, 30], "segments a second");
}
