//! What a link does to datagrams: plain fields, and presets.

use super::bottleneck::Bottleneck;
use super::corruption::Corruption;
use super::jitter::Spread;
use super::loss::Loss;
use super::playback::Playback;
use super::rng::choose;
use std::ops::Range;
use std::time::Duration;
use thiserror::Error;
use whitewater::Time;

/// What one direction of a path does to datagrams. A chance is a number from 0 to 1. Nothing is clamped: a
/// field out of range is a [`LinkError`].
///
/// ```
/// use std::time::Duration;
/// use whitewater_sim::{LinkConfig, Loss};
/// let far = LinkConfig { delay: Duration::from_millis(75), loss: Loss::Random(0.02), ..LinkConfig::wifi() };
/// # far.check().unwrap();
/// ```
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "made for `LinkConfig { .., ..LinkConfig::wifi() }`")]
pub struct LinkConfig {
    /// Shortest travel time, excluding the bottleneck.
    pub delay: Duration,
    /// Most that is added to the delay, at most a day; with a [`spread`](Self::spread) that has a tail, its scale.
    pub jitter: Duration,
    /// How the jitter is distributed.
    pub spread: Spread,
    /// Jitter that is spread evenly is a whole multiple of this; zero: of 1 µs.
    pub jitter_step: Duration,
    /// Whether datagrams stay in order despite jitter. Otherwise they may overtake each other.
    pub in_order: bool,
    /// Which packets get lost, after the bottleneck.
    pub loss: Loss,
    /// Chance that a datagram comes `late`, overtaken by others.
    pub reorder: f64,
    /// How much later such a datagram arrives.
    pub late: Duration,
    /// Chance that a datagram arrives twice; the copy follows after the whole `jitter` plus 1 µs.
    pub duplicate: f64,
    /// How datagrams are damaged.
    pub corruption: Corruption,
    /// The bottleneck of the path; `None`: unlimited.
    pub bottleneck: Option<Bottleneck>,
    /// A bottleneck that plays a delivery trace, in place of `bottleneck`, which is then not used.
    pub playback: Option<Playback>,
    /// Largest IP packet, bytes, including 28 bytes of headers; larger ones vanish. `None`: any size.
    pub mtu: Option<usize>,
    /// What happens to ECN marks.
    pub ecn: EcnPath,
    /// When everything sent gets lost. For a partition, use the same outages in both directions.
    pub outages: Vec<Range<Time>>,
    /// When nothing arrives: whatever would arrive is held until the end and then arrives at once, as on a
    /// cellular link that stalls.
    pub standstills: Vec<Range<Time>>,
}

/// What a path does to datagrams with an ECN mark, and to the mark.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum EcnPath {
    /// Leaves them alone.
    #[default]
    Passes,
    /// Marks those that find more than this many bytes in the queue of the bottleneck.
    MarksAbove(u64),
    /// Marks all of them.
    MarksAll,
    /// Removes the marks.
    Bleaches,
    /// Drops those datagrams.
    Drops,
}

impl LinkConfig {
    /// Nothing but a delay of half a round trip.
    #[must_use]
    pub fn with_rtt(rtt: Duration) -> Self {
        Self { delay: rtt / 2, ..Self::default() }
    }

    /// A wired home network. Numbers: [`sim`](super#presets).
    #[must_use]
    pub fn lan() -> Self {
        Self {
            delay: Duration::from_micros(200),
            jitter: Duration::from_micros(50),
            bottleneck: Some(Bottleneck { rate: 1_000_000_000, queue: 512_000 }),
            mtu: Some(1500),
            ..Self::default()
        }
    }

    /// Wi-Fi at home and a server in the region. Numbers: [`sim`](super#presets).
    #[must_use]
    pub fn wifi() -> Self {
        Self {
            delay: Duration::from_millis(10),
            jitter: Duration::from_millis(6),
            loss: Loss::Random(0.01),
            bottleneck: Some(Bottleneck { rate: 50_000_000, queue: 256_000 }),
            mtu: Some(1500),
            ..Self::default()
        }
    }

    /// A phone on the move: bursts of loss, and some late datagrams. Numbers: [`sim`](super#presets).
    #[must_use]
    pub fn mobile() -> Self {
        Self {
            delay: Duration::from_millis(35),
            jitter: Duration::from_millis(15),
            loss: Loss::Bursts {
                good: Duration::from_millis(1900),
                bad: Duration::from_millis(100),
                in_good: 0.005,
                in_bad: 0.8,
            },
            reorder: 0.01,
            late: Duration::from_millis(20),
            duplicate: 0.002,
            bottleneck: Some(Bottleneck { rate: 10_000_000, queue: 256_000 }),
            mtu: Some(1500),
            ..Self::default()
        }
    }

