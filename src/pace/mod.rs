//! Good and bad mode: how often to send, by a rule that needs nothing but round trips.
//!
//! Whoever keeps it is told the time and the conditions and answers with the mode: [`packet::Endpoint`](crate::packet::Endpoint) for its statistics,
//! [`arq::congestion::GoodBad`](crate::arq::congestion::GoodBad) as a congestion
//! controller, a session by its config.
//!
//! - Good, and conditions turn bad: bad at once. If that is less than 10 s after the return to good,
//!   `t` doubles, up to 60 s.
//! - Bad, and conditions have been good for `t`: good again.
//! - Every 10 s spent in good halve `t`, down to 1 s. It starts at 4 s.
//!
//! Source: G. Fiedler, "Reliability and congestion avoidance over UDP".

mod rtt;
mod rule;

pub(crate) use rtt::{Loss, Reordering, Rtt};
pub(crate) use rule::{Conditions, Pace};

use crate::config::{ConfigError, in_range, settings};
use crate::time::Time;
use std::time::Duration;

settings! {
    /// When conditions are called bad, and what it sends in each mode: by default 30 packets a second while the round trip is at most
    /// 250 ms, else 10.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct PaceConfig {
        /// Packets a second in good mode: 1 to 10,000.
        pub good_rate: u16 = 30, 1..=10_000;
        /// Packets a second in bad mode: 1 to `good_rate`.
        pub bad_rate: u16 = 10;
        /// Conditions are bad while the smoothed round trip is above this: 1 ms to 60 s.
        pub rtt: Duration = Duration::from_millis(250), 1..=60_000;
        /// They are bad as well while more than so many % of the packets get lost: 0 to 100.
        pub loss: Option<u8> = None, 0..=100;
        /// They are bad as well while the jitter is above this: at most 60 s.
        pub jitter: Option<Duration> = None, 0..=60_000;
    }
}

impl PaceConfig {
    /// Checks every field against its range.
    ///
    /// # Errors
    ///
    /// Names the first field out of range, its value and the range.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_ranges()?;
        in_range("bad_rate", self.bad_rate, 1..=self.good_rate)
    }

    fn are_bad(&self, conditions: &Conditions) -> bool {
        conditions.rtt > self.rtt
            || self.loss.is_some_and(|percent| conditions.loss > f64::from(percent) / 100.0)
            || self.jitter.is_some_and(|jitter| conditions.jitter > jitter)
    }
}

/// How much to send.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "there are two")]
pub enum Mode {
    /// At the full rate.
    Good,
    /// At the lower rate.
    Bad,
}

/// A mode and how it came about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PaceState {
    /// The mode.
    pub mode: Mode,
    /// When it began; `None`: nothing has been told yet.
    pub since: Option<Time>,
    /// How long conditions must have been good for bad mode to end: `t`.
    pub patience: Duration,
}

impl Default for PaceState {
    /// Good mode, before anything is told.
    fn default() -> Self {
        Self { mode: Mode::Good, since: None, patience: rule::PATIENCE }
    }
}
