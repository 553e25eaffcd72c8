//! Good and bad mode: how often to send, by a rule that needs nothing but round trips.
//!
//! [`Pace`] is told the time and the conditions and answers with the mode; it has no clock, sends
//! nothing and knows no protocol. [`packet::Endpoint`](crate::packet::Endpoint) keeps one in its
//! statistics, [`arq::congestion::TwoModes`](crate::arq::congestion) makes a congestion
//! controller of it.
//!
//! - Good, and conditions turn bad: bad at once. If that is less than 10 s after the return to good,
//!   `t` doubles, up to 60 s.
//! - Bad, and conditions have been good for `t`: good again.
//! - Every 10 s spent in good halve `t`, down to 1 s. It starts at 4 s.
//!
//! Source: G. Fiedler, "Reliability and congestion avoidance over UDP".
//!
//! ```
//! use std::time::Duration;
//! use whitewater::Time;
//! use whitewater::pace::{Conditions, Mode, Pace, PaceConfig};
//!
//! let mut pace = Pace::new(&PaceConfig::default())?;
//! let slow = Conditions { rtt: Duration::from_millis(300), ..Conditions::default() };
//! assert_eq!(pace.update(Time::from_millis(0), &slow), Mode::Bad);
//! assert_eq!(pace.rate(), 10); // packets a second
//! # Ok::<(), whitewater::ConfigError>(())
//! ```

use crate::config::{ConfigError, in_range, millis};
use crate::time::Time;
use std::time::Duration;

/// When a [`Pace`] calls conditions bad, and what it sends in each mode.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "made for `PaceConfig { .., ..PaceConfig::default() }`")]
pub struct PaceConfig {
    /// Packets a second in good mode: 1 to 10,000.
    pub good_rate: u16,
    /// Packets a second in bad mode: 1 to `good_rate`.
    pub bad_rate: u16,
    /// Conditions are bad while the smoothed round trip is above this: 1 ms to 60 s.
    pub rtt: Duration,
    /// They are bad as well while more than so many % of the packets get lost: 0 to 100.
    pub loss: Option<u8>,
    /// They are bad as well while the jitter is above this: at most 60 s.
    pub jitter: Option<Duration>,
}

impl PaceConfig {
    /// Checks every field against its range.
    ///
    /// # Errors
    ///
    /// Names the first field out of range, its value and the range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let Self { good_rate, bad_rate, rtt, loss, jitter } = *self; // a new field fails to compile until it is handled
        in_range("good_rate", good_rate, 1..=10_000)?;
        in_range("bad_rate", bad_rate, 1..=good_rate)?;
        in_range("rtt", millis(rtt), 1..=60_000)?;
        in_range("loss", loss.unwrap_or_default(), 0..=100)?;
        in_range("jitter", millis(jitter.unwrap_or_default()), 0..=60_000)
    }

    fn are_bad(&self, conditions: &Conditions) -> bool {
        conditions.rtt > self.rtt
            || self.loss.is_some_and(|percent| conditions.loss > f64::from(percent) / 100.0)
            || self.jitter.is_some_and(|jitter| conditions.jitter > jitter)
    }
}

impl Default for PaceConfig {
    /// 30 packets a second while the round trip is at most 250 ms, else 10.
    fn default() -> Self {
        Self { good_rate: 30, bad_rate: 10, rtt: Duration::from_millis(250), loss: None, jitter: None }
    }
}

/// What a mode is chosen by. What has not been measured is zero, which is good.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "made for `Conditions { .., ..Conditions::default() }`")]
pub struct Conditions {
    /// Smoothed round trip.
    pub rtt: Duration,
    /// Mean deviation of the round trip.
    pub jitter: Duration,
    /// Share of the packets that get lost, 0 to 1.
    pub loss: f64,
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

/// Chooses between the two modes. The rule is in the [module](self)'s documentation.
#[derive(Clone, Debug)]
pub struct Pace {
    config: PaceConfig,
    state: PaceState,
    /// In good mode, up to when its time has been counted; in bad mode, since when conditions have been
    /// good.
    mark: Option<Time>,
    /// Whether there has been a bad mode: only then can one return to good.
    returned: bool,
}

impl Pace {
    /// Starts in good mode.
    ///
    /// # Errors
    ///
    /// When a field of `config` is out of range.
    pub fn new(config: &PaceConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let state = PaceState { mode: Mode::Good, since: None, patience: PATIENCE };
        Ok(Self { config: *config, state, mark: None, returned: false })
    }

    /// Tells of the conditions at `now` and returns the mode. They count as unchanged until told again.
    pub fn update(&mut self, now: Time, conditions: &Conditions) -> Mode {
        let bad = self.config.are_bad(conditions);
        let since = *self.state.since.get_or_insert(now);
        match self.state.mode {
            Mode::Good => {
                self.count_good_time(now);
                if bad {
                    if self.returned && now.since(since) < STEP {
                        self.state.patience = (self.state.patience * 2).min(PATIENCE_MAX);
                    }
                    self.enter(Mode::Bad, now);
                }
            }
            Mode::Bad if bad => self.mark = None,
            Mode::Bad => {
                let good_since = *self.mark.get_or_insert(now);
                if now.since(good_since) >= self.state.patience {
                    self.returned = true;
                    self.enter(Mode::Good, now);
                }
            }
        }
        self.state.mode
    }

    /// The mode, since when, and `t`.
    #[must_use]
    pub const fn state(&self) -> PaceState {
        self.state
    }

    /// Packets to send a second.
    #[must_use]
    pub const fn rate(&self) -> u16 {
        match self.state.mode {
            Mode::Good => self.config.good_rate,
            Mode::Bad => self.config.bad_rate,
        }
    }

    /// Halves `t` for every [`STEP`] in good mode.
    fn count_good_time(&mut self, now: Time) {
        let mut mark = *self.mark.get_or_insert(now);
        while self.state.patience > PATIENCE_MIN && now.since(mark) >= STEP {
            self.state.patience = (self.state.patience / 2).max(PATIENCE_MIN);
            mark = mark + STEP;
        }
        self.mark = Some(mark);
    }

    fn enter(&mut self, mode: Mode, now: Time) {
        self.state.mode = mode;
        self.state.since = Some(now);
        self.mark = (mode == Mode::Good).then_some(now);
    }
}

/// `t` at the start, at least and at most.
const PATIENCE: Duration = Duration::from_secs(4);
const PATIENCE_MIN: Duration = Duration::from_secs(1);
const PATIENCE_MAX: Duration = Duration::from_secs(60);
/// A good mode shorter than this doubles `t`, and each such time in it halves `t`.
const STEP: Duration = Duration::from_secs(10);
