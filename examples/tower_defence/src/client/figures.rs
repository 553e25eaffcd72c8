//! The state of the network.

use super::view::Figures;
use std::collections::VecDeque;
use std::time::Duration;
use whitewater::Time;

/// The session's measurements: to adjust the clock, and for the status bar.
#[derive(Clone, Copy, Debug, Default)]
pub struct Path {
    /// Round trip, smoothed.
    pub rtt: Duration,
    /// Its mean deviation.
    pub rttvar: Duration,
    /// Share of our packets that get lost, 0 to 1. `None`: unknown.
    pub loss: Option<f64>,
    /// Bytes sent so far.
    pub bytes_sent: u64,
    /// Bytes received so far.
    pub bytes_received: u64,
}

#[derive(Debug, Default)]
pub(super) struct Measured {
    path: Path,
    /// The path's counters at times in the last second.
    counted: VecDeque<(Time, u64, u64)>,
    /// Errors of the last two seconds, cells.
    errors: VecDeque<(Time, f32)>,
    pub(super) snapshots: u64,
    pub(super) snapshot_bytes: usize,
}

impl Measured {
    pub(super) fn set_path(&mut self, now: Time, path: Path) {
        self.path = path;
        let is_time = self.counted.back().is_none_or(|(at, ..)| now.since(*at) >= COUNT_EACH);
        if is_time {
            self.counted.push_back((now, path.bytes_sent, path.bytes_received));
        }
        while self.counted.len() > 1 && self.counted.front().is_some_and(|(at, ..)| now.since(*at) > SECOND) {
            self.counted.pop_front();
        }
    }

    pub(super) fn on_error(&mut self, now: Time, error: f32) {
        self.errors.push_back((now, error));
        while self.errors.front().is_some_and(|(at, _)| now.since(*at) > 2 * SECOND) {
            self.errors.pop_front();
        }
    }

    /// The figures, except those that the client knows better.
    pub(super) fn figures(&self) -> Figures {
        let (first, last) = (self.counted.front(), self.counted.back());
        let rate = |bytes: fn(&(Time, u64, u64)) -> u64| {
            let (Some(first), Some(last)) = (first, last) else { return 0.0 };
            let passed = last.0.since(first.0).as_secs_f64();
            let bytes = u32::try_from(bytes(last).saturating_sub(bytes(first))).unwrap_or(u32::MAX);
            if passed > 0.0 { f64::from(bytes) / passed } else { 0.0 }
        };
        Figures {
            rtt: self.path.rtt,
            loss: self.path.loss,
            up: rate(|counted| counted.1),
            down: rate(|counted| counted.2),
            error: self.errors.back().map_or(0.0, |(_, error)| *error),
            error_max: self.errors.iter().fold(0.0, |most, (_, error)| error.max(most)),
            snapshots: self.snapshots,
            snapshot_bytes: self.snapshot_bytes,
            ..Figures::default()
        }
    }
}

const COUNT_EACH: Duration = Duration::from_millis(100);
const SECOND: Duration = Duration::from_secs(1);
