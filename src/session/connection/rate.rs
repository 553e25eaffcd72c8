//! How many datagrams with data may leave: good and bad mode for the whole session.

use super::Connection;
use super::loss::JUDGED_MIN;
use super::observe::Measured;
use crate::config::ConfigError;
use crate::pace::{Conditions, MaxRate, Mode, Pace};
use crate::time::Time;
use std::time::Duration;

/// A rate of datagrams by the rule of [`pace`](crate::pace). Unused turns are kept, up to [`BURST`].
#[derive(Debug)]
struct Limit {
    pace: Pace,
    /// When the next datagram would leave at an even pace.
    next: Time,
}

/// Whose turn it is when more waits than may leave.
#[derive(Debug)]
pub(super) struct Turns {
    /// How many datagrams with data may leave; `None`: as many as there are.
    limit: Option<Box<Limit>>,
    /// Datagrams with data that left while more waited, modulo [`TURNS`]. At 0, the next begins with the least urgent
    /// data.
    turn: u8,
    /// A channel was given something that may leave at once.
    pub(super) is_eager: bool,
    /// What was in them since, one bit each: by channel number, and [`DATAGRAMS`].
    pub(super) served: u64,
}

impl Turns {
    pub(super) fn new(max_rate: Option<&MaxRate>) -> Result<Self, ConfigError> {
        let pace = max_rate.map(Pace::new).transpose()?;
        let limit = pace.map(|pace| Box::new(Limit { pace, next: Time::ZERO }));
        Ok(Self { limit, turn: 0, is_eager: false, served: 0 })
    }

    pub(super) const fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Whether the next datagram with data begins with the least urgent data that none had.
    pub(super) const fn is_of_last(&self) -> bool {
        self.turn == 0
    }

    /// When data may leave.
    pub(super) fn allows_at(&self) -> Time {
        self.limit.as_ref().map_or(Time::ZERO, |limit| limit.next.before(BURST))
    }

    pub(super) fn mode(&self) -> Option<Mode> {
        self.limit.as_ref().map(|limit| limit.pace.state.mode)
    }
}

impl Connection {
    /// Notes that a datagram with data leaves.
    pub(super) fn on_data(&mut self, now: Time) {
        let turns = &mut self.turns;
        turns.turn = (turns.turn + 1) % TURNS;
        let Some(limit) = &mut turns.limit else {
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
        limit.pace.update(now, &Conditions { rtt: rtt.smoothed(), jitter: rtt.jitter(), loss });
        let interval = Duration::from_secs(1) / u32::from(limit.pace.rate().max(1));
        limit.next = limit.next.max(now) + interval;
    }
}

/// The bit of unreliable datagrams; a channel has the bit of its number.
pub(super) const DATAGRAMS: u64 = 1 << 63;
/// One of this many datagrams with data begins with what was in none of the others.
const TURNS: u8 = 8;
/// Time whose datagrams may leave at once, µs.
const BURST: u64 = 100_000;
