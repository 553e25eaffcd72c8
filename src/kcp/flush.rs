//! A flush sends what is due. This file also tells when the next flush is due.

use super::config::Recovery;
use super::congestion::Controller;
use super::packer::Packer;
use super::probe::{PATIENCE, PATIENCE_EARLY, Patience};
use super::transmit::{Flight, Transmit};
use super::{Kcp, Rebuild, Rest, Work};
use crate::seq::Sn;
use crate::time::{Millis, Time};
use crate::wire::{Before, Command, Header, InPacket, Output};

impl<O: Output> Kcp<O> {
    /// Sends what is due: acknowledgements, probes, lost segments, new segments. Source: ikcp.c `ikcp_flush`.
    pub fn flush(&mut self, now: Time) {
        self.flush_ahead(now, None);
    }

    /// [`flush`](Self::flush), with the first datagram written to `ahead` if there is room for it.
    pub(super) fn flush_ahead(&mut self, now: Time, ahead: Option<&mut InPacket<'_>>) {
        if self.config.is_at_once() && self.congestion.control().window() == 0 {
            self.congestion.control_mut().on_tick(now, self.config.mss());
        }
        self.congestion.refill(now);
        self.count_early(now);
        if self.sender.rmt_wnd == 0 || self.probe.is_active() {
            self.probe.tick(now.wire(), self.sender.rmt_wnd, self.patience());
        }
        if self.has_work(now) {
            let mut work = self.work.take().unwrap_or_default();
            self.flush_work(now, &mut work, ahead);
            self.work = Some(work);
        } else {
            self.rest(now);
        }
        self.congestion.control_mut().on_tick(now, self.config.mss());
        if self.is_logging() {
            self.log_flush(now);
        }
    }

    /// Sends the acknowledgements that we owe, including those that could wait to ride with other data.
    pub(crate) fn acknowledge(&mut self, now: Time) {
        let Some(mut work) = self.work.take() else { return };
        if let Some(ride) = &mut work.ride {
            ride.left();
        }
        self.flush_work(now, &mut work, None);
        self.work = Some(work);
        if self.is_logging() {
            self.log_flush(now);
        }
    }

    /// When to call [`update`](Self::update) next, if nothing is sent, received or changed before. May be early, but
    /// never late. `None`: idle, nothing to wake for.
    ///
    /// Source: ikcp.c `ikcp_check`, which always answers within one interval.
    #[must_use]
    pub fn check(&self, now: Time) -> Option<Time> {
        self.due_at(now).ever()
    }

    /// The same, with `Time::NEVER` for idle.
    pub(crate) fn due_at(&self, now: Time) -> Time {
        let due = self.next_work(now);
        if self.config.is_at_once() || due == Time::NEVER {
            return due;
        }
        self.timer.flush_at(now).map_or(now, |flush| flush.max(due))
    }

    /// The body of a flush that has something to send or count.
    fn flush_work(&mut self, now: Time, work: &mut Work, ahead: Option<&mut InPacket<'_>>) {
        let prior_window = self.congestion.control().window();
        let says_something = self.probe.ask || self.probe.tell || self.send_at(Some(work)) <= now;
        (work.flushed, work.rest) = (now, Rest::default());
        let Work { acks, classic, by_time, rebuild, ride, spare, observer, .. } = work;
        let mut output = Before { ahead, output: &mut self.output };
        let mut packer = Packer::new(&mut output, spare, self.config.mtu, &mut self.counters);
        let mut header = Header {
            conv: self.conv,
            cmd: Command::Ack,
            frg: 0,
            wnd: self.receiver.window(self.config.rcv_wnd),
            ts: Millis(0),
            sn: Sn(0),
            una: self.receiver.nxt,
        };
        // A flush that only looks for lost segments does not end the wait of ACKs.
        let acks_leave = says_something || ride.as_ref().is_none_or(|ride| ride.due_at(now) <= now);
        if self.config.is_by_time() {
            if let Some(rebuild) = rebuild.as_mut().filter(|_| acks_leave) {
                rebuild.acknowledge(now, acks);
            }
            acks.thin(self.receiver.nxt);
        }
        if let Some(observer) = observer {
            let leaving = if acks_leave { acks.len() } else { 0 };
            observer.before_flush(now, &header, leaving, &self.probe);
        }
        header.frg = if self.config.has_repairs() { Rebuild::mark(rebuild.as_deref()) } else { 0 };
        if acks_leave {
            acks.flush(&mut header, &mut packer);
            if let Some(ride) = ride {
                ride.left();
            }
        }
        header.frg = 0;
        self.probe.flush(&mut header, &mut packer);
        let first = self.sender.nxt;
        let mut transmit = Transmit {
            now,
            header: Header { cmd: Command::Push, ts: now.wire(), ..header },
            packer: &mut packer,
            config: &self.config,
            sender: &mut self.sender,
            congestion: &mut self.congestion,
            rtt: &self.rtt,
            prior_window,
            most_sent: 0,
            observer,
        };
        let resent = if let Recovery::Modern(modern) = &self.config.recovery {
            by_time.peer_delay = ride.as_ref().map(|ride| ride.peer_delay());
            let resent = by_time.flush(&mut transmit, modern.repairs);
            if let Some(ride) = ride {
                ride.sent(now, transmit.sender.nxt != first, resent.segments() > 0);
            }
            resent
        } else {
            let resent = classic.resend(&mut transmit, self.rtt.rto);
            let flight = Flight::first(now.wire(), self.rtt.rto, self.config.nodelay);
            transmit.send_new(&flight, u32::MAX);
            if transmit.sender.nxt != first {
                classic.deadlines.sent(first, flight.resend_at, transmit.sender.una());
            }
            if resent.segments() > 0 {
                transmit.tell_loss(resent);
            }
            resent
        };
        let most_sent = transmit.most_sent;
        packer.finish();
        if most_sent >= self.config.dead_link && !self.sender.dead {
            log::debug!("conv {}: nothing is acknowledged, the link is dead", self.conv);
            self.sender.dead = true;
        }
        let counters = &mut self.counters;
        counters.resends_timeout = counters.resends_timeout.saturating_add(resent.timeouts);
        counters.resends_fast = counters.resends_fast.saturating_add(resent.fast);
        counters.repairs_sent = counters.repairs_sent.saturating_add(resent.repairs);
    }

