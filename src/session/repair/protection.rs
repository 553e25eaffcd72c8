//! Outgoing repairs: protect packets in flight to the extent that the peer reports losses.
//!
//! Each packet that nothing else protects earns bytes for repairs, by the setting
//! [`repairs`](crate::SessionConfig::repairs). If packets follow each other closely, a repair rides in the next one;
//! otherwise it gets a datagram of its own at once.

use super::{BareLanes, LEAST, MEMORY, PacketRepairs, low};
use crate::code::budget::{Repairs, Sent, WHOLE, is_queued};
use crate::code::{COVER_MAX, Draft, History, Protector, Source};
use crate::pace::Rtt;
use crate::seq::Sn;
use crate::session::wire::{Frames, LossFrame, REPAIR_FIRST, insert_repair};
use crate::time::{Time, micros};
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Work {
    protector: Protector,
    /// Recent packets that are not known to have arrived, at most the newest [`COVER_MAX`] numbers, and when
    /// each left.
    packets: History,
    left: [Time; COVER_MAX as usize],
    /// The number after the newest.
    end: Sn,
    /// When the last packet left, and the mean gap between packets that left at different times, µs.
    last: Time,
    gap: u64,
    /// How many more repairs may leave in datagrams of their own for what was sent last.
    alone: u8,
}

/// The state of the path at the time when a repair may leave.
#[derive(Debug)]
pub(in crate::session) struct Path {
    pub(in crate::session) rtt: Rtt,
    /// How long an acknowledgement may take.
    pub(in crate::session) patience: Duration,
    /// Bytes that a datagram adds to its frames, and most bytes of them.
    pub(in crate::session) overhead: usize,
    pub(in crate::session) body_max: usize,
    /// Whether the limit of `max_rate` is in bad mode.
    pub(in crate::session) is_bad: bool,
    pub(in crate::session) bare: BareLanes,
}

impl PacketRepairs {
    /// Applies a loss report of the peer, received in its packet `pn`. The packets that it rebuilt are passed
    /// to [`rebuilt_by_peer`](Self::rebuilt_by_peer).
    pub(in crate::session) fn on_loss(&mut self, now: Time, pn: u64, loss: LossFrame) {
        if self.told_in.is_none_or(|newest| pn > newest) {
            let share = loss.share.saturating_sub(self.excused.of_254());
            (self.stats.loss_told, self.told_in, self.told_at) = (share, Some(pn), now);
        }
        if self.stats.loss_told == 0 {
            self.work = None;
        }
    }

    /// Notes that a packet leaves. `is_excused`: its loss says nothing about the path.
    #[inline]
    pub(in crate::session) fn on_sent(&mut self, is_excused: bool) {
        self.excused.judge(is_excused);
    }

    /// The share that gets lost, 0 to 1, as last reported, while that report is valid.
    pub(in crate::session) fn loss(&self, now: Time) -> f64 {
        let holds = now.since(self.told_at) < TOLD_FOR;
        if holds { f64::from(self.stats.loss_told) / 255.0 } else { 0.0 }
    }

    /// Whether packets are protected now. If not, forgets them.
    #[inline]
    pub(in crate::session) fn protects(&mut self, now: Time) -> bool {
        let protects = self.is_wanted(now);
        if !protects && self.work.is_some() {
            self.work = None;
        }
        protects
    }

    fn is_wanted(&self, now: Time) -> bool {
        let sends = !matches!(self.repairs, Repairs::Off | Repairs::Budget(0));
        sends && self.stats.loss_told > 0 && now.since(self.told_at) < TOLD_FOR
    }

    /// Notes that packets have arrived: `newest`, and those marked in `bits` before it.
    pub(in crate::session) fn acked(&mut self, newest: u64, bits: u32) {
        let Some(work) = &mut self.work else { return };
        let before = (0..u32::BITS).filter(|bit| bits >> bit & 1 == 1).map(|bit| u64::from(bit) + 1);
        for pn in before.chain([0]).filter_map(|age| newest.checked_sub(age)) {
            if work.packets.forget(low(pn)) {
                self.trial.judge(false);
            }
        }
    }

