//! All statistics under one set of names, for whatever a program collects its figures with. docs/EVENTS.md has the table of them.
//!
//! [`Measures`] goes through what a struct of statistics has. With the feature `metrics`, `record` hands it to the facade of that name,
//! and with that to Prometheus, StatsD or what the program has chosen:
//!
#![cfg_attr(feature = "metrics", doc = "```")]
#![cfg_attr(not(feature = "metrics"), doc = "```ignore")]
//! use whitewater::{Config, Conv, DatagramQueue, Kcp, metrics};
//!
//! let kcp = Kcp::new(Conv(7), &Config::turbo(), DatagramQueue::new())?;
//! metrics::describe(); // once
//! metrics::record(&kcp.stats(), &[("peer", "7")]); // now and then: each second, say
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing is recorded by itself: neither a datagram nor a message costs more with it.

#[cfg(feature = "metrics")]
mod facade;

#[cfg(feature = "metrics")]
pub use facade::{describe, record};

pub use crate::counters::{Measures, Metric, Value};

use crate::arq;
use crate::packet::{Endpoint, PacketConfig};
use crate::wire::DatagramQueue;

/// Goes through everything that there can be, with values of no meaning: to tell a collector the names before there are figures.
pub fn every(each: &mut dyn FnMut(Metric)) {
    arq::Stats::default().measures(each);
    if let Ok(endpoint) = Endpoint::new(&PacketConfig::default(), DatagramQueue::new()) {
        endpoint.stats().measures(each);
    }
    crate::session::ConnectionStats::default().measures(each);
    crate::session::ServerStats::default().measures(each);
    crate::session::raw::PeersStats::default().measures(each);
    #[cfg(feature = "net")]
    {
        crate::net::SocketTraffic::default().measures(each);
        crate::net::SocketStats::default().measures(each);
    }
}
