//! The part of a flush that sends data: lost segments first, then new ones, in order.

use super::config::Config;
use super::congestion::{Congestion, Sent};
use super::deadlines::Deadlines;
use super::loss::{Due, Passes, due};
use super::packer::Packer;
use super::send::{Outgoing, Sender};
use super::window;
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
        let (mut sn, nxt) = (self.sender.una(), self.sender.nxt);
        let mut passed = passes.sorted(sn);
        let mut end = passed.end(sn);
        if time_is_out {
            let old = self.deadlines.look_up_to(wire, nxt);
            end = if end.is_before(old) { old } else { end };
        }
        while let Some(held) = self.sender.ring.next_held(sn, end) {
            sn = held.add(1);
            let Some(segment) = self.sender.ring.get_mut(held) else { break };
            segment.fastack = segment.fastack.saturating_add(passed.count(held, segment.ts));
            let why = due(segment, wire, self.config);
            if why != Due::NotYet && self.congestion.allows() {
                if why == Due::Timeout {
                    segment.resend_after_timeout(wire, self.rto, self.config.nodelay);
                    resent.timeouts += 1;
                } else {
                    segment.resend_fast(wire);
                    resent.fast += 1;
                }
                let segment = *segment;
                (self.header.sn, self.header.frg) = (held, segment.frg);
                let room = self.packer.push(&self.header, segment.len);
                self.sender.copy_payload(held, &segment, room);
                self.most_sent = self.most_sent.max(segment.xmit);
                let (now, in_flight) = (self.now, self.sender.in_flight);
                let Outgoing { len, xmit, .. } = segment;
                self.congestion.on_sent(|| Sent { now, sn: held, len, xmit, in_flight });
                self.keep_deadline(held, &segment);
            } else {
                let segment = *segment;
                self.keep_deadline(held, &segment);
            }
        }
        passes.clear();
        resent
    }

    /// Takes waiting segments into flight as far as windows and pacing allow, and sends them.
    pub(super) fn send_new(&mut self, rmt_wnd: u16) {
        let window = window(self.config, rmt_wnd, self.congestion);
        let wire = self.now.wire();
        let grace = if self.config.nodelay == 0 { self.rto / 8 } else { 0 };
        let resend_at = wire.add(self.rto + grace);
        let first = self.sender.nxt;
        let in_window = first.0.wrapping_sub(self.sender.una().0);
        let most = self.sender.waiting().min(window.saturating_sub(in_window));
        let Self { packer, sender, congestion, now, rto, .. } = self;
        let mut header = self.header;
        for _ in 0..most {
            if !congestion.allows() {
                break;
            }
            header.sn = sender.nxt;
            let Some(segment) = sender.admit(wire, *rto, resend_at) else { break };
            header.frg = segment.frg;
            let room = packer.push(&header, segment.len);
            sender.copy_payload(header.sn, &segment, room);
            congestion.on_sent(|| Sent {
                now: *now,
                sn: header.sn,
                len: segment.len,
                xmit: segment.xmit,
                in_flight: sender.in_flight,
            });
        }
        if sender.nxt != first {
            self.deadlines.sent(first, resend_at, sender.una());
            self.most_sent = self.most_sent.max(1);
        }
        if self.sender.waiting() == 0 && self.sender.in_flight < window {
            self.congestion.control_mut().on_app_limited(self.sender.in_flight);
        }
    }

    /// Keeps the deadline of a segment that was looked at. It may be due once more already: because
    /// the budget is spent, or because a timeout does not forget who passed it over, as in ikcp.c.
    fn keep_deadline(&mut self, sn: Sn, segment: &Outgoing) {
        self.deadlines.keep(segment.resend_at);
        if due(segment, self.now.wire(), self.config) == Due::FastResend {
            self.deadlines.again(sn, self.now.wire());
        }
    }
}
