//! What time does to a connection, and when it is to be woken.

use super::Connection;
use super::life::Life;
use super::transmit::PATH_FRAME;
use crate::message::Message;
use crate::session::event::{CloseReason, Timer};
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
            let reason = match &self.life {
                Life::Closing(closing) => closing.reason,
                Life::Draining { reason, .. } => *reason,
                _ => CloseReason::Timeout,
            };
            return self.end(reason, self.undelivered());
        }
        match &self.life {
            Life::Closing(closing) if closing.ends_at() <= now => {
                self.end(closing.reason, closing.undelivered)
            }
            Life::Draining { reason, until } if *until <= now || self.is_drained() => self.fail(now, *reason),
            _ => {}
        }
    }

    /// When something is due, and what.
    pub(in crate::session) fn poll_timeout(&self) -> Option<(Time, Timer)> {
        let now = self.now;
        if self.copy.is_some() {
            return Some((now, Timer::Path));
        }
        match &self.life {
            Life::Closed => return self.farewell.then_some((now, Timer::Close)),
            Life::Closing(closing) => {
                let mut next = Soonest(closing.check(), Timer::Close);
                next.or(self.path_due(), Timer::Path);
                return Some((next.0, next.1));
            }
            Life::Up | Life::Draining { .. } => {}
        }
        let mut data = Soonest(self.lanes.check(now), Timer::Lane);
        if data.0 <= now && self.pacing.is_none() {
            return Some((data.0, data.1)); // nothing is sooner
        }
        let mut next = Soonest(self.keepalive.timeout_at(), Timer::Timeout);
        next.or(Some(self.keepalive.ping_at()), Timer::Keepalive);
        next.or(self.path_due(), Timer::Path);
        if let Life::Draining { until, .. } = self.life {
            next.or(Some(if self.is_drained() { now } else { until }), Timer::Close);
        }
        next.or(self.response.map(|_| now), Timer::Ack);
        next.or(self.answer_due(now), Timer::Ack);
        next.or(self.received.due(), Timer::Ack);
        next.or(self.marks.as_ref().and_then(|marks| marks.due()), Timer::Ack);
        next.or(self.tells_due(), Timer::Ack);
        next.or(self.redirects.due(), Timer::Redirect);
        data.or(self.lane_waits().then_some(now), Timer::Lane);
        data.or((self.datagrams.waiting() > 0).then_some(now), Timer::Ack);
        if let Some(channels) = &self.channels {
            data.or(channels.check(now, self.rtt()), Timer::Channel);
        }
        data.or(self.mtu.check(), Timer::Path);
        data.or(self.repair_is_due().then_some(now), Timer::Ack);
        if data.0 != Time::NEVER {
            next.or(Some(data.0.max(self.allows_at())), data.1);
        }
        Some((next.0, next.1))
    }

    /// Whether a lane has made a datagram that has not left.
    fn lane_waits(&self) -> bool {
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

/// The soonest of all that is asked, and what it is.
struct Soonest(Time, Timer);

impl Soonest {
    #[inline]
    fn or(&mut self, at: Option<Time>, timer: Timer) {
        if let Some(at) = at
            && (at, timer) < (self.0, self.1)
        {
            *self = Self(at, timer);
        }
    }
}
