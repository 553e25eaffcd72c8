//! Takes acknowledgements that name transmissions.

use super::{ByTime, Sent};
use crate::arq::input::Acked;
use crate::arq::outgoing::Flight;
use crate::arq::stats::count;
use crate::arq::{Kcp, Work};
use crate::time::Time;
use crate::wire::{HEADER_LEN, Output, RawHeader};
use std::time::Duration;

impl<O: Output> Kcp<O> {
    /// Takes ACKs off the front that have the window of the first in common: each frees a segment,
    /// and says which of its transmissions arrived.
    pub(in crate::arq) fn apply_acks_by_time<'a>(
        &mut self,
        now: Time,
        datagram: &'a [u8],
        acked: &mut Acked,
    ) -> &'a [u8] {
        let (chunks, _) = datagram.as_chunks();
        let Some(first) = chunks.first().map(RawHeader::of) else { return &[] };
        if !acked.is_rebuilt {
            self.apply_wnd(first);
        }
        if self.config.has_repairs() {
            self.work.get_or_insert_default().by_time.protection.hear(first.frg());
        }
        let mut taken = 0;
        for head in chunks.iter().map(RawHeader::of) {
            if head.common() != first.common() || (head.len() > 0 && taken > 0) {
                break;
            }
            taken += 1;
            if let Some(segment) = self.sender.remove(head.sn()) {
                acked.bytes += u32::from(segment.len);
                if !acked.is_rebuilt {
                    self.transmission_arrived(now, head, &segment.flight, acked);
                }
            }
            if head.len() > 0 {
                break;
            }
        }
        self.apply_una(first, acked);
        self.counters.segments_received += taken as u64;
        let data = if taken == 1 { first.len() as usize } else { 0 };
        datagram.get(taken * HEADER_LEN + data..).unwrap_or_default()
    }

    /// Learns from the token that the ACK of a segment in flight echoes.
    fn transmission_arrived(&mut self, now: Time, head: RawHeader<'_>, flight: &Flight, acked: &mut Acked) {
        let earlier = flight.ts.since(head.ts());
        let age = now.token().since(head.ts());
        if earlier < 0 && (self.config.has_repairs() || self.rides) {
            return; // of a copy, or rebuilt, perhaps long after the repair came: that measures nothing
        }
        if earlier < 0 || (earlier > 0 && flight.xmit == 1) || !(-AHEAD_MAX..=AGE_MAX).contains(&age) {
            count(&mut self.counters.rejected.ts_age);
            return;
        }
        let age = age.max(0).unsigned_abs();
        let ByTime { rack, hold, .. } = &mut self.work.get_or_insert_default().by_time;
        if rack.arrived(Sent { at: now.before(age.into()), sn: head.sn() }, now, &self.rtt) {
            // What a beat acknowledges together is one round trip, however much it is.
            if !hold.is_there() || acked.sample.is_none() {
                self.rtt.sample(age);
            }
            acked.sample = Some(age);
        }
        acked.arrivals.named(head.ts(), age, flight);
    }

    /// What follows from the segments of a datagram together.
    pub(in crate::arq) fn after_acks_by_time(
        &mut self,
        now: Time,
        acked: &Acked,
        segments: u32,
        has_progress: bool,
    ) {
        let in_flight = self.sender.in_flight;
        let Some(Work { by_time, .. }) = self.work.as_deref_mut() else { return };
        let ByTime { rack, flights, protection, hold, undo, .. } = by_time;
        if in_flight == 0 {
            flights.clear();
        }
        if has_progress {
            rack.progress(now);
        }
        if let Some(spread) = acked.arrivals.spread().filter(|_| !rack.is_held()) {
            hold.saw(now, spread, acked.arrivals.is_many());
        }
        rack.unsure(acked.arrivals.are_unsure());
        let needless = acked.arrivals.needless();
        if needless > 0 {
            protection.excuse(needless);
            undo.needless(&mut self.congestion, now);
        }
        undo.acknowledged(segments);
        if let Some(age) = acked.sample
            && let Some(modern) = self.config.parts()
        {
            protection.floor.sample(now, age);
            self.congestion.on_rtt(now, Duration::from_micros(age.into()));
            self.rtt.rto = u32::try_from(rack.timeout(&self.rtt, modern)).unwrap_or(u32::MAX);
        }
    }
}

impl<O: Output> Kcp<O> {
    /// A datagram of segments has been taken, whose acknowledgements may ride.
    pub(in crate::arq) fn took_segments(&mut self, now: Time) {
        if !self.config.is_at_once() || self.config.has_repairs() {
            return;
        }
        let trouble = (self.receiver.parked, self.counters.duplicates);
        if let Some(work) = &mut self.work {
            work.ride.get_or_insert_default().took(now, work.acks.len(), trouble);
        }
    }
}

/// µs by which a token may lie ahead: flushes in the same µs have others. More, and the clock was set
/// back.
const AHEAD_MAX: i32 = 1000;
/// Oldest token that is believed, µs. Older, and more likely the clock jumped, or the process stopped.
pub(super) const AGE_MAX: i32 = 10_000_000;
