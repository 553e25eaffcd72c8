//! A path in words: `rtt=60ms,loss=5%,jitter=10ms,rate=2mbit`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use thiserror::Error;
use whitewater_sim::{Bottleneck, LinkConfig, Loss};

/// A path, the same in both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// Round trip.
    pub rtt: Duration,
    /// Chance that a datagram gets lost, in each direction, 0 to 0.9.
    pub loss: f64,
    /// Most that is added at random in each direction.
    pub jitter: Duration,
    /// Bits per second. `None`: unlimited.
    pub rate: Option<u64>,
}

impl Default for LinkSpec {
    /// 60 ms with 5 % loss.
    fn default() -> Self {
        Self { rtt: Duration::from_millis(60), loss: 0.05, jitter: Duration::ZERO, rate: None }
    }
}

impl LinkSpec {
    /// The config of one direction.
    #[must_use]
    pub fn config(&self) -> LinkConfig {
        let loss = if self.loss > 0.0 { Loss::Random(self.loss) } else { Loss::None };
        // The queue holds a quarter of a second.
        let bottleneck = self.rate.map(|rate| Bottleneck { rate, queue: (rate / 32).max(3000) });
        LinkConfig { jitter: self.jitter, loss, bottleneck, ..LinkConfig::with_rtt(self.rtt) }
    }
}

/// Why a path is invalid.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error(
    "a link is 'rtt=0..2000ms,loss=0..90%,jitter=0..1000ms,rate=32..1000000kbit', and '{0}' is nothing of that"
)]
pub struct LinkSpecError(String);

impl FromStr for LinkSpec {
    type Err = LinkSpecError;

    fn from_str(text: &str) -> Result<Self, LinkSpecError> {
        let mut spec = Self { loss: 0.0, rtt: Duration::ZERO, ..Self::default() };
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let wrong = || LinkSpecError(part.to_owned());
            let (name, value) = part.split_once('=').ok_or_else(wrong)?;
            let number = |unit: &str, max: f64| {
                let number: Option<f64> = value.strip_suffix(unit).unwrap_or(value).parse().ok();
                number.filter(|number| (0.0..=max).contains(number)).ok_or_else(wrong)
            };
            match name {
                "rtt" => spec.rtt = Duration::from_secs_f64(number("ms", 2000.0)? / 1e3),
                "loss" => spec.loss = number("%", 90.0)? / 100.0,
                "jitter" => spec.jitter = Duration::from_secs_f64(number("ms", 1000.0)? / 1e3),
                "rate" => spec.rate = Some(rate(value).ok_or_else(wrong)?),
                _ => return Err(wrong()),
            }
        }
        Ok(spec)
    }
}

/// Bits per second, from `500kbit` or `2mbit`.
fn rate(value: &str) -> Option<u64> {
    let (number, unit) = match (value.strip_suffix("kbit"), value.strip_suffix("mbit")) {
        (Some(number), _) => (number, 1000),
        (_, Some(number)) => (number, 1_000_000),
        _ => return None,
    };
    let bits = number.parse::<u64>().ok()?.checked_mul(unit)?;
    (32_000..=1_000_000_000).contains(&bits).then_some(bits)
}

impl fmt::Display for LinkSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rtt={}ms,loss={}%", self.rtt.as_millis(), self.loss * 100.0)?;
        if !self.jitter.is_zero() {
            write!(f, ",jitter={}ms", self.jitter.as_millis())?;
        }
        self.rate.map_or(Ok(()), |rate| write!(f, ",rate={}kbit", rate / 1000))
    }
}
