//! Resends segments that modern recovery counts as lost.

use super::hold::Hold;
use super::protect::{Floor, Protection};
use super::proven::Proven;
use super::spread::Spread;
use super::{Rack, Sent};
use crate::code::budget::Repairs;
use crate::kcp::congestion::Undo;
use crate::kcp::observe::Cause;
use crate::kcp::rtt::Rtt;
use crate::kcp::transmit::{Flight, Outgoing, Resent, Transmit};
use crate::ring::Ring;
use crate::seq::Sn;
use crate::time::Time;
use crate::wire::Output;
use std::collections::VecDeque;

/// The state of loss detection by timing.
#[derive(Debug, Default)]
pub(in crate::kcp) struct ByTime {
    pub(in crate::kcp) rack: Rack,
    pub(in crate::kcp) flights: Flights,
    pub(super) protection: Protection,
    pub(super) hold: Hold,
    pub(super) undo: Undo,
    pub(super) proven: Proven,
    pub(in crate::kcp) spread: Spread,
    /// How long an acknowledgement may wait at the peer for a segment to ride with, µs. `None`: nothing is agreed.
    pub(in crate::kcp) peer_delay: Option<u64>,
    /// When something may be lost, if nothing arrives before. Kept as it changes, because it is asked for more often.
    lost_at: Time,
}

impl ByTime {
    /// Bytes of memory that it owns.
    pub(in crate::kcp) fn memory(&self) -> usize {
        self.flights.memory() + self.protection.timely.memory()
    }

    /// No round trip is believed to be shorter than this, µs.
    #[inline]
    pub(in crate::kcp) const fn believe_from(&mut self, least: u32) {
        self.proven.least = least;
    }

    /// When something may be lost, if nothing arrives before. `None`: nothing is in flight.
    #[inline]
    pub(in crate::kcp) fn due_at(&self, now: Time) -> Option<Time> {
        if self.flights.rows.is_empty() {
            return None;
        }
        Some(if self.rack.was_set_back(now, SET_BACK) { now } else { self.lost_at })
    }

    /// What decides about losses may have changed.
    pub(in crate::kcp) fn reckon(&mut self, rtt: &Rtt) {
        if let Some(row) = self.flights.rows.front() {
            self.lost_at = self.rack.due_at(row.first, rtt);
        }
    }

    /// From now on, everything arrives over another path.
    pub(in crate::kcp) fn path_changed(&mut self, now: Time) {
        self.rack.path_changed(now);
        self.proven.least = 0;
        self.protection.floor = Floor::default();
        self.hold = Hold::default();
        self.undo = Undo::default();
    }

    /// Nothing that was sent so far will arrive: all of it is resent with the next flush.
    pub(in crate::kcp) fn path_died(&mut self, nxt: Sn) {
        self.rack.path_died(nxt);
    }

    /// The clock was set back: everything in flight counts as sent at `now`.
    #[cold]
    fn start_again<O>(&mut self, transmit: &mut Transmit<'_, '_, O>, now: Time) {
        self.rack = Rack::default();
        self.spread = Spread::default();
        self.proven.believe_all();
        self.rack.progress(now);
        self.flights.clear();
        let token = self.rack.token(now);
        let sender = &mut *transmit.sender;
        let (una, nxt) = (sender.una(), sender.nxt);
        let slots = sender.ring.slots_mut(una, nxt.0.wrapping_sub(una.0));
        for segment in slots.into_iter().flatten().flatten() {
            segment.flight.ts = token.token();
        }
        self.flights.push(una, nxt, token);
    }

