//! How many datagrams with data may leave: good and bad mode for all of a session together.

use super::Connection;
use crate::config::ConfigError;
use crate::message::Message;
use crate::pace::{Conditions, Mode, Pace, PaceConfig};
use crate::time::Time;
use std::time::Duration;

/// A rate of datagrams by the rule of [`pace`](crate::pace). What is not used is kept, up to [`BURST`].
#[derive(Debug)]
pub(super) struct Pacing {
    pace: Pace,
    /// When the next would leave if they left evenly.
    next: Time,
}

impl Pacing {
    pub(super) fn new(config: &PaceConfig) -> Result<Self, ConfigError> {
        Ok(Self { pace: Pace::new(config)?, next: Time::ZERO })
    }

    pub(super) fn update(&mut self, now: Time, conditions: &Conditions) {
        self.pace.update(now, conditions);
    }

    pub(super) fn allows_at(&self) -> Time {
        self.next.before(BURST)
    }

    pub(super) fn on_sent(&mut self, now: Time) {
        let interval = Duration::from_secs(1) / u32::from(self.pace.rate().max(1));
        self.next = self.next.max(now) + interval;
    }

    pub(super) const fn mode(&self) -> Mode {
        self.pace.state().mode
    }
}

impl<M: Message> Connection<M> {
    /// When data may leave.
    pub(super) fn allows_at(&self) -> Time {
        self.pacing.as_ref().map_or(Time::ZERO, |pacing| pacing.allows_at())
    }

    /// A datagram has data.
    pub(super) fn on_data(&mut self, now: Time) {
        self.turn = (self.turn + 1) % TURNS;
        if self.pacing.is_none() {
            if self.datagrams.next_len().is_none() && self.lanes.next_len().is_none() {
                (self.turn, self.served) = (1, 0); // all has left
            }
            return;
        }
        let marked = self.marks.as_ref().map_or(0.0, |marks| marks.share());
        let measured =
            self.in_use.as_ref().and_then(|in_use| in_use.loss.newest_share(now)).unwrap_or_default();
        let loss = measured.max(marked).max(self.loss_told(now));
        let conditions = Conditions { rtt: self.rtt(), jitter: self.rtt.jitter(), loss };
        if let Some(pacing) = &mut self.pacing {
            pacing.update(now, &conditions);
            pacing.on_sent(now);
        }
    }
}

/// Of so many datagrams with data, one begins with what was in none of the others.
const TURNS: u8 = 8;
/// Time whose datagrams may leave at once, µs.
const BURST: u64 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_leave_at_once_and_then_by_the_rate_of_the_mode() {
        let mut pacing = Pacing::new(&PaceConfig { good_rate: 50, ..PaceConfig::default() }).unwrap();
        let sent = |pacing: &mut Pacing, from: u64, to: u64| {
            let mut sent = 0;
            for ms in from..to {
                let now = Time::from_millis(ms);
                while pacing.allows_at() <= now {
                    pacing.on_sent(now);
                    sent += 1;
                }
            }
            sent
        };
        assert_eq!(sent(&mut pacing, 1000, 1001), 6, "100 ms of 50 a second, and the one that is due");
        assert_eq!(sent(&mut pacing, 1001, 2001), 50);
        let slow = Conditions { rtt: Duration::from_millis(300), ..Conditions::default() };
        pacing.update(Time::from_millis(2001), &slow);
        assert_eq!(pacing.mode(), Mode::Bad);
        assert_eq!(sent(&mut pacing, 2001, 4001), 20);
    }
}
