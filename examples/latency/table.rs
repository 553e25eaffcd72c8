//! The figures.

use crate::Outcome;
use std::time::Duration;

/// Prints a row for each mode, and the number of undelivered messages.
pub(crate) fn print(outcomes: &[Outcome]) {
    println!("mode          mean ms     p50     p95     p99     max         kB  x fast   resends");
    let fast = bytes_of_fast(outcomes);
    for (name, report) in outcomes {
        let latency = report.latency();
        let [mean, p50, p95, p99, max] =
            [latency.mean, latency.p50, latency.p95, latency.p99, latency.max].map(ms);
        let kb = report.bytes() as f64 / 1e3;
        let ratio = fast.map_or_else(|| "-".to_owned(), |fast| format!("{:.2}", kb * 1e3 / fast));
        println!(
            "{name:<13} {mean:>7} {p50:>7} {p95:>7} {p99:>7} {max:>7} {kb:>10.1} {ratio:>7} {:>9}",
            report.resends
        );
    }
    for (name, report) in outcomes.iter().filter(|(_, report)| report.delivered < report.sent) {
        println!("{name}: {} of {} messages arrived in time", report.delivered, report.sent);
    }
}

/// Bytes sent in mode `fast`, if it ran and sent any.
pub(crate) fn bytes_of_fast(outcomes: &[Outcome]) -> Option<f64> {
    let fast = outcomes.iter().find(|(name, _)| name == "fast");
    fast.map(|(_, report)| report.bytes() as f64).filter(|&bytes| bytes > 0.0)
}

fn ms(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e3)
}
