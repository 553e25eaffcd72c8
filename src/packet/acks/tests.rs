//! What the tracker reports about late and lost packets.

use super::*;
use std::collections::BTreeSet;

#[test]
fn a_packet_is_lost_once_a_later_one_arrives_and_late_packets_raise_the_threshold() {
    let mut tracker = AckTracker::new(&PacketConfig::default());
    let sent = |number: u16| Time::from_millis(u64::from(number) * 10);
    (0..100).for_each(|number| tracker.on_sent(sent(number), Seq16(number), 1));
    let mut lost = |ack: u16, missing: &[u16]| -> Vec<u16> {
        let bits = missing.iter().fold(u32::MAX, |bits, number| bits & !(1 << (ack - 1 - number)));
        let acks = Acks { ack: Seq16(ack), bits };
        let told = tracker.on_acks(sent(ack + 6), acks, Duration::ZERO, Duration::ZERO);
        told.lost().map(|seq| seq.0).collect()
    };
    assert_eq!(lost(40, &[]), []);
    assert_eq!(lost(43, &[41, 42]), [41, 42], "any later packet proves it");
    assert_eq!(lost(44, &[41]), [], "42 arrived after 43, so late by 10 ms");
    assert_eq!(lost(46, &[41, 45]), [], "10 ms no longer prove a loss");
    assert_eq!(lost(47, &[41, 45]), [45], "20 ms do");
    assert_eq!(lost(48, &[41, 45]), []);
    assert_eq!(lost(99, &[97, 98]), [97]);
}

#[test]
fn a_late_ack_of_an_older_packet_does_not_lower_the_observed_reordering() {
    let ms = |ms: u64| Time::from_millis(ms);
    let mut tracker = AckTracker::new(&PacketConfig::default());
    for (number, at) in [(0, 0), (1, 10), (2, 20), (3, 200), (4, 215)] {
        tracker.on_sent(ms(at), Seq16(number), 1);
    }
    let mut lost = |now: u64, ack: u16| {
        let acks = Acks { ack: Seq16(ack), bits: 0 };
        tracker.on_acks(ms(now), acks, Duration::ZERO, Duration::ZERO).lost().count()
    };
    assert_eq!(lost(120, 2), 2);
    assert_eq!((lost(121, 1), lost(122, 0)), (0, 0), "0 arrived after 1 and after 2, which left 20 ms later");
    assert_eq!(lost(315, 4), 0, "15 ms no longer prove a loss");
}

#[test]
fn packets_sent_at_the_same_time_do_not_prove_each_other_lost() {
    let mut tracker = AckTracker::new(&PacketConfig::default());
    for (number, at) in [(0, 0), (1, 0), (2, 1)] {
        tracker.on_sent(Time::from_millis(at), Seq16(number), 1);
    }
    let mut lost = |ack| {
        tracker
            .on_acks(Time::from_millis(50), Acks { ack: Seq16(ack), bits: 0 }, Duration::ZERO, Duration::ZERO)
            .lost()
    };
    assert_eq!((lost(1).count(), lost(2).count()), (0, 1));
}

#[test]
fn packets_not_acked_in_time_or_pushed_out_are_lost() {
    let mut tracker = AckTracker::new(&PacketConfig { sent: 64, ..PacketConfig::default() });
    for number in 0..100 {
        tracker.on_sent(Time::ZERO, Seq16(number), 1);
    }
    assert_eq!((tracker.loss.judged, tracker.loss.lost), (36, 36));
    assert_eq!(tracker.check_loss(), Some(Time::from_millis(1000)));
    let now = Time::from_millis(999);
    let acks = Acks { ack: Seq16(99), bits: 0x7fff_ffff };
    assert_eq!(tracker.on_acks(now, acks, Duration::ZERO, Duration::ZERO).count(), 32);
    tracker.update(now);
    assert_eq!(tracker.loss.judged, 36);
    tracker.update(Time::from_millis(1000));
    assert_eq!((tracker.loss.judged, tracker.loss.lost), (100, 68));
    assert_eq!((tracker.check_loss(), tracker.loss.share > 0.5), (None, true));
    let late = tracker.on_acks(now, Acks { ack: Seq16(67), bits: 0 }, Duration::ZERO, Duration::ZERO);
    assert!(late.eq([Seq16(67)]), "a late ack still counts");
    assert_eq!(tracker.loss.lost, 68);
}

