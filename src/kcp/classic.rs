//! Recovery as in ikcp.c: a segment is lost when its deadline has passed, or when enough datagrams have acknowledged
//! later segments.
//!
//! ikcp.c walks over everything in flight to find lost segments, and again at each datagram to count which segments it
//! passed over. Here, datagrams are noted and the next flush counts them all; deadlines and suspects tell where to
//! look.

use super::config::Config;
use super::observe::Cause;
use super::send::Sender;
use super::transmit::{Flight, Outgoing, Resent, Transmit, back_off};
use crate::ring::Ring;
use crate::seq::Sn;
use crate::time::Millis;
use crate::wire::Output;
use std::collections::VecDeque;

/// The state of loss detection.
#[derive(Debug, Default)]
pub(super) struct Classic {
    /// Acknowledgements since the last flush that passed segments over: one per datagram.
    passes: Vec<Pass>,
    pub(super) deadlines: Deadlines,
    /// Segments that acknowledgements passed over, or that are past their first deadline, in order. Only these are
    /// checked for loss. Each segment is added once.
    suspects: Vec<Sn>,
    /// No segment from here on is a suspect.
    end: Sn,
}

impl Classic {
    pub(super) fn has_work(&self, now: Millis) -> bool {
        self.deadlines.is_due(now) || self.has_passes()
    }

    /// Whether there are datagrams that passed segments over and have not been counted.
    pub(super) fn has_passes(&self) -> bool {
        !self.passes.is_empty()
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.deadlines.clear();
        self.suspects.clear();
    }

    /// A datagram acknowledged the segment `sn`, sent at `ts`, and so passed over older ones.
    pub(super) fn pass(&mut self, sn: Sn, ts: Millis, sender: &mut Sender) {
        self.passes.push(Pass { sn, ts });
        if self.passes.len() == PASSES_MAX {
            self.count_passes(sender);
        }
    }

    /// Resends lost segments. Checks the suspects, and segments whose deadline may have passed. `rto` is that of the
    /// connection, ms.
    pub(super) fn resend<O: Output>(&mut self, transmit: &mut Transmit<'_, '_, O>, rto: u32) -> Resent {
        let Self { passes, deadlines, suspects, end: suspected } = self;
        let wire = transmit.now.wire();
        let time_is_out = deadlines.is_due(wire);
        if !time_is_out && passes.is_empty() {
            return Resent::default();
        }
        let (una, nxt) = (transmit.sender.una(), transmit.sender.nxt);
        let mut passed = SortedPasses::new(passes, una);
        let mut end = passed.end(una);
        if time_is_out {
            let old = deadlines.look_up_to(wire, nxt);
            end = if end.is_before(old) { old } else { end };
        }
        suspect(suspects, suspected, &transmit.sender.ring, una, end);
        let mut resent = Resent::default();
        suspects.retain(|&sn| {
            let Transmit { sender, config, congestion, .. } = &mut *transmit;
            let Some(segment) = sender.ring.get_mut(sn) else { return false };
            let flight = &mut segment.flight;
            passed.count_in(sn, flight);
            match due(flight, wire, config) {
                None => deadlines.keep(flight.resend_at),
                Some(_) if !congestion.allows() => deadlines.again(sn, wire),
                Some(cause) => {
                    let times = if cause == Cause::Timeout { &mut resent.timeouts } else { &mut resent.fast };
                    *times += 1;
                    resend_one(transmit, deadlines, sn, cause, rto);
                }
            }
            true
        });
        passes.clear();
        resent
    }

    #[cold]
    fn count_passes(&mut self, sender: &mut Sender) {
        let una = sender.una();
        let mut passed = SortedPasses::new(&mut self.passes, una);
        suspect(&mut self.suspects, &mut self.end, &sender.ring, una, passed.end(una));
        self.suspects.retain(|&sn| {
            let Some(segment) = sender.ring.get_mut(sn) else { return false };
            passed.count_in(sn, &mut segment.flight);
            true
        });
        self.passes.clear();
    }
}

