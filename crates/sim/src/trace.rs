//! Delivery traces: when a link could carry a packet.

use super::rng::SimRng;
use rand::RngExt;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use whitewater::Time;

/// When a link can carry [`OPPORTUNITY`] bytes, again and again from the start.
///
/// ```
/// use whitewater_sim::Trace;
/// let trace: Trace = "3\n3\n10".parse()?; // 2 packets after 3 ms, 1 after 10 ms, 2 after 13 ms ...
/// assert_eq!(trace.mean_rate(), 3 * 1504 * 8 * 100); // bits per second
/// # Ok::<(), whitewater_sim::TraceError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Trace {
    /// ms from the start, in order. The last is the period, and more than 0.
    at: Arc<[u32]>,
}

/// A text is no trace.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum TraceError {
    /// A line is no number of ms below 2^32.
    #[error("line {line} is no number of ms")]
    Number {
        /// The line, from 1 on.
        line: usize,
    },
    /// A line is less than the line before.
    #[error("line {line} is earlier than the line before")]
    Order {
        /// The line, from 1 on.
        line: usize,
    },
    /// The last line is 0, or there is none: a trace has to last.
    #[error("the trace has no duration")]
    Empty,
}

impl std::str::FromStr for Trace {
    type Err = TraceError;

    /// Reads a line per opportunity: its ms from the start. The last line is the duration of the trace. Source: the
    /// traces of Mahimahi (Netravali and others, USENIX ATC 2015), `mm-link`.
    fn from_str(text: &str) -> Result<Self, TraceError> {
        let mut at: Vec<u32> = Vec::new();
        for (line, ms) in (1..).zip(text.lines()) {
            let ms = ms.trim().parse().map_err(|_| TraceError::Number { line })?;
            if at.last().is_some_and(|&before| ms < before) {
                return Err(TraceError::Order { line });
            }
            at.push(ms);
        }
        if at.last().is_none_or(|&last| last == 0) {
            Err(TraceError::Empty)
        } else {
            Ok(Self { at: at.into() })
        }
    }
}

impl Trace {
    /// A cellular link that a seed makes up: its rate wanders between 0 and `most` packets per second, and where it gets
    /// to 0 it stays there for a quarter of a second in the mean. Lasts `seconds`, at least one.
    ///
    /// Source: the model in Winstein, Sivaraman, Balakrishnan, "Stochastic Forecasts Achieve High Throughput and Low Delay
    /// over Cellular Networks" (Sprout), NSDI 2013: Brownian motion, here with a fifth of `most` per square root of a
    /// second, in steps of 20 ms; outages that end at a fixed rate, here 4/s; Poisson arrivals.
    #[must_use]
    pub fn wandering(seed: u64, seconds: u32, most: u32) -> Self {
        let (mut rng, most) = (SimRng::new(seed, STREAM), f64::from(most));
        let (mut rate, mut at, mut is_out) = (most * rng.random::<f64>(), Vec::new(), false);
        let period = seconds.clamp(1, u32::MAX / 1000) * 1000;
        for ms in 0..period {
            if ms % STEP == 0 {
                let (step, ends) = (f64::from(STEP) / 1000.0, rng.random::<f64>());
                let next = rate + most / 5.0 * step.sqrt() * normal(&mut rng);
                is_out = if is_out { ends > ESCAPE * step } else { next <= 0.0 };
                rate = if is_out { 0.0 } else { (most - (most - next.abs()).abs()).max(0.0) };
            }
            let (mut left, none) = (rng.random::<f64>(), (-rate / 1000.0).exp());
            while left > none {
                at.push(ms);
                left *= rng.random::<f64>();
            }
        }
        at.push(period);
        Self { at: at.into() }
    }

    /// Its duration, after which it starts again.
    #[must_use]
    pub fn period(&self) -> Duration {
        Duration::from_millis(self.at.last().copied().unwrap_or(1).into())
    }

    /// Bits per second that it can carry.
    #[must_use]
    pub fn mean_rate(&self) -> u64 {
        let millis = self.period().as_millis().max(1);
        u64::try_from((self.at.len() * OPPORTUNITY * 8) as u128 * 1000 / millis).unwrap_or(u64::MAX)
    }

