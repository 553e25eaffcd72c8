//! Takes acknowledgements that name transmissions.

use super::{ByTime, Sent};
use crate::code::budget::Repairs;
use crate::kcp::config::{Modern, Recovery};
use crate::kcp::input::{Acked, acks_alike};
use crate::kcp::stats::count;
use crate::kcp::transmit::Flight;
use crate::kcp::{Kcp, Work};
use crate::time::{Millis, Time};
use crate::wire::{Output, RawHeader};
use std::time::Duration;

impl<O: Output> Kcp<O> {
    /// Takes the ACKs at the front of `datagram`, starting with `first`. Each frees a segment and tells which of its
    /// transmissions arrived.
    pub(in crate::kcp) fn apply_acks_by_time<'a>(
        &mut self,
        now: Time,
        first: RawHeader<'_>,
        datagram: &'a [u8],
        acked: &mut Acked,
    ) -> &'a [u8] {
        if !acked.is_rebuilt {
            self.apply_wnd(first);
        }
        if self.config.has_repairs() {
            self.work.get_or_insert_default().by_time.protection.hear(first.frg());
        }
        let (acks, rest) = acks_alike(datagram);
        let token = now.token();
        for ack in acks.iter().map(RawHeader::of) {
            if self.believes(token, (ack.sn(), first.una()), ack.ts())
                && let Some(segment) = self.sender.remove(ack.sn())
            {
                acked.bytes += u32::from(segment.len);
                acked.arrivals.echoed(ack.ts(), &segment.flight);
                if !acked.is_rebuilt {
                    self.transmission_arrived(now, ack, &segment.flight, acked);
                }
            }
        }
        self.apply_una(first, acked);
        self.counters.segments_received += acks.len() as u64;
        rest
    }

    /// Learns from the token echoed by the ACK of a segment in flight.
    fn transmission_arrived(&mut self, now: Time, head: RawHeader<'_>, flight: &Flight, acked: &mut Acked) {
        let earlier = flight.ts.since(head.ts());
        let age = now.token().since(head.ts());
        if earlier < 0 && (self.counters.repairs_sent > 0 || self.receiver.rides) {
            return; // from a copy, or rebuilt long after the repair arrived: this measures nothing
        }
        if earlier < 0 || (earlier > 0 && flight.xmit == 1) || !(-AHEAD_MAX..=AGE_MAX).contains(&age) {
            count(&mut self.counters.rejected.ts_age);
            return;
        }
        let age = age.max(0).unsigned_abs();
        let ByTime { rack, hold, .. } = &mut self.work.get_or_insert_default().by_time;
        if rack.arrived(Sent { at: now.before(age.into()), sn: head.sn() }, now, &self.rtt) {
            // Everything that one interval acknowledges is a single round trip, however much it is.
            if !hold.is_there || acked.sample.is_none() {
                self.rtt.measure(age);
            }
            acked.sample = Some(age);
        }
        acked.arrivals.named(head.ts(), age, flight);
    }

    /// Applies what follows from all segments of a datagram together.
    pub(in crate::kcp) fn after_acks_by_time(
        &mut self,
        now: Time,
        acked: &Acked,
        segments: u32,
        (has_progress, had_holes): (bool, bool),
    ) {
        let (in_flight, una) = (self.sender.in_flight, self.sender.una());
        let Some(Work { by_time, .. }) = self.work.as_deref_mut() else { return };
        let ByTime { rack, flights, protection, hold, undo, .. } = &mut *by_time;
        if in_flight == 0 {
            flights.clear();
        }
        if has_progress {
            rack.progress(now);
        }
        let Arrivals { newest, named, oldest, needless, has_first, has_resend, .. } = acked.arrivals;
        let Arrivals { excused, latest, shows_loss, shows_resend, .. } = acked.arrivals;
        if let Some((_, age)) = newest
            && rack.held.is_none()
        {
            hold.saw(now, oldest.saturating_sub(age), named >= MANY);
        }
        if shows_resend && needless == 0 {
            rack.lateness.was_lost();
        }
        // Each resend hides when the transmission before it arrived.
        rack.unsure(has_resend && !has_first && needless == 0);
        if segments > 0
            && let Recovery::Modern(Modern { repairs: Repairs::Deadline(within), .. }) = self.config.recovery
        {
            let replaced = latest.filter(|_| had_holes || shows_loss);
            let replaced = replaced.map(|ts| now.before(acked.arrivals.age(ts).into()));
            protection.timely.arrived(
                una,
                replaced,
                (1000 * u64::from(within)).saturating_sub(u64::from(self.rtt.srtt) / 2),
            );
        }
        protection.excuse_named(excused);
        if latest.is_some() && !had_holes && !shows_loss {
            protection.acknowledged(segments);
        }
        if needless > 0 {
            protection.excuse(needless);
            undo.needless(&mut self.congestion, now);
        }
        undo.acknowledged(segments);
        if let Some(age) = acked.sample {
            protection.floor.sample(now, age);
            self.congestion.on_rtt(now, Duration::from_micros(age.into()));
            self.rtt.rto = u32::try_from(rack.timeout(&self.rtt)).unwrap_or(u32::MAX);
        }
        by_time.reckon(&self.rtt);
    }

    /// A datagram of segments was accepted, whose acknowledgements may ride with a segment of ours.
    pub(in crate::kcp) fn took_segments(&mut self, now: Time) {
        if !self.config.is_at_once() {
            return;
        }
        let trouble = (self.receiver.parked, self.counters.duplicates);
        if let Some(work) = &mut self.work {
            work.ride.get_or_insert_default().took(now, work.acks.len(), trouble);
        }
    }
}