/// Source: ikcp.c `ikcp_flush`.
#[inline(never)]
fn resend_one<O: Output>(
    transmit: &mut Transmit<'_, '_, O>,
    deadlines: &mut Deadlines,
    sn: Sn,
    cause: Cause,
    rto: u32,
) {
    let (wire, config) = (transmit.now.wire(), transmit.config);
    let Some(segment) = transmit.sender.ring.get_mut(sn) else { return };
    let flight = &mut segment.flight;
    if cause == Cause::Timeout {
        flight.rto = back_off(flight.rto, rto, config.nodelay);
    } else {
        flight.fastack = 0;
    }
    flight.resend(wire);
    flight.resend_at = wire.add(flight.rto);
    let segment = *segment;
    deadlines.keep(segment.flight.resend_at);
    if due(&segment.flight, wire, config).is_some() {
        // As in ikcp.c, a timeout does not reset the count of datagrams that passed the segment over.
        deadlines.again(sn, wire);
    }
    transmit.send_again(sn, &segment, cause);
}

/// Adds all segments in flight from `una` up to `end` to the suspects. `suspected`: where the suspects ended before.
fn suspect(suspects: &mut Vec<Sn>, suspected: &mut Sn, ring: &Ring<Outgoing>, una: Sn, end: Sn) {
    if suspected.is_before(una) || suspects.is_empty() {
        *suspected = una;
    }
    while suspected.is_before(end) {
        if ring.get(*suspected).is_some() {
            suspects.push(*suspected);
        }
        *suspected = suspected.add(1);
    }
}

/// Decides whether to resend, and changes nothing. Source: ikcp.c `ikcp_flush`.
#[inline]
fn due(segment: &Flight, now: Millis, config: &Config) -> Option<Cause> {
    let fast = config.fast_resend;
    if segment.resend_at.is_due(now) {
        Some(Cause::Timeout)
    } else if fast > 0
        && segment.fastack >= fast
        && (config.fast_limit == 0 || segment.xmit <= config.fast_limit)
    {
        Some(Cause::FastAck)
    } else {
        None
    }
}

/// The newest number that a datagram acknowledged, and the time echoed with it.
#[derive(Clone, Copy, Debug)]
struct Pass {
    sn: Sn,
    ts: Millis,
}

/// The noted datagrams, sorted by the number that they acknowledged.
struct SortedPasses<'a> {
    /// Those that passed over the segment counted last.
    list: &'a [Pass],
    /// The oldest and the newest echoed time.
    oldest: Millis,
    newest: Millis,
}

impl<'a> SortedPasses<'a> {
    /// Sorts the noted datagrams. Segments can then be counted in order, from `una` on.
    fn new(list: &'a mut [Pass], una: Sn) -> Self {
        // They are usually in order already: ACKs return in the order of the segments.
        list.sort_unstable_by_key(|pass| pass.sn.distance(una));
        let times = || list.iter().map(|pass| pass.ts);
        let oldest = times().reduce(Millis::earlier).unwrap_or_default();
        let newest = times().reduce(Millis::later).unwrap_or_default();
        Self { list, oldest, newest }
    }

    /// From this number on, no segment was passed over.
    fn end(&self, una: Sn) -> Sn {
        self.list.last().map_or(una, |pass| pass.sn)
    }

    /// Counts how many datagrams passed over the segment `sn`: acknowledged a later one that was not sent before it.
    /// Call it in the order of the segments. Source: ikcp.c `ikcp_parse_fastack`, `IKCP_FASTACK_CONSERVE`.
    #[inline]
    fn count_in(&mut self, sn: Sn, flight: &mut Flight) {
        while let [first, rest @ ..] = self.list
            && !sn.is_before(first.sn)
        {
            self.list = rest;
        }
        if self.list.is_empty() {
            return;
        }
        let count = if self.oldest.since(flight.ts) >= 0 {
            self.list.len()
        } else if self.newest.since(flight.ts) < 0 {
            0
        } else {
            self.list.iter().filter(|pass| pass.ts.since(flight.ts) >= 0).count()
        };
        flight.fastack = flight.fastack.saturating_add(u16::try_from(count).unwrap_or(u16::MAX));
    }
}

