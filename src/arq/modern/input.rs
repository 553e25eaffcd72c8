//! Takes acknowledgements that name transmissions.

use super::{ByTime, Sent};
use crate::arq::input::Acked;
use crate::arq::stats::count;
use crate::arq::{Kcp, Work};
use crate::time::Time;
use crate::wire::{Output, RawHeader};
use std::time::Duration;

impl<O: Output> Kcp<O> {
    /// Takes an ACK off the front: it frees a segment, and says which of its transmissions arrived.
    pub(in crate::arq) fn take_ack_by_time<'a>(
        &mut self,
        now: Time,
        datagram: &'a [u8],
        acked: &mut Acked,
    ) -> &'a [u8] {
        let Some((head, data)) = RawHeader::split(datagram) else { return &[] };
        self.counters.segments_received += 1;
        self.take_wnd(head);
        self.transmission_arrived(now, head, acked);
        if !head.sn().is_before(self.sender.una()) {
            acked.bytes += self.sender.acknowledge(head.sn());
        }
        self.take_una(head, acked);
        data.get(head.len() as usize..).unwrap_or_default()
    }

    /// Learns from the token that an ACK echoes, if it is one of a segment in flight.
    fn transmission_arrived(&mut self, now: Time, head: RawHeader<'_>, acked: &mut Acked) {
        let Some(flight) = self.sender.ring.get(head.sn()).map(|segment| segment.flight) else { return };
        if !head.sn().is_before(self.sender.nxt) {
            return;
        }
        let earlier = flight.ts.since(head.ts());
        let age = now.token().since(head.ts()).max(0);
        if earlier < 0 || (earlier > 0 && flight.xmit == 1) || age > AGE_MAX {
            count(&mut self.counters.rejected.ts_age);
            return;
        }
        let rack = &mut self.work.get_or_insert_default().by_time.rack;
        let age = Duration::from_micros(age.unsigned_abs().into());
        if rack.arrived(Sent { at: now.before(age), sn: head.sn() }, now, &self.rtt) {
            self.rtt.sample(u32::try_from(age.as_micros()).unwrap_or(u32::MAX));
            self.congestion.on_rtt(now, age);
            acked.has_sample = true;
        }
    }

    /// What follows from the segments of a datagram together.
    pub(in crate::arq) fn after_acks_by_time(&mut self, now: Time, acked: &Acked, has_progress: bool) {
        let in_flight = self.sender.in_flight;
        let Some(Work { by_time: ByTime { rack, flights }, .. }) = self.work.as_deref_mut() else { return };
        if in_flight == 0 {
            flights.clear();
        }
        if has_progress {
            rack.progress(now);
        }
        if acked.has_sample
            && let Some(modern) = self.config.parts()
        {
            let rto = rack.timeout(&self.rtt, modern);
            self.rtt.rto = u32::try_from(rto.as_micros()).unwrap_or(u32::MAX);
        }
    }
}

/// Oldest token that is believed, µs.
const AGE_MAX: i32 = 120_000_000;
