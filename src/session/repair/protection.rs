//! Outgoing repairs: protect packets in flight to the extent that the peer reports losses.
//!
//! Each packet earns a share of its bytes for repairs. The share follows the loss, up to
//! [`RepairConfig::percent`](super::RepairConfig::percent). If packets follow each other closely, a repair
//! rides in the next one; otherwise it gets a datagram of its own at once.

use super::{Repairs, low};
use crate::code::budget::{is_queued, share};
use crate::code::{COVER_MAX, Draft, History, Protector};
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
    /// Bytes that a datagram adds to its frames.
    pub(in crate::session) overhead: usize,
    /// Whether the limit of `max_rate` is in bad mode.
    pub(in crate::session) is_bad: bool,
}

impl Repairs {
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

    fn protects(&self, now: Time) -> bool {
        self.config.percent > 0 && self.loss(now) > 0.0
    }

    /// Notes that packets have arrived: `newest`, and those marked in `bits` before it.
    pub(in crate::session) fn acked(&mut self, newest: u64, bits: u32) {
        let Some(work) = &mut self.work else { return };
        let before = (0..u32::BITS).filter(|bit| bits >> bit & 1 == 1).map(|bit| u64::from(bit) + 1);
        for pn in before.chain([0]).filter_map(|age| newest.checked_sub(age)) {
            work.packets.forget(low(pn));
        }
    }

    /// Notes that a packet was lost and rebuilt. Returns whether that is news.
    pub(in crate::session) fn rebuilt_by_peer(&mut self, pn: u64) -> bool {
        let is_news = self.work.as_mut().is_some_and(|work| work.packets.forget(low(pn)));
        self.stats.rebuilt_by_peer += u64::from(is_news);
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
        if !self.protects(now) {
            self.work = None;
            return;
        }
        let body = buffer.get(start..).unwrap_or_default();
        if !Frames::parse(body).is_ok_and(Frames::are_worth_protecting) {
            return;
        }
        let work = self.work.get_or_insert_with(|| Box::new(Work::new(self.config.memory)));
        work.leaves(now);
        work.forget_before(now.before(micros(path.patience)));
        work.push(now, low(pn), body);
        let (rtt, room) = (micros(path.rtt.smoothed()), end.saturating_sub(buffer.len()));
        let together = work.draft(low(pn).add(1)).map_or(1, |draft| draft.count());
        let is_queued = path.is_bad || is_queued(rtt, micros(path.rtt.min()));
        let share = share(u32::from(self.stats.loss_told) * 257, self.config.percent, together);
        let cost = body.len() + path.overhead + IP_AND_UDP;
        work.protector.budget.earn(if is_queued { 0 } else { share }, cost as u64);
        let draft = work.draft(low(pn)).filter(|draft| cost_of(draft) <= room);
        let rider = draft.filter(|_| work.gap <= rtt / CLOSE);
        work.alone = if rider.is_none() { ALONE } else { 0 };
        if let Some(draft) = rider
            && work.protector.budget.spend(cost_of(&draft) as u64)
        {
            work.write(&draft, buffer, start);
            self.stats.sent += 1;
            self.stats.bytes += cost_of(&draft) as u64;
        }
    }

    /// Whether a repair should leave without data beside it.
    pub(in crate::session) fn is_due(&self, now: Time) -> bool {
        self.work.as_ref().is_some_and(|work| work.alone > 0) && self.protects(now)
    }

    /// Writes a repair before the frames from `start` of the buffer on, none of which carry data, if it fits
    /// before `end`. Returns whether it did.
    pub(in crate::session) fn write_alone(
        &mut self,
        path: &Path,
        (buffer, start, end): (&mut Vec<u8>, usize, usize),
    ) -> bool {
        let Some(work) = &mut self.work else { return false };
        let room = end.saturating_sub(buffer.len());
        let draft = work.draft(work.end).filter(|draft| cost_of(draft) <= room);
        let cost = draft.map_or(0, |draft| cost_of(&draft) + path.overhead);
        let is_paid = |_: &Draft| !path.is_bad && work.protector.budget.spend((cost + IP_AND_UDP) as u64);
        let Some(draft) = draft.filter(is_paid) else {
            work.alone = 0;
            return false;
        };
        work.write(&draft, buffer, start);
        work.alone -= 1;
        self.stats.sent += 1;
        self.stats.sent_alone += 1;
        self.stats.bytes += cost as u64;
        true
    }
}

impl Work {
    fn new(memory: u32) -> Self {
        let (packets, left) = (History::new(COVER_MAX.into(), memory), [Time::ZERO; COVER_MAX as usize]);
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

    /// Drops packets that left before `since`: by now they were resent or are no longer useful.
    fn forget_before(&mut self, since: Time) {
        let left = |sn: Sn| self.left.get(slot(sn)).copied();
        while let Some(oldest) = self.packets.oldest()
            && left(oldest) < Some(since)
        {
            self.packets.forget_before(oldest.add(1));
        }
    }

    fn draft(&self, end: Sn) -> Option<Draft> {
        Draft::of_last(&self.packets, COVER_MAX.into(), end, false)
    }
}

fn slot(sn: Sn) -> usize {
    sn.0 as usize % usize::from(COVER_MAX)
}

fn cost_of(draft: &Draft) -> usize {
    RIDER + usize::from(draft.len)
}

/// Bytes of a REPAIR inside a data packet, before its payload: type, length, first.
const RIDER: usize = 3 + REPAIR_FIRST;
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
        let mut window = Work::new(1000);
        assert!(window.draft(Sn(10)).is_none());
        for pn in [3, 4, 6, 9] {
            window.push(Time::from_millis(pn), low(pn), &[7; 10]);
        }
        let covered = |window: &Work| window.draft(Sn(9)).map(|draft| (draft.first().0, draft.count()));
        assert_eq!(covered(&window), Some((3, 3)));
        assert!(
            window.packets.forget(Sn(4)) && !window.packets.forget(Sn(4)) && !window.packets.forget(Sn(5))
        );
        assert_eq!(covered(&window), Some((3, 2)));
        window.forget_before(Time::from_millis(4));
        assert_eq!(covered(&window), Some((6, 1)));
        assert!(window.packets.forget(Sn(6)));
        assert_eq!((covered(&window), window.packets.oldest()), (None, Some(Sn(9))));
        (10..200).for_each(|pn| window.push(Time::ZERO, low(pn), &[7; 10]));
        assert_eq!(window.draft(Sn(200)).unwrap().count(), 32);
    }
}
