//! Repairs on their way out.

use super::flow::Flow;
use super::stats::RepairStats;
use super::under_way::{Cover, UnderWay};
use super::{RepairConfig, is_worth_protecting};
use crate::code::Encoder;
use crate::code::budget::{Budget, share};
use crate::session::wire::{Frames, LossFrame, REPAIR_FIRST, insert_repair};
use crate::time::Time;
use std::time::Duration;

/// Protects packets that are under way by repairs, as far as the peer finds that they get lost.
///
/// Packets earn a share of their bytes, which follows the loss and ends at [`RepairConfig::percent`]; repairs spend it. Where packets
/// follow each other closely a repair rides before the next one, otherwise it has a datagram of its own, at once.
#[derive(Debug)]
pub(in crate::session) struct Protection {
    config: RepairConfig,
    /// What the peer has told last, of 255, in which packet, and when.
    told: u8,
    told_in: Option<u64>,
    told_at: Time,
    /// Made for the first packet.
    work: Option<Box<Work>>,
    stats: RepairStats,
}

#[derive(Debug)]
struct Work {
    encoder: Encoder,
    payload: Vec<u8>,
    /// Tells repairs of the same packets apart.
    index: u8,
    budget: Budget,
    under_way: UnderWay,
    flow: Flow,
    /// Repairs that may still leave alone for what was sent last.
    alone: u8,
}

/// What is known of the path where a repair may leave.
#[derive(Clone, Copy, Debug)]
pub(in crate::session) struct Path {
    /// Round trips, smoothed and the shortest.
    pub(in crate::session) rtt: Duration,
    pub(in crate::session) rtt_min: Duration,
    /// How long an acknowledgement may take.
    pub(in crate::session) patience: Duration,
    /// What a datagram adds to its frames, bytes.
    pub(in crate::session) overhead: usize,
    /// Pacing says that conditions are bad.
    pub(in crate::session) is_bad: bool,
}

impl Path {
    /// Whether redundancy would lengthen a queue.
    fn is_under_queue(&self) -> bool {
        self.is_bad || self.rtt.saturating_sub(self.rtt_min) > self.rtt_min / 2 + QUEUE
    }
}

impl Protection {
    pub(in crate::session) fn new(config: &RepairConfig) -> Self {
        let (told_at, stats) = (Time::ZERO, RepairStats::default());
        Self { config: *config, told: 0, told_in: None, told_at, work: None, stats }
    }

    /// Takes what the peer tells of loss, in its packet `pn`. What was rebuilt, [`arrived`](Self::rebuilt_by_peer) says.
    pub(in crate::session) fn on_loss(&mut self, now: Time, pn: u64, loss: LossFrame) {
        if self.told_in.is_none_or(|newest| pn > newest) {
            (self.told, self.told_in, self.told_at) = (loss.share, Some(pn), now);
        }
        if self.told == 0 {
            self.shrink();
        }
    }

    /// The share that gets lost, 0 to 1: what was told last, as long as that holds.
    pub(in crate::session) fn loss(&self, now: Time) -> f64 {
        if now.since(self.told_at) < TOLD_FOR { f64::from(self.told) / 255.0 } else { 0.0 }
    }

    /// Whether packets are protected.
    pub(in crate::session) fn is_on(&self, now: Time) -> bool {
        self.told > 0 && self.config.percent > 0 && now.since(self.told_at) < TOLD_FOR
    }

    /// Whether there is anything to be told that it has arrived.
    pub(in crate::session) const fn has_any(&self) -> bool {
        self.work.is_some()
    }

    /// A packet has arrived.
    pub(in crate::session) fn arrived(&mut self, pn: u64) {
        if let Some(work) = &mut self.work {
            work.under_way.arrived(pn);
        }
    }

