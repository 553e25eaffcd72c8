//! The part of a flush that sends data.

use super::config::Config;
use super::congestion::{Controller, Loss, Sent};
use super::observe::{Cause, Event, Observer};
use super::packer::Packer;
use super::rtt::Rtt;
use super::send::Sender;
use crate::seq::Sn;
use crate::time::{Millis, Time};
use crate::wire::{Header, Output};

/// Bytes of the IP and UDP headers around a datagram.
pub(super) const IP_AND_UDP: u64 = 28;

pub(super) struct Transmit<'a, 'p, O> {
    pub(super) now: Time,
    pub(super) header: Header,
    pub(super) packer: &'a mut Packer<'p, O>,
    pub(super) config: &'a Config,
    pub(super) sender: &'a mut Sender,
    pub(super) congestion: &'a mut Controller,
    pub(super) rtt: &'a Rtt,
    /// The congestion window when the flush began.
    pub(super) prior_window: u32,
    /// How often the most-sent segment has been sent; with modern recovery, seconds without an acknowledgement.
    pub(super) most_sent: u16,
    pub(super) observer: &'a mut Option<Box<Observer>>,
}

/// Segments that one flush resent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Resent {
    pub(super) timeouts: u32,
    pub(super) fast: u32,
    /// Repairs and copies sent besides them.
    pub(super) repairs: u32,
}

impl Resent {
    #[inline]
    pub(super) fn segments(self) -> u32 {
        self.timeouts + self.fast
    }
}

impl<O> Transmit<'_, '_, O> {
    #[inline]
    pub(super) fn room(&self) -> u32 {
        self.congestion.room(self.config, self.sender)
    }
}

impl<O: Output> Transmit<'_, '_, O> {
    /// Resends the segment `sn`, whose new state is already committed.
    pub(super) fn send_again(&mut self, sn: Sn, segment: &Outgoing, cause: Cause) {
        if let Some(observer) = &mut self.observer {
            let (bytes, xmit) = (segment.len, segment.flight.xmit);
            observer.log.push(self.now, Event::Resend { sn, bytes, xmit, cause });
        }
        self.copy(sn, segment);
    }

    pub(super) fn copy(&mut self, sn: Sn, segment: &Outgoing) {
        (self.header.sn, self.header.frg) = (sn, segment.frg);
        let room = self.packer.push(&self.header, segment.len);
        self.sender.copy_payload(sn, segment, room);
        self.most_sent = self.most_sent.max(segment.flight.xmit);
        let (now, in_flight) = (self.now, self.sender.in_flight);
        let Outgoing { len, flight: Flight { xmit, .. }, .. } = *segment;
        self.congestion.on_sent(|| Sent { now, sn, len, xmit, in_flight });
    }

    pub(super) fn tell_loss(&mut self, resent: Resent) {
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

    /// Sends up to `most` waiting segments, as far as windows, pacing and the output allow.
    #[inline]
    pub(super) fn send_new(&mut self, flight: &Flight, most: u32) {
        let room = self.room();
        let most = self.sender.waiting().min(room).min(most);
        if most > 0 {
            self.most_sent = self.most_sent.max(1);
            self.send_row(most, flight);
        }
        if self.sender.waiting() == 0 && most < room {
            self.congestion.control_mut().on_app_limited(self.sender.in_flight);
        }
    }

    /// Sends the next `most` segments, as far as pacing and the output allow.
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

/// A segment to send; 24 bytes.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Outgoing {
    /// Where its payload starts in the ring, or would start if it is shared.
    pub(super) position: u32,
    pub(super) len: u16,
    pub(super) frg: u8,
    pub(super) shared: bool,
    pub(super) flight: Flight,
}

/// The part of a segment that sending fills in. Modern recovery uses only `ts`, `resend_at` and `xmit`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Flight {
    /// The timestamp of its last transmission: the time, or a token made from it.
    pub(super) ts: Millis,
    /// When it counts as lost. With modern recovery, the timestamp of the transmission before the last.
    pub(super) resend_at: Millis,
    /// Its own timeout, ms, which grows with each timeout.
    pub(super) rto: u32,
    /// How often it has been sent.
    pub(super) xmit: u16,
    /// Number of datagrams that acknowledged later segments.
    pub(super) fastack: u16,
}

impl Flight {
    /// The first transmission. Without nodelay, an eighth is added to its timeout. Source: ikcp.c `ikcp_flush`.
    pub(super) fn first(now: Millis, rto: u32, nodelay: u8) -> Self {
        let grace = if nodelay == 0 { rto / 8 } else { 0 };
        Self { ts: now, resend_at: now.add(rto + grace), rto, xmit: 1, fastack: 0 }
    }

    /// Commits a resend with `ts`, a time or a token.
    pub(super) fn resend(&mut self, ts: Millis) {
        self.xmit = self.xmit.saturating_add(1);
        self.ts = ts;
    }
}

/// RTO of a segment after another timeout, ms. Source: ikcp.c `ikcp_flush`, where it is unlimited, so the comparison of
/// times flips at 2^31 ms.
pub(super) fn back_off(segment_rto: u32, rto: u32, nodelay: u8) -> u32 {
    let step = match nodelay {
        0 => segment_rto.max(rto),
        1 => segment_rto / 2,
        _ => rto / 2,
    };
    (segment_rto + step).min(BACK_OFF_MAX)
}

/// Longest RTO of a segment, ms: half the range of the clock on the wire.
const BACK_OFF_MAX: u32 = 1 << 30;
