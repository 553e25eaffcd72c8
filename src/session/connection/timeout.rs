//! What time does to a connection, and when it is to be woken.

use super::Connection;
use super::life::Life;
use super::transmit::PATH_FRAME;
use crate::message::Message;
use crate::session::event::CloseReason;
use crate::time::Time;

impl<M: Message> Connection<M> {
    /// Does what is due, but for sending.
    pub(in crate::session) fn handle_timeout(&mut self, now: Time) {
        self.do_what_is_due(now);
        self.observe(now);
    }

    fn do_what_is_due(&mut self, now: Time) {
        self.tick(now);
        self.path.update(now);
        if self.is_closed() {
            return;
        }
        if self.keepalive.timeout_at() <= now {
            return self.end_unless_ending(CloseReason::Timeout);
        }
        match &self.life {
            Life::Closing(closing) if closing.ends_at() <= now => {
                self.end(closing.reason, closing.undelivered)
            }
            Life::Draining { reason, until } if *until <= now || self.is_drained() => self.fail(now, *reason),
            _ => {}
        }
    }

    /// The server has no such session any more.
    pub(in crate::session) fn forgotten(&mut self) {
        self.end_unless_ending(CloseReason::ServerForgot);
    }

    /// It is over, for this reason if it was not about to end for another.
    fn end_unless_ending(&mut self, reason: CloseReason) {
        let reason = match &self.life {
            Life::Closing(closing) => closing.reason,
            Life::Draining { reason, .. } => *reason,
            _ => reason,
        };
        self.end(reason, self.undelivered());
    }

    /// When something is due.
    pub(in crate::session) fn poll_timeout(&self) -> Option<Time> {
        let now = self.now;
        if self.copy.is_some() {
            return Some(now);
        }
        match &self.life {
            Life::Closed => return self.farewell.then_some(now),
            Life::Closing(closing) => {
                return Some(closing.check().min(self.path_due()));
            }
            Life::Up | Life::Draining { .. } => {}
        }
        let mut data = self.lanes.check(now);
        if data <= now && self.pacing.is_none() {
            return Some(data); // nothing is sooner
        }
        let mut next = self.keepalive.timeout_at().min(self.keepalive.ping_at());
        next = next.min(self.path_due()).min(self.control_due(now));
        if let Life::Draining { until, .. } = self.life {
            next = next.min(if self.is_drained() { now } else { until });
        }
        if self.lane_waits() || self.datagrams.next_len().is_some() || self.repair_is_due() {
            data = now;
        }
        if let Some(channels) = &self.channels {
            data = data.min(channels.check(now, self.rtt()).unwrap_or(Time::NEVER));
        }
        data = data.min(self.mtu.check());
        if data != Time::NEVER {
            next = next.min(data.max(self.allows_at()));
        }
        Some(next)
    }

    /// When the peer is told something that it is owed.
    pub(super) fn control_due(&self, now: Time) -> Time {
        if self.response.is_some() {
            return now;
        }
        let mut due = self.received.due().min(self.answer_due(now)).min(self.redirects.due());
        if let Some(marks) = &self.marks {
            due = due.min(marks.due());
        }
        due.min(self.tells_due())
    }

    /// Whether a lane has made a datagram that has not left.
    pub(super) fn lane_waits(&self) -> bool {
        self.lanes.next_len().is_some() || self.parts.next().is_some()
    }

    fn path_due(&self) -> Time {
        self.path.check(self.seal.overhead() + PATH_FRAME)
    }

    /// Whether everything sent is known to have arrived, or has at least left.
    fn is_drained(&self) -> bool {
        self.undelivered().is_empty() && !self.lane_waits()
    }
}