    /// Sends lost segments, new segments, and what protects both.
    pub(in crate::kcp) fn flush<O: Output>(
        &mut self,
        transmit: &mut Transmit<'_, '_, O>,
        repairs: Repairs,
    ) -> Resent {
        let (now, first, rtt) = (transmit.now, transmit.sender.nxt, transmit.rtt);
        if self.rack.was_set_back(now, SET_BACK / 2) {
            self.start_again(transmit, now);
        }
        let is_few = transmit.sender.waiting() <= transmit.room();
        // Set before that, because what a shorter timeout declares lost would require another flush at once.
        self.rack.has_repairs = self.protection.is_of_use();
        self.rack.is_open = transmit.congestion.is_open(transmit.config);
        self.rack.is_bulk = !is_few && transmit.congestion.is_paced();
        let (held, waits) = (self.hold.get(!is_few), self.protection.ack_delay(rtt));
        self.rack.ack_delay = waits.unwrap_or(0).max(self.peer_delay.unwrap_or(held));
        let is_at_intervals = self.peer_delay.is_none() && held > 3 * waits.unwrap_or(0);
        self.rack.impatience = if is_few && is_at_intervals { self.hold.impatience(now, rtt) } else { None };
        if self.has_only_acks(transmit) {
            if transmit.sender.in_flight == 0 {
                self.rack.progress(now);
            }
            return Resent::default();
        }
        let token = self.rack.token(now);
        transmit.header.ts = token.token();
        let mut resent = self.resend(transmit, token);
        if resent.segments() > 0 {
            self.undo.before_loss(transmit.congestion, transmit.sender.span());
            transmit.tell_loss(resent); // first, because it may open the window
        }
        transmit.most_sent = if resent.timeouts > 0 { self.rack.silence(now) } else { 0 };
        if transmit.sender.in_flight == 0 {
            self.rack.progress(now);
        }
        let flight = Flight { ts: token.token(), xmit: 1, ..Flight::default() };
        let most = self.spread(transmit);
        transmit.send_new(&flight, most);
        if transmit.sender.nxt != first {
            self.flights.push(first, transmit.sender.nxt, token);
            self.spread.sent(transmit.sender.nxt.0.wrapping_sub(first.0));
        }
        if repairs != Repairs::Off && !self.rack.is_lossless {
            resent.repairs += self.protection.send(transmit, first, resent.segments(), repairs);
        }
        self.reckon(rtt);
        resent
    }

    /// Whether there is nothing to send but acknowledgements, as in every other flush of a game.
    fn has_only_acks<O>(&mut self, transmit: &Transmit<'_, '_, O>) -> bool {
        let hears_of_each = transmit.congestion.is_paced(); // a controller is told that nothing waits
        if hears_of_each || transmit.sender.waiting() > 0 || !self.spread.is_off() || self.protection.owes() {
            return false;
        }
        self.flights.front(&transmit.sender.ring, transmit.sender.una());
        self.reckon(transmit.rtt);
        self.due_at(transmit.now).is_none_or(|at| at > transmit.now)
    }

    fn spread<O>(&mut self, transmit: &Transmit<'_, '_, O>) -> u32 {
        let Some(window) = transmit.congestion.window_of_kcp(transmit.config, transmit.sender.rmt_wnd) else {
            return u32::MAX;
        };
        let (room, rtt) = (transmit.room(), transmit.rtt);
        let cycle = rtt.measured().map_or(0, |srtt| u64::from(srtt) + self.hold.get(false));
        self.spread.most(transmit.now, transmit.sender.waiting() > room, window, cycle)
    }

