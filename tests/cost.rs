//! The cost of a call does not grow with the window: no list is walked, nothing is shifted.
//!
//! Allocated bytes can be counted. Work cannot be counted from outside, so times are compared: the same calls
//! with a small and a large window in one run, the best of several. A search would be slower by the ratio of
//! the windows, which is far more than noise.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

#[cfg(test)]
mod common;

use allocation_counter::measure;
use common::configs;
use common::{Raw, kcp};
use std::time::{Duration, Instant};
use whitewater::Time;
use whitewater::kcp::{Config, Kcp};
use whitewater::machine::DatagramQueue;

const SMALL: u16 = 128;
const LARGE: u16 = 8192;

/// Time of one call, ns: the best of several runs.
fn best(mut run: impl FnMut() -> (Duration, u32)) -> f64 {
    let times = (0..7).map(|_| {
        let (time, calls) = run();
        time.as_secs_f64() * 1e9 / f64::from(calls)
    });
    times.fold(f64::INFINITY, f64::min)
}

fn config(window: u16) -> Config {
    Config { snd_wnd: window, rcv_wnd: window, snd_queue: window.into(), ..configs::classic_turbo() }
}

fn full_window(window: u16) -> Kcp<DatagramQueue> {
    let mut alice = kcp(&config(window));
    alice.input(Time::ZERO, &Raw::wins(window).bytes()).unwrap();
    for _ in 0..window {
        alice.send(&[1; 64]).unwrap();
    }
    alice.flush(Time::ZERO);
    alice
}

/// The numbers of a window in an order that suits neither a search from the front nor one from the back; 0
/// comes last.
fn shuffled(window: u16) -> impl Iterator<Item = u16> {
    let step = 2 * (u32::from(window) / 3) + 1; // odd, so it visits every number below a power of two
    (1..=u32::from(window)).map(move |at| u16::try_from(at * step % u32::from(window)).unwrap())
}

fn pushes(window: u16) -> Vec<Vec<u8>> {
    shuffled(window).map(|sn| Raw::push(sn.into(), &[1; 64]).bytes()).collect()
}

fn timed(kcp: &mut Kcp<DatagramQueue>, datagrams: &[Vec<u8>]) -> (Duration, u32) {
    let start = Instant::now();
    for datagram in datagrams {
        kcp.input(Time::ZERO, datagram).unwrap();
    }
    (start.elapsed(), u32::try_from(datagrams.len()).unwrap())
}

/// ns per call with a given window.
type Measured = fn(u16) -> f64;

fn ack_in_order(window: u16) -> f64 {
    ack(window, (1..window).chain([0]))
}

fn ack_backwards(window: u16) -> f64 {
    ack(window, (0..window).rev())
}

fn ack_shuffled(window: u16) -> f64 {
    ack(window, shuffled(window))
}

/// Acknowledges a window, each segment with a datagram of its own, number 0 last.
fn ack(window: u16, numbers: impl Iterator<Item = u16>) -> f64 {
    let acks: Vec<_> = numbers.map(|sn| Raw { wnd: window, ..Raw::ack(sn.into(), 0) }.bytes()).collect();
    best(|| {
        let mut alice = full_window(window);
        let time = timed(&mut alice, &acks);
        assert_eq!(alice.wait_snd(), 0);
        time
    })
}

fn park(window: u16) -> f64 {
    let pushes = pushes(window);
    best(|| {
        let mut bob = kcp(&config(window));
        let time = timed(&mut bob, &pushes);
        assert_eq!(bob.stats().rcv_queue, u32::from(window));
        time
    })
}

fn duplicate(window: u16) -> f64 {
    let pushes = pushes(window);
    best(|| {
        let mut bob = kcp(&config(window));
        timed(&mut bob, &pushes[..pushes.len() - 1]); // all but the one that releases them
        let time = timed(&mut bob, &pushes[..pushes.len() - 1]);
        assert_eq!(bob.stats().duplicates, u32::from(window) - 1);
        time
    })
}

fn idle_flush(window: u16) -> f64 {
    let mut alice = full_window(window);
    best(|| {
        let start = Instant::now();
        for us in 0..1000 {
            alice.flush(Time::from_micros(us));
            std::hint::black_box(alice.check(Time::from_micros(us)));
        }
        (start.elapsed(), 1000)
    })
}

#[test]
fn cost_does_not_grow_with_the_window() {
    let calls: [(&str, Measured); 6] = [
        ("acknowledge in order, but for the first", ack_in_order),
        ("acknowledge backwards", ack_backwards),
        ("acknowledge in any order", ack_shuffled),
        ("park", park),
        ("duplicate", duplicate),
        ("flush with nothing due", idle_flush),
    ];
    let mut grown = Vec::new();
    for (name, call) in calls {
        let (small, large) = (call(SMALL), call(LARGE));
        println!("{name}: {small:.0} ns at {SMALL}, {large:.0} ns at {LARGE}");
        grown.extend((large > 8.0 * small + 20.0).then_some((name, small, large)));
    }
    assert!(grown.is_empty(), "ns at {SMALL} and at {LARGE}: {grown:.0?}");
}

#[test]
fn a_stream_appends_in_place() {
    // Copying the segment for each byte would allocate 946 KB per segment.
    let mut alice = kcp(&Config { stream: true, ..configs::classic_turbo() });
    let info = measure(|| {
        for _ in 0..10 * 1376 {
            alice.send(b"x").unwrap();
        }
    });
    assert_eq!(alice.wait_snd(), 10);
    assert!(info.bytes_total <= 20 * 13_760, "{} bytes allocated in all for 13,760", info.bytes_total);
    assert!(info.count_total <= 100, "{} allocations", info.count_total);
}

#[test]
fn allocated_memory_grows_no_faster_than_the_window() {
    let bytes = |window: u16| measure(|| drop(full_window(window))).bytes_total as f64 / f64::from(window);
    let (small, large) = (bytes(SMALL), bytes(LARGE));
    assert!(large < 2.0 * small, "{small:.0} bytes per segment at {SMALL}, {large:.0} at {LARGE}");
}