    /// A packet was lost and rebuilt; whether that is news.
    pub(in crate::session) fn rebuilt_by_peer(&mut self, pn: u64) -> bool {
        let is_news = self.work.as_mut().is_some_and(|work| work.under_way.arrived(pn));
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
        let body = buffer.get(start..).unwrap_or_default();
        if !Frames::parse(body).is_ok_and(is_worth_protecting) {
            return;
        }
        let config = self.config;
        let work = self.work.get_or_insert_with(|| Box::new(Work::new(&config)));
        work.flow.left(now);
        work.under_way.forget_before(now.before(micros(path.patience)));
        let cost = body.len() + path.overhead + IP_AND_UDP;
        work.under_way.push(now, pn, body);
        let together = work.under_way.cover(pn + 1).map_or(1, |cover| cover.count);
        let share = share(u32::from(self.told) * 257, config.percent, together);
        work.budget.earn(if path.is_under_queue() { 0 } else { share }, cost as u64);
        work.alone = 0;
        let room = end.saturating_sub(buffer.len());
        let cover = work.under_way.cover(pn);
        match cover.filter(|cover| work.flow.is_close(micros(path.rtt)) && RIDER + cover.len <= room) {
            Some(cover) => {
                let cost = RIDER + cover.len;
                if work.budget.spend(cost as u64) {
                    work.write(&cover, buffer, start);
                    self.stats.sent += 1;
                    self.stats.bytes += cost as u64;
                }
            }
            None => work.alone = ALONE,
        }
    }

    /// Whether a repair is to leave with no data beside it.
    pub(in crate::session) fn is_due(&self, now: Time) -> bool {
        self.work.as_ref().is_some_and(|work| work.alone > 0) && self.is_on(now)
    }

    /// Writes a repair before the frames from `start` of the buffer on, which are no data, for the packet `pn`, if it fits before `end`;
    /// whether it did.
    pub(in crate::session) fn write_alone(
        &mut self,
        pn: u64,
        path: &Path,
        (buffer, start, end): (&mut Vec<u8>, usize, usize),
    ) -> bool {
        let Some(work) = &mut self.work else { return false };
        let room = end.saturating_sub(buffer.len());
        let cover = work.under_way.cover(pn).filter(|cover| RIDER + cover.len <= room);
        let cost = cover.map_or(0, |cover| RIDER + cover.len + path.overhead + IP_AND_UDP);
        let Some(cover) = cover.filter(|_| !path.is_bad && work.budget.spend(cost as u64)) else {
            work.alone = 0;
            return false;
        };
        work.write(&cover, buffer, start);
        work.alone -= 1;
        self.stats.sent += 1;
        self.stats.sent_alone += 1;
        self.stats.bytes += (cost - IP_AND_UDP) as u64;
        true
    }

    pub(in crate::session) const fn stats(&self) -> RepairStats {
        RepairStats { loss_told: self.told, ..self.stats }
    }

    /// Bytes of the heap.
    pub(in crate::session) fn memory(&self) -> usize {
        let work = |work: &Work| size_of::<Work>() + work.memory();
        self.work.as_deref().map_or(0, work)
    }

    /// Forgets what is under way and gives its memory back.
    pub(in crate::session) fn shrink(&mut self) {
        self.work = None;
    }
}

impl Work {
    fn new(config: &RepairConfig) -> Self {
        Self {
            encoder: Encoder::new(),
            payload: Vec::new(),
            index: 0,
            budget: Budget::default(),
            under_way: UnderWay::new(usize::try_from(config.memory).unwrap_or(usize::MAX)),
            flow: Flow::default(),
            alone: 0,
        }
    }

    /// Writes a repair before the frames of a packet.
    fn write(&mut self, cover: &Cover, buffer: &mut Vec<u8>, start: usize) {
        let Self { encoder, payload, index, under_way, .. } = self;
        encoder.begin(*index);
        *index = index.wrapping_add(1);
        under_way.add_to(encoder, cover);
        payload.resize(encoder.payload_len(), 0);
        if encoder.finish(payload).is_some() {
            insert_repair(buffer, start, super::under_way::low(cover.first).0, payload);
        }
    }

    fn memory(&self) -> usize {
        self.encoder.memory() + self.payload.capacity() + self.under_way.memory()
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Bytes of a REPAIR that rides before its payload: type, length, first.
const RIDER: usize = 3 + REPAIR_FIRST;
/// Repairs that leave alone at once, after a burst.
const ALONE: u8 = 16;
/// How long what the peer has told of its loss holds.
const TOLD_FOR: Duration = Duration::from_secs(3);
/// Part of a round trip that need not be a queue, beside half of the shortest.
const QUEUE: Duration = Duration::from_millis(20);
/// Bytes of the headers of IPv4 and UDP, which the budget counts as well.
const IP_AND_UDP: usize = 28;
