//! A game without a screen, in virtual time, with measurements.

mod report;
mod run;
mod samples;

pub use report::{Figures, compare, print, print_row};
pub(crate) use run::sample;
pub use run::{Outcome, Settings, run};
pub use samples::{Latency, Samples, Snapshot, Traffic, percentile};