    /// A busy line in the evening, narrow and with a long queue. Numbers: [`sim`](super#presets).
    #[must_use]
    pub fn congested() -> Self {
        Self {
            delay: Duration::from_millis(30),
            jitter: Duration::from_millis(5),
            loss: Loss::Random(0.03),
            bottleneck: Some(Bottleneck { rate: 2_000_000, queue: 64_000 }),
            mtu: Some(1500),
            ..Self::default()
        }
    }

    /// Checks every field against its range.
    ///
    /// # Errors
    ///
    /// If a field is out of range. The error names the field, its value and the range.
    pub fn check(&self) -> Result<(), LinkError> {
        let Self {
            delay: _,
            jitter,
            spread,
            jitter_step: _,
            in_order: _,
            loss,
            reorder,
            late: _,
            duplicate,
            corruption,
            bottleneck,
            playback: _,
            mtu: _,
            ecn: _,
            outages: _,
            standstills: _,
        } = self; // a new field does not compile until it is handled
        in_range("jitter", millis(*jitter), 0, DAY)?;
        spread.check()?;
        loss.check()?;
        chance("reorder", *reorder)?;
        chance("duplicate", *duplicate)?;
        corruption.check()?;
        bottleneck.map_or(Ok(()), |bottleneck| bottleneck.check())
    }

    /// Whether everything sent now gets lost.
    pub(super) fn is_out(&self, now: Time) -> bool {
        self.outages.iter().any(|outage| outage.contains(&now))
    }

    /// When a datagram arrives that would arrive at `arrival` if there were no standstills.
    pub(super) fn released(&self, arrival: Time) -> Time {
        let mut at = arrival;
        while let Some(held) = self.standstills.iter().find(|held| held.contains(&at)) {
            at = held.end;
        }
        at
    }

    /// The jitter of a datagram; `draw` is its random number.
    pub(super) fn jitter(&self, draw: f64) -> Duration {
        let steps = self.jitter.as_micros().checked_div(self.jitter_step.as_micros());
        match steps.and_then(|steps| u32::try_from(steps + 1).ok()) {
            Some(steps) if self.spread == Spread::Even => {
                self.jitter_step.saturating_mul(choose(draw, steps))
            }
            _ => self.jitter.mul_f64(self.spread.of(draw)),
        }
    }
}

impl Default for LinkConfig {
    /// A perfect link: datagrams arrive at once and in order.
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            spread: Spread::default(),
            jitter_step: Duration::ZERO,
            in_order: true,
            loss: Loss::None,
            reorder: 0.0,
            late: Duration::ZERO,
            duplicate: 0.0,
            corruption: Corruption::default(),
            bottleneck: None,
            playback: None,
            mtu: None,
            ecn: EcnPath::default(),
            outages: Vec::new(),
            standstills: Vec::new(),
        }
    }
}

/// A field of [`LinkConfig`] is out of range.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum LinkError {
    /// A number that is not a chance.
    #[error("{field} is {value}, outside 0 to 1")]
    Chance {
        /// The name of the field.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// A number of the distribution of jitter.
    #[error("{field} is {value}, outside {min} to {max}")]
    Real {
        /// The name of the field.
        field: &'static str,
        /// Its value.
        value: f64,
        /// The least allowed value.
        min: f64,
        /// The largest allowed value.
        max: f64,
    },
    /// Any other number.
    #[error("{field} is {value}, outside {min} to {max}")]
    Range {
        /// The name of the field.
        field: &'static str,
        /// Its value; for times, in ms.
        value: u64,
        /// The least allowed value.
        min: u64,
        /// The largest allowed value.
        max: u64,
    },
}

pub(super) fn chance(field: &'static str, value: f64) -> Result<(), LinkError> {
    if (0.0..=1.0).contains(&value) { Ok(()) } else { Err(LinkError::Chance { field, value }) }
}

pub(super) fn in_range(field: &'static str, value: u64, min: u64, max: u64) -> Result<(), LinkError> {
    if (min..=max).contains(&value) { Ok(()) } else { Err(LinkError::Range { field, value, min, max }) }
}

