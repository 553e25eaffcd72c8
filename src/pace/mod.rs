//! Good and bad mode: a rule for how often to send that needs nothing but round trips.
//!
//! The owner reports the time and the conditions, and gets the mode:
//! [`packet::Endpoint`](crate::packet::Endpoint) for its statistics, a session if its config says so.
//!
//! - In good mode, when conditions turn bad: switch to bad mode at once. If good mode lasted less than 10 s, double
//!   `t`, up to 60 s.
//! - In bad mode, when conditions have been good for `t`: switch back to good mode.
//! - Every 10 s in good mode halve `t`, down to 1 s. It starts at 4 s.
//!
//! Source: G. Fiedler, "Reliability and congestion avoidance over UDP".

mod rtt;

pub(crate) use rtt::{Loss, Reordering, Rtt};

use crate::config::{ConfigError, in_range};
use crate::time::Time;
use std::time::Duration;

settings! {
    /// The most packets per second: a limit for good conditions, and a lower one for bad conditions. [`new`](Self::new)
    /// makes one.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct MaxRate without Default {
        /// Packets per second in good mode: 1 to 10,000.
        pub good_rate: u16 = 30, 1..=10_000;
        /// Packets per second in bad mode: 1 to `good_rate`.
        pub bad_rate: u16 = 10;
        /// Conditions are bad while the smoothed round trip is above this: 1 ms to 60 s.
        pub rtt: Duration = Duration::from_millis(250), 1..=60_000;
        /// Conditions are also bad while more than this percentage of the packets gets lost: 0 to 100.
        pub loss: Option<u8> = None, 0..=100;
        /// Conditions are also bad while the jitter is above this: at most 60 s.
        pub jitter: Option<Duration> = None, 0..=60_000;
    }
}

impl MaxRate {
    /// At most `rate` packets per second, and a third of that while the round trip is above 250 ms.
    ///
    /// ```
    /// use whitewater::SessionConfig;
    /// use whitewater::pace::MaxRate;
    ///
    /// let max_rate = MaxRate { bad_rate: 20, loss: Some(5), ..MaxRate::new(60) };
    /// let config = SessionConfig { max_rate: Some(max_rate), ..SessionConfig::default() };
    /// assert!(config.check().is_ok());
    /// ```
    #[must_use]
    pub fn new(rate: u16) -> Self {
        Self { good_rate: rate, bad_rate: (rate / 3).max(1), ..Self::base() }
    }

    /// Checks every field against its range.
    ///
    /// # Errors
    ///
    /// If a field is out of range. The error names the field, its value and the range.
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

/// Whether to send at the full or at the reduced rate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "there are two")]
pub enum Mode {
    /// Send at the full rate.
    Good,
    /// Send at the reduced rate.
    Bad,
}

/// A mode, since when, and how long it may last.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PaceState {
    /// The mode.
    pub mode: Mode,
    /// When it began; `None` until the first update.
    pub since: Option<Time>,
    /// How long conditions must have been good before bad mode ends: `t`.
    pub patience: Duration,
}

impl Default for PaceState {
    /// Good mode, before the first update.
    fn default() -> Self {
        Self { mode: Mode::Good, since: None, patience: PATIENCE }
    }
}

/// The conditions that decide the mode. A value that has not been measured is zero, which counts as good.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Conditions {
    /// Smoothed round trip.
    pub(crate) rtt: Duration,
    /// Mean deviation of the round trip.
    pub(crate) jitter: Duration,
    /// Share of the packets that get lost, 0 to 1.
    pub(crate) loss: f64,
}

impl Conditions {
    /// The conditions as measured.
    pub(crate) fn of(rtt: &Rtt, loss: &Loss) -> Self {
        Self { rtt: rtt.smoothed(), jitter: rtt.jitter(), loss: loss.share }
    }
}

/// Chooses between the two modes by the rule in the documentation of `pace`.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    config: MaxRate,
    pub(crate) state: PaceState,
    /// In good mode, until when the time spent in it has been counted; in bad mode, since when conditions
    /// have been good.
    mark: Option<Time>,
    /// Whether there has been a bad mode. Only then was this good mode a return.
    returned: bool,
}

