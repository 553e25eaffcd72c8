//! Known traffic over a bad link, and what it costs: latencies, bytes, resends.
//!
//! A [`Scenario`] is one or more [`Flow`]s (a [`Workload`] in a [`Mode`]) over two links. It runs once per
//! seed, and the [`Report`] combines all runs. [`Family`] is a panel of scenarios for comparing modes, and
//! [`Score`] compares two modes. [`Sharing`] measures how flows share a narrow path, and
//! [`Downloads`] what they get of one whose rate varies.

mod download;
mod end;
mod family;
mod flow;
mod message;
mod mode;
mod report;
mod run;
mod sharing;
mod workload;

pub use download::Downloads;
pub use end::EndError;
pub use family::{Cell, Family, Score};
pub use mode::{ChannelMode, EndMode, Mode};
pub use report::{Latency, Report, Run, percentile};
pub use sharing::{Sharing, jain};
pub use workload::{Answer, Start, Traffic, Workload};

use crate::{LinkConfig, LinkError, Loss};
use std::time::Duration;
use thiserror::Error;
use whitewater::ConfigError;

/// Flows over one path.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "flows and links")]
pub struct Scenario {
    /// Sessions that share the path, mostly one.
    pub flows: Vec<Flow>,
    /// The links from alice to bob and from bob to alice.
    pub links: [LinkConfig; 2],
}

/// A session and its traffic.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "what and how")]
pub struct Flow {
    /// What is sent.
    pub workload: Workload,
    /// How both ends are configured and driven.
    pub mode: Mode,
}

impl Scenario {
    /// One session over a path that is the same in both directions.
    #[must_use]
    pub fn new(workload: Workload, link: LinkConfig, mode: Mode) -> Self {
        Self { flows: vec![Flow { workload, mode }], links: [link.clone(), link] }
    }

    /// KCP's own test: [`Workload::upstream`] over a path that loses exactly 5 of every 100 packets each way,
    /// with a delay of 30 ms plus 0 to 31 ms, in order. Source: KCP test.cpp, `LatencySimulator(10, 60,
    /// 125)`.
    #[must_use]
    pub fn upstream(mode: Mode) -> Self {
        let link = LinkConfig {
            delay: Duration::from_millis(30),
            jitter: Duration::from_millis(31),
            jitter_step: Duration::from_millis(1),
            loss: Loss::Deck { lost: 5, of: 100 },
            ..LinkConfig::default()
        };
        Self::new(Workload::upstream(), link, mode)
    }

    /// Runs the scenario once per seed and returns the report of the first flow.
    ///
    /// # Errors
    ///
    /// If a config is out of range, a send queue is full, or a message differs from what was sent.
    pub fn run(&self, seeds: impl IntoIterator<Item = u64>) -> Result<Report, ScenarioError> {
        Ok(self.run_flows(seeds)?.into_iter().next().unwrap_or_default())
    }

    /// Like [`run`](Self::run), with a report for each flow.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn run_flows(&self, seeds: impl IntoIterator<Item = u64>) -> Result<Vec<Report>, ScenarioError> {
        let mut reports = vec![Report::default(); self.flows.len()];
        for seed in seeds {
            run::run(self, seed, &mut reports)?;
        }
        Ok(reports)
    }
}

/// Why a scenario failed.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum ScenarioError {
    /// The config of a mode is out of range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The config of a link is out of range.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A message was refused: the queue of the mode is too short for the workload.
    #[error("seed {seed}, flow {flow}: message {index} was refused: {error}")]
    Send {
        /// The seed.
        seed: u64,
        /// The flow.
        flow: u32,
        /// The message.
        index: u32,
        /// Why not.
        error: EndError,
    },
    /// A received message is not the next one, byte for byte: one is missing, or the link damages datagrams
    /// and the session does not notice.
    #[error("seed {seed}, flow {flow}: received {len} other bytes instead of message {index}")]
    Message {
        /// The seed.
        seed: u64,
        /// The flow.
        flow: u32,
        /// The message expected.
        index: u32,
        /// Length of the received message, bytes.
        len: usize,
    },
}
