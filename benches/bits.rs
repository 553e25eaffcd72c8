//! Packs fields into bits and unpacks them, compared with copying the same number of bytes. Writing and
//! reading 32-bit fields must each reach 1 GB/s, or half the speed of the copy.

use criterion::{Criterion, Throughput};
use std::hint::black_box;
use whitewater::message::{BitsError, Measure, Read, Serialize, Stream, Write};

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    run(&mut criterion, "32-bit fields", Words([0x9e37_79b9; FIELDS]));
    run(&mut criterion, "mixed fields", Mixed([(true, 5, 300, -7); FIELDS]));
    criterion.final_summary();
}

struct Words([u32; FIELDS]);

impl Serialize for Words {
    fn serialize<S: Stream>(&mut self, stream: &mut S) -> Result<(), BitsError> {
        self.0.iter_mut().try_for_each(|word| stream.bits(word, 32))
    }
}

/// 27 bits each.
struct Mixed([(bool, u8, u16, i16); FIELDS]);

impl Serialize for Mixed {
    fn serialize<S: Stream>(&mut self, stream: &mut S) -> Result<(), BitsError> {
        self.0.iter_mut().try_for_each(|(flag, kind, column, height)| {
            stream.bool(flag)?;
            stream.int(kind, 0..=20)?;
            stream.int(column, 0..=999)?;
            stream.int(height, -1000..=1000)
        })
    }
}

fn run(criterion: &mut Criterion, name: &str, mut value: impl Serialize) {
    let len = Measure::of(&mut value).map_or(0, |bits| bits.div_ceil(8));
    let (mut bytes, mut copy) = (vec![0; len], vec![0; len]);
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::BytesDecimal(len as u64));
    group.bench_function("copy", |bencher| {
        bencher.iter(|| {
            black_box(&mut copy).copy_from_slice(black_box(&bytes));
            black_box(&copy);
        });
    });
    group.bench_function("write", |bencher| {
        bencher.iter(|| {
            let mut stream = Write::new(black_box(&mut bytes));
            let done = black_box(&mut value).serialize(&mut stream);
            assert!(done.is_ok() && black_box(stream.finish()) == len);
        });
    });
    group.bench_function("measure", |bencher| {
        bencher.iter(|| Measure::of(black_box(&mut value)));
    });
    group.bench_function("read", |bencher| {
        bencher.iter(|| {
            let mut stream = Read::new(black_box(&bytes));
            let done = value.serialize(&mut stream);
            assert!(done.is_ok() && stream.finish().is_ok());
            black_box(&value);
        });
    });
    group.finish();
}

/// 1200 bytes of words: a packet.
const FIELDS: usize = 300;
