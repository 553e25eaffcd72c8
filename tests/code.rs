//! The erasure code behind repairs: lost segments are rebuilt intact, whatever arrives in whatever order;
//! forged repairs cost little and change little.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use allocation_counter::measure;
use proptest::prelude::*;
use rand::{Rng, RngExt};
use std::collections::HashSet;
use std::time::{Duration, Instant};
use whitewater::Time;
use whitewater::inside::code::{Decoder, DecoderConfig, Encoder, RepairError};
use whitewater::kcp::{Millis, Sn};
use whitewater_sim::SimRng;

/// A segment and its content, which follows from its number.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Segment {
    sn: Sn,
    frg: u8,
    data: Vec<u8>,
}

fn segment(sn: Sn, most: u64) -> Segment {
    let mut rng = SimRng::new(sn.0.into(), 1);
    let len = if most == 0 { 0 } else { rng.next_u64() % (most + 1) };
    let data = (0..len).map(|_| rng.next_u64().to_le_bytes()[7]).collect();
    Segment { sn, frg: rng.next_u64().to_le_bytes()[7], data }
}

fn segments(first: Sn, count: u8, most: u64) -> Vec<Segment> {
    (0..count.into()).map(|offset| segment(first.add(offset), most)).collect()
}

fn repair(encoder: &mut Encoder, segments: &[Segment], index: u8) -> Vec<u8> {
    repair_of(encoder, segments, index)
}

/// A repair of the given segments, in order.
fn repair_of<'a>(
    encoder: &mut Encoder,
    segments: impl IntoIterator<Item = &'a Segment>,
    index: u8,
) -> Vec<u8> {
    encoder.begin(index);
    for Segment { sn, frg, data } in segments {
        let len = u16::try_from(data.len()).unwrap();
        assert!(encoder.add(*sn, *frg, len, |to| to.copy_from_slice(data)));
    }
    let mut payload = vec![0xaa; encoder.payload_len()];
    assert_eq!(encoder.finish(&mut payload), Some(payload.len()));
    payload
}

fn drain(decoder: &mut Decoder) -> Vec<Segment> {
    std::iter::from_fn(|| {
        let recovered = decoder.recover()?;
        Some(Segment { sn: recovered.sn, frg: recovered.frg, data: recovered.data.to_vec() })
    })
    .collect()
}

/// Something that arrives.
#[derive(Clone, Debug)]
enum Arrival {
    Segment(u8),
    Repair(u8),
}

/// A window, the segments that get lost, and what arrives in which order, partly twice.
fn arrivals() -> impl Strategy<Value = (u8, Vec<u8>, Vec<Arrival>)> {
    let lost = (1..=64u8).prop_flat_map(|count| {
        let most = usize::from(count).min(12);
        (Just(count), proptest::sample::subsequence((0..count).collect::<Vec<_>>(), 0..=most))
    });
    lost.prop_flat_map(|(count, lost)| {
        let mut all: Vec<_> =
            (0..count).filter(|offset| !lost.contains(offset)).map(Arrival::Segment).collect();
        // Three repairs more than needed: k of them are almost always enough, these always are.
        let repairs = u8::try_from(lost.len()).unwrap() + 3;
        all.extend((0..repairs).map(Arrival::Repair));
        let twice = proptest::sample::subsequence(all.clone(), 0..=all.len().min(8));
        (Just(count), Just(lost), Just(all), twice)
            .prop_map(|(count, lost, all, twice)| (count, lost, [all, twice].concat()))
            .prop_flat_map(|(count, lost, all)| (Just(count), Just(lost), Just(all).prop_shuffle()))
    })
}