/// A duration in whole ms, for a [`LinkError`].
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A day in ms: the longest time that may be drawn at random.
pub(super) const DAY: u64 = 24 * 3600 * 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_in_range() {
        for config in [
            LinkConfig::default(),
            LinkConfig::lan(),
            LinkConfig::wifi(),
            LinkConfig::mobile(),
            LinkConfig::congested(),
        ] {
            assert_eq!(config.check(), Ok(()));
        }
    }

    #[test]
    fn the_documented_numbers_match_the_presets() {
        let percent = |chance: f64| format!("{} %", chance * 100.0);
        let ms = |duration: Duration| format!("{} ms", duration.as_secs_f64() * 1000.0);
        for (name, config) in [
            ("lan", LinkConfig::lan()),
            ("wifi", LinkConfig::wifi()),
            ("mobile", LinkConfig::mobile()),
            ("congested", LinkConfig::congested()),
        ] {
            let Bottleneck { rate, queue } = config.bottleneck.unwrap();
            let loss = match config.loss {
                Loss::Random(lost) => percent(lost),
                Loss::Bursts { good, bad, in_good, in_bad } => {
                    let (each, in_bad, in_good) = ((good + bad).as_secs(), percent(in_bad), percent(in_good));
                    format!("{in_bad} for {} each {each} s, else {in_good}", ms(bad))
                }
                _ => "-".to_owned(),
            };
            let late = format!("{} come {} late", percent(config.reorder), ms(config.late));
            let others = match (config.reorder > 0.0, config.duplicate > 0.0) {
                (true, true) => format!("{late}, {} twice", percent(config.duplicate)),
                _ => "-".to_owned(),
            };
            let (delay, jitter) = (ms(config.delay), ms(config.jitter));
            let path = format!("{delay} | {jitter} | {loss} | {others}");
            let (rate, queue) = (rate / 1_000_000, queue / 1000);
            let row = format!("| [`{name}`](LinkConfig::{name}) | {path} | {rate} Mbit/s, {queue} kB |");
            assert!(include_str!("lib.rs").contains(&row), "the table lacks {row}");
            assert_eq!((config.mtu, config.in_order), (Some(1500), true));
        }
    }

    #[test]
    fn an_error_names_field_value_and_range() {
        let config = |loss| LinkConfig { loss, ..LinkConfig::default() };
        let error = config(Loss::Random(1.5)).check().unwrap_err();
        assert_eq!(error, LinkError::Chance { field: "loss", value: 1.5 });
        assert_eq!(error.to_string(), "loss is 1.5, outside 0 to 1");
        let second = Duration::from_secs(1);
        let bursts = |good, in_bad| config(Loss::Bursts { good, bad: second, in_good: 0.0, in_bad });
        let packets = |leave| Loss::PacketBursts { enter: 0.1, leave, in_good: 0.0, in_bad: 1.0 };
        let corruption = |flip, truncate| LinkConfig {
            corruption: Corruption { flip, truncate },
            ..LinkConfig::default()
        };
        for (config, field) in [
            (LinkConfig { jitter: Duration::MAX, ..LinkConfig::lan() }, "jitter"),
            (bursts(Duration::ZERO, 1.0), "loss.good"),
            (bursts(Duration::MAX, 1.0), "loss.good"),
            (bursts(second, -0.1), "loss.in_bad"),
            (config(packets(f64::NAN)), "loss.leave"),
            (config(Loss::Deck { lost: 0, of: 0 }), "loss.of"),
            (config(Loss::Deck { lost: 11, of: 10 }), "loss.lost"),
            (LinkConfig { reorder: 2.0, ..LinkConfig::lan() }, "reorder"),
            (LinkConfig { duplicate: -1.0, ..LinkConfig::lan() }, "duplicate"),
            (LinkConfig { spread: Spread::Pareto { shape: 0.9 }, ..LinkConfig::lan() }, "spread.shape"),
            (
                LinkConfig { spread: Spread::LogNormal { sigma: f64::NAN }, ..LinkConfig::lan() },
                "spread.sigma",
            ),
            (corruption(f64::INFINITY, 0.0), "corruption.flip"),
            (corruption(0.0, 1.1), "corruption.truncate"),
            (
                LinkConfig { bottleneck: Some(Bottleneck { rate: 0, queue: 1 }), ..LinkConfig::lan() },
                "bottleneck.rate",
            ),
        ] {
            let (LinkError::Chance { field: named, .. }
            | LinkError::Real { field: named, .. }
            | LinkError::Range { field: named, .. }) = config.check().unwrap_err();
            assert_eq!(named, field);
        }
    }

    #[test]
    fn jitter_is_a_multiple_of_its_step() {
        let (jitter, jitter_step) = (Duration::from_millis(31), Duration::from_millis(1));
        let config = LinkConfig { jitter, jitter_step, ..LinkConfig::default() };
        assert_eq!(config.jitter(0.0), Duration::ZERO);
        assert_eq!(config.jitter(0.999), jitter);
        assert_eq!(config.jitter(0.5), Duration::from_millis(16));
        let config = LinkConfig { jitter_step: Duration::ZERO, ..config };
        assert_eq!(config.jitter(0.5), jitter / 2);
    }
}
