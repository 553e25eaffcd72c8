//! What the tracker tells of packets that are late or lost.

use super::*;

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
