//! Sends again what is lost by time.

use super::floor::Floor;
use super::hold::Hold;
use super::protect::Protection;
use super::spread::Spread;
use super::{Flights, Modern, Rack};
use crate::arq::congestion::Undo;
use crate::arq::observe::Cause;
use crate::arq::rtt::Rtt;
use crate::arq::transmit::{Flight, Outgoing};
use crate::arq::transmit::{Resent, Transmit};
use crate::seq::Sn;
use crate::time::Time;
use crate::wire::Output;

/// What finding lost segments by time keeps.
#[derive(Debug, Default)]
pub(in crate::arq) struct ByTime {
    pub(in crate::arq) rack: Rack,
    pub(in crate::arq) flights: Flights,
    pub(super) protection: Protection,
    pub(super) hold: Hold,
    pub(super) undo: Undo,
    pub(in crate::arq) spread: Spread,
    /// How long an acknowledgement may wait at the peer to ride with a segment of its own, µs; `None`: nothing is agreed.
    pub(in crate::arq) peer_delay: Option<u64>,
}

impl ByTime {
    /// When something may be lost, if nothing arrives before; `None`: nothing is in flight.
    pub(in crate::arq) fn due_at(&self, now: Time, rtt: &Rtt, modern: &Modern) -> Option<Time> {
        let oldest = self.flights.oldest()?;
        if self.rack.was_set_back(now, SET_BACK) {
            return Some(now);
        }
        Some(self.rack.due_at(oldest, rtt, modern))
    }

    /// What arrives from now on has come by another path.
    pub(in crate::arq) fn path_changed(&mut self, now: Time) {
        self.rack.path_changed(now);
        self.protection.floor = Floor::default();
        self.hold = Hold::default();
        self.undo = Undo::default();
    }

    /// The clock was set back: all in flight counts as sent at `now`.
    #[cold]
    fn start_again<O>(&mut self, transmit: &mut Transmit<'_, '_, O>, now: Time) {
        self.rack = Rack::default();
        self.spread = Spread::default();
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

    /// Sends again what is lost, what is new, and what protects both: of that, returns how many.
    pub(in crate::arq) fn flush<O: Output>(
        &mut self,
        transmit: &mut Transmit<'_, '_, O>,
        modern: &Modern,
    ) -> (Resent, u32) {
        let (now, first, rtt) = (transmit.now, transmit.sender.nxt, transmit.rtt);
        if self.rack.was_set_back(now, SET_BACK / 2) {
            self.start_again(transmit, now);
        }
        let is_few = transmit.sender.waiting() <= transmit.room();
        // Not after that: what is lost by a shorter timeout would want another flush at once.
        self.rack.is_open = transmit.congestion.is_open(transmit.config);
        let told = self.protection.ack_delay(rtt).or(self.peer_delay);
        self.rack.ack_delay = told.unwrap_or(self.hold.get(!is_few));
        self.rack.impatience = if is_few && told.is_none() { self.hold.impatience(now, rtt) } else { None };
        let token = self.rack.token(now);
        transmit.header.ts = token.token();
        let (resent, copies) = self.resend(transmit, token, modern);
        if resent != Resent::default() {
            self.undo.before_loss(transmit.congestion, transmit.sender.span());
        }
        transmit.tell_loss(resent); // first, since it may open the window
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
        if modern.repairs == 0 {
            return (resent, copies);
        }
        let again = resent.fast + resent.timeouts;
        let protected = self.protection.send(transmit, first, again, modern);
        (resent, copies + protected)
    }

    fn spread<O>(&mut self, transmit: &Transmit<'_, '_, O>) -> u32 {
        let Some(window) = transmit.congestion.window_of_kcp(transmit.config, transmit.rmt_wnd) else {
            return u32::MAX;
        };
        let (room, rtt) = (transmit.room(), transmit.rtt);
        let cycle = if rtt.srtt == 0 { 0 } else { u64::from(rtt.srtt) + self.hold.get(false) };
        self.spread.most(transmit.now, transmit.sender.waiting() > room, window, cycle)
    }

    /// Sends again what is lost, the oldest transmission first, with the token `token`; and how many of these a second time at once.
    fn resend<O: Output>(
        &mut self,
        transmit: &mut Transmit<'_, '_, O>,
        token: Time,
        modern: &Modern,
    ) -> (Resent, u32) {
        let (now, rtt) = (transmit.now, transmit.rtt);
        // Where a queue overflows, copies are what it overflows with.
        let may_double = !self.protection.floor.may_be_under_queue(rtt.srtt);
        let Self { rack, flights, hold, .. } = self;
        let (mut resent, mut copies) = (Resent::default(), 0);
        while let Some(oldest) = flights.front(&transmit.sender.ring, transmit.sender.una()) {
            if oldest.at >= token {
                break; // this flush has sent it
            }
            let Some(cause) = rack.due(oldest, now, rtt, modern).filter(|_| transmit.congestion.allows())
            else {
                break;
            };
            let is_silent = cause == Cause::Timeout && rack.is_silent(now, rtt, modern);
            // When the path may be down, the first is what the peer takes whatever else it has.
            let sn = if is_silent { transmit.sender.una() } else { oldest.sn };
            let Some(segment) = transmit.sender.ring.get_mut(sn) else { break };
            segment.flight.resend_by_time(token.token());
            let segment = *segment;
            transmit.send_again(sn, &segment, if is_silent { Cause::Silence } else { cause });
            if !is_silent && may_double && blocks_a_full_window(transmit, sn, &segment) {
                transmit.copy(sn, &segment);
                copies += 1;
            }
            flights.push(sn, sn.add(1), token);
            if cause == Cause::Overtaken {
                if resent.fast == 0 {
                    rack.reordering.found_lost(); // now, so that what this makes due leaves in this flush as well
                    hold.lost(now);
                }
                resent.fast += 1;
                continue;
            }
            resent.timeouts += 1;
            if is_silent || resent.timeouts >= TRIES {
                rack.tried(now, transmit.sender.in_flight, rtt, modern);
            }
        }
        (resent, copies)
    }
}

/// Whether a full window has waited for this segment for two round trips and will for another one if it is lost again: then it leaves
/// twice. It has been lost twice, is in the older half of what is in flight, and more waits than the windows let. Only one that has a
/// datagram of its own, and only where no congestion window takes losses for a path that is full.
fn blocks_a_full_window<O>(transmit: &Transmit<'_, '_, O>, sn: Sn, segment: &Outgoing) -> bool {
    let Transmit { sender, config, congestion, .. } = transmit;
    segment.flight.xmit > 2
        && 2 * sn.0.wrapping_sub(sender.una().0) < sender.span()
        && 2 * u32::from(segment.len) > u32::from(config.mss())
        && congestion.is_open(config)
        && sender.waiting() > transmit.room()
}

/// A clock that was set back this far, µs, wakes for that; a flush sees half of it, so that its own token
/// does not make the difference.
const SET_BACK: u64 = 1_000_000;
/// Segments whose time is out that leave together. When nothing of many is acknowledged, it is more
/// likely the path or the acknowledgements than all of them: a few bring news of the rest.
const TRIES: u32 = 10;