/// The deadlines of the segments in flight. With these, finding out that nothing is due needs no walk, and finding what
/// is due only a short one.
///
/// Segments that one flush sends for the first time share a deadline and form a batch. Most segments are acknowledged
/// before it passes. Of the batches whose deadline has passed, only the first deadline is kept.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    /// The batches, by rising deadline.
    young: VecDeque<Batch>,
    /// The first deadline of the older segments, or a time before it.
    old: Option<Millis>,
    /// A segment may be lost already, whatever the time.
    look: bool,
}

/// The segments up to the next batch.
#[derive(Clone, Copy, Debug)]
struct Batch {
    first: Sn,
    /// Their first deadline, or a time before it.
    at: Millis,
}

impl Deadlines {
    /// The segments from `first` on were sent for the first time and count as lost at `at`. Everything before `una` has
    /// been acknowledged.
    pub(super) fn sent(&mut self, first: Sn, at: Millis, una: Sn) {
        while self.young.get(1).is_some_and(|second| !una.is_before(second.first)) {
            self.young.pop_front();
        }
        let mut batch = Batch { first, at };
        while let Some(last) = self.young.back()
            && at.since(last.at) < 0
        {
            batch.first = last.first;
            self.young.pop_back();
        }
        self.young.push_back(batch);
    }

    /// Whether to look for lost segments now.
    #[inline]
    pub(super) fn is_due(&self, now: Millis) -> bool {
        self.look || self.first().is_some_and(|at| at.is_due(now))
    }

    /// When to look for lost segments. `None`: nothing is in flight.
    pub(super) fn due_at(&self, now: Millis) -> Option<Millis> {
        if self.look { Some(now) } else { self.first() }
    }

    /// Starts a search for lost segments. Returns the number up to which to look, at most `nxt`. Call [`Self::keep`]
    /// for each segment in flight before it.
    pub(super) fn look_up_to(&mut self, now: Millis, nxt: Sn) -> Sn {
        if std::mem::take(&mut self.look) {
            self.young.clear();
        }
        while self.young.front().is_some_and(|batch| batch.at.is_due(now)) {
            self.young.pop_front();
        }
        self.old = None;
        self.young.front().map_or(nxt, |batch| batch.first)
    }

    /// A segment was checked and counts as lost at `at`.
    #[inline]
    pub(super) fn keep(&mut self, at: Millis) {
        self.old = Some(self.old.map_or(at, |old| old.earlier(at)));
    }

    /// The segment `sn` was checked `now`, and the next flush must check it again.
    pub(super) fn again(&mut self, sn: Sn, now: Millis) {
        self.keep(now);
        self.look |= self.young.front().is_some_and(|batch| !sn.is_before(batch.first));
    }

    /// The next flush must check all segments.
    pub(super) fn look(&mut self) {
        self.look = true;
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        if !self.young.is_empty() {
            self.young.clear();
        }
        (self.old, self.look) = (None, false);
    }

    #[inline]
    fn first(&self) -> Option<Millis> {
        let young = self.young.front().map(|batch| batch.at);
        match (self.old, young) {
            (Some(old), Some(young)) => Some(old.earlier(young)),
            (old, young) => old.or(young),
        }
    }
}

/// Most datagrams noted before they are counted.
const PASSES_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_that_are_acknowledged_are_forgotten() {
        let mut deadlines = Deadlines::default();
        for flush in 0..10_000 {
            deadlines.sent(Sn(flush), Millis(60_000 + flush), Sn(flush.saturating_sub(5)));
        }
        assert!(deadlines.young.len() <= 6, "{} batches", deadlines.young.len());
    }
}