#[test]
fn round_trips_use_the_newest_packet_and_exclude_the_peers_delay() {
    let mut tracker = AckTracker::new(&PacketConfig::default());
    (0..4).for_each(|number| tracker.on_sent(Time::from_millis(u64::from(number) * 10), Seq16(number), 1));
    let acks = |ack, bits| Acks { ack: Seq16(ack), bits };
    tracker.on_acks(Time::from_millis(100), acks(1, 0), Duration::from_millis(15), Duration::ZERO);
    assert_eq!((tracker.rtt.samples, tracker.rtt.smoothed()), (1, Duration::from_millis(75)));
    tracker.on_acks(Time::from_millis(300), acks(1, 1), Duration::ZERO, Duration::ZERO);
    assert_eq!(tracker.rtt.samples, 1, "packet 0 was delayed by a lost ack, not by the path");
    tracker.on_acks(Time::from_millis(105), acks(3, 2), Duration::ZERO, Duration::ZERO);
    assert_eq!(
        (tracker.rtt.max(), tracker.rtt.min()),
        (Duration::from_millis(75), Duration::from_millis(75))
    );
}

#[test]
fn what_is_settled_is_forgotten_and_what_is_under_way_is_not() {
    let mut tracker = AckTracker::new(&PacketConfig { sent: 1024, ..PacketConfig::default() });
    let ms = |number: u16| Time::from_millis(u64::from(number) * 10);
    for number in 0..2000 {
        let now = ms(number);
        tracker.update(now);
        tracker.on_sent(now, Seq16(number), 1);
        // Ten packets are under way, every tenth is lost, and for one second nothing is acknowledged.
        let Some(ack) = number.checked_sub(10).filter(|ack| ack % 10 != 0 && !(500..600).contains(&number))
        else {
            continue;
        };
        let bits = (0..32).filter(|bit| ack.checked_sub(1 + bit).is_some_and(|one| one % 10 != 0));
        let acks = Acks { ack: Seq16(ack), bits: bits.fold(0, |bits, bit| bits | 1 << bit) };
        tracker.on_acks(now, acks, Duration::ZERO, Duration::ZERO);
        let oldest = tracker.forget_settled(acks);
        if number >= 110 {
            // Those of the last second have no outcome yet.
            assert_eq!(oldest, Seq16(number - 99), "{number}");
            let remembered = [oldest, oldest.sub(1)].map(|sequence| tracker.bytes_sent(sequence));
            assert_eq!(remembered, [1, 0], "{number}");
        }
    }
    assert!(tracker.memory() <= 256 * size_of::<Option<Sent>>(), "{}", tracker.memory());
    assert_eq!(tracker.loss.judged, 1900);
}

#[test]
fn each_packet_that_is_told_and_remembered_is_reported_once_whatever_order_reports_come_in() {
    for start in [0, 40_000, u16::MAX - 100] {
        let mut tracker = AckTracker::new(&PacketConfig::default());
        let (mut reported, mut oldest, mut random) = (BTreeSet::new(), 0, 1_u32);
        let mut draw = |below: u32| {
            random = random.wrapping_mul(0x915f_77f5).wrapping_add(0xdead_beef);
            (random >> 8) % below
        };
        for sent in 0..if cfg!(miri) { 300 } else { 70_000_u32 } {
            let low = |number: u32| Seq16(start).add(u16::try_from(number % (1 << 16)).unwrap());
            let whole = |number: Seq16| sent.saturating_sub(low(sent).0.wrapping_sub(number.0).into());
            let now = Time::from_millis(sent.into());
            tracker.update(now);
            tracker.on_sent(now, low(sent), 1);
            oldest = oldest.max((sent + 1).saturating_sub(tracker.sent.size().into()));
            // Once, no report comes for so long that its numbers go more than half way round.
            if draw(3) == 0 || (20_000..55_000).contains(&sent) {
                continue;
            }
            let (ack, bits) = (sent.saturating_sub(draw(90)), draw(1 << 24) << 8);
            let told = (0..32).filter(|age| bits >> age & 1 == 1).filter_map(|age| ack.checked_sub(1 + age));
            let is_news = |number: &u32| *number >= oldest && !reported.contains(number);
            let expected: BTreeSet<u32> = told.chain([ack]).filter(is_news).collect();
            let acks = Acks { ack: low(ack), bits };
            let acked = tracker.on_acks(now, acks, Duration::ZERO, Duration::ZERO);
            assert!(acked.map(whole).eq(expected.iter().copied()), "of {ack} when {sent} was sent");
            reported.extend(expected);
            oldest = oldest.max(whole(tracker.forget_settled(acks)));
        }
    }
}
