//! How many datagrams with data may leave: good and bad mode for all of a session together.

use crate::config::ConfigError;
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
