//! Both ends of the repairs of a flow, without a session around them.

use super::{BareLanes, PacketRepairs, Path};
use crate::code::budget::Repairs;
use crate::pace::Rtt;
use crate::seq::Seq16;
use crate::session::SessionConfig;
use crate::session::wire::{Frame, FrameWriter, Frames, LossFrame};
use crate::time::Time;
use allocation_counter::measure;
use std::time::Duration;

fn of(repairs: Repairs) -> PacketRepairs {
    PacketRepairs::new(&SessionConfig { repairs, ..SessionConfig::default() }, 0)
}

/// A flow of 60 packets per second, one in ten of which gets lost.
struct Run {
    path: Path,
    sender: PacketRepairs,
    receiver: PacketRepairs,
    /// State of Marsaglia's xorshift.
    random: u64,
    pn: u64,
    buffer: Vec<u8>,
    rebuilt: u64,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut rtt = Rtt::default();
        rtt.sample(Time::ZERO, Duration::from_millis(60));
        let path = Path {
            rtt,
            patience: Duration::from_millis(110),
            overhead: 25,
            body_max: 1175,
            is_bad: false,
            bare: BareLanes(0),
        };
        let [sender, receiver] = [100, 0].map(|percent| of(Repairs::Budget(percent)));
        Self { path, sender, receiver, random: seed, pn: 0, buffer: Vec::with_capacity(1200), rebuilt: 0 }
    }

    /// Sends `count` packets, and checks that every rebuilt packet equals the lost one.
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

    /// Writes the next packet to the buffer and returns its number.
    fn leaves(&mut self) -> u64 {
        let (now, pn) = (Time::from_millis(16 * self.pn), self.pn);
        self.sender.on_loss(now, pn, LossFrame { newest: Seq16(0), rebuilt: 0, share: 25 });
        self.buffer.clear();
        let content = [pn.to_le_bytes()[0]; 40];
        FrameWriter::new(&mut self.buffer, 1200).push(&Frame::Dgram(&content)).unwrap();
        assert!(self.sender.protects(now));
        self.sender.protect(now, pn, &self.path, (&mut self.buffer, 0, 1200));
        self.pn += 1;
        pn
    }

    fn arrived(&mut self, pn: u64) {
        let (repair, others) = Frames::parse(&self.buffer).unwrap().split_repair();
        if self.receiver.arrived(pn) {
            self.receiver.earn(Time::from_millis(16 * pn), self.buffer.len());
            self.receiver.remember(pn, others.rest());
        }
        if let Some((first, payload)) = repair {
            self.receiver.repair(pn, first, payload);
        }
        while let Some((lost, body)) = self.receiver.recover() {
            let lost = lost.unwrap().to_le_bytes()[0];
            assert!(body[1..].iter().all(|byte| *byte == lost) && body.len() == 41);
            self.rebuilt += 1;
        }
    }
}

#[test]
fn rebuilt_packets_equal_the_lost_ones_and_a_steady_flow_allocates_nothing() {
    for seed in 1..=3 {
        let mut run = Run::new(seed);
        run.packets(5_000);
        let before = run.rebuilt;
        let allocations = measure(|| run.packets(5_000)).count_total;
        // A buffer may still have to grow once.
        assert!(allocations < 5, "seed {seed}: {allocations} allocations for 5000 packets");
        assert!(run.rebuilt - before > 450, "seed {seed}: {} of about 500", run.rebuilt - before);
    }
}

#[test]
fn memory_is_counted_to_the_byte_and_freed() {
    let mut run = Run::new(1);
    run.packets(2_000);
    for end in [&mut run.sender, &mut run.receiver] {
        let held = end.memory();
        assert_eq!(-measure(|| end.shrink()).bytes_current, i64::try_from(held).unwrap());
        assert!(held > 1_000 && end.memory() == 0);
    }
}

#[test]
fn a_late_packet_makes_it_possible_to_rebuild_a_later_one() {
    let mut run = Run::new(1);
    run.packets(2_000);
    for _ in 0..100 {
        let pn = run.leaves();
        run.arrived(pn);
    }
    let mut packets = Vec::new();
    while packets.len() < 3 || Frames::parse(&run.buffer).unwrap().split_repair().0.is_none() {
        packets.push((run.leaves(), run.buffer.clone()));
    }
    let rebuilt = run.rebuilt;
    // The last packet has a repair of those before it, of which one comes late and the next one not at all.
    let (late, lost) = (packets.len() - 3, packets.len() - 2);
    for index in (0..packets.len()).filter(|index| ![late, lost].contains(index)).chain([late]) {
        let (pn, body) = packets[index].clone();
        run.buffer = body;
        run.arrived(pn);
    }
    assert_eq!(run.rebuilt, rebuilt + 1);
}

#[test]
fn a_loss_report_is_valid_for_three_seconds() {
    let mut repairs = of(Repairs::Auto);
    repairs.on_loss(Time::from_millis(1000), 1, LossFrame { share: 51, ..LossFrame::default() });
    let loss = |ms| repairs.loss(Time::from_millis(ms));
    assert_eq!([loss(1000), loss(3999), loss(4000)], [0.2, 0.2, 0.0]);
}