/// How far ahead a token may lie, µs: flushes in the same µs get different tokens. Beyond that, the clock was set back.
const AHEAD_MAX: i32 = 1000;
/// Oldest token accepted, µs. Beyond that, the clock probably jumped or the process was stopped.
const AGE_MAX: i32 = 10_000_000;

/// What a datagram has acknowledged so far.
#[derive(Debug, Default)]
pub(in crate::kcp) struct Arrivals {
    /// The token that a transmission sent now would have; with `Classic`, the time.
    pub(in crate::kcp) now: Millis,
    /// Shortest round trip measured, µs.
    min_rtt: u32,
    /// The newest transmission named by an ACK: its token and its age, µs.
    newest: Option<(Millis, u32)>,
    /// Number of ACKs that name one.
    named: u32,
    /// Age of the oldest transmission that has certainly arrived, µs.
    oldest: u32,
    /// Number of segments that had arrived before they were resent.
    needless: u32,
    /// Number of those whose transmission before the last an ACK named.
    excused: u32,
    /// The newest token, also if it is that of a repair, and whether one of them shows that a segment had been lost.
    latest: Option<Millis>,
    shows_loss: bool,
    /// Whether an ACK names a resend, so what it replaced had not arrived.
    shows_resend: bool,
    /// Whether a transmission arrived that tells how long it took: its segment was sent only once, or the transmission
    /// before was sent so long ago that it must be lost.
    has_first: bool,
    /// Whether a resend arrived, and perhaps the transmission before it as well.
    has_resend: bool,
}

impl Arrivals {
    pub(in crate::kcp) fn new(now: Millis, min_rtt: Option<u32>) -> Self {
        Self { now, min_rtt: min_rtt.unwrap_or(0), ..Self::default() }
    }

    /// An ACK echoes the token `ts`: that of a transmission of its segment, or of the repair that it was rebuilt from.
    fn echoed(&mut self, ts: Millis, flight: &Flight) {
        if self.latest.is_none_or(|latest| ts.since(latest) > 0) {
            self.latest = Some(ts);
        }
        self.shows_loss |= flight.xmit > 1 || flight.ts != ts;
        self.excused += u32::from(flight.xmit > 1 && flight.resend_at == ts);
    }

    /// An ACK names the transmission with the token `ts`, sent `age` µs ago. `flight`: the last transmission of its
    /// segment.
    pub(super) fn named(&mut self, ts: Millis, age: u32, flight: &Flight) {
        if self.newest.is_none_or(|(newest, _)| ts.since(newest) > 0) {
            self.newest = Some((ts, age));
        }
        self.named += 1;
        self.oldest = self.oldest.max(age);
        self.needless += u32::from(flight.ts != ts);
        if flight.xmit == 1 {
            self.has_first = true;
        } else if flight.ts == ts {
            self.shows_resend = true;
            let before = self.age(flight.resend_at);
            self.has_resend |= before < BEAT_MAX;
            self.has_first |= before >= BEAT_MAX;
        }
    }

    /// `una` has freed a segment whose last transmission was `flight`.
    #[inline]
    pub(in crate::kcp) fn freed(&mut self, flight: &Flight) {
        let mut age = self.age(flight.ts);
        if flight.xmit == 1 {
            self.has_first = true;
        } else if self.is_needless(flight.ts, age) {
            self.needless += 1;
            age = self.age(flight.resend_at);
        }
        self.oldest = self.oldest.max(age);
    }

    /// Whether what arrived cannot be the resend `ts`, sent `age` µs ago: a round trip takes longer, or it was sent
    /// after the newest arrival. If the ACKs do not fit into one datagram, the next one may name it.
    fn is_needless(&self, ts: Millis, age: u32) -> bool {
        age < self.min_rtt - self.min_rtt / 8
            || (self.named < NAMED_MAX && self.newest.is_some_and(|(newest, _)| ts.since(newest) > 0))
    }

    /// Age of the transmission with the token `ts`, µs. 0: the clock jumped.
    #[inline]
    fn age(&self, ts: Millis) -> u32 {
        let age = self.now.since(ts);
        if age > AGE_MAX { 0 } else { u32::try_from(age).unwrap_or(0) }
    }
}

/// How long a peer may take to acknowledge a transmission, round trip included, µs.
const BEAT_MAX: u32 = 300_000;
/// Number of ACKs in a datagram that is rare for a peer that acknowledges at once.
const MANY: u32 = 4;
/// Number of ACKs in a datagram from which on some may not have fit.
const NAMED_MAX: u32 = 20;
