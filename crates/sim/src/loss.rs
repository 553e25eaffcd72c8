//! Which packets get lost: independently, in bursts, or a fixed number of every hundred.

use super::config::{DAY, LinkError, chance, in_range, millis};
use super::rng::{SimRng, choose};
use rand::RngExt;
use std::time::Duration;
use whitewater::Time;

/// Which packets get lost. A chance is a number from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Each with this chance, independently of the others.
    Random(f64),
    /// In bursts that last a certain time, however many packets are sent meanwhile. Use this where more
    /// packets must not shorten a burst. Source: Gilbert and Elliott, in continuous time.
    Bursts {
        /// Mean time between two bursts, exponentially distributed: 1 ms to a day.
        good: Duration,
        /// Mean duration of a burst, exponentially distributed: 1 ms to a day.
        bad: Duration,
        /// Chance that a packet between bursts gets lost.
        in_good: f64,
        /// Chance that a packet in a burst gets lost.
        in_bad: f64,
    },
    /// In bursts of a certain number of packets, however far apart they are. Source: Gilbert and Elliott.
    PacketBursts {
        /// Chance that a burst begins with this packet.
        enter: f64,
        /// Chance that a burst has ended before this packet: 1 divided by the mean length of a burst.
        leave: f64,
        /// Chance that a packet between bursts gets lost.
        in_good: f64,
        /// Chance that a packet in a burst gets lost.
        in_bad: f64,
    },
    /// Exactly `lost` of every `of` packets, in random order. Source: KCP test.h `Random`.
    Deck {
        /// Packets lost per deck.
        lost: u32,
        /// Packets per deck: 1 to 65,536.
        of: u32,
    },
}

impl Loss {
    pub(super) fn check(&self) -> Result<(), LinkError> {
        match *self {
            Self::None => Ok(()),
            Self::Random(lost) => chance("loss", lost),
            Self::Bursts { good, bad, in_good, in_bad } => {
                in_range("loss.good", millis(good), 1, DAY)?;
                in_range("loss.bad", millis(bad), 1, DAY)?;
                chance("loss.in_good", in_good)?;
                chance("loss.in_bad", in_bad)
            }
            Self::PacketBursts { enter, leave, in_good, in_bad } => {
                chance("loss.enter", enter)?;
                chance("loss.leave", leave)?;
                chance("loss.in_good", in_good)?;
                chance("loss.in_bad", in_bad)
            }
            Self::Deck { lost, of } => {
                in_range("loss.of", of.into(), 1, 1 << 16)?;
                in_range("loss.lost", lost.into(), 0, of.into())
            }
        }
    }
}

/// The state between packets.
#[derive(Clone, Debug)]
pub(super) struct LossState {
    /// Starts and ends bursts.
    rng: SimRng,
    bad: bool,
    /// When the burst ends or the next one begins; `None` before the first packet.
    until: Option<Time>,
    /// The cards left in the deck; those below `lost` mean loss.
    deck: Vec<u32>,
}

impl LossState {
    pub(super) const fn new(rng: SimRng) -> Self {
        Self { rng, bad: false, until: None, deck: Vec::new() }
    }

    /// Whether the packet that travels at `at` gets lost; `draw` is its random number. Call this in the order
    /// of time.
    pub(super) fn loses(&mut self, loss: &Loss, at: Time, draw: f64) -> bool {
        match *loss {
            Loss::None => false,
            Loss::Random(lost) => draw < lost,
            Loss::Bursts { good, bad, in_good, in_bad } => {
                self.advance(at, good, bad);
                draw < if self.bad { in_bad } else { in_good }
            }
            Loss::PacketBursts { enter, leave, in_good, in_bad } => {
                let turn = self.rng.random::<f64>();
                self.bad = if self.bad { turn >= leave } else { turn < enter };
                draw < if self.bad { in_bad } else { in_good }
            }
            Loss::Deck { lost, of } => self.deal(of, draw) < lost,
        }
    }

