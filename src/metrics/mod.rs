//! All statistics under one set of names, for any collector. docs/EVENTS.md has a table of them.
//!
//! [`Measures`] visits every statistic in a struct. With the feature `metrics`, `record` passes them to the
//! facade crate of that name, and so to Prometheus, StatsD or whatever the program uses:
//!
#![cfg_attr(feature = "metrics", doc = "```")]
#![cfg_attr(not(feature = "metrics"), doc = "```ignore")]
//! use whitewater::metrics;
//! use whitewater::kcp::{Config, Conv, Kcp};
//! use whitewater::machine::DatagramQueue;
//!
//! let kcp = Kcp::new(Conv(7), &Config::default(), DatagramQueue::new())?;
//! metrics::describe(); // once
//! metrics::record(&kcp.stats(), &[("peer", "7")]); // from time to time, for example every second
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing is recorded unless you ask for it: no datagram and no message costs more because of this.

#[cfg(feature = "metrics")]
mod facade;

#[cfg(feature = "metrics")]
pub use facade::{describe, record};

pub use crate::counters::{Measures, Metric, Value};

use crate::kcp;
use crate::packet::{Endpoint, PacketConfig};
use crate::wire::DatagramQueue;

/// Visits every statistic that there can be, with meaningless values, to announce the names to a collector
/// beforehand.
pub fn every(each: &mut dyn FnMut(Metric)) {
    kcp::Stats::default().measures(each);
    if let Ok(endpoint) = Endpoint::new(&PacketConfig::default(), DatagramQueue::new()) {
        endpoint.stats().measures(each);
    }
    crate::session::ConnectionStats::default().measures(each);
    crate::session::ServerStats::default().measures(each);
    crate::session::peers::PeersStats::default().measures(each);
    #[cfg(feature = "net")]
    {
        crate::net::SocketTraffic::default().measures(each);
        crate::net::SocketStats::default().measures(each);
    }
}