proptest! {
    #[test]
    fn lost_segments_are_rebuilt_intact_in_any_order(
        start in prop_oneof![any::<u32>(), (0..80u32).prop_map(u32::wrapping_neg)],
        (count, lost, arrivals) in arrivals(),
        most in prop_oneof![Just(0), 1..20u64, 1..=1400u64],
        index: u8,
        holes in prop_oneof![Just(0), any::<u64>()],
    ) {
        let start = Sn(start);
        let window = segments(start, count, most);
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(&DecoderConfig::default()));
        let mut arrived = HashSet::new();
        for arrival in arrivals {
            pay(&mut decoder);
            match arrival {
                Arrival::Segment(offset) => {
                    let Segment { sn, frg, data } = &window[usize::from(offset)];
                    decoder.received(*sn, *frg, data);
                    arrived.insert(*sn);
                }
                Arrival::Repair(number) => {
                    // Everything that is lost, plus the other segments that the holes leave.
                    let covered: Vec<_> = window
                        .iter()
                        .zip(0..)
                        .filter(|(_, offset)| lost.contains(offset) || (holes >> offset).is_multiple_of(2))
                        .map(|(segment, _)| segment)
                        .collect();
                    let Some(first) = covered.first() else { continue };
                    let payload =
                        repair_of(&mut encoder, covered.iter().copied(), index.wrapping_add(number));
                    decoder.repair(first.sn, Millis(9), &payload, start, 128).unwrap();
                }
            }
            for recovered in drain(&mut decoder) {
                prop_assert_eq!(&recovered, &segment(recovered.sn, most));
                prop_assert!(arrived.insert(recovered.sn), "{} was not missing", recovered.sn);
            }
        }
        prop_assert!(lost.iter().all(|offset| arrived.contains(&start.add(u32::from(*offset)))));
        prop_assert_eq!(decoder.stats().rejected.total(), 0);
    }

    #[test]
    fn no_payload_panics_or_yields_a_segment_that_cannot_be_missing(
        nxt: u32,
        wnd in 0..200u16,
        steps in prop::collection::vec(
            (0..260u32, prop_oneof![Just(None), (0..=66u8, any::<u8>(), 0..50usize).prop_map(Some)], any::<u8>()),
            0..300,
        ),
    ) {
        let config = DecoderConfig { mss: 40, ..DecoderConfig::default() };
        let (nxt, mut decoder) = (Sn(nxt), Decoder::new(&config));
        let (mut errors, mut known) = (0, HashSet::new());
        for (offset, payload, byte) in steps {
            let sn = nxt.sub(30).add(offset);
            match payload {
                None => {
                    known.insert(sn);
                    decoder.received(sn, byte, &[byte; 20]);
                }
                Some((count, index, len)) => {
                    let body = (0..len).map(|at| byte.wrapping_mul(at.to_le_bytes()[0] | 1));
                    let payload: Vec<_> = [count, index].into_iter().chain(body).collect();
                    errors += u64::from(decoder.repair(sn, Millis(0), &payload, nxt, wnd).is_err());
                    if index < 9 {
                        decoder.give_up_before(nxt.add(index.into()));
                    }
                }
            }
            while let Some(recovered) = decoder.recover() {
                prop_assert!(recovered.sn.offset_in(nxt, wnd.into()).is_some());
                prop_assert!(recovered.data.len() <= 40);
                prop_assert!(known.insert(recovered.sn), "{} was not missing", recovered.sn);
            }
        }
        let rejected = decoder.stats().rejected;
        let dropped = rejected.contradictory + rejected.stale + rejected.unpaid;
        prop_assert_eq!(rejected.total(), errors + dropped);
    }
}

#[test]
fn as_many_repairs_as_losses_are_almost_always_enough() {
    let (mut encoder, mut rng) = (Encoder::new(), SimRng::new(1, 1));
    let (mut enough, runs) = (0, 3000);
    for run in 0..runs {
        let start = Sn((u32::MAX - 1000).wrapping_add(run));
        let window = segments(start, 32, 40);
        let mut decoder = Decoder::new(&DecoderConfig::default());
        let lost: HashSet<_> = (0..=run % 8).map(|_| rng.next_u64() % 32).collect();
        for (offset, Segment { sn, frg, data }) in (0..).zip(&window) {
            if !lost.contains(&offset) {
                decoder.received(*sn, *frg, data);
            }
        }
        let index = rng.next_u64().to_le_bytes()[0];
        for number in (0..).take(lost.len()) {
            let payload = repair(&mut encoder, &window, index.wrapping_add(number));
            decoder.repair(start, Millis(0), &payload, start, 128).unwrap();
        }
        let recovered = drain(&mut decoder);
        assert!(recovered.iter().all(|recovered| window.contains(recovered)));
        enough += u32::from(recovered.len() == lost.len());
    }
    // A random matrix over 255 coefficients is singular once in 255.
    println!("{enough} of {runs}");
    assert!(enough * 100 >= runs * 99, "{enough} of {runs}");
}

/// A session in which one segment in ten gets lost, every fourth is followed by a repair of the last sixteen,
/// and what is still missing after forty is resent.
struct Flow {
    encoder: Encoder,
    decoder: Decoder,
    rng: SimRng,
    payload: Vec<u8>,
    data: Vec<u8>,
    nxt: Sn,
    snd_nxt: Sn,
    missing: Vec<Sn>,
    resent: u32,
}

impl Flow {
    fn new(len: usize) -> Self {
        let (encoder, decoder) = (Encoder::new(), Decoder::new(&DecoderConfig::default()));
        let (payload, missing) = (vec![0; 1500], Vec::with_capacity(64));
        let (rng, data, nxt) = (SimRng::new(7, 7), vec![0x5a; len], Sn(u32::MAX - 3000));
        Self { encoder, decoder, rng, payload, data, nxt, snd_nxt: nxt, missing, resent: 0 }
    }

