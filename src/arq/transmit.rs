//! The part of a flush that sends data: lost segments first, then new ones, in order.

use super::config::Config;
use super::congestion::{Congestion, Sent};
use super::deadlines::Deadlines;
use super::loss::{Due, Passes, SortedPasses, due};
use super::outgoing::{Flight, Outgoing};
use super::packer::Packer;
use super::send::Sender;
use super::suspects::Suspects;
use crate::seq::Sn;
use crate::time::Time;
use crate::wire::{Header, Output};

/// What sending data reads and changes.
pub(super) struct Transmit<'a, 'p, O> {
    pub(super) now: Time,
    pub(super) header: Header,
    pub(super) packer: &'a mut Packer<'p, O>,
    pub(super) config: &'a Config,
    pub(super) rto: u32,
    pub(super) sender: &'a mut Sender,
    pub(super) congestion: &'a mut Congestion,
    pub(super) deadlines: &'a mut Deadlines,
    pub(super) suspects: &'a mut Suspects,
    /// Sends of the segment that was sent most often.
    pub(super) most_sent: u16,
}

/// Segments that one flush sent again.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Resent {
    pub(super) timeouts: u32,
    pub(super) fast: u32,
}

impl<O: Output> Transmit<'_, '_, O> {
    /// Sends again what is lost. Looked at are segments that acknowledgements passed over, and those
    /// whose time may be out.
    pub(super) fn resend(&mut self, passes: &mut Passes) -> Resent {
        let mut resent = Resent::default();
        let wire = self.now.wire();
        let time_is_out = self.deadlines.is_due(wire);
        if !time_is_out && passes.is_empty() {
            return resent;
        }
        let (una, nxt) = (self.sender.una(), self.sender.nxt);
        let mut passed = passes.sorted(una);
        let mut end = passed.end(una);
        if time_is_out {
            let old = self.deadlines.look_up_to(wire, nxt);
            end = if end.is_before(old) { old } else { end };
        }
        let mut suspects = std::mem::take(self.suspects);
        suspects.extend(&self.sender.ring, una, end);
        suspects.each(|sn| self.look_at(sn, &mut passed, &mut resent));
        *self.suspects = suspects;
        passes.clear();
        resent
    }

    /// Counts who passed the segment `sn` over, and sends it again if it is lost. `false`: it is not
    /// in flight any more.
    #[inline]
    fn look_at(&mut self, sn: Sn, passed: &mut SortedPasses<'_>, resent: &mut Resent) -> bool {
        let Some(segment) = self.sender.ring.get_mut(sn) else {
            return false;
        };
        let flight = &mut segment.flight;
        flight.fastack = flight.fastack.saturating_add(passed.count(sn, flight.ts));
        match due(flight, self.now.wire(), self.config) {
            Due::NotYet => self.deadlines.keep(flight.resend_at),
            _ if !self.congestion.allows() => self.deadlines.again(sn, self.now.wire()),
            why => self.resend_one(sn, why, resent),
        }
        true
    }

    #[inline(never)]
    fn resend_one(&mut self, sn: Sn, why: Due, resent: &mut Resent) {
        let wire = self.now.wire();
        let Some(segment) = self.sender.ring.get_mut(sn) else { return };
        if why == Due::Timeout {
            segment.flight.resend_after_timeout(wire, self.rto, self.config.nodelay);
            resent.timeouts += 1;
        } else {
            segment.flight.resend_fast(wire);
            resent.fast += 1;
        }
        let segment = *segment;
        (self.header.sn, self.header.frg) = (sn, segment.frg);
        let room = self.packer.push(&self.header, segment.len);
        self.sender.copy_payload(sn, &segment, room);
        self.most_sent = self.most_sent.max(segment.flight.xmit);
        let (now, in_flight) = (self.now, self.sender.in_flight);
        let Outgoing { len, flight: Flight { xmit, .. }, .. } = segment;
        self.congestion.on_sent(|| Sent { now, sn, len, xmit, in_flight });
        self.deadlines.keep(segment.flight.resend_at);
        if due(&segment.flight, wire, self.config) != Due::NotYet {
            // A timeout does not forget who passed the segment over, as in ikcp.c.
            self.deadlines.again(sn, wire);
        }
    }

    /// Takes waiting segments into flight as far as windows and pacing allow, and sends them.
    pub(super) fn send_new(&mut self, rmt_wnd: u16) {
        let window = self.congestion.limit(self.config, rmt_wnd);
        let flight = Flight::first(self.now.wire(), self.rto, self.config.nodelay);
        let first = self.sender.nxt;
        let in_window = first.0.wrapping_sub(self.sender.una().0);
        let most = self.sender.waiting().min(window.saturating_sub(in_window));
        if most > 0 {
            self.send_row(most, &flight);
        }
        let sender = &mut *self.sender;
        if sender.nxt != first {
            self.deadlines.sent(first, flight.resend_at, sender.una());
            self.most_sent = self.most_sent.max(1);
        }
        if sender.waiting() == 0 && sender.in_flight < window {
            self.congestion.control_mut().on_app_limited(sender.in_flight);
        }
    }

    /// Sends the `most` next segments, as far as pacing allows.
    #[inline(never)]
    fn send_row(&mut self, most: u32, flight: &Flight) {
        let Self { packer, sender, congestion, now, .. } = self;
        let (mut header, before) = (self.header, sender.nxt.sub(sender.in_flight));
        sender.admit(most, flight, |sn, segment, payloads| {
            if !congestion.allows() {
                return false;
            }
            (header.sn, header.frg) = (sn, segment.frg);
            let room = packer.push(&header, segment.len);
            payloads.copy_next(sn, segment, room);
            let in_flight = sn.0.wrapping_sub(before.0) + 1;
            congestion.on_sent(|| Sent { now: *now, sn, len: segment.len, xmit: flight.xmit, in_flight });
            true
        });
    }
}
