//! Both ends of the repairs of a flow, without a session around them.

use super::{Path, Protection, Rebuild, RepairConfig, RepairStats};
use crate::seq::Seq16;
use crate::session::wire::{Frame, FrameWriter, Frames, LossFrame};
use crate::time::Time;
use allocation_counter::measure;
use std::time::Duration;

const PATH: Path = Path {
    rtt: Duration::from_millis(60),
    rtt_min: Duration::from_millis(60),
    patience: Duration::from_millis(110),
    overhead: 25,
    is_bad: false,
};

/// A flow of 60 packets a second, of which one in ten gets lost.
struct Run {
    protection: Protection,
    rebuild: Rebuild,
    /// Of xorshift, by Marsaglia.
    random: u64,
    pn: u64,
    buffer: Vec<u8>,
    content: Vec<u8>,
    rebuilt: u64,
}

impl Run {
    fn new(seed: u64) -> Self {
        let config = RepairConfig { percent: 100, ..RepairConfig::default() };
        let (protection, rebuild) = (Protection::new(&config), Rebuild::new(&config, 1200));
        let buffer = Vec::with_capacity(1200);
        Self { protection, rebuild, random: seed, pn: 0, buffer, content: vec![0; 40], rebuilt: 0 }
    }

    /// So many packets, of which what is rebuilt is what was lost.
    fn packets(&mut self, count: u64) {
        for _ in 0..count {
            let pn = self.leaves();
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            if !self.random.is_multiple_of(10) {
                self.arrived(pn);
            }
        }
    }

    /// The next packet is in the buffer; returns its number.
    fn leaves(&mut self) -> u64 {
        let (now, pn) = (Time::from_millis(16 * self.pn), self.pn);
        let loss = LossFrame { newest: Seq16(0), rebuilt: 0, share: 25 };
        self.protection.on_loss(now, pn, loss);
        self.content.fill(pn.to_le_bytes()[0]);
        self.buffer.clear();
        FrameWriter::new(&mut self.buffer, 1200).push(&Frame::Dgram(&self.content)).unwrap();
        self.protection.protect(now, pn, &PATH, (&mut self.buffer, 0, 1200));
        self.pn += 1;
        pn
    }

    fn rebuild_stats(&self) -> RepairStats {
        self.rebuild.stats()
    }

    fn arrived(&mut self, pn: u64) {
        let mut frames = Frames::parse(&self.buffer).unwrap();
        let all = frames;
        self.rebuild.arrived(pn);
        let (repair, body) = match frames.next() {
            Some(Frame::Repair(first, payload)) => (Some((first, payload)), frames.rest()),
            _ => (None, all.rest()),
        };
        if self.rebuild.is_on() {
            self.rebuild.remember(pn, body);
        }
        if let Some((first, payload)) = repair {
            self.rebuild.repair(pn, first, payload);
        }
        while let Some((lost, body)) = self.rebuild.recover() {
            let lost = lost.unwrap().to_le_bytes()[0];
            assert!(body[1..].iter().all(|byte| *byte == lost) && body.len() == 41);
            self.rebuilt += 1;
        }
    }
}

#[test]
fn what_is_rebuilt_is_what_was_lost_and_packets_of_a_steady_flow_allocate_nothing() {
    for seed in 1..=3 {
        let mut run = Run::new(seed);
        run.packets(5_000);
        let before = run.rebuilt;
        let allocations = measure(|| run.packets(5_000)).count_total;
        // A buffer may have to grow once more.
        assert!(allocations < 5, "seed {seed}: {allocations} allocations for 5000 packets");
        assert!(run.rebuilt - before > 450, "seed {seed}: {} of about 500", run.rebuilt - before);
    }
}

#[test]
fn memory_is_counted_to_the_byte_and_given_back() {
    let mut run = Run::new(1);
    run.packets(2_000);
    let held = (run.protection.memory(), run.rebuild.memory());
    let freed = measure(|| run.protection.shrink()).bytes_current;
    assert_eq!(-freed, i64::try_from(held.0).unwrap());
    let freed = measure(|| run.rebuild.shrink()).bytes_current;
    assert_eq!(-freed, i64::try_from(held.1).unwrap());
    assert_eq!((run.protection.memory(), run.rebuild.memory()), (0, 0));
}

#[test]
fn a_packet_that_comes_late_brings_back_what_was_lost_after_it() {
    let mut run = Run::new(1);
    run.packets(2_000);
    for _ in 0..100 {
        let pn = run.leaves();
        run.arrived(pn);
    }
    let mut packets = Vec::new();
    while packets.len() < 3 || !matches!(Frames::parse(&run.buffer).unwrap().next(), Some(Frame::Repair(..)))
    {
        packets.push((run.leaves(), run.buffer.clone()));
    }
    let (rebuilt, refused) = (run.rebuilt, run.rebuild_stats().refused);
    // The last one has a repair of those before it, of which one comes late and the one behind it not at all.
    let (late, lost) = (packets.len() - 3, packets.len() - 2);
    for index in (0..packets.len()).filter(|index| ![late, lost].contains(index)).chain([late]) {
        let (pn, body) = packets[index].clone();
        run.buffer = body;
        run.arrived(pn);
    }
    assert_eq!((run.rebuilt, run.rebuild_stats().refused), (rebuilt + 1, refused));
}

#[test]
fn what_was_told_of_loss_holds_for_three_seconds() {
    let mut protection = Protection::new(&RepairConfig::default());
    protection.on_loss(Time::from_millis(1000), 1, LossFrame { share: 51, ..LossFrame::default() });
    let loss = |ms| protection.loss(Time::from_millis(ms));
    assert_eq!([loss(1000), loss(3999), loss(4000)], [0.2, 0.2, 0.0]);
}