    /// Starts and ends the bursts up to `at`.
    fn advance(&mut self, at: Time, good: Duration, bad: Duration) {
        let mut until = self.until.unwrap_or_else(|| Time::ZERO + exponential(&mut self.rng, good));
        while until <= at {
            self.bad = !self.bad;
            until = until + exponential(&mut self.rng, if self.bad { bad } else { good });
        }
        self.until = Some(until);
    }

    /// Draws a card from a deck of `of`.
    fn deal(&mut self, of: u32, draw: f64) -> u32 {
        if self.deck.is_empty() {
            self.deck.extend(0..of);
        }
        let left = u32::try_from(self.deck.len()).unwrap_or(u32::MAX);
        self.deck.swap_remove(choose(draw, left) as usize)
    }
}

/// A random duration with this mean, exponentially distributed. Rounding to whole µs hides the bits in which
/// platforms' logarithms differ.
fn exponential(rng: &mut SimRng, mean: Duration) -> Duration {
    mean.mul_f64(-(1.0 - rng.random::<f64>()).ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of the packets `every` µs apart get lost; the draws are the same as a link's.
    fn lost(loss: Loss, seed: u64, every: u64, count: u64) -> Vec<bool> {
        assert_eq!(loss.check(), Ok(()));
        let (mut state, mut draws) = (LossState::new(SimRng::new(seed, 101)), SimRng::new(seed, 1));
        let times = (0..count).map(|number| Time::from_micros(number * every));
        times.map(|at| state.loses(&loss, at, draws.random::<f64>())).collect()
    }

    fn rate(lost: &[bool]) -> f64 {
        lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64
    }

    /// Mean length of the runs of lost packets.
    fn mean_run(lost: &[bool]) -> f64 {
        let runs: Vec<_> = lost.split(|lost| !lost).map(<[bool]>::len).filter(|len| *len > 0).collect();
        runs.iter().sum::<usize>() as f64 / runs.len() as f64
    }

    #[test]
    fn random_losses_come_at_their_rate_and_independently() {
        for seed in 1..=5 {
            let lost = lost(Loss::Random(0.1), seed, 1000, 100_000);
            assert!((0.097..0.103).contains(&rate(&lost)), "seed {seed}: {}", rate(&lost));
            assert!((1.09..1.13).contains(&mean_run(&lost)), "seed {seed}: {}", mean_run(&lost));
        }
    }

    #[test]
    fn more_packets_do_not_shorten_a_burst_by_time() {
        let (good, bad) = (Duration::from_millis(950), Duration::from_millis(50));
        let loss = Loss::Bursts { good, bad, in_good: 0.0, in_bad: 1.0 };
        for seed in 1..=5 {
            // A packet every 5 ms and every 0.5 ms, 2000 s of each: bursts last 50 ms in both cases.
            for (every, count) in [(5_000, 400_000), (500, 4_000_000)] {
                let lost = lost(loss, seed, every, count);
                assert!((0.044..0.056).contains(&rate(&lost)), "seed {seed}: {}", rate(&lost));
                let ms = mean_run(&lost) * every as f64 / 1000.0;
                assert!((45.0..58.0).contains(&ms), "seed {seed}, {every} µs: bursts of {ms} ms");
            }
        }
    }

    #[test]
    fn a_burst_by_packets_has_the_same_length_at_any_pace() {
        let loss = Loss::PacketBursts { enter: 0.01, leave: 0.25, in_good: 0.0, in_bad: 1.0 };
        for seed in 1..=5 {
            let (fast, slow) = (lost(loss, seed, 100, 200_000), lost(loss, seed, 10_000, 200_000));
            assert_eq!(fast, slow, "seed {seed}");
            assert!((3.8..4.2).contains(&mean_run(&fast)), "seed {seed}: {}", mean_run(&fast));
            assert!((0.034..0.043).contains(&rate(&fast)), "seed {seed}: {}", rate(&fast));
        }
    }

    #[test]
    fn a_deck_loses_exactly_its_number_of_every_hundred() {
        let lost = lost(Loss::Deck { lost: 5, of: 100 }, 7, 1000, 10_000);
        assert!(lost.chunks(100).all(|deck| rate(deck) == 0.05));
        assert_ne!(lost[..100], lost[100..200]);
    }
}
