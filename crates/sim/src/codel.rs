//! CoDel: drops at the head of a queue that does not get short.

use super::trace::OPPORTUNITY;
use std::time::Duration;
use whitewater::Time;

/// The state of CoDel. Source: RFC 8289 (5).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Codel {
    /// When the delay will have been too long for an interval. `None`: it is not too long.
    first_above: Option<Time>,
    /// When to drop next.
    drop_next: Time,
    /// Packets dropped since it began to drop.
    count: u32,
    /// With how many it began.
    last_count: u32,
    is_dropping: bool,
}

/// A packet that has just left the queue.
#[derive(Debug)]
pub(super) struct Head<P> {
    pub(super) packet: P,
    pub(super) entered: Time,
    /// Bytes that are left in the queue.
    pub(super) behind: usize,
}

impl Codel {
    /// Takes the packet to send from a queue, whose packets `next` takes out in order. Others go to `dropped`.
    pub(super) fn dequeue<P>(
        &mut self,
        now: Time,
        mut next: impl FnMut() -> Option<Head<P>>,
        mut dropped: impl FnMut(P),
    ) -> Option<P> {
        let mut head = next();
        let is_late = self.is_late(now, head.as_ref());
        if self.is_dropping {
            self.is_dropping = is_late;
            while self.is_dropping && now >= self.drop_next {
                head.into_iter().for_each(|head| dropped(head.packet));
                self.count += 1;
                head = next();
                self.is_dropping = self.is_late(now, head.as_ref());
                if self.is_dropping {
                    self.drop_next = law(self.drop_next, self.count);
                }
            }
        } else if is_late {
            head.into_iter().for_each(|head| dropped(head.packet));
            head = next();
            self.is_late(now, head.as_ref()); // notes since when; the packet leaves anyway
            let (more, is_soon) = (self.count - self.last_count, now.since(self.drop_next) < 16 * INTERVAL);
            self.count = if more > 1 && is_soon { more } else { 1 };
            (self.last_count, self.drop_next) = (self.count, law(now, self.count));
            self.is_dropping = true;
        }
        head.map(|head| head.packet)
    }

    /// Whether packets have been late for an interval. Source: RFC 8289 (5.6), `dodequeue`.
    fn is_late<P>(&mut self, now: Time, head: Option<&Head<P>>) -> bool {
        let is_late = head.is_some_and(|head| now.since(head.entered) >= TARGET && head.behind > OPPORTUNITY);
        if !is_late {
            self.first_above = None;
            return false;
        }
        let is_new = self.first_above.is_none();
        let first_above = *self.first_above.get_or_insert(now + INTERVAL);
        !is_new && now >= first_above
    }
}

/// When to drop after `count` drops. Source: RFC 8289 (5.6), `control_law`.
fn law(at: Time, count: u32) -> Time {
    at + INTERVAL.div_f64(f64::from(count).sqrt())
}

/// Acceptable delay of a queue. Source: RFC 8289 (4.4).
const TARGET: Duration = Duration::from_millis(5);
/// How long the delay may be longer. Source: RFC 8289 (4.3).
const INTERVAL: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Takes a packet each 10 ms, that has waited `delay` ms and has `behind` bytes behind it. Returns the ms at which
    /// packets were dropped.
    fn drops(codel: &mut Codel, ms: std::ops::Range<u64>, delay: u64, behind: usize) -> Vec<u64> {
        let mut drops = Vec::new();
        for now in ms.step_by(10) {
            let entered = Time::from_millis(now - delay);
            let mut queue: VecDeque<_> = (0..10).map(|packet| Head { packet, entered, behind }).collect();
            codel.dequeue(Time::from_millis(now), || queue.pop_front(), |_| drops.push(now));
        }
        drops
    }

    #[test]
    fn it_drops_after_an_interval_and_then_at_the_root_of_the_count() {
        // RFC 8289 (5.6): late since 1000, so the first drop is at 1100. The second follows after 100 ms / sqrt(1), the
        // third 100 / sqrt(2) after that, at 1270.7, then 57.7, 50, 44.7, 40.8 and 37.8 ms, each by the next packet.
        let mut codel = Codel::default();
        assert_eq!(drops(&mut codel, 1000..1500, 20, 9000), [1100, 1200, 1280, 1330, 1380, 1430, 1470]);
        // A short delay ends it; soon after it goes on with a count of 7 - 1 = 6 drops: 40.8 ms to the next, then 37.8.
        assert!(drops(&mut codel, 1500..1600, 4, 9000).is_empty());
        assert_eq!(drops(&mut codel, 1600..1800, 20, 9000), [1700, 1750, 1780]);
        // After 16 intervals of peace it begins with 1.
        assert!(drops(&mut codel, 1800..4000, 4, 9000).is_empty());
        assert_eq!(drops(&mut codel, 4000..4250, 20, 9000), [4100, 4200]);
    }

    #[test]
    fn it_leaves_the_last_packet_and_a_short_delay_alone() {
        assert!(drops(&mut Codel::default(), 1000..3000, 20, 1504).is_empty());
        assert!(drops(&mut Codel::default(), 1000..3000, 4, 9000).is_empty());
    }
}
