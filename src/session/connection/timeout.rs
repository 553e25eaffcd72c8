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
        self.keepalive.tick(now);
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

    /// When something is due.
    pub(in crate::session) fn poll_timeout(&self) -> Option<Time> {
        let now = self.keepalive.now;
        if self.path.has_copy() {
            return Some(now);
        }
        match &self.life {
            &Life::Closed { owes_answer, .. } => return owes_answer.then_some(now),
            Life::Closing(closing) => {
                return Some(closing.check().min(self.path_due()));
            }
            Life::Up | Life::Draining { .. } => {}
        }
        let mut data = self.lanes.check(now);
        if data <= now && !self.turns.is_paced() {
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
            data = data.min(channels.check(now, self.measured.rtt.smoothed()).unwrap_or(Time::NEVER));
        }
        data = data.min(self.mtu.check());
        if data != Time::NEVER {
            next = next.min(data.max(self.turns.allows_at()));
        }
        Some(next)
    }

    /// When the peer is told something that it is owed.
    pub(super) fn control_due(&self, now: Time) -> Time {
        if self.path.response.is_some() {
            return now;
        }
        let mut due = self.received.due.min(self.answer_due(now)).min(self.redirects.due());
        if let Some(marks) = &self.marks {
            due = due.min(marks.due);
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
}
