//! The tracker against a model, and what it tells of packets that are late, lost or come round.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A sender and a receiver beside a naive model of both, whose numbers do not wrap.
struct Exchange {
    alice: AckTracker,
    bob: AckTracker,
    start: u16,
    received: BTreeSet<u32>,
    reported: BTreeSet<u32>,
    lost: BTreeSet<u32>,
    sent: u32,
}

impl Exchange {
    fn new(config: PacketConfig, start: u16) -> Self {
        let (alice, bob) = (AckTracker::new(&config), AckTracker::new(&config));
        let [received, reported, lost] = [(); 3].map(|()| BTreeSet::new());
        Self { alice, bob, start, received, reported, lost, sent: 0 }
    }

    fn seq(&self, number: u32) -> Seq16 {
        Seq16(self.start.wrapping_add(u16::try_from(number & 0xffff).unwrap()))
    }

    /// The number, of those sent so far, that `seq` stands for.
    fn number(&self, seq: Seq16) -> u32 {
        self.sent - u32::from(self.seq(self.sent).0.wrapping_sub(seq.0))
    }

    fn send(&mut self, now: Time) -> u32 {
        self.alice.update(now);
        self.alice.on_sent(now, self.seq(self.sent), 100);
        self.sent += 1;
        self.sent - 1
    }

    fn arrive(&mut self, now: Time, number: u32) {
        let seq = self.seq(number);
        let newest = self.received.last().copied().unwrap_or(number);
        let stale = newest.saturating_sub(number) >= self.bob.received.size().into();
        self.bob.update(now);
        let expected = if stale {
            Err(ReceiveError::Stale { sequence: seq })
        } else if self.received.contains(&number) {
            Err(ReceiveError::Duplicate { sequence: seq })
        } else {
            Ok(())
        };
        assert_eq!(self.bob.check(seq), expected, "{number}");
        if expected.is_ok() {
            self.bob.on_received(now, seq);
            self.received.insert(number);
        }
    }

    fn answer(&mut self, now: Time) {
        let acks = self.bob.acks();
        let Some(&newest) = self.received.last() else {
            assert_eq!(acks, None);
            return;
        };
        // What is stale is not told of, if it is only because fewer than 33 are remembered.
        let span = u32::from(self.bob.received.size()).min(33);
        let told: Vec<_> = self.received.range((newest + 1).saturating_sub(span)..).copied().collect();
        let acks = acks.unwrap();
        assert_eq!(self.number(acks.ack), newest);
        let bits = told.iter().fold(0, |bits, number| bits | (1u64 << (newest - number)) >> 1);
        assert_eq!(u64::from(acks.bits), bits);
        assert!(self.alice.is_possible(acks));
        let remembered = self.sent.saturating_sub(self.alice.sent.size().into());
        let new: Vec<_> = told
            .iter()
            .copied()
            .filter(|number| *number >= remembered && !self.reported.contains(number))
            .collect();
        let acked = self.alice.on_acks(now, acks, Duration::ZERO);
        assert_eq!(acked.bytes, 100 * new.len() as u64);
        for lost in acked.lost() {
            let lost = self.number(lost);
            assert!(lost < newest && !told.contains(&lost), "{lost} is not lost");
            assert!(self.lost.insert(lost), "{lost} is told twice");
        }
        assert_eq!(acked.map(|seq| self.number(seq)).collect::<Vec<_>>(), new);
        self.reported.extend(new);
    }
}

/// Sends `packets` packets, of which the network loses, delays and doubles some; as many answers.
fn run(config: PacketConfig, start: u16, loss: f64, packets: u32, seed: u64) -> Exchange {
    let mut random = seed;
    let mut below = |count: u32| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((random >> 33) % u64::from(count)).unwrap()
    };
    let (mut exchange, mut under_way) = (Exchange::new(config, start), Vec::new());
    for step in 0..packets {
        let now = Time::from_millis(u64::from(step) * 10);
        let number = exchange.send(now);
        if f64::from(below(1000)) >= 1000.0 * loss {
            let late = if below(5) == 0 { below(60) } else { 0 };
            under_way.push((step + late, number));
            if below(10) == 0 {
                under_way.push((step + late + 3, number));
            }
        }
        let (due, rest): (Vec<_>, _) = under_way.into_iter().partition(|(at, _)| *at <= step);
        under_way = rest;
        due.into_iter().for_each(|(_, number)| exchange.arrive(now, number));
        if f64::from(below(1000)) >= 1000.0 * loss {
            exchange.answer(now);
        }
    }
    exchange
}

