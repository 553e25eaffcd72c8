//! A game without a screen, in virtual time, and what is measured of it.

mod samples;

pub use samples::{Latency, Samples, Snapshot, Traffic, percentile};
