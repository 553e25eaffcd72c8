//! The erasure code: making one repair over 32 segments, and rebuilding a segment from one. Each must stay
//! below 10 µs at 1200 bytes.

use criterion::{Criterion, Throughput};
use std::hint::black_box;
use std::time::{Duration, Instant};
use whitewater::Time;
use whitewater::inside::code::{Decoder, DecoderConfig, Encoder};
use whitewater::kcp::{Millis, Sn};

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    encode(&mut criterion);
    decode(&mut criterion);
    nothing_lost(&mut criterion);
    criterion.final_summary();
}

fn encode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("encode a repair over 32");
    for size in SIZES {
        let (data, mut encoder, mut payload, mut sn) =
            (vec![0x5a; size], Encoder::new(), vec![0; 1500], Sn(0));
        group.throughput(Throughput::Bytes((usize::from(COVERED) * size) as u64));
        group.bench_function(format!("{size}B"), |bencher| {
            bencher.iter(|| {
                sn = sn.add(1);
                write_repair(&mut encoder, sn, black_box(&data), &mut payload)
            });
        });
    }
    group.finish();
}

/// Each time a different one of 32 segments is missing.
fn decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("rebuild one of 32");
    for size in SIZES {
        let (data, mut encoder, mut payload) = (vec![0x5a; size], Encoder::new(), vec![0; 1500]);
        let mut decoder = Decoder::new(&DecoderConfig::default());
        let mut first = Sn(0);
        group.bench_function(format!("{size}B"), |bencher| {
            bencher.iter_custom(|iterations| {
                let mut time = Duration::ZERO;
                for iteration in 0..iterations {
                    first = first.add(COVERED.into());
                    let missing = first.add(u32::try_from(iteration % u64::from(COVERED)).unwrap_or(0));
                    receive(&mut decoder, first, missing, &data);
                    let len = write_repair(&mut encoder, first, &data, &mut payload);
                    let payload = payload.get(..len).unwrap_or_default();
                    decoder.earn(Time::ZERO, usize::MAX);
                    let start = Instant::now();
                    let taken = decoder.repair(first, Millis(0), black_box(payload), missing, 128);
                    let recovered = black_box(decoder.recover());
                    time += start.elapsed();
                    assert!(taken.is_ok() && recovered.is_some_and(|recovered| recovered.sn == missing));
                }
                time
            });
        });
    }
    group.finish();
}

/// What the code costs a receiver without losses: one copy per segment, a glance at each repair.
fn nothing_lost(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("nothing lost");
    for size in SIZES {
        let (data, mut sn) = (vec![0x5a; size], Sn(0));
        let mut decoder = Decoder::new(&DecoderConfig::default());
        group.bench_function(format!("segment of {size}B"), |bencher| {
            bencher.iter(|| {
                sn = sn.add(1);
                decoder.received(sn, 0, black_box(&data));
            });
        });
        let mut payload = vec![0; 1500];
        let len = write_repair(&mut Encoder::new(), Sn(0), &data, &mut payload);
        let payload = payload.get(..len).unwrap_or_default();
        group.bench_function(format!("repair of {size}B"), |bencher| {
            bencher.iter(|| decoder.repair(Sn(0), Millis(0), black_box(payload), Sn(COVERED.into()), 128));
        });
    }
    group.finish();
}

fn write_repair(encoder: &mut Encoder, first: Sn, data: &[u8], payload: &mut [u8]) -> usize {
    encoder.begin(3);
    for offset in 0..COVERED {
        let len = u16::try_from(data.len()).unwrap_or(u16::MAX);
        encoder.add(first.add(offset.into()), 0, len, |to| to.copy_from_slice(data));
    }
    encoder.finish(payload).unwrap_or(0)
}

fn receive(decoder: &mut Decoder, first: Sn, missing: Sn, data: &[u8]) {
    for sn in (0..COVERED.into()).map(|offset| first.add(offset)).filter(|sn| *sn != missing) {
        decoder.received(sn, 0, data);
    }
}

const SIZES: [usize; 2] = [100, 1200];
const COVERED: u8 = 32;
