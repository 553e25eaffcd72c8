//! What is counted, in the text format of Prometheus.

use crate::messages::Listed;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Upper bounds of the buckets of joins, ms.
const BUCKETS_MS: [u64; 10] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
const PREFIX: &str = "whitewater_matchmaker";

#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// By method, route and status, of which there are few.
    requests: Mutex<BTreeMap<(&'static str, String, u16), u64>>,
    pub(crate) tokens: AtomicU64,
    pub(crate) connections: Connections,
    /// Joins by bucket; the last is for those that took longer than any.
    joins: [AtomicU64; BUCKETS_MS.len() + 1],
    joins_us: AtomicU64,
}

/// What became of connections.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    pub(crate) accepted: AtomicU64,
    /// Refused: there are too many.
    pub(crate) full: AtomicU64,
    /// Refused: its address has or opens too many.
    pub(crate) limited: AtomicU64,
    /// Did not get through the handshake of TLS.
    pub(crate) no_tls: AtomicU64,
}

impl Metrics {
    pub(crate) fn count(&self, method: &'static str, route: String, status: u16) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((method, route, status)).or_default() += 1;
    }

    pub(crate) fn join_took(&self, time: Duration) {
        let bucket = BUCKETS_MS.iter().position(|most| time <= Duration::from_millis(*most));
        if let Some(count) = self.joins.get(bucket.unwrap_or(BUCKETS_MS.len())) {
            count.fetch_add(1, Relaxed);
        }
        self.joins_us.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    pub(crate) fn render(&self, servers: &[Listed]) -> String {
        let mut text = String::new();
        family(&mut text, "requests_total", "counter", "Answers by status.");
        for ((method, route, status), count) in &*self.requests.lock().unwrap_or_else(PoisonError::into_inner)
        {
            let labels = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
            line(&mut text, "requests_total", &labels, *count);
        }
        self.render_connections(&mut text);
        family(&mut text, "tokens_total", "counter", "Connect tokens made.");
        line(&mut text, "tokens_total", "", self.tokens.load(Relaxed));
        self.render_joins(&mut text);
        render_servers(&mut text, servers);
        text
    }

    fn render_connections(&self, text: &mut String) {
        let Connections { accepted, full, limited, no_tls } = &self.connections;
        family(text, "connections_total", "counter", "Connections by what became of them.");
        for (outcome, count) in
            [("accepted", accepted), ("full", full), ("limited", limited), ("no_tls", no_tls)]
        {
            line(text, "connections_total", &format!("outcome=\"{outcome}\""), count.load(Relaxed));
        }
    }

    fn render_joins(&self, text: &mut String) {
        family(text, "join_seconds", "histogram", "Time from a request to join to its answer.");
        let (mut sum, mut bounds) = (0, BUCKETS_MS.iter());
        for count in &self.joins {
            sum += count.load(Relaxed);
            let bound = bounds.next().map_or("+Inf".to_owned(), |ms| seconds(ms * 1000));
            line(text, "join_seconds_bucket", &format!("le=\"{bound}\""), sum);
        }
        let _ = writeln!(text, "{PREFIX}_join_seconds_sum {}", seconds(self.joins_us.load(Relaxed)));
        line(text, "join_seconds_count", "", sum);
    }
}

/// Sums for each region. A region has no characters that a label would have to escape.
fn render_servers(text: &mut String, servers: &[Listed]) {
    let mut regions: BTreeMap<&str, [u64; 4]> = BTreeMap::new();
    for Listed { report, reserved, .. } in servers {
        let sums = regions.entry(&report.region).or_default();
        let numbers = [1, report.players, *reserved, report.capacity];
        sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += u64::from(number));
    }
    let names = [
        ("servers", "Servers with a lease."),
        ("players", "Players on them."),
        ("reserved", "Players with a token who have not arrived yet."),
        ("capacity", "Places for players."),
    ];
    for (at, (name, help)) in names.into_iter().enumerate() {
        family(text, name, "gauge", help);
        for (region, sums) in &regions {
            line(text, name, &format!("region=\"{region}\""), sums.get(at).copied().unwrap_or_default());
        }
    }
}

fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {PREFIX}_{name} {help}\n# TYPE {PREFIX}_{name} {kind}");
}

fn line(text: &mut String, name: &str, labels: &str, value: u64) {
    let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
    let _ = writeln!(text, "{PREFIX}_{name}{labels} {value}");
}

fn seconds(us: u64) -> String {
    let text = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_adds_up_and_has_its_sum() {
        let metrics = Metrics::default();
        for ms in [1, 3, 3, 2000] {
            metrics.join_took(Duration::from_millis(ms));
        }
        let text = metrics.render(&[]);
        for expected in ["bucket{le=\"0.001\"} 1", "bucket{le=\"0.002\"} 1", "bucket{le=\"0.005\"} 3"] {
            assert!(text.contains(expected), "{text}");
        }
        for expected in ["bucket{le=\"1\"} 3", "bucket{le=\"+Inf\"} 4", "sum 2.007\n", "count 4\n"] {
            assert!(text.contains(expected), "{text}");
        }
    }
}