    /// When the opportunity with this number is, from 0 on.
    pub(super) fn at(&self, number: u64) -> Time {
        let (rounds, index) = (number / self.count(), number % self.count());
        let at = usize::try_from(index).ok().and_then(|index| self.at.get(index)).copied().unwrap_or(0);
        let period = u64::from(self.at.last().copied().unwrap_or(1));
        Time::from_millis(rounds.saturating_mul(period).saturating_add(at.into()))
    }

    /// How many opportunities there are up to and including `now`.
    #[must_use]
    pub fn opportunities(&self, now: Time) -> u64 {
        let (millis, period) = (now.as_micros() / 1000, u64::from(self.at.last().copied().unwrap_or(1)));
        let within = |millis: u64| self.at.partition_point(|&at| u64::from(at) <= millis) as u64;
        // At the end of a round, its last opportunities come together with the first of the next.
        millis / period * self.count() + within(millis % period)
    }

    fn count(&self) -> u64 {
        (self.at.len() as u64).max(1)
    }
}

/// A number of the normal distribution. Source: Box and Muller, 1958.
fn normal(rng: &mut SimRng) -> f64 {
    let (radius, angle) = (1.0 - rng.random::<f64>(), rng.random::<f64>());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// Bytes that an opportunity carries, with IP and UDP headers. Source: Mahimahi, `PACKET_SIZE`.
pub const OPPORTUNITY: usize = 1504;
/// How long a rate stays, ms.
const STEP: u32 = 20;
/// Outages that end per second.
const ESCAPE: f64 = 4.0;
/// The stream of random numbers for traces; links have 1 and 2.
const STREAM: u64 = 555;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_repeats_from_its_last_line_on() {
        let trace: Trace = "0\n3\n3\n10\n".parse().unwrap();
        let at: Vec<_> = (0..9).map(|number| trace.at(number).as_micros() / 1000).collect();
        assert_eq!(at, [0, 3, 3, 10, 10, 13, 13, 20, 20]);
        let up_to = |ms| trace.opportunities(Time::from_millis(ms));
        assert_eq!([0, 2, 3, 9, 10, 12, 13, 20].map(up_to), [1, 1, 3, 3, 5, 5, 7, 9]);
        assert_eq!((trace.period(), trace.mean_rate()), (Duration::from_millis(10), 4 * 1504 * 8 * 100));
    }

    #[test]
    fn a_text_that_is_no_trace_is_refused_with_its_line() {
        for (text, error) in [
            ("", TraceError::Empty),
            ("0\n0\n", TraceError::Empty),
            ("1\n2\nx", TraceError::Number { line: 3 }),
            ("1\n\n2", TraceError::Number { line: 2 }),
            ("-1", TraceError::Number { line: 1 }),
            ("5\n4", TraceError::Order { line: 2 }),
        ] {
            assert_eq!(text.parse::<Trace>(), Err(error), "{text:?}");
        }
    }

    #[test]
    fn a_made_trace_wanders_stops_and_is_the_same_for_the_same_seed() {
        let mut outages = 0;
        for seed in 1..=10 {
            let trace = Trace::wandering(seed, 120, 1000);
            assert_eq!(trace, Trace::wandering(seed, 120, 1000));
            assert_eq!(trace.period(), Duration::from_secs(120));
            let rate = trace.at.len() / 120;
            assert!((150..=850).contains(&rate), "seed {seed}: {rate} packets/s");
            let per_second = |second: u64| {
                let until = |second| trace.opportunities(Time::from_millis(second * 1000));
                until(second + 1) - until(second)
            };
            let rates: Vec<_> = (0..119).map(per_second).collect();
            let steps = rates.windows(2).map(|pair| pair[0].abs_diff(pair[1])).sum::<u64>() / 118;
            assert!((50..=300).contains(&steps), "seed {seed}: by {steps} packets/s each second");
            outages += trace.at.windows(2).filter(|pair| pair[1] - pair[0] > 300).count();
        }
        assert!((100..=400).contains(&outages), "{outages} outages in 20 minutes");
    }
}
