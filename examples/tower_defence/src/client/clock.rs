//! Which tick it is at the server, and how far ahead of it to be: so far that an input is there just before its tick is played.

use super::figures::Path;
use crate::sim::rules::HZ;
use std::time::Duration;
use whitewater::Time;

/// The server's clock as seen from here, µs.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// What is added to our time to have the server's; `None`: nothing is known yet.
    offset: Option<i64>,
    /// What the network takes.
    path: Path,
    /// How much earlier than by the round trip inputs leave: as the server says that they are late or early.
    margin: i64,
}

impl Clock {
    pub(super) const fn set_path(&mut self, path: Path) {
        self.path = path;
    }

    /// A snapshot of this tick has come, and `lead` is how many ticks our newest input was ahead of it there.
    pub(super) fn on_snapshot(&mut self, now: Time, tick: u32, lead: Option<i8>) {
        let sample = i64::from(tick) * TICK + micros(self.path.rtt) / 2 - signed(now);
        let offset = self.offset.unwrap_or(sample);
        // What comes late says little: the server was there earlier. So the clock follows forwards faster than back.
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

    /// The server's time, µs; `None`: nothing was heard of it.
    pub(super) fn server(&self, now: Time) -> Option<i64> {
        Some(signed(now) + self.offset?)
    }

    /// Our time, µs: that at which inputs that are given now can be played.
    pub(super) fn ahead(&self, now: Time) -> Option<i64> {
        let way = micros(self.path.rtt) / 2 + 2 * micros(self.path.rttvar);
        Some((self.server(now)? + way + self.margin + TICK).max(0))
    }

    /// The server's time of which snapshots should have come by now, µs: others are drawn as they were then.
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

/// µs of a tick.
pub(super) const TICK: i64 = 1_000_000 / HZ as i64;
/// Two ticks: one snapshot may be lost, and others still move evenly.
const BEHIND: i64 = 2 * TICK;
/// An error that is not mended bit by bit: eight ticks.
const JUMP: i64 = 8 * TICK;
/// Ticks that inputs should be ahead of a snapshot: at least, at most.
const LEAD: (i8, i8) = (1, 2);
/// What the margin changes by with each snapshot, µs, and its bound.
const LATER: i64 = 3_000;
/// See [`LATER`].
const EARLIER: i64 = 500;
/// See [`LATER`].
const MARGIN_MAX: i64 = 250_000;
