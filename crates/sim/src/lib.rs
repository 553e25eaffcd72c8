//! A network in virtual time, driven by a seed: bad links, two ends, and what their traffic costs.
//!
//! Nothing here reads a clock or a global random number generator, so the same seed gives the same bytes on
//! every run, and an hour of a game takes a second.
//!
//! - [`Link`] is one direction of a path: delay, jitter, loss, reordering, copies, damage, a bottleneck with its
//!   queue, an mtu, ECN marks, outages, standstills. [`LinkConfig`] says how much of each. With a [`Playback`] it plays
//!   the [`Trace`] of a cellular link, recorded or made by a seed, before a queue with or without CoDel.
//! - [`Pair`] runs two [`Peer`]s over two links, from event to event. Each [`Machine`](whitewater::machine::Machine) is a peer:
//!   sessions, channels of messages, control blocks. [`KcpEnd`] is a control block whose calls are timed like a
//!   program's; [`Group`] is several peers on one path.
//! - [`scenario`] sends known traffic and measures latencies, bytes and resends.
//!
//! # Presets
//!
//! The numbers are for one direction. Jitter preserves the order; packets are 28 bytes larger than their
//! datagrams, and at most 1500 bytes.
//!
//! | | delay | jitter | lost | reordered, copied | bottleneck, queue |
//! |---|---|---|---|---|---|
//! | [`lan`](LinkConfig::lan) | 0.2 ms | 0.05 ms | - | - | 1000 Mbit/s, 512 kB |
//! | [`wifi`](LinkConfig::wifi) | 10 ms | 6 ms | 1 % | - | 50 Mbit/s, 256 kB |
//! | [`mobile`](LinkConfig::mobile) | 35 ms | 15 ms | 80 % for 100 ms each 2 s, else 0.5 % | 1 % come 20 ms late, 0.2 % twice | 10 Mbit/s, 256 kB |
//! | [`congested`](LinkConfig::congested) | 30 ms | 5 ms | 3 % | - | 2 Mbit/s, 64 kB |
//!
//! # Example
//!
//! A minute of 60 messages per second over a phone's link, in both common modes:
//!
//! ```
//! use whitewater_sim::LinkConfig;
//! use whitewater_sim::scenario::{Mode, Scenario, Workload};
//!
//! for mode in [Mode::fast(), Mode::turbo_flush()] {
//!     let report = Scenario::new(Workload::input60(), LinkConfig::mobile(), mode).run(1..=2)?;
//!     let latency = report.latency();
//!     assert_eq!((report.delivered, report.sent), (7200, 7200));
//!     println!("mean {:?}, p99 {:?}, {} resends", latency.mean, latency.p99, report.resends);
//! }
//! # Ok::<(), whitewater_sim::scenario::ScenarioError>(())
//! ```

mod bottleneck;
mod codel;
mod config;
mod corruption;
mod end;
mod group;
mod jitter;
mod link;
mod loss;
mod pair;
mod playback;
mod rng;
pub mod scenario;
mod stats;
mod trace;

pub use bottleneck::Bottleneck;
pub use config::{EcnPath, LinkConfig, LinkError};
pub use corruption::Corruption;
pub use end::{Clock, Drive, KcpEnd};
pub use group::Group;
pub use jitter::Spread;
pub use link::Link;
pub use loss::Loss;
pub use pair::{Pair, Peer, pop_from};
pub use playback::{Discipline, Playback};
pub use rng::SimRng;
pub use stats::{IP_AND_UDP, LinkStats};
pub use trace::{OPPORTUNITY, Trace, TraceError};
