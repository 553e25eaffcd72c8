//! The measurements of a game: enough to print figures and draw a picture.

use std::time::Duration;

/// Measurements in the order of time. Times are since the start of the game.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Describes the game: bots, link, transport, seed.
    pub title: String,
    /// Distance between a snapshot and the client's prediction of its runner, cells: one sample per snapshot and
    /// runner.
    pub errors: Vec<(Duration, f32)>,
    /// Snapshots sent to all clients.
    pub snapshots: Vec<Snapshot>,
    /// The time from each input to the snapshot with its effect.
    pub latencies: Vec<Latency>,
    /// Bytes per second of a client: the mean over all, for each second.
    pub traffic: Vec<Traffic>,
}

/// A snapshot that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    /// When.
    pub at: Duration,
    /// Its bytes, as a delta to the last one that the client is known to have.
    pub bytes: usize,
    /// Its bytes if it had been sent in full.
    pub full: usize,
}

/// The latency of an input.
#[derive(Clone, Copy, Debug)]
pub struct Latency {
    /// When its effect arrived.
    pub at: Duration,
    /// How long that took.
    pub took: Duration,
}

/// Bytes in a second, of datagrams without IP and UDP headers.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    /// The end of the second.
    pub at: Duration,
    /// From a client to the server, bytes a second.
    pub up: f64,
    /// From the server to a client, bytes a second.
    pub down: f64,
}

/// The value that `percent` of them do not exceed; zero if there are none.
#[must_use]
pub fn percentile<T: Copy + PartialOrd + Default>(values: impl Iterator<Item = T>, percent: usize) -> T {
    let mut values: Vec<T> = values.collect();
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    let last = values.len().saturating_sub(1);
    values.get((values.len() * percent / 100).min(last)).copied().unwrap_or_default()
}
