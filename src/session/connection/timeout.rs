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
                let mut next = Soonest(closing.check());
                next.or(self.path_due());
                return Some(next.0);
            }
            Life::Up | Life::Draining { .. } => {}
        }
        let mut data = Soonest(self.lanes.check(now));
        if data.0 <= now && self.pacing.is_none() {
            return Some(data.0); // nothing is sooner
        }
        let mut next = Soonest(self.keepalive.timeout_at());
        next.or(Some(self.keepalive.ping_at()));
        next.or(self.path_due());
        if let Life::Draining { until, .. } = self.life {
            next.or(Some(if self.is_drained() { now } else { until }));
        }
        next.or(self.response.map(|_| now));
        next.or(self.answer_due(now));
        next.or(self.received.due());
        next.or(self.marks.as_ref().and_then(|marks| marks.due()));
        next.or(self.tells_due());
        next.or(self.redirects.due());
        data.or(self.lane_waits().then_some(now));
        data.or((self.datagrams.waiting() > 0).then_some(now));
        if let Some(channels) = &self.channels {
            data.or(channels.check(now, self.rtt()));
        }
        data.or(self.mtu.check());
        data.or(self.repair_is_due().then_some(now));
        if data.0 != Time::NEVER {
            next.or(Some(data.0.max(self.allows_at())));
        }
        Some(next.0)
    }

    /// Whether a lane has made a datagram that has not left.
    pub(super) fn lane_waits(&self) -> bool {
        self.lanes.next_len().is_some() || self.parts.next().is_some()
    }

    fn path_due(&self) -> Option<Time> {
        self.path.check(self.seal.overhead() + PATH_FRAME)
    }

    /// Whether everything sent is known to have arrived, or has at least left.
    fn is_drained(&self) -> bool {
        self.undelivered().is_empty() && !self.lane_waits()
    }
}

/// The soonest of all that is asked.
struct Soonest(Time);

impl Soonest {
    #[inline]
    fn or(&mut self, at: Option<Time>) {
        self.0 = self.0.min(at.unwrap_or(Time::NEVER));
    }
}
