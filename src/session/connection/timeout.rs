//! What time does to a connection, and when it is to be woken.

use super::Connection;
use super::life::{Closing, Life};
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
            let reason = match self.life {
                Life::Closing(Closing { reason, .. }) | Life::Draining { reason, .. } => reason,
                _ => CloseReason::Timeout,
            };
            return self.end(reason, self.undelivered());
        }
        match self.life {
            Life::Closing(closing) if closing.ends_at() <= now => {
                self.end(closing.reason, closing.undelivered)
            }
            Life::Draining { reason, until } if until <= now || self.is_drained() => self.fail(now, reason),
            _ => {}
        }
        if let Life::Up | Life::Draining { .. } = self.life
            && let Err(error) = self.lanes.judge(now)
        {
            self.fail(now, error.into());
        }
    }

    /// When something is due, and what.
    pub(in crate::session) fn poll_timeout(&self) -> Option<(Time, Timer)> {
        let now = self.now;
        let path = self.path.check(self.seal.overhead() + PATH_FRAME).map(|at| (at, Timer::Path));
        if self.copy.is_some() {
            return Some((now, Timer::Path));
        }
        let silence = (self.keepalive.timeout_at(), Timer::Timeout);
        match self.life {
            Life::Closed => self.farewell.then_some((now, Timer::Close)),
            Life::Closing(closing) => path.into_iter().chain([(closing.check(), Timer::Close)]).min(),
            Life::Up | Life::Draining { .. } => {
                let draining = match self.life {
                    Life::Draining { .. } if self.is_drained() => Some((now, Timer::Close)),
                    Life::Draining { until, .. } => Some((until, Timer::Close)),
                    _ => None,
                };
                let is_due = self.pong.is_some() || self.response.is_some();
                let channels = self.channels.as_ref().and_then(|channels| channels.check(now, self.rtt()));
                let allowed = self.allows_at();
                let data = |at: Time, timer: Timer| (at.max(allowed), timer);
                let waits = self.lanes.next_len().is_some() || self.parts.next().is_some();
                [
                    is_due.then_some((now, Timer::Ack)),
                    (self.datagrams.waiting() > 0).then(|| data(now, Timer::Ack)),
                    waits.then(|| data(now, Timer::Lane)),
                    self.lanes.check(now).map(|at| data(at, Timer::Lane)),
                    channels.map(|at| data(at, Timer::Channel)),
                    self.received.due().map(|at| (at, Timer::Ack)),
                    self.redirects.due().map(|at| (at, Timer::Redirect)),
                    self.marks.as_ref().and_then(|marks| marks.due()).map(|at| (at, Timer::Ack)),
                    self.mtu.check().map(|at| data(at, Timer::Path)),
                    Some((self.keepalive.ping_at(), Timer::Keepalive)),
                    Some(silence),
                    draining,
                    path,
                ]
                .into_iter()
                .flatten()
                .min()
            }
        }
    }

    /// Whether everything sent is known to have arrived, or has at least left.
    fn is_drained(&self) -> bool {
        self.undelivered().is_empty() && self.lanes.next_len().is_none() && self.parts.next().is_none()
    }
}
