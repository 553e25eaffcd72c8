//! The part of a flush that sends data.

use super::config::Config;
use super::congestion::{Congestion, Loss, Sent};
use super::event::Cause;
use super::observe::Observer;
use super::outgoing::{Flight, Outgoing};
use super::packer::Packer;
use super::send::Sender;
use crate::seq::Sn;
use crate::time::Time;
use crate::wire::{Header, Output};

/// Bytes around a datagram on the wire.
pub(super) const IP_AND_UDP: u64 = 28;

/// What sending data reads and changes.
pub(super) struct Transmit<'a, 'p, O> {
    pub(super) now: Time,
    pub(super) header: Header,
    pub(super) packer: &'a mut Packer<'p, O>,
    pub(super) config: &'a Config,
    pub(super) sender: &'a mut Sender,
    pub(super) congestion: &'a mut Congestion,
    /// The congestion window when the flush began.
    pub(super) prior_window: u32,
    /// Sends of the segment that was sent most often; by time, seconds without an acknowledgement.
    pub(super) most_sent: u16,
    pub(super) observer: &'a mut Option<Box<Observer>>,
}

/// Segments that one flush sent again.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Resent {
    pub(super) timeouts: u32,
    pub(super) fast: u32,
}

impl<O: Output> Transmit<'_, '_, O> {
    /// Sends the segment `sn` again, which is committed.
    pub(super) fn send_again(&mut self, sn: Sn, segment: &Outgoing, cause: Cause) {
        if let Some(observer) = &mut self.observer {
            observer.resent(self.now, sn, segment, cause);
        }
        self.copy(sn, segment);
    }

    /// Puts the segment `sn` out as it was sent last.
    pub(super) fn copy(&mut self, sn: Sn, segment: &Outgoing) {
        (self.header.sn, self.header.frg) = (sn, segment.frg);
        let room = self.packer.push(&self.header, segment.len);
        self.sender.copy_payload(sn, segment, room);
        self.most_sent = self.most_sent.max(segment.flight.xmit);
        let (now, in_flight) = (self.now, self.sender.in_flight);
        let Outgoing { len, flight: Flight { xmit, .. }, .. } = *segment;
        self.congestion.on_sent(|| Sent { now, sn, len, xmit, in_flight });
    }

    /// Tells the congestion controller what was sent again.
    pub(super) fn tell_loss(&mut self, resent: Resent) {
        if resent == Resent::default() {
            return;
        }
        self.congestion.control_mut().on_loss(&Loss {
            now: self.now,
            timeouts: resent.timeouts,
            fast: resent.fast,
            in_flight: self.sender.span(),
            prior_window: self.prior_window,
            fast_resend: self.config.fast_resend,
            mss: self.config.mss(),
        });
    }

    /// Takes waiting segments into flight as far as windows, pacing and the output allow, `most` of them, and sends them.
    pub(super) fn send_new(&mut self, rmt_wnd: u16, flight: &Flight, most: u32) {
        let room = self.congestion.room(self.config, rmt_wnd, self.sender);
        let most = self.sender.waiting().min(room).min(most);
        if most > 0 {
            self.most_sent = self.most_sent.max(1);
            self.send_row(most, flight);
        }
        if self.sender.waiting() == 0 && most < room {
            self.congestion.control_mut().on_app_limited(self.sender.in_flight);
        }
    }

    /// Sends the `most` next segments, as far as pacing and the output allow.
    #[inline(never)]
    fn send_row(&mut self, most: u32, flight: &Flight) {
        let Self { packer, sender, congestion, now, config, .. } = self;
        let (mut header, before) = (self.header, sender.nxt.sub(sender.in_flight));
        sender.admit(most, flight, |sn, segment, payloads| {
            if !congestion.allows() || (config.is_at_once() && packer.is_full(segment.len)) {
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