    /// Resends lost segments, the oldest transmission first, with the token `token`.
    fn resend<O: Output>(&mut self, transmit: &mut Transmit<'_, '_, O>, token: Time) -> Resent {
        let (now, rtt) = (transmit.now, transmit.rtt);
        // Copies would only add to a queue that overflows.
        let may_double = !self.protection.floor.may_be_under_queue(rtt.srtt);
        let Self { rack, flights, hold, .. } = self;
        let mut resent = Resent::default();
        while let Some(oldest) = flights.front(&transmit.sender.ring, transmit.sender.una()) {
            if oldest.at >= token {
                break; // this flush has sent it
            }
            let Some(cause) = rack.due(oldest, now, rtt).filter(|_| transmit.congestion.allows()) else {
                break;
            };
            let is_silent = cause == Cause::Timeout && rack.is_silent(now, rtt);
            // If the path may be down, the oldest segment is the one that the peer certainly accepts.
            let sn = if is_silent { transmit.sender.una() } else { oldest.sn };
            let Some(segment) = transmit.sender.ring.get_mut(sn) else { break };
            segment.flight.resend_at = segment.flight.ts;
            segment.flight.resend(token.token());
            let segment = *segment;
            transmit.send_again(sn, &segment, if is_silent { Cause::Silence } else { cause });
            if !is_silent && may_double && blocks_a_full_window(transmit, sn, &segment) {
                transmit.copy(sn, &segment);
                resent.repairs += 1;
            }
            flights.push(sn, sn.add(1), token);
            if cause == Cause::Overtaken {
                if resent.fast == 0 {
                    rack.reordering.found_lost(); // now, so that this flush also sends what becomes due by it
                    hold.lost(now);
                }
                resent.fast += 1;
                continue;
            }
            resent.timeouts += 1;
            if is_silent || resent.timeouts >= TRIES {
                rack.tried(now, transmit.sender.in_flight, rtt);
            }
        }
        resent
    }
}

/// Whether a full window has waited for this segment for two round trips, and would wait another one if it is lost
/// again. If so, it is sent twice. Conditions: it was lost twice, it is in the older half of what is in flight, and
/// more segments wait than the windows allow. Only for a segment that fills a datagram, and only if no congestion
/// window takes losses for a full path.
fn blocks_a_full_window<O>(transmit: &Transmit<'_, '_, O>, sn: Sn, segment: &Outgoing) -> bool {
    let Transmit { sender, config, congestion, .. } = transmit;
    segment.flight.xmit > 2
        && 2 * sn.0.wrapping_sub(sender.una().0) < sender.span()
        && 2 * u32::from(segment.len) > u32::from(config.mss())
        && congestion.is_open(config)
        && sender.waiting() > transmit.room()
}

/// The transmissions that may still be on their way, the oldest first. Consecutive segments sent together are one
/// entry, so there are as many entries as flushes and resends.
///
/// Entries that were acknowledged or resent in the meantime are skipped when their turn comes.
#[derive(Debug, Default)]
pub(in crate::kcp) struct Flights {
    rows: VecDeque<Row>,
}

/// Segments that were sent together.
#[derive(Clone, Copy, Debug)]
struct Row {
    first: Sent,
    /// The number after the last.
    end: Sn,
}

impl Flights {
    pub(in crate::kcp) fn memory(&self) -> usize {
        self.rows.capacity() * size_of::<Row>()
    }

    pub(super) fn clear(&mut self) {
        self.rows.clear();
    }

    /// The segments from `first` up to `end` were sent at `sent`, later than all before.
    fn push(&mut self, first: Sn, end: Sn, sent: Time) {
        match self.rows.back_mut() {
            Some(last) if last.first.at == sent && last.end == first => last.end = end,
            _ => self.rows.push_back(Row { first: Sent { at: sent, sn: first }, end }),
        }
    }

    /// The oldest transmission still on its way: its segment is in flight, from `una` on, and was not resent since.
    fn front(&mut self, ring: &Ring<Outgoing>, una: Sn) -> Option<Sent> {
        loop {
            let row = self.rows.front_mut()?;
            let token = row.first.at.token();
            let from = if row.first.sn.is_before(una) { una } else { row.first.sn };
            let is_under_way = |segment: &Outgoing| segment.flight.ts == token;
            if let Some(first) = ring.find(from, row.end, is_under_way) {
                row.first.sn = first;
                return Some(row.first);
            }
            self.rows.pop_front();
        }
    }
}

/// How far the clock must have been set back to wake up for it, µs. A flush reacts to half of that, so that its own
/// token makes no difference.
const SET_BACK: u64 = 1_000_000;
/// Timed-out segments that are sent together. If many are in flight and none is acknowledged, the path or the
/// acknowledgements are a likelier cause than the loss of all: a few bring news of the rest.
const TRIES: u32 = 10;
