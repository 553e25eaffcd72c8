//! Support for the facade crate `metrics`.

use super::{Measures, Metric, Value};
use ::metrics::{Label, Unit, counter, describe_counter, describe_gauge, gauge};

/// Reports statistics to the recorder that the program has installed, if any, with `labels` added to each.
/// Counters are reported as totals, so it does not matter how often you call this.
///
/// For a server, with a label that distinguishes it from others:
///
/// ```no_run
/// # #[cfg(feature = "net")]
/// fn each_second(server: &whitewater::Server, name: &str) {
///     use whitewater::metrics::record;
///     let labels = [("server", name)];
///     record(&server.stats(), &labels);
///     record(&server.socket_stats(), &labels); // what the system refused or lost
///     record(&server.socket_traffic(), &labels);
/// }
/// ```
///
/// For servers behind threads, let each thread do this, with [`thread::Server::run`](crate::thread::Server::run).
///
/// A label per session creates one series for every session there has ever been. Most programs record servers
/// and sockets all the time, and sessions only while somebody is looking.
pub fn record(stats: &impl Measures, labels: &[(&'static str, &str)]) {
    let common: Vec<_> = labels.iter().map(|(name, value)| Label::new(*name, (*value).to_owned())).collect();
    stats.measures(&mut |measure: Metric| {
        let mut labels = common.clone();
        labels.extend(measure.label.map(|(name, value)| Label::new(name, value)));
        match measure.value {
            Value::Counter(count) => counter!(measure.name, labels).absolute(count),
            Value::Gauge(value) => gauge!(measure.name, labels).set(value),
        }
    });
}

/// Tells the recorder the descriptions and units of all names. Call it once, after installing the recorder.
pub fn describe() {
    let mut each = |Metric { name, value, help, .. }| match value {
        Value::Counter(_) => describe_counter!(name, unit(name), help),
        Value::Gauge(_) => describe_gauge!(name, unit(name), help),
    };
    super::every(&mut each);
}

fn unit(name: &str) -> Unit {
    if name.ends_with("_seconds") {
        Unit::Seconds
    } else if name.contains("_bytes") && !name.ends_with("_per_second") {
        Unit::Bytes
    } else {
        Unit::Count
    }
}
