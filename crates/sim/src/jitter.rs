//! How the jitter of a link is distributed.

use super::config::LinkError;

/// How jitter is distributed. Most paths delay nearly all packets a little and a few by a lot: their jitter has a heavy
/// tail. No packet is delayed by more than a hundred times the `jitter` of its link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Spread {
    /// Evenly between nothing and the jitter of the link.
    #[default]
    Even,
    /// By a power law: x times the jitter or more with a chance of (1 + x) to the power of -`shape`. Source: K. Lomax,
    /// "Business Failures", 1954.
    Pareto {
        /// 1 to 100. With 2, one of a hundred packets is delayed by 9 times the jitter or more.
        shape: f64,
    },
    /// The logarithm of the delay is normally distributed; the median is the jitter of the link.
    LogNormal {
        /// The standard deviation of the logarithm, 0 to 5. With 1, one of a hundred packets is delayed by 10 times the
        /// jitter or more.
        sigma: f64,
    },
}

impl Spread {
    pub(super) fn check(self) -> Result<(), LinkError> {
        let (field, value, min, max) = match self {
            Self::Even => return Ok(()),
            Self::Pareto { shape } => ("spread.shape", shape, 1.0, 100.0),
            Self::LogNormal { sigma } => ("spread.sigma", sigma, 0.0, 5.0),
        };
        if (min..=max).contains(&value) { Ok(()) } else { Err(LinkError::Real { field, value, min, max }) }
    }

    /// How many times the jitter of its link a datagram is delayed by; `draw` is its random number.
    pub(super) fn of(self, draw: f64) -> f64 {
        match self {
            Self::Even => draw,
            Self::Pareto { shape } => ((1.0 - draw).powf(-1.0 / shape) - 1.0).min(MOST),
            Self::LogNormal { sigma } => (sigma * quantile(draw)).exp().min(MOST),
        }
    }
}

/// The quantile of the standard normal distribution, within 0.0005. Source: Abramowitz and Stegun, "Handbook of
/// Mathematical Functions", 26.2.23.
fn quantile(chance: f64) -> f64 {
    let tail = chance.min(1.0 - chance).max(f64::MIN_POSITIVE);
    let t = (-2.0 * tail.ln()).sqrt();
    let [above, below] = [
        2.515_517 + t * (0.802_853 + t * 0.010_328),
        1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)),
    ];
    (t - above / below).copysign(chance - 0.5)
}

/// The longest delay, times the jitter.
const MOST: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_packet_of_a_hundred_is_delayed_by_as_much_as_documented() {
        let near =
            |spread: Spread, draw, times: f64| assert!((spread.of(draw) - times).abs() < 0.02, "{spread:?}");
        let (pareto, normal) = (Spread::Pareto { shape: 2.0 }, Spread::LogNormal { sigma: 1.0 });
        [0.0, 0.25, 0.99].into_iter().for_each(|draw| near(Spread::Even, draw, draw));
        [(0.0, 0.0), (0.75, 1.0), (0.99, 9.0)]
            .into_iter()
            .for_each(|(draw, times)| near(pareto, draw, times));
        // e to the power of the quantiles -1.645, 0 and 2.326.
        [(0.05, 0.193), (0.5, 1.0), (0.99, 10.24)]
            .into_iter()
            .for_each(|(draw, times)| near(normal, draw, times));
        for spread in [pareto, normal] {
            assert!((0.0..=MOST).contains(&spread.of(0.0)) && spread.of(1.0 - f64::EPSILON / 2.0) <= MOST);
        }
    }
}
