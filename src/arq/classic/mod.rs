//! Recovery as in ikcp.c: a segment is lost when its own deadline has passed, or when enough
//! datagrams have acknowledged later ones.
//!
//! ikcp.c walks over all in flight to find them, and at each datagram to count in every segment who passed it over. Here datagrams are
//! noted until the next flush counts them all, and `deadlines` and suspects say where to look.

mod deadlines;

use super::config::Config;
use super::observe::Cause;
use super::send::Sender;
use super::transmit::{Flight, Outgoing, Resent, Transmit};
use crate::ring::Ring;
use crate::seq::Sn;
use crate::time::Millis;
use crate::wire::Output;
use deadlines::Deadlines;

/// What finding lost segments keeps.
#[derive(Debug, Default)]
pub(super) struct Classic {
    /// The acknowledgements since the last flush that passed segments over: one a datagram.
    passes: Vec<Pass>,
    pub(super) deadlines: Deadlines,
    /// Segments that acknowledgements passed over, or that are older than their first deadline, in order. Only these are looked at when
    /// lost ones are looked for; each segment is found once.
    suspects: Vec<Sn>,
    /// No segment from here on is a suspect.
    end: Sn,
}

impl Classic {
    pub(super) fn has_work(&self, now: Millis) -> bool {
        self.deadlines.is_due(now) || self.has_passes()
    }

    /// Whether datagrams that passed segments over have not been counted.
    pub(super) fn has_passes(&self) -> bool {
        !self.passes.is_empty()
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.deadlines.clear();
        self.suspects.clear();
    }

    /// A datagram acknowledged the segment `sn`, sent at `ts`, and thereby passed older ones over.
    pub(super) fn pass(&mut self, sn: Sn, ts: Millis, sender: &mut Sender) {
        self.passes.push(Pass { sn, ts });
        if self.passes.len() == PASSES_MAX {
            self.count_passes(sender);
        }
    }

    /// Sends again what is lost. Looked at are segments that acknowledgements passed over, and those
    /// whose time may be out. `rto` is that of the connection, ms.
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
        let mut look = Look { transmit, deadlines, rto, resent: Resent::default() };
        suspects.retain(|&sn| look.at(sn, &mut passed));
        let resent = look.resent;
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
            let flight = &mut segment.flight;
            flight.fastack = flight.fastack.saturating_add(passed.count(sn, flight.ts));
            true
        });
        self.passes.clear();
    }
}

struct Look<'l, 'a, 'p, O> {
    transmit: &'l mut Transmit<'a, 'p, O>,
    deadlines: &'l mut Deadlines,
    rto: u32,
    resent: Resent,
}

impl<O: Output> Look<'_, '_, '_, O> {
    /// Counts who passed the segment `sn` over, and sends it again if it is lost. `false`: it is not
    /// in flight any more.
    #[inline]
    fn at(&mut self, sn: Sn, passed: &mut SortedPasses<'_>) -> bool {
        let Transmit { sender, config, congestion, now, .. } = &mut *self.transmit;
        let Some(segment) = sender.ring.get_mut(sn) else {
            return false;
        };
        let flight = &mut segment.flight;
        flight.fastack = flight.fastack.saturating_add(passed.count(sn, flight.ts));
        match due(flight, now.wire(), config) {
            None => self.deadlines.keep(flight.resend_at),
            Some(_) if !congestion.allows() => self.deadlines.again(sn, now.wire()),
            Some(cause) => self.resend_one(sn, cause),
        }
        true
    }

    #[inline(never)]
    fn resend_one(&mut self, sn: Sn, cause: Cause) {
        let wire = self.transmit.now.wire();
        let config: &Config = self.transmit.config;
        let Some(segment) = self.transmit.sender.ring.get_mut(sn) else { return };
        if cause == Cause::Timeout {
            segment.flight.resend_after_timeout(wire, self.rto, config.nodelay);
            self.resent.timeouts += 1;
        } else {
            segment.flight.resend_fast(wire);
            self.resent.fast += 1;
        }
        let segment = *segment;
        self.deadlines.keep(segment.flight.resend_at);
        if due(&segment.flight, wire, config).is_some() {
            // A timeout does not forget who passed the segment over, as in ikcp.c.
            self.deadlines.again(sn, wire);
        }
        self.transmit.send_again(sn, &segment, cause);
    }
}

/// Suspects all segments in flight, from `una` on, up to `end`; `suspected` is where the suspects ended.
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

/// Decides and changes nothing. Source: ikcp.c `ikcp_flush`.
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

/// The newest number that a datagram acknowledged, and the time echoed for it.
#[derive(Clone, Copy, Debug)]
struct Pass {
    sn: Sn,
    ts: Millis,
}

/// Noted datagrams by the number that they acknowledged.
struct SortedPasses<'a> {
    /// Those that passed over the segment asked about last.
    list: &'a [Pass],
    /// The oldest time echoed by any, and the newest.
    oldest: Millis,
    newest: Millis,
}

impl<'a> SortedPasses<'a> {
    /// Makes the noted datagrams ready for questions about segments from `una` on, in their order.
    fn new(list: &'a mut [Pass], una: Sn) -> Self {
        // Mostly they are in order already: ACKs come back as the segments went out.
        list.sort_unstable_by_key(|pass| pass.sn.distance(una));
        let times = || list.iter().map(|pass| pass.ts);
        let oldest = times().reduce(Millis::earlier).unwrap_or_default();
        let newest = times().reduce(Millis::later).unwrap_or_default();
        Self { list, oldest, newest }
    }

    /// The number at which, and after which, no segment was passed over.
    fn end(&self, una: Sn) -> Sn {
        self.list.last().map_or(una, |pass| pass.sn)
    }

    /// How many datagrams passed over the segment `sn`, last sent at `ts`: acknowledged a later one
    /// that was not sent before it. To be asked in the order of the segments. Source: ikcp.c
    /// `ikcp_parse_fastack`, `IKCP_FASTACK_CONSERVE`.
    #[inline]
    fn count(&mut self, sn: Sn, ts: Millis) -> u16 {
        while let [first, rest @ ..] = self.list
            && !sn.is_before(first.sn)
        {
            self.list = rest;
        }
        if self.list.is_empty() {
            return 0;
        }
        let count = if self.oldest.since(ts) >= 0 {
            self.list.len()
        } else if self.newest.since(ts) < 0 {
            0
        } else {
            self.list.iter().filter(|pass| pass.ts.since(ts) >= 0).count()
        };
        u16::try_from(count).unwrap_or(u16::MAX)
    }
}

/// Datagrams noted before they are counted.
const PASSES_MAX: usize = 256;