    /// Notes that a packet was lost and rebuilt, `now` or up to `ago` µs before. Returns whether that is news.
    pub(in crate::session) fn rebuilt_by_peer(&mut self, now: Time, pn: u64, ago: u64) -> bool {
        let Some(work) = self.work.as_mut() else { return false };
        let is_news = work.packets.forget(low(pn));
        if is_news {
            self.stats.rebuilt_by_peer += 1;
            let took = now.micros_since(work.left_at(low(pn)).unwrap_or(now)).saturating_sub(ago);
            self.trial.judge(self.repairs.within().is_some_and(|within| took > within));
        }
        is_news
    }

    /// Remembers the packet `pn`, which leaves now with the frames from `start` of the buffer on and without
    /// a REPAIR. Adds a repair of earlier packets to it if there is one and it fits before `end`.
    pub(in crate::session) fn protect(
        &mut self,
        now: Time,
        pn: u64,
        path: &Path,
        (buffer, start, end): (&mut Vec<u8>, usize, usize),
    ) {
        let body = buffer.get(start..).unwrap_or_default();
        let fits = body.len() + LEAST <= path.body_max; // what is as long as a datagram has no repair that is not longer
        if !fits || !Frames::parse(body).is_ok_and(|frames| frames.need_repairs(path.bare)) {
            return;
        }
        let work = self.work.get_or_insert_with(|| Box::new(Work::new()));
        work.leaves(now);
        let lost = work.forget_before(now.before(micros(path.patience)));
        (0..lost).for_each(|_| self.trial.judge(true));
        work.push(now, low(pn), body);
        let (rtt, bytes) = (micros(path.rtt.smoothed()), body.len() + path.overhead + IP_AND_UDP);
        let is_queued = path.is_bad || is_queued(rtt, micros(path.rtt.min()));
        let together = work.draft(low(pn).add(1), |_| true).map_or(1, |draft| draft.count());
        let loss = if is_queued { 0 } else { u32::from(self.stats.loss_told) * 257 };
        let sent = Sent { loss, segments: 1, bytes: bytes as u64, together, saved: 0 };
        let timely = if is_queued { 0 } else { self.trial.share() };
        let share = work.protector.budget.earn_by(self.repairs, &sent, timely);
        // What rides has to wait for the next packet.
        let within = self.repairs.within().map_or(u64::MAX, |within| within.saturating_sub(rtt / 2));
        let room = end.saturating_sub(buffer.len());
        let rider = work.draft(low(pn), |draft| RIDER + usize::from(draft.len) <= room);
        let rider = rider.filter(|_| work.gap <= within.min(rtt / CLOSE));
        // One rides in a packet at most, which cannot spend more than it earns with a share of 1.
        work.alone = if rider.is_none() || share > WHOLE { ALONE } else { 0 };
        let cost = rider.map_or(0, |draft| RIDER + usize::from(draft.len));
        if let Some(draft) = rider
            && work.protector.budget.spend(cost as u64)
        {
            work.write(&draft, buffer, start);
            self.stats.sent += 1;
            self.stats.bytes += cost as u64;
        }
    }

    /// Whether a repair should leave without data beside it.
    pub(in crate::session) fn is_due(&self, now: Time) -> bool {
        self.work.as_ref().is_some_and(|work| work.alone > 0) && self.is_wanted(now)
    }

    /// Writes a repair before the frames from `start` of the buffer on, none of which carry data, if it fits
    /// before `end`. Returns whether it did.
    pub(in crate::session) fn write_alone(
        &mut self,
        path: &Path,
        (buffer, start, end): (&mut Vec<u8>, usize, usize),
    ) -> bool {
        let Some(work) = &mut self.work else { return false };
        let is_first = buffer.len() == start;
        let (head, room) = (if is_first { ALONE_HEAD } else { RIDER }, end.saturating_sub(buffer.len()));
        let cost = |draft: &Draft| head + usize::from(draft.len);
        let draft = work.draft(work.end, |draft| cost(draft) <= room);
        if draft.is_none() && !is_first {
            work.alone -= 1;
            return false; // there may be room in the next datagram
        }
        let bytes = draft.map_or(0, |draft| cost(&draft) + path.overhead);
        let is_paid = |_: &Draft| !path.is_bad && work.protector.budget.spend((bytes + IP_AND_UDP) as u64);
        let Some(draft) = draft.filter(is_paid) else {
            work.alone = 0;
            return false;
        };
        work.write(&draft, buffer, start);
        work.alone -= 1;
        self.stats.sent += 1;
        self.stats.sent_alone += 1;
        self.stats.bytes += bytes as u64;
        true
    }
}