    fn step(&mut self) {
        let sn = self.snd_nxt;
        self.snd_nxt = sn.add(1);
        if self.rng.random::<f64>() < 0.1 {
            self.missing.push(sn);
        } else {
            self.decoder.received(sn, 0, &self.data);
        }
        if let Some(&oldest) = self.missing.first()
            && sn.distance(oldest) > 40
        {
            self.missing.remove(0);
            self.resent += 1;
            self.decoder.received(oldest, 0, &self.data);
        }
        self.nxt = self.missing.first().copied().unwrap_or(self.snd_nxt);
        if sn.0.is_multiple_of(4) {
            self.repair(sn.sub(15));
        }
        while let Some(recovered) = self.decoder.recover() {
            assert_eq!(recovered.data, self.data);
            self.missing.retain(|missing| *missing != recovered.sn);
        }
    }

    fn repair(&mut self, first: Sn) {
        self.encoder.begin(first.0.to_le_bytes()[0]);
        for offset in 0..16 {
            let len = u16::try_from(self.data.len()).unwrap();
            self.encoder.add(first.add(offset), 0, len, |to| to.copy_from_slice(&self.data));
        }
        let len = self.encoder.finish(&mut self.payload).unwrap();
        let lost = self.rng.random::<f64>() < 0.1;
        if !lost {
            self.decoder.earn(Time::from_micros(u64::from(self.snd_nxt.0) + (1 << 40)), self.data.len());
            self.decoder.repair(first, Millis(first.0), &self.payload[..len], self.nxt, 128).unwrap();
        }
    }
}

#[test]
fn a_steady_state_allocates_nothing_and_few_segments_are_resent() {
    for len in [0, 100, 1376] {
        let mut flow = Flow::new(len);
        (0..20_000).for_each(|_| flow.step());
        let resent = flow.resent;
        let info = measure(|| (0..20_000).for_each(|_| flow.step()));
        let (stats, resent) = (flow.decoder.stats(), flow.resent - resent);
        println!("{len} B: {} allocations, {resent} of about 2000 sent again, {stats:?}", info.count_total);
        assert_eq!(info.count_total, 0);
        assert!(resent < 200, "{resent}");
        assert_eq!(stats.rejected.total(), 0, "{stats:?}");
    }
}

#[test]
fn memory_is_none_unused_little_without_loss_and_bounded_under_attack() {
    let owned = |use_it: &dyn Fn(&mut Decoder)| {
        let mut decoder = None;
        let info = measure(|| use_it(decoder.insert(Decoder::new(&DecoderConfig::default()))));
        info.bytes_current
    };
    assert_eq!(owned(&|_| ()), 0);
    let body = [&[9, 1], &[7; 1403][..]].concat();
    assert_eq!(owned(&|decoder| decoder.repair(Sn(0), Millis(0), &body, Sn(9), 128).unwrap()), 0);
    let most = owned(&flood);
    println!("{most} bytes under attack");
    let (segments, repairs) = (512 * (1407 + 8) + (48 << 10), 96 * 1403);
    assert!(most <= segments + repairs + 9 * 1408 + (40 << 10), "{most}");
}

/// Pays for all work that can be paid for in advance.
fn pay(decoder: &mut Decoder) {
    decoder.earn(Time::ZERO, usize::MAX);
}

/// Makes a decoder keep as much as possible: forged segments and repairs of maximum length.
fn flood(decoder: &mut Decoder) {
    for sn in 0..2000u32 {
        pay(decoder);
        if sn < 1000 || sn % 5 != 0 {
            decoder.received(Sn(sn), 0, &[1; 1400]);
        }
        if sn > 1064 {
            let mut payload = vec![64, sn.to_le_bytes()[0]];
            payload.extend((0..1403u32).map(|at| (at ^ sn).to_le_bytes()[0]));
            let _ = decoder.repair(Sn(sn - 63), Millis(sn), &payload, Sn(1000), 2000);
        }
    }
    assert!(decoder.stats().rejected.too_many_missing > 0);
    decoder.recover();
}

/// The most work possible: as many segments are missing as repairs are kept for, and each is rebuilt from
/// nearly all of them.
#[test]
fn the_maximum_of_missing_segments_is_rebuilt_from_1_5_times_as_many_repairs() {
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(&DecoderConfig::default()));
    let window: Vec<_> = (0..192).map(|sn| segment(Sn(sn), 1400)).collect();
    for Segment { sn, frg, data } in window.iter().skip(1).step_by(2) {
        decoder.received(*sn, *frg, data);
    }
    let (mut rebuilt, mut repairs, mut longest) = (0, 0, Duration::ZERO);
    while rebuilt < 96 {
        let first = repairs * 37 % 129;
        let payload = repair(&mut encoder, &window[first..first + 64], repairs.to_le_bytes()[0]);
        pay(&mut decoder);
        let start = Instant::now();
        decoder.repair(window[first].sn, Millis(0), &payload, Sn(0), 200).unwrap();
        loop {
            let now = drain(&mut decoder).len();
            rebuilt += now;
            if now == 0 {
                break;
            }
            pay(&mut decoder);
        }
        longest = longest.max(start.elapsed());
        repairs += 1;
    }
    println!("{repairs} repairs, the costliest took {longest:?}");
    assert!(repairs <= 150, "{repairs} repairs of 96 missing segments");
}