    /// Whether a flush would send or count anything.
    fn has_work(&self, now: Time) -> bool {
        self.send_at(self.work.as_deref()) <= now // checked first: quick, and usually true
            || self.acks_at(now) <= now
            || self.probe.ask
            || self.probe.tell
            || self.may_be_lost(now)
    }

    /// When a flush would send or count anything.
    pub(super) fn next_work(&self, now: Time) -> Time {
        let send = self.send_at(self.work.as_deref());
        if send <= now && matches!(self.congestion, Controller::Kcp(_)) {
            return now; // checked first: quick, and usually true
        }
        let mut next = self.acks_at(now);
        if let Some(at) = self.early_counts_at(now) {
            next = next.min(at);
        }
        if next <= now
            || self.probe.ask
            || self.probe.tell
            || (self.sender.rmt_wnd == 0 && self.probe.wait == 0)
            || (self.config.fast_resend > 0 && self.has_passes())
        {
            return now;
        }
        if self.sender.rmt_wnd == 0 {
            next = next.min(now.when(self.probe.ask_at(now.wire(), self.patience())));
        } else if let Some(at) = self.probe.tell_again_at(now.wire(), self.sender.rmt_wnd) {
            next = next.min(now.when(at));
        }
        let is_first = self.sender.waiting() > 0 && self.never_flushed();
        let send = if is_first { now } else { send.max(now) };
        let data = if send > now { send.min(self.resend_at(now)) } else { now };
        if data == Time::NEVER {
            return next;
        }
        next.min(self.congestion.allows_at(now).map_or(Time::NEVER, |from| from.max(data)))
    }

    /// When the acknowledgements that we owe are sent.
    #[inline]
    fn acks_at(&self, now: Time) -> Time {
        self.work.as_ref().and_then(|work| work.acks_at(now)).unwrap_or(Time::NEVER)
    }

    fn patience(&self) -> Patience {
        if self.config.is_by_time() { PATIENCE_EARLY } else { PATIENCE }
    }

    /// Whether a flush would find lost segments, or something to count.
    fn may_be_lost(&self, now: Time) -> bool {
        match &self.config.recovery {
            Recovery::Classic => self.work.as_ref().is_some_and(|work| work.classic.has_work(now.wire())),
            Recovery::Modern(_) => self.resend_at(now) <= now,
        }
    }

    fn resend_at(&self, now: Time) -> Time {
        let at = self.work.as_ref().and_then(|work| match &self.config.recovery {
            Recovery::Classic => work.classic.deadlines.due_at(now.wire()).map(|at| now.when(at)),
            Recovery::Modern(_) => work.by_time.due_at(now),
        });
        at.unwrap_or(Time::NEVER)
    }

    fn send_at(&self, work: Option<&Work>) -> Time {
        if self.sender.waiting() == 0 || self.room() == 0 {
            return Time::NEVER;
        }
        work.map_or(Time::ZERO, |work| work.by_time.spread.at())
    }

    fn room(&self) -> u32 {
        self.congestion.room(&self.config, &self.sender)
    }

    /// The built-in controller lets nothing out before the first flush has ended. With sends at once, a single update
    /// must be enough.
    fn never_flushed(&self) -> bool {
        let may_be = !self.config.is_at_once() || self.timer.flush.is_none();
        may_be && self.congestion.control().window() == 0 && self.sender.rmt_wnd > 0
    }
}

/// The interval timer of flushes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timer {
    /// When `update` flushes next. `None`: it has not been called yet. Source: ikcp.c `ts_flush`.
    pub(super) flush: Option<Millis>,
}

impl Timer {
    /// Whether `update` flushes now; schedules the next flush. Source: ikcp.c `ikcp_update`.
    pub(super) fn tick(&mut self, now: Millis, interval: u16) -> bool {
        let mut at = self.flush.filter(|at| is_near(now, *at)).unwrap_or(now);
        let due = at.is_due(now);
        if due {
            at = at.add(interval.into());
            if at.is_due(now) {
                at = now.add(interval.into());
            }
        }
        self.flush = Some(at);
        due
    }

    /// When `update` flushes next. `None`: whenever it is called.
    pub(super) fn flush_at(&self, now: Time) -> Option<Time> {
        self.flush.filter(|at| is_near(now.wire(), *at)).map(|at| now.when(at))
    }
}

/// Whether the clock has not jumped between the two. Source: ikcp.c `ikcp_update`, `slap`.
fn is_near(now: Millis, at: Millis) -> bool {
    (-JUMP..JUMP).contains(&now.since(at))
}

/// Distance from the next flush that counts as a jump of the clock, ms.
const JUMP: i32 = 10_000;
