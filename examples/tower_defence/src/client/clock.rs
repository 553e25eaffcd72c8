//! The server's current tick, and how far ahead of it to be, so that inputs arrive just before their tick.

use super::figures::Path;
use crate::sim::rules::HZ;
use std::time::Duration;
use whitewater::Time;

/// The server's clock as seen from here, µs.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// The difference between the server's time and ours. `None`: unknown.
    offset: Option<i64>,
    /// The delay of the network.
    path: Path,
    /// Additional lead of inputs beyond the round trip, adjusted by what the server reports.
    margin: i64,
}

impl Clock {
    pub(super) const fn set_path(&mut self, path: Path) {
        self.path = path;
    }

    /// The next snapshot is of another server.
    pub(super) const fn restart(&mut self) {
        self.offset = None;
    }

    /// A snapshot of this tick has arrived. `lead`: how many ticks our newest input was ahead of it at the server.
    pub(super) fn on_snapshot(&mut self, now: Time, tick: u32, lead: Option<i8>) {
        let sample = i64::from(tick) * TICK + micros(self.path.rtt) / 2 - signed(now);
        let offset = self.offset.unwrap_or(sample);
        // A late arrival says little, because the server was there earlier. So the clock moves forward faster than
        // back.
        let error = sample - offset;
        self.offset = Some(match error {
            _ if error.abs() > JUMP => sample,
            _ if error > 0 => offset + error / 8,
            _ => offset + error / 32,
        });
        match lead {
            Some(lead) if lead < LEAD.0 => self.margin = (self.margin + LATER).min(MARGIN_MAX),
            Some(lead) if lead > LEAD.1 => self.margin = (self.margin - EARLIER).max(-MARGIN_MAX),
            _ => {}
        }
    }

    /// The server's time, µs. `None`: it is unknown.
    pub(super) fn server(&self, now: Time) -> Option<i64> {
        Some(signed(now) + self.offset?)
    }

    /// Our time, µs: when inputs given now can be used.
    pub(super) fn ahead(&self, now: Time) -> Option<i64> {
        let way = micros(self.path.rtt) / 2 + 2 * micros(self.path.rttvar);
        Some((self.server(now)? + way + self.margin + TICK).max(0))
    }

    /// The server's time for which snapshots should have arrived by now, µs: others are drawn as they were then.
    pub(super) fn past(&self, now: Time) -> Option<i64> {
        Some(self.server(now)? - micros(self.path.rtt) / 2 - micros(self.path.rttvar) - BEHIND)
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX >> 4)
}

fn signed(now: Time) -> i64 {
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX >> 4)
}

/// Length of a tick, µs.
pub(super) const TICK: i64 = 1_000_000 / HZ as i64;
/// Two ticks: one snapshot may be lost, and others still move evenly.
const BEHIND: i64 = 2 * TICK;
/// An error too large to be corrected gradually: eight ticks.
const JUMP: i64 = 8 * TICK;
/// How many ticks inputs should be ahead of a snapshot: at least, at most.
const LEAD: (i8, i8) = (1, 2);
/// How much each snapshot changes the margin, µs, and its limit.
const LATER: i64 = 3_000;
/// See [`LATER`].
const EARLIER: i64 = 500;
/// See [`LATER`].
const MARGIN_MAX: i64 = 250_000;