#[test]
fn every_rejection_has_its_own_error_and_counter() {
    let mut decoder = Decoder::new(&DecoderConfig { segments: 8, mss: 10, ..DecoderConfig::default() });
    assert!((0..20).all(|sn| decoder.received(Sn(sn), 0, b"data")));
    let mut refuse = |sn, payload: &[u8], expected| {
        assert_eq!(decoder.repair(Sn(sn), Millis(0), payload, Sn(20), 40), Err(expected));
    };
    refuse(20, &[1, 0, 0, 0], RepairError::Truncated { have: 4 });
    refuse(20, &[0, 0, 0, 0, 0], RepairError::Span { found: 0 });
    refuse(20, &[65, 0, 0, 0, 0], RepairError::Span { found: 65 });
    refuse(20, &[0x83, 0, 0b111, 0, 0, 0], RepairError::Holes);
    for (low, high) in [(0b100, 0b10), (0b101, 0b01), (0b101, 0b110), (0xff, 0b11)] {
        refuse(20, &[0x8a, 0, low, high, 0, 0, 0], RepairError::Holes);
    }
    refuse(20, &[1; 16], RepairError::TooLong { have: 14, max: 13 });
    refuse(20, &[41, 0, 0, 0, 0], RepairError::BeyondWindow { last: Sn(60) });
    refuse(11, &[10, 0, 0, 0, 0], RepairError::Forgotten { sn: Sn(11) });
    let rejected = decoder.stats().rejected;
    assert_eq!([rejected.truncated, rejected.span, rejected.holes, rejected.too_long], [1, 2, 5, 1]);
    assert_eq!([rejected.beyond_window, rejected.forgotten, rejected.total()], [1, 1, 11]);
    decoder.repair(Sn(1), Millis(0), &[19, 0, 0, 0, 0], Sn(20), 40).unwrap();
    assert_eq!(decoder.stats().needless, 1);
}

#[test]
fn a_forged_repair_that_yields_no_segment_is_detected_and_honest_ones_still_work() {
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(&DecoderConfig::default()));
    let window = segments(Sn(0), 10, 100);
    for Segment { sn, frg, data } in &window[2..] {
        decoder.received(*sn, *frg, data);
    }
    let mut lie = repair(&mut encoder, &window, 0);
    lie.iter_mut().skip(2).for_each(|byte| *byte = !*byte);
    decoder.repair(Sn(0), Millis(0), &lie, Sn(0), 128).unwrap();
    decoder.repair(Sn(0), Millis(0), &repair(&mut encoder, &window, 1), Sn(0), 128).unwrap();
    assert_eq!(drain(&mut decoder), []);
    assert_eq!(decoder.stats().rejected.contradictory, 1);
    for index in 2..4 {
        let honest = repair(&mut encoder, &window, index);
        decoder.repair(Sn(0), Millis(index.into()), &honest, Sn(0), 128).unwrap();
    }
    assert_eq!(decoder.recover().unwrap().ts, Millis(3), "the latest repair must be acknowledged");
    assert_eq!(drain(&mut decoder).len(), 1);
}

#[test]
fn segments_dropped_from_the_history_make_a_repair_stale() {
    let (mut encoder, mut decoder) =
        (Encoder::new(), Decoder::new(&DecoderConfig { segments: 8, ..DecoderConfig::default() }));
    let window = segments(Sn(0), 3, 100);
    decoder.repair(Sn(0), Millis(0), &repair(&mut encoder, &window, 0), Sn(0), 128).unwrap();
    for sn in (1..12).map(Sn) {
        let Segment { frg, data, .. } = segment(sn, 100);
        decoder.received(sn, frg, &data);
    }
    assert_eq!(drain(&mut decoder), []);
    assert_eq!(decoder.stats().rejected.stale, 1);
}

#[test]
fn an_unreported_segment_does_not_stay_missing() {
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(&DecoderConfig::default()));
    let payload = repair(&mut encoder, &segments(Sn(0), 64, 0), 0);
    for first in (0..100).map(|block| Sn(64 * block)) {
        decoder.repair(first, Millis(0), &payload, first, 128).unwrap();
    }
    assert_eq!(decoder.stats().rejected.total(), 0);
}
