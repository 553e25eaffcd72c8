//! Derived messages to bits and back, compared with a plain copy of the same number of bytes. Writing and reading 32-bit fields
//! must each run above 1 GB/s, or half as fast as the copy.

use criterion::{Criterion, Throughput};
use std::hint::black_box;
use whitewater::Message;
use whitewater::message::{BitReader, BitWriter};

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    run(&mut criterion, "32-bit fields", &Words([0x9e37_79b9; FIELDS]));
    let field = Mixed { flag: true, kind: 5, column: 300, height: -7 };
    run(&mut criterion, "mixed fields", &[field; FIELDS]);
    criterion.final_summary();
}

#[derive(Message)]
struct Words([u32; FIELDS]);

/// 27 bits.
#[derive(Clone, Copy, Message)]
struct Mixed {
    flag: bool,
    #[bits(0..=20)]
    kind: u8,
    #[bits(0..=999)]
    column: u16,
    #[bits(-1000..=1000)]
    height: i16,
}

fn run<T: Message>(criterion: &mut Criterion, name: &str, value: &T) {
    let bytes = write(value, Vec::new());
    let (mut copy, mut buffer) = (vec![0; bytes.len()], Vec::new());
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::BytesDecimal(bytes.len() as u64));
    group.bench_function("copy", |bencher| {
        bencher.iter(|| {
            black_box(&mut copy).copy_from_slice(black_box(&bytes));
            black_box(&copy);
        });
    });
    group.bench_function("write", |bencher| {
        bencher.iter(|| buffer = write(black_box(value), std::mem::take(&mut buffer)));
    });
    group.bench_function("read", |bencher| {
        bencher.iter(|| {
            let mut from = BitReader::new(black_box(&bytes));
            let value = T::unpack(&mut from);
            assert!(value.is_ok() && from.finish().is_ok());
            value
        });
    });
    group.bench_function("append", |bencher| {
        bencher.iter(|| {
            let mut to = BitWriter::new(std::mem::take(&mut buffer));
            let done = to.bool(true).and_then(|()| to.append(black_box(&bytes), 8 * bytes.len()));
            assert!(done.is_ok());
            buffer = to.finish();
        });
    });
    group.finish();
}

fn write(value: &impl Message, buffer: Vec<u8>) -> Vec<u8> {
    let mut to = BitWriter::new(buffer);
    assert!(value.pack(&mut to).is_ok());
    to.finish()
}

/// 1200 bytes of words: a packet.
const FIELDS: usize = 300;