#[test]
fn a_packet_is_lost_once_a_later_one_has_arrived_and_late_ones_teach_how_much_later() {
    let mut tracker = AckTracker::new(&PacketConfig::default());
    let sent = |number: u16| Time::from_millis(u64::from(number) * 10);
    (0..100).for_each(|number| tracker.on_sent(sent(number), Seq16(number), 1));
    let mut lost = |ack: u16, missing: &[u16]| -> Vec<u16> {
        let bits = missing.iter().fold(u32::MAX, |bits, number| bits & !(1 << (ack - 1 - number)));
        let acks = Acks { ack: Seq16(ack), bits };
        let told = tracker.on_acks(sent(ack + 6), acks, Duration::ZERO);
        told.lost().map(|seq| seq.0).collect()
    };
    assert_eq!(lost(40, &[]), []);
    assert_eq!(lost(43, &[41, 42]), [41, 42], "any later one will do");
    assert_eq!(lost(44, &[41]), [], "42 has come after 43: by 10 ms");
    assert_eq!(lost(46, &[41, 45]), [], "10 ms tell nothing now");
    assert_eq!(lost(47, &[41, 45]), [45], "20 ms do");
    assert_eq!(lost(48, &[41, 45]), []);
    assert_eq!(lost(99, &[97, 98]), [97]);
}

#[test]
fn what_tells_late_of_an_older_packet_takes_nothing_back_that_a_newer_one_has_told() {
    let ms = |ms: u64| Time::from_millis(ms);
    let mut tracker = AckTracker::new(&PacketConfig::default());
    for (number, at) in [(0, 0), (1, 10), (2, 20), (3, 200), (4, 215)] {
        tracker.on_sent(ms(at), Seq16(number), 1);
    }
    let mut lost = |now: u64, ack: u16| {
        let acks = Acks { ack: Seq16(ack), bits: 0 };
        tracker.on_acks(ms(now), acks, Duration::ZERO).lost().count()
    };
    assert_eq!(lost(120, 2), 2);
    assert_eq!(
        (lost(121, 1), lost(122, 0)),
        (0, 0),
        "0 has come after 2, which left 20 ms later, and after 1"
    );
    assert_eq!(lost(315, 4), 0, "15 ms tell nothing now");
}

#[test]
fn what_left_at_the_same_time_does_not_tell_on_each_other() {
    let mut tracker = AckTracker::new(&PacketConfig::default());
    for (number, at) in [(0, 0), (1, 0), (2, 1)] {
        tracker.on_sent(Time::from_millis(at), Seq16(number), 1);
    }
    let mut lost = |ack| {
        tracker.on_acks(Time::from_millis(50), Acks { ack: Seq16(ack), bits: 0 }, Duration::ZERO).lost()
    };
    assert_eq!((lost(1).count(), lost(2).count()), (0, 1));
}

#[test]
fn loss_is_what_is_not_acked_in_time_or_pushed_out() {
    let mut tracker = AckTracker::new(&PacketConfig { sent: 64, ..PacketConfig::default() });
    for number in 0..100 {
        tracker.on_sent(Time::ZERO, Seq16(number), 1);
    }
    assert_eq!((tracker.loss.judged, tracker.loss.lost), (36, 36));
    assert_eq!(tracker.check_loss(), Some(Time::from_millis(1000)));
    let now = Time::from_millis(999);
    let acks = Acks { ack: Seq16(99), bits: 0x7fff_ffff };
    assert_eq!(tracker.on_acks(now, acks, Duration::ZERO).count(), 32);
    tracker.update(now);
    assert_eq!(tracker.loss.judged, 36);
    tracker.update(Time::from_millis(1000));
    assert_eq!((tracker.loss.judged, tracker.loss.lost), (100, 68));
    assert_eq!((tracker.check_loss(), tracker.loss.share > 0.5), (None, true));
    let late = tracker.on_acks(now, Acks { ack: Seq16(67), bits: 0 }, Duration::ZERO);
    assert!(late.eq([Seq16(67)]), "a late ack is one all the same");
    assert_eq!(tracker.loss.lost, 68);
}

#[test]
fn a_round_trip_is_that_of_the_newest_without_the_delay_of_the_peer() {
    let mut tracker = AckTracker::new(&PacketConfig::default());
    (0..4).for_each(|number| tracker.on_sent(Time::from_millis(u64::from(number) * 10), Seq16(number), 1));
    let acks = |ack, bits| Acks { ack: Seq16(ack), bits };
    tracker.on_acks(Time::from_millis(100), acks(1, 0), Duration::from_millis(15));
    assert_eq!((tracker.rtt.samples, tracker.rtt.smoothed()), (1, Duration::from_millis(75)));
    tracker.on_acks(Time::from_millis(300), acks(1, 1), Duration::ZERO);
    assert_eq!(tracker.rtt.samples, 1, "packet 0 waited for an ack, not under way");
    tracker.on_acks(Time::from_millis(105), acks(3, 2), Duration::ZERO);
    assert_eq!(
        (tracker.rtt.max(), tracker.rtt.min()),
        (Duration::from_millis(75), Duration::from_millis(75))
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn it_does_what_a_naive_model_does(
        start: u16,
        loss in prop_oneof![Just(0.0), 0.0..1.0f64, Just(0.9)],
        sent in 1..400u16,
        received in 1..400u16,
        seed: u64,
    ) {
        let forget_after = Duration::from_secs(600);
        run(PacketConfig { sent, received, forget_after, ..PacketConfig::default() }, start, loss, 1500, seed);
    }
}