impl Repairs {
    /// The deadline, µs.
    fn within(self) -> Option<u64> {
        if let Self::Deadline(within) = self { Some(1000 * u64::from(within)) } else { None }
    }
}

impl Work {
    fn new() -> Self {
        let (packets, left) = (History::new(COVER_MAX.into(), MEMORY), [Time::ZERO; COVER_MAX as usize]);
        Self {
            protector: Protector::default(),
            packets,
            left,
            end: Sn(0),
            last: Time::ZERO,
            gap: 0,
            alone: 0,
        }
    }

    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.protector.memory() + self.packets.memory()
    }

    fn leaves(&mut self, now: Time) {
        if now > self.last {
            let gap = now.micros_since(self.last).min(GAP_MAX);
            self.gap = if self.gap == 0 { gap } else { (7 * self.gap + gap) / 8 };
            self.last = now;
        }
    }

    fn write(&mut self, draft: &Draft, buffer: &mut Vec<u8>, start: usize) {
        let payload = insert_repair(buffer, start, draft.first().0, draft.len);
        self.protector.write(&self.packets, draft, payload);
    }

    fn push(&mut self, now: Time, sn: Sn, body: &[u8]) {
        self.end = sn.add(1);
        self.packets.forget_before(self.end.sub(COVER_MAX.into()));
        self.packets.push(sn, 0, body);
        if let Some(left) = self.left.get_mut(slot(sn)) {
            *left = now;
        }
    }

    /// Drops packets that left before `since`: by now they were resent or are no longer useful. Returns how many had
    /// neither arrived nor been rebuilt.
    fn forget_before(&mut self, since: Time) -> u32 {
        let mut lost = 0;
        while let Some(oldest) = self.packets.oldest()
            && self.left_at(oldest) < Some(since)
        {
            lost += u32::from(self.packets.len_of(oldest).is_some());
            self.packets.forget_before(oldest.add(1));
        }
        lost
    }

    fn left_at(&self, sn: Sn) -> Option<Time> {
        self.left.get(slot(sn)).copied()
    }

    fn draft(&self, end: Sn, fits: impl Fn(&Draft) -> bool) -> Option<Draft> {
        Draft::of_last_if(&self.packets, COVER_MAX.into(), end, fits)
    }
}

fn slot(sn: Sn) -> usize {
    sn.0 as usize % usize::from(COVER_MAX)
}

/// Bytes of a REPAIR before its payload: type, length unless it is alone, first.
const RIDER: usize = 3 + REPAIR_FIRST;
const ALONE_HEAD: usize = 1 + REPAIR_FIRST;
/// Most repairs that leave in datagrams of their own at once, after a burst.
const ALONE: u8 = 16;
/// How long a loss report of the peer is valid.
const TOLD_FOR: Duration = Duration::from_secs(3);
/// Bytes of IPv4 and UDP headers, which also count against the budget.
const IP_AND_UDP: usize = 28;
/// Longer gaps between packets count as this, µs.
const GAP_MAX: u64 = 1_000_000;
/// Packets follow each other closely if their gap is at most a round trip divided by this.
const CLOSE: u64 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repairs_cover_neither_arrived_nor_old_packets() {
        let mut window = Work::new();
        assert!(window.draft(Sn(10), |_| true).is_none());
        for pn in [3, 4, 6, 9] {
            window.push(Time::from_millis(pn), low(pn), &[7; 10]);
        }
        let covered =
            |window: &Work| window.draft(Sn(9), |_| true).map(|draft| (draft.first().0, draft.count()));
        assert_eq!(covered(&window), Some((3, 3)));
        assert!(
            window.packets.forget(Sn(4)) && !window.packets.forget(Sn(4)) && !window.packets.forget(Sn(5))
        );
        assert_eq!(covered(&window), Some((3, 2)));
        assert_eq!(window.forget_before(Time::from_millis(4)), 1);
        assert_eq!(covered(&window), Some((6, 1)));
        assert!(window.packets.forget(Sn(6)));
        assert_eq!((covered(&window), window.packets.oldest()), (None, Some(Sn(9))));
        (10..200).for_each(|pn| window.push(Time::ZERO, low(pn), &[7; 10]));
        assert_eq!(window.draft(Sn(200), |_| true).unwrap().count(), 32);
    }
}
