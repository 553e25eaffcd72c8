//! What is measured of a game: enough to print figures of it, and to draw it.

use std::time::Duration;

/// What was measured, in the order of time; times are since the game began.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// What the game was: bots, link, transport, seed. For a title.
    pub title: String,
    /// How far a snapshot was from where a runner's client took it to be, cells: a sample for each snapshot of each runner.
    pub errors: Vec<(Duration, f32)>,
    /// Snapshots that were sent to all clients.
    pub snapshots: Vec<Snapshot>,
    /// How long each input took until a snapshot with its effect was back at who gave it.
    pub latencies: Vec<Latency>,
    /// Bytes a second of a client, the mean of all, each second.
    pub traffic: Vec<Traffic>,
}

/// A snapshot that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    /// When.
    pub at: Duration,
    /// Its bytes, by what has changed since the last one that the client is known to have.
    pub bytes: usize,
    /// Its bytes, had all of it been sent.
    pub full: usize,
}

/// How long an input took.
#[derive(Clone, Copy, Debug)]
pub struct Latency {
    /// When its effect was there.
    pub at: Duration,
    /// Since it was given.
    pub took: Duration,
}

/// Bytes of a second, of datagrams without the headers of IP and UDP.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    /// The end of the second.
    pub at: Duration,
    /// From a client to the server, bytes a second.
    pub up: f64,
    /// From the server to a client, bytes a second.
    pub down: f64,
}

/// The value below which `percent` of them are; zero where there are none.
#[must_use]
pub fn percentile<T: Copy + PartialOrd + Default>(values: impl Iterator<Item = T>, percent: usize) -> T {
    let mut values: Vec<T> = values.collect();
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    let last = values.len().saturating_sub(1);
    values.get((values.len() * percent / 100).min(last)).copied().unwrap_or_default()
}
