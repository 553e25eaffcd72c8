//! Recovery as in ikcp.c: a segment is lost when its own deadline has passed, or when enough
//! datagrams have acknowledged later ones.
//!
//! ikcp.c walks over all in flight to find them; `deadlines` and `suspects` say where to look.

mod deadlines;
mod loss;
mod suspects;

use super::config::Config;
use super::event::Cause;
use super::outgoing::Due;
use super::send::Sender;
use super::transmit::{Resent, Transmit};
use crate::seq::Sn;
use crate::time::Millis;
use crate::wire::Output;
use deadlines::Deadlines;
use loss::{Passes, SortedPasses, due};
use suspects::Suspects;

/// What finding lost segments keeps.
#[derive(Debug, Default)]
pub(super) struct Classic {
    passes: Passes,
    pub(super) deadlines: Deadlines,
    suspects: Suspects,
}

impl Classic {
    /// Whether something is to be counted or may be lost.
    pub(super) fn has_work(&self, now: Millis) -> bool {
        self.deadlines.is_due(now) || self.has_passes()
    }

    /// Whether datagrams that passed segments over have not been counted.
    pub(super) fn has_passes(&self) -> bool {
        !self.passes.is_empty()
    }

    /// Nothing is in flight.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.deadlines.clear();
        self.suspects.clear();
    }

    /// A datagram acknowledged the segment `sn`, sent at `ts`, and thereby passed older ones over.
    pub(super) fn pass(&mut self, sn: Sn, ts: Millis, sender: &mut Sender) {
        if !self.passes.push(sn, ts) {
            self.count_passes(sender);
        }
    }

    /// Sends again what is lost. Looked at are segments that acknowledgements passed over, and those
    /// whose time may be out. `rto` is that of the connection, ms.
    pub(super) fn resend<O: Output>(&mut self, transmit: &mut Transmit<'_, '_, O>, rto: u32) -> Resent {
        let Self { passes, deadlines, suspects } = self;
        let wire = transmit.now.wire();
        let time_is_out = deadlines.is_due(wire);
        if !time_is_out && passes.is_empty() {
            return Resent::default();
        }
        let (una, nxt) = (transmit.sender.una(), transmit.sender.nxt);
        let mut passed = passes.sorted(una);
        let mut end = passed.end(una);
        if time_is_out {
            let old = deadlines.look_up_to(wire, nxt);
            end = if end.is_before(old) { old } else { end };
        }
        suspects.extend(&transmit.sender.ring, una, end);
        let mut look = Look { transmit, deadlines, rto, resent: Resent::default() };
        suspects.each(|sn| look.at(sn, &mut passed));
        let resent = look.resent;
        passes.clear();
        resent
    }

    /// Counts the datagrams that passed segments over, and forgets them.
    #[cold]
    fn count_passes(&mut self, sender: &mut Sender) {
        let una = sender.una();
        let mut passed = self.passes.sorted(una);
        self.suspects.extend(&sender.ring, una, passed.end(una));
        self.suspects.each(|sn| {
            let Some(segment) = sender.ring.get_mut(sn) else { return false };
            let flight = &mut segment.flight;
            flight.fastack = flight.fastack.saturating_add(passed.count(sn, flight.ts));
            true
        });
        self.passes.clear();
    }
}

/// A look at the suspects.
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
            Due::NotYet => self.deadlines.keep(flight.resend_at),
            _ if !congestion.allows() => self.deadlines.again(sn, now.wire()),
            why => self.resend_one(sn, why),
        }
        true
    }

    #[inline(never)]
    fn resend_one(&mut self, sn: Sn, why: Due) {
        let wire = self.transmit.now.wire();
        let config: &Config = self.transmit.config;
        let Some(segment) = self.transmit.sender.ring.get_mut(sn) else { return };
        let cause = if why == Due::Timeout { Cause::Timeout } else { Cause::FastAck };
        if why == Due::Timeout {
            segment.flight.resend_after_timeout(wire, self.rto, config.nodelay);
            self.resent.timeouts += 1;
        } else {
            segment.flight.resend_fast(wire);
            self.resent.fast += 1;
        }
        let segment = *segment;
        self.deadlines.keep(segment.flight.resend_at);
        if due(&segment.flight, wire, config) != Due::NotYet {
            // A timeout does not forget who passed the segment over, as in ikcp.c.
            self.deadlines.again(sn, wire);
        }
        self.transmit.send_again(sn, &segment, cause);
    }
}
