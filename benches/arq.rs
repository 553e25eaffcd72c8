//! The control block: each call by itself, and two control blocks joined by a path in memory.
//!
//! `benches/peers` compares the same pipe with ikcp.c and the crate kcp.

#![expect(clippy::expect_used, clippy::panic, reason = "a benchmark that cannot go on stops")]

mod pipe;

use criterion::{BatchSize, Criterion, Throughput};
use pipe::{Link, Load, MSS, PUSH, Peer, Pipe, TICK, Whitewater, forged_acks, full_window, header};
use std::hint::black_box;
use std::iter;
use whitewater::Time;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    input(&mut criterion);
    flush(&mut criterion);
    idle(&mut criterion);
    forged(&mut criterion);
    pipes(&mut criterion);
    criterion.final_summary();
}

/// One PUSH in and its message out; a flush of the ACKs every [`PUSHES_A_FLUSH`].
fn input(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("input");
    for size in [64, MSS] {
        let mut peer = Whitewater::new(128, Link::nowhere());
        let mut datagram: Vec<u8> =
            header(PUSH, 128, 0, size).into_iter().chain(iter::repeat_n(0x5a, size)).collect();
        let mut buf = [0; MSS];
        let mut sn: u32 = 0;
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_function(format!("push/{size}B"), |bencher| {
            bencher.iter(|| {
                if let Some(header) = datagram.first_chunk_mut() {
                    *header = pipe::header(PUSH, 128, sn, size);
                }
                peer.input(0, black_box(&datagram));
                black_box(peer.recv(&mut buf));
                sn = sn.wrapping_add(1);
                if sn.is_multiple_of(PUSHES_A_FLUSH) {
                    peer.0.flush(Time::ZERO);
                }
            });
        });
    }
    group.finish();
}

const PUSHES_A_FLUSH: u32 = 64;

/// The flush that sends a full window for the first time.
fn flush(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("flush");
    for window in WINDOWS {
        group.throughput(Throughput::Elements(window.into()));
        group.bench_function(format!("window {window}"), |bencher| {
            bencher.iter_batched_ref(
                || pipe::queued_window::<Whitewater>(64, window, &Link::nowhere()),
                |peer| peer.update(0),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

/// A full window in flight, and nothing due.
fn idle(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("check");
    for window in WINDOWS {
        let peer: Whitewater = full_window(64, window, &Link::nowhere());
        group.bench_function(format!("window {window}"), |bencher| {
            bencher.iter(|| peer.0.check(black_box(Time::from_millis(5))));
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("update");
    for window in WINDOWS {
        group.throughput(Throughput::Elements(UPDATES.into()));
        group.bench_function(format!("nothing due/window {window}"), |bencher| {
            bencher.iter_batched_ref(
                || full_window::<Whitewater>(64, window, &Link::nowhere()),
                |peer| (1..=UPDATES).for_each(|tick| peer.update(tick * TICK)),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

/// Flushes within the first RTO of 200 ms.
const UPDATES: u32 = 19;

/// A datagram of ACKs that no honest peer can have sent yet, and the flush after it.
fn forged(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("58 forged acks");
    for window in [128, 1024, 8192] {
        let datagram = forged_acks(window);
        group.bench_function(format!("input/window {window}"), |bencher| {
            bencher.iter_batched_ref(
                || full_window::<Whitewater>(64, window, &Link::nowhere()),
                |peer| peer.input(TICK, &datagram),
                BatchSize::SmallInput,
            );
        });
        group.bench_function(format!("update after/window {window}"), |bencher| {
            bencher.iter_batched_ref(
                || {
                    let mut peer: Whitewater = full_window(64, window, &Link::nowhere());
                    peer.input(TICK, &datagram);
                    peer
                },
                |peer| peer.update(TICK),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

/// The whole way of a message: send, flush, path, input, recv, and its ACK back.
fn pipes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pipe");
    for size in [64, MSS] {
        for window in WINDOWS {
            for loss in [0, 1, 10] {
                let mut pipe = Pipe::<Whitewater>::new(Load { size, window, loss });
                pipe.deliver(8 * u64::from(window));
                group.throughput(Throughput::Elements(u64::from(window)));
                group.bench_function(format!("{size}B/window {window}/loss {loss}%"), |bencher| {
                    bencher.iter(|| pipe.deliver(window.into()));
                });
            }
        }
    }
    group.finish();
}

const WINDOWS: [u16; 4] = [32, 128, 1024, 8192];
