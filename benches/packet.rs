//! One packet each way in a steady state: sent, received at the other end, acknowledged, and reported as
//! acknowledged.

use criterion::{Criterion, Throughput};
use std::hint::black_box;
use std::time::Duration;
use whitewater::Time;
use whitewater::machine::DatagramQueue;
use whitewater::packet::{Endpoint, PacketConfig};

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("a packet each way");
    for size in [0, 100, 1100, 10_000] {
        let mut exchange = Exchange::new(size);
        group.throughput(Throughput::Elements(2));
        group.bench_function(format!("{size}B"), |bencher| bencher.iter(|| exchange.step()));
    }
    group.finish();
    criterion.final_summary();
}

struct Exchange {
    ends: [Endpoint<DatagramQueue>; 2],
    now: Time,
    payload: Vec<u8>,
}

impl Exchange {
    fn new(size: usize) -> Self {
        let end = || match Endpoint::new(&PacketConfig::default(), DatagramQueue::new()) {
            Ok(endpoint) => endpoint,
            Err(error) => unreachable!("{error}"),
        };
        Self { ends: [end(), end()], now: Time::ZERO, payload: vec![0x5a; size] }
    }

    fn step(&mut self) {
        self.now = self.now + Duration::from_millis(16);
        for _ in 0..2 {
            let [from, to] = &mut self.ends;
            let sent = from.send(self.now, black_box(&self.payload));
            assert!(sent.is_ok());
            while let Some(datagram) = from.output_mut().pop() {
                assert!(black_box(to.receive(self.now, datagram)).is_ok());
            }
            while let Some(sequence) = from.pop_acked() {
                black_box(sequence);
            }
            from.update(self.now);
            self.ends.swap(0, 1);
        }
    }
}
