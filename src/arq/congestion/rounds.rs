//! Time in round trips, as what is sent and acknowledged tells them apart.

use super::{Ack, Loss};
use crate::time::Time;
use std::time::Duration;

/// Tells round trips apart: one is over when a transmission has arrived that left after its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    /// Smoothed round trip, µs; 0: none measured.
    srtt: u64,
    /// Mean deviation from it, µs.
    rttvar: u64,
    round: Round,
    began: Time,
    is_over: bool,
}

/// A round trip. What is delivered during one is the rate of the path, whatever gets lost besides.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Round {
    /// µs.
    pub(super) lasted: u64,
    /// Payload bytes acknowledged.
    pub(super) delivered: u64,
    /// Segments sent again.
    pub(super) lost: u32,
    /// Round trips measured.
    pub(super) samples: u32,
    /// The shortest of them, µs.
    pub(super) least: u64,
}

impl Rounds {
    pub(super) const fn new() -> Self {
        Self { srtt: 0, rttvar: 0, round: Round::EMPTY, began: Time::ZERO, is_over: false }
    }

    /// Smoothed round trip, µs; `None`: none measured. Source: RFC 6298.
    pub(super) fn srtt(&self) -> Option<u64> {
        Some(self.srtt).filter(|&srtt| srtt > 0)
    }

    /// Mean deviation of the round trip, µs.
    pub(super) const fn rttvar(&self) -> u64 {
        self.rttvar
    }

    /// A transmission that left `rtt` ago has arrived.
    pub(super) fn on_rtt(&mut self, now: Time, rtt: Duration) {
        let rtt = micros(rtt);
        self.is_over |= now.before(rtt) >= self.began;
        if self.srtt == 0 {
            (self.srtt, self.rttvar) = (rtt, rtt / 2);
        } else {
            self.rttvar = (3 * self.rttvar + rtt.abs_diff(self.srtt)) / 4;
            self.srtt = (7 * self.srtt + rtt) / 8;
        }
        self.round.samples = self.round.samples.saturating_add(1);
        self.round.least = self.round.least.min(rtt);
    }

    /// Segments were sent again.
    pub(super) fn on_loss(&mut self, loss: &Loss) {
        self.round.lost = self.round.lost.saturating_add(loss.timeouts).saturating_add(loss.fast);
    }

    /// Counts what was acknowledged, and returns the round trip that this ends.
    pub(super) fn on_ack(&mut self, ack: &Ack) -> Option<Round> {
        self.round.delivered = self.round.delivered.saturating_add(ack.bytes.into());
        if !self.is_over {
            return None;
        }
        let round = Round { lasted: micros(ack.now.since(self.began)), ..self.round };
        self.restart(ack.now);
        Some(round)
    }

    /// Begins a round trip here, and forgets the one under way.
    pub(super) fn restart(&mut self, now: Time) {
        *self = Self { srtt: self.srtt, rttvar: self.rttvar, began: now, ..Self::new() };
    }
}

impl Round {
    const EMPTY: Self = Self { lasted: 0, delivered: 0, lost: 0, samples: 0, least: u64::MAX };
}

/// µs, at least one and at most an hour, so that a few of them multiplied stay in range.
pub(super) fn micros(duration: Duration) -> u64 {
    duration.clamp(Duration::from_micros(1), Duration::from_secs(3600)).as_micros().try_into().unwrap_or(1)
}
