//! The wire format: encoding and decoding one segment, and a datagram of nothing but headers.

use criterion::{Criterion, Throughput};
use std::hint::black_box;
use whitewater::kcp::wire::{Command, HEADER_LEN, Header, Segment, segments};
use whitewater::kcp::{Conv, Millis, Sn};

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    encode(&mut criterion);
    decode(&mut criterion);
    iterate(&mut criterion);
    criterion.final_summary();
}

fn encode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("encode");
    for size in [0, 64, MSS] {
        let data = vec![0x5a; size];
        let mut datagram = Vec::with_capacity(HEADER_LEN + size);
        group.throughput(Throughput::Bytes((HEADER_LEN + size) as u64));
        group.bench_function(format!("{size}B"), |bencher| {
            bencher.iter(|| {
                datagram.clear();
                segment(black_box(1), black_box(&data)).encode(&mut datagram);
                black_box(datagram.as_slice());
            });
        });
    }
    group.finish();
}

fn decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    for size in [64, MSS] {
        let mut datagram = Vec::new();
        segment(1, &vec![0x5a; size]).encode(&mut datagram);
        group.throughput(Throughput::Bytes(datagram.len() as u64));
        group.bench_function(format!("{size}B"), |bencher| {
            bencher.iter(|| Segment::decode(black_box(&datagram)));
        });
    }
    group.finish();
}

fn iterate(criterion: &mut Criterion) {
    let mut datagram = Vec::new();
    (0..ACKS_A_DATAGRAM).for_each(|sn| segment(sn, &[]).encode(&mut datagram));
    let mut group = criterion.benchmark_group("segments");
    group.throughput(Throughput::Elements(ACKS_A_DATAGRAM.into()));
    group.bench_function(format!("{ACKS_A_DATAGRAM} headers"), |bencher| {
        bencher.iter(|| {
            segments(black_box(&datagram))
                .flatten()
                .fold(0, |sum: u32, one| sum.wrapping_add(one.header.sn.0))
        });
    });
    group.finish();
}

fn segment(sn: u32, data: &[u8]) -> Segment<'_> {
    let cmd = if data.is_empty() { Command::Ack } else { Command::Push };
    let header = Header { conv: Conv(7), cmd, frg: 0, wnd: 128, ts: Millis(5), sn: Sn(sn), una: Sn(0) };
    Segment { header, data }
}

const MSS: usize = 1400 - HEADER_LEN;
const ACKS_A_DATAGRAM: u32 = 58;
