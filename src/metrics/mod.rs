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

mod block;
mod endpoint;
#[cfg(feature = "metrics")]
mod facade;
#[cfg(feature = "net")]
mod net;
mod session;

#[cfg(feature = "metrics")]
pub use facade::{describe, record};

use crate::arq::{self, Kcp};
use crate::packet::{Endpoint, PacketConfig};
use crate::seq::Conv;
use crate::wire::DatagramQueue;

/// A figure, and what it is.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Measure {
    /// Its name: the unit is in it, and counters end in `_total`.
    pub name: &'static str,
    /// Which part of what has that name, if there are several.
    pub label: Option<(&'static str, &'static str)>,
    /// How much.
    pub value: Value,
    /// What it is, in a few words.
    pub help: &'static str,
}

/// A value and how it behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "what every collector has")]
pub enum Value {
    /// It only grows, from zero when what counts it was made.
    Counter(u64),
    /// It is as it is now.
    Gauge(f64),
}

/// Statistics that are figures with names.
///
/// Without the feature `metrics` it is a few lines to hand them on, here as text:
///
/// ```
/// use whitewater::metrics::{Measures, Value};
/// use whitewater::session::ServerStats;
///
/// fn text(stats: &impl Measures) -> String {
///     let mut lines = String::new();
///     stats.measures(&mut |measure| {
///         let labels = measure.label.map_or(String::new(), |(name, value)| format!("{{{name}=\"{value}\"}}"));
///         let value = match measure.value {
///             Value::Counter(count) => count.to_string(),
///             Value::Gauge(value) => value.to_string(),
///         };
///         lines += &format!("{}{labels} {value}\n", measure.name);
///     });
///     lines
/// }
/// assert!(text(&ServerStats::default()).contains("whitewater_server_sessions 0\n"));
/// ```
pub trait Measures {
    /// Goes through all of them, always in the same order.
    fn measures(&self, each: &mut dyn FnMut(Measure));
}

/// Where measures go, with the shape of each.
struct To<'a>(&'a mut dyn FnMut(Measure));

impl To<'_> {
    fn counter(&mut self, name: &'static str, help: &'static str, count: u64) {
        (self.0)(Measure { name, label: None, value: Value::Counter(count), help });
    }

    /// One counter of several that differ in a label.
    fn counters<const N: usize>(
        &mut self,
        name: &'static str,
        help: &'static str,
        label: &'static str,
        counts: [(&'static str, u64); N],
    ) {
        for (of, count) in counts {
            (self.0)(Measure { name, label: Some((label, of)), value: Value::Counter(count), help });
        }
    }

    fn gauge(&mut self, name: &'static str, help: &'static str, value: f64) {
        (self.0)(Measure { name, label: None, value: Value::Gauge(value), help });
    }

    fn seconds(&mut self, name: &'static str, help: &'static str, time: std::time::Duration) {
        self.gauge(name, help, time.as_secs_f64());
    }
}

/// Goes through everything that there can be, with values of no meaning: to tell a collector the names before there are figures.
pub fn every(each: &mut dyn FnMut(Measure)) {
    if let Ok(kcp) = Kcp::new(Conv(0), &arq::Config::default(), DatagramQueue::new()) {
        kcp.stats().measures(each);
    }
    if let Ok(endpoint) = Endpoint::new(&PacketConfig::default(), DatagramQueue::new()) {
        endpoint.stats().measures(each);
    }
    crate::session::ConnectionStats::default().measures(each);
    crate::session::ServerStats::default().measures(each);
    crate::session::raw::Stats::default().measures(each);
    #[cfg(feature = "net")]
    {
        crate::net::SocketTraffic::default().measures(each);
        crate::net::SocketStats::default().measures(each);
    }
}
