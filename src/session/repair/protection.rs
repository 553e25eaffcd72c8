//! Repairs on their way out: packets that are under way are protected, as far as the peer finds that they get lost.
//!
//! Packets earn a share of their bytes, which follows the loss and ends at [`RepairConfig::percent`](super::RepairConfig::percent);
//! repairs spend it. Where packets follow each other closely a repair rides before the next one, otherwise it has a datagram of its own,
//! at once.

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
    /// Packets that left lately and are not known to have arrived, the newest [`COVER_MAX`] numbers at most, and when they did.
    packets: History,
    left: [Time; COVER_MAX as usize],
    /// The number after the newest.
    end: Sn,
    /// When the last packet left, and the mean gap between those that left at different times, µs.
    last: Time,
    gap: u64,
    /// Repairs that may still leave alone for what was sent last.
    alone: u8,
}

/// What is known of the path where a repair may leave.
#[derive(Debug)]
pub(in crate::session) struct Path {
    pub(in crate::session) rtt: Rtt,
    /// How long an acknowledgement may take.
    pub(in crate::session) patience: Duration,
    /// What a datagram adds to its frames, bytes.
    pub(in crate::session) overhead: usize,
    /// Pacing says that conditions are bad.
    pub(in crate::session) is_bad: bool,
}

impl Repairs {
    /// Takes what the peer tells of loss, in its packet `pn`. What was rebuilt, [`rebuilt_by_peer`](Self::rebuilt_by_peer) says.
    pub(in crate::session) fn on_loss(&mut self, now: Time, pn: u64, loss: LossFrame) {
        if self.told_in.is_none_or(|newest| pn > newest) {
            (self.stats.loss_told, self.told_in, self.told_at) = (loss.share, Some(pn), now);
        }
        if self.stats.loss_told == 0 {
            self.work = None;
        }
    }

    /// The share that gets lost, 0 to 1: what was told last, as long as that holds.
    pub(in crate::session) fn loss(&self, now: Time) -> f64 {
        let holds = now.since(self.told_at) < TOLD_FOR;
        if holds { f64::from(self.stats.loss_told) / 255.0 } else { 0.0 }
    }

    fn protects(&self, now: Time) -> bool {
        self.config.percent > 0 && self.loss(now) > 0.0
    }

    /// Packets have arrived: `newest`, and those of the bits before it.
    pub(in crate::session) fn acked(&mut self, newest: u64, bits: u32) {
        let Some(work) = &mut self.work else { return };
        let before = (0..u32::BITS).filter(|bit| bits >> bit & 1 == 1).map(|bit| u64::from(bit) + 1);
        for pn in before.chain([0]).filter_map(|age| newest.checked_sub(age)) {
            work.packets.forget(low(pn));
        }
    }

    /// A packet was lost and rebuilt; whether that is news.
    pub(in crate::session) fn rebuilt_by_peer(&mut self, pn: u64) -> bool {
        let is_news = self.work.as_mut().is_some_and(|work| work.packets.forget(low(pn)));
        self.stats.rebuilt_by_peer += u64::from(is_news);
        is_news
    }

    /// The packet `pn` leaves now, with the frames from `start` of the buffer on, and no REPAIR: it is remembered, and a repair of
    /// earlier ones rides with it if there is one, and room up to `end`.
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

    /// Whether a repair is to leave with no data beside it.
    pub(in crate::session) fn is_due(&self, now: Time) -> bool {
        self.work.as_ref().is_some_and(|work| work.alone > 0) && self.protects(now)
    }

    /// Writes a repair before the frames from `start` of the buffer on, which are no data, if it fits before `end`; whether it did.
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

    /// Forgets what left before `since`: by now it was sent again, or is of no use.
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

/// Bytes of a REPAIR that rides before its payload: type, length, first.
const RIDER: usize = 3 + REPAIR_FIRST;
/// Repairs that leave alone at once, after a burst.
const ALONE: u8 = 16;
/// How long what the peer has told of its loss holds.
const TOLD_FOR: Duration = Duration::from_secs(3);
/// Bytes of the headers of IPv4 and UDP, which the budget counts as well.
const IP_AND_UDP: usize = 28;
/// Longer gaps between packets count as so long, µs.
const GAP_MAX: u64 = 1_000_000;
/// Packets whose gap is shorter than this part of a round trip follow each other closely.
const CLOSE: u64 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_arrived_is_covered_no_more_and_what_is_old_neither() {
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
