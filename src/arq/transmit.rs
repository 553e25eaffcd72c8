//! The part of a flush that sends data: lost segments first, then new ones, in order.

use super::config::Config;
use super::congestion::{Congestion, Sent};
use super::loss::{Due, Passes, due};
use super::packer::Packer;
use super::send::{Outgoing, Sender};
use super::timer::Timer;
use super::window;
use crate::seq::Sn;
use crate::time::Time;
use crate::wire::{Header, Output};

/// What sending data reads and changes.
pub(super) struct Transmit<'a, O> {
    pub(super) now: Time,
    pub(super) header: Header,
    pub(super) packer: Packer<'a, O>,
    pub(super) config: &'a Config,
    pub(super) rto: u32,
    pub(super) sender: &'a mut Sender,
    pub(super) congestion: &'a mut Congestion,
    pub(super) timer: &'a mut Timer,
    /// Sends of the segment that was sent most often.
    pub(super) most_sent: u16,
}

/// Segments that one flush sent again.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Resent {
    pub(super) timeouts: u32,
    pub(super) fast: u32,
}

impl<O: Output> Transmit<'_, O> {
    /// Sends again what is lost, in order. Before the deadline only segments that acknowledgements
    /// passed over are looked at, and without those none.
    pub(super) fn resend(&mut self, passes: &mut Passes) -> Resent {
        let mut resent = Resent::default();
        let wire = self.now.wire();
        let look = self.timer.is_resend_due(wire);
        if !look && passes.is_empty() {
            return resent;
        }
        let una = self.sender.una();
        let passed = passes.summary(una);
        let end = if look { self.sender.nxt } else { passed.none_beyond };
        if look {
            self.timer.restart();
        }
        let mut sn = una;
        while let Some(held) = self.sender.ring.next_held(sn, end) {
            sn = held.add(1);
            let Some(segment) = self.sender.ring.get_mut(held) else { break };
            segment.fastack = segment.fastack.saturating_add(passed.count(held, segment.ts));
            let due_now = due(segment, wire, self.config);
            if due_now != Due::NotYet && self.congestion.allows() {
                if due_now == Due::Timeout {
                    segment.resend_after_timeout(wire, self.rto, self.config.nodelay);
                    resent.timeouts += 1;
                } else {
                    segment.resend_fast(wire);
                    resent.fast += 1;
                }
                let segment = *segment;
                self.transmit(held, &segment);
                self.note(&segment);
            } else {
                let segment = *segment;
                self.note(&segment);
            }
        }
        passes.clear();
        resent
    }

    /// Keeps the deadline of a segment that was looked at. It may be due once more already: because
    /// the budget is spent, or because a timeout does not forget who passed it over, as in ikcp.c.
    fn note(&mut self, segment: &Outgoing) {
        self.timer.sent(segment.resend_at);
        if due(segment, self.now.wire(), self.config) == Due::FastResend {
            self.timer.look();
        }
    }

    /// Takes waiting segments into flight as far as windows and pacing allow, and sends them.
    pub(super) fn send_new(&mut self, rmt_wnd: u16) {
        let window = window(self.config, rmt_wnd, self.congestion);
        let (wire, una) = (self.now.wire(), self.sender.una());
        let grace = if self.config.nodelay == 0 { self.rto / 8 } else { 0 };
        while self.sender.waiting() > 0
            && self.sender.nxt.offset_in(una, window).is_some()
            && self.congestion.allows()
        {
            let Some((sn, segment)) = self.sender.admit(wire, self.rto, grace) else { break };
            self.timer.sent(segment.resend_at);
            self.transmit(sn, &segment);
        }
        if self.sender.waiting() == 0 && self.sender.in_flight < window {
            self.congestion.control_mut().on_app_limited(self.sender.in_flight);
        }
    }

    #[inline]
    fn transmit(&mut self, sn: Sn, segment: &Outgoing) {
        self.header.sn = sn;
        self.header.frg = segment.frg;
        let (first, second) = self.sender.payload(sn, segment);
        self.packer.push(&self.header, first, second);
        self.most_sent = self.most_sent.max(segment.xmit);
        self.congestion.on_sent(&Sent {
            now: self.now,
            sn,
            len: segment.len,
            xmit: segment.xmit,
            in_flight: self.sender.in_flight,
        });
    }
}