impl Pace {
    /// Starts in good mode.
    pub(crate) fn new(config: &MaxRate) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self { config: *config, state: PaceState::default(), mark: None, returned: false })
    }

    /// Reports the conditions at `now` and returns the mode. They count as unchanged until the next call.
    pub(crate) fn update(&mut self, now: Time, conditions: &Conditions) -> Mode {
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

    /// Packets to send per second.
    pub(crate) const fn rate(&self) -> u16 {
        match self.state.mode {
            Mode::Good => self.config.good_rate,
            Mode::Bad => self.config.bad_rate,
        }
    }

    /// Halves `t` for every [`STEP`] spent in good mode.
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

/// `t` at the start, its minimum and its maximum.
const PATIENCE: Duration = Duration::from_secs(4);
const PATIENCE_MIN: Duration = Duration::from_secs(1);
const PATIENCE_MAX: Duration = Duration::from_secs(60);
/// A good mode shorter than this doubles `t`; each such period in good mode halves it.
const STEP: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use Mode::{Bad, Good};
    use proptest::prelude::*;

    /// Feeds a table to a `Pace`. Each row has the time in s, the round trip in ms, and the expected mode and
    /// `t` in s.
    fn table(rows: &[(f64, u64, Mode, f64)]) {
        let mut pace = Pace::new(&MaxRate::new(30)).unwrap();
        for (line, (at, rtt, mode, patience)) in rows.iter().enumerate() {
            let now = Time::ZERO + Duration::from_secs_f64(*at);
            let found =
                pace.update(now, &Conditions { rtt: Duration::from_millis(*rtt), ..Conditions::default() });
            let t = pace.state.patience.as_secs_f64();
            assert_eq!((found, t), (*mode, *patience), "line {line}: at {at} s");
        }
    }

    #[test]
    fn time_in_good_mode_counts_however_rare_the_updates() {
        table(&[
            (5000.0, 100, Good, 4.0), // the first call begins the mode, not the epoch
            (5001.0, 300, Bad, 4.0),
            (5002.0, 100, Bad, 4.0),
            (5006.0, 100, Good, 4.0),
            (5007.0, 300, Bad, 8.0),
            (5008.0, 100, Bad, 8.0),
            (5016.0, 100, Good, 8.0),
            (5039.0, 300, Bad, 2.0), // 23 s: halved twice
        ]);
    }

    #[test]
    fn loss_and_jitter_count_only_if_configured() {
        let config = MaxRate { loss: Some(10), jitter: Some(Duration::from_millis(30)), ..MaxRate::new(30) };
        let fine = Conditions { loss: 0.1, jitter: Duration::from_millis(30), ..Conditions::default() };
        let lossy = Conditions { loss: 0.11, ..fine };
        let uneven = Conditions { jitter: Duration::from_millis(31), ..fine };
        for (config, conditions, mode) in [
            (config, fine, Good),
            (config, lossy, Bad),
            (config, uneven, Bad),
            (MaxRate::new(30), lossy, Good),
            (MaxRate::new(30), uneven, Good),
        ] {
            let mut pace = Pace::new(&config).unwrap();
            assert_eq!(pace.update(Time::ZERO, &conditions), mode);
            assert_eq!(pace.rate(), if mode == Good { 30 } else { 10 });
            assert_eq!(pace.state.since, Some(Time::ZERO));
        }
    }

    proptest! {
        /// A naive implementation of the rule, in steps of 100 ms, that remembers everything.
        #[test]
        fn the_mode_matches_a_naive_implementation_of_the_rule(lengths in prop::collection::vec(1..400u64, 1..40)) {
            let mut pace = Pace::new(&MaxRate::new(30)).unwrap();
            let (mut mode, mut began, mut t, mut returned) = (Good, 0, 40, false);
            let (mut step, mut good_for) = (0, 0);
            for (index, length) in lengths.into_iter().enumerate() {
                let bad = index % 2 == 1;
                for _ in 0..length {
                    match mode {
                        Good => {
                            let in_good = step - began;
                            if in_good > 0 && in_good % 100 == 0 {
                                t = (t / 2).max(10);
                            }
                            if bad {
                                if returned && in_good < 100 {
                                    t = (2 * t).min(600);
                                }
                                (mode, began, good_for) = (Bad, step, 0);
                            }
                        }
                        Bad if bad => good_for = 0,
                        Bad => {
                            if good_for == t {
                                (mode, began, returned) = (Good, step, true);
                            }
                            good_for += 1;
                        }
                    }
                    let rtt = Duration::from_millis(if bad { 300 } else { 50 });
                    let now = Time::from_millis(100 * step);
                    let found = pace.update(now, &Conditions { rtt, ..Conditions::default() });
                    let PaceState { patience, since, .. } = pace.state;
                    prop_assert_eq!((found, patience), (mode, Duration::from_millis(100 * t)));
                    prop_assert_eq!(since, Some(Time::from_millis(100 * began)));
                    step += 1;
                }
            }
        }
    }
}
