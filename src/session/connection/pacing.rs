//! How many datagrams with data may leave: good and bad mode for all of a session together.

use super::Connection;
use super::loss::JUDGED_MIN;
use super::observe::Measured;
use crate::config::ConfigError;
use crate::pace::{Conditions, Mode, Pace, PaceConfig};
use crate::time::Time;
use std::time::Duration;

/// A rate of datagrams by the rule of [`pace`](crate::pace). What is not used is kept, up to [`BURST`].
#[derive(Debug)]
struct Pacing {
    pace: Pace,
    /// When the next would leave if they left evenly.
    next: Time,
}

/// Whose turn it is where less may leave than there is.
#[derive(Debug)]
pub(super) struct Turns {
    /// How many datagrams with data may leave; `None`: as many as there are.
    pacing: Option<Box<Pacing>>,
    /// Datagrams with data that left while more waited; each so many begin with what is least urgent.
    turn: u8,
    /// A channel was given something that may leave at once.
    pub(super) is_eager: bool,
    /// What was in them since, a bit each: by the number of its channel, and [`DATAGRAMS`].
    pub(super) served: u64,
}

impl Turns {
    pub(super) fn new(pace: Option<&PaceConfig>) -> Result<Self, ConfigError> {
        let pace = pace.map(Pace::new).transpose()?;
        let pacing = pace.map(|pace| Box::new(Pacing { pace, next: Time::ZERO }));
        Ok(Self { pacing, turn: 0, is_eager: false, served: 0 })
    }

    pub(super) const fn is_paced(&self) -> bool {
        self.pacing.is_some()
    }

    /// Whether the next datagram with data begins with what is least urgent of what none had.
    pub(super) const fn is_of_last(&self) -> bool {
        self.turn == 0
    }

    /// When data may leave.
    pub(super) fn allows_at(&self) -> Time {
        self.pacing.as_ref().map_or(Time::ZERO, |pacing| pacing.next.before(BURST))
    }

    pub(super) fn mode(&self) -> Option<Mode> {
        self.pacing.as_ref().map(|pacing| pacing.pace.state.mode)
    }
}

impl Connection {
    /// A datagram has data.
    pub(super) fn on_data(&mut self, now: Time) {
        let turns = &mut self.turns;
        turns.turn = (turns.turn + 1) % TURNS;
        let Some(pacing) = &mut turns.pacing else {
            if self.datagrams.next_len().is_none() && self.lanes.next_frame().is_none() {
                (turns.turn, turns.served) = (1, 0); // all has left
            }
            return;
        };
        let marked = self.marks.as_ref().map_or(0.0, |marks| marks.share.share);
        let told = self.repairs.as_ref().map_or(0.0, |repairs| repairs.loss(now));
        let Measured { rtt, in_use } = &self.measured;
        let newest = in_use.as_ref().and_then(|in_use| in_use.loss.share(now, JUDGED_MIN));
        let loss = newest.unwrap_or_default().max(marked).max(told);
        pacing.pace.update(now, &Conditions { rtt: rtt.smoothed(), jitter: rtt.jitter(), loss });
        let interval = Duration::from_secs(1) / u32::from(pacing.pace.rate().max(1));
        pacing.next = pacing.next.max(now) + interval;
    }
}

/// Of unreliable datagrams, what the bit of its number is of a channel.
pub(super) const DATAGRAMS: u64 = 1 << 63;
/// Of so many datagrams with data, one begins with what was in none of the others.
const TURNS: u8 = 8;
/// Time whose datagrams may leave at once, µs.
const BURST: u64 = 100_000;
