//! Statistics have documented names, and a recorder gets every figure as it stands.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

#[path = "common/configs.rs"]
mod configs;

use std::collections::BTreeMap;
use whitewater::Time;
use whitewater::kcp::{Conv, Kcp};
use whitewater::machine::DatagramQueue;
use whitewater::metrics::{Measures, Metric, Value, every};

/// The table that docs/EVENTS.md must contain.
#[cfg(feature = "net")]
fn table() -> String {
    use std::fmt::Write as _;
    let mut rows: Vec<(Metric, Vec<&str>)> = Vec::new();
    every(&mut |measure: Metric| match rows.last_mut() {
        Some((last, labels)) if last.name == measure.name => {
            labels.extend(measure.label.map(|(_, value)| value))
        }
        _ => rows.push((measure, measure.label.map(|(_, value)| value).into_iter().collect())),
    });
    let mut table = String::from("| name | kind | what |\n|---|---|---|\n");
    for (Metric { name, label, value, help, .. }, labels) in rows {
        let kind = if matches!(value, Value::Counter(_)) { "counter" } else { "gauge" };
        let _ = write!(table, "| `{name}` | {kind} | {help}");
        if let Some((label, _)) = label {
            let _ = write!(table, "; `{label}`: {}", labels.join(", "));
        }
        table.push_str(" |\n");
    }
    table
}

#[cfg(feature = "net")]
#[test]
fn the_docs_have_every_name() {
    let docs = include_str!("../docs/EVENTS.md");
    assert!(docs.contains(&table()), "docs/EVENTS.md wants\n{}", table());
}

#[test]
fn every_name_is_unique_and_tells_its_kind() {
    let mut seen = BTreeMap::new();
    every(&mut |Metric { name, label, value, .. }| {
        assert!(name.starts_with("whitewater_"), "{name}");
        assert_eq!(name.ends_with("_total"), matches!(value, Value::Counter(_)), "{name}");
        assert!(seen.insert((name, label), value).is_none(), "{name} {label:?} is there twice");
    });
    assert!(seen.len() > 100);
}

/// A control block that has resent something.
fn used() -> Kcp<DatagramQueue> {
    let config = configs::turbo();
    let mut kcp = Kcp::new(Conv(7), &config, DatagramQueue::new()).unwrap();
    assert_eq!(kcp.send(b"hello"), Ok(5));
    (0..1000).for_each(|ms| kcp.update(Time::from_millis(ms)));
    kcp
}

#[test]
fn a_figure_equals_the_statistics() {
    let stats = used().stats();
    let mut found = BTreeMap::new();
    stats.measures(&mut |Metric { name, label, value, .. }| {
        found.insert((name, label), value);
    });
    let resends = found.get(&("whitewater_kcp_resends_total", Some(("cause", "timeout"))));
    assert_eq!(resends, Some(&Value::Counter(stats.resends_timeout.into())));
    assert!(stats.resends_timeout > 0);
    let bytes = found.get(&("whitewater_kcp_bytes_sent_total", None));
    assert_eq!(bytes, Some(&Value::Counter(stats.bytes_sent)));
    let in_flight = found.get(&("whitewater_kcp_in_flight_segments", None));
    assert_eq!(in_flight, Some(&Value::Gauge(1.0)));
}

#[cfg(feature = "metrics")]
mod facade {
    use super::used;
    use metrics::{
        Counter, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    };
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex, PoisonError};

    /// What a recorder was last given, by name and labels.
    #[derive(Default)]
    struct Last {
        values: Arc<Mutex<BTreeMap<String, f64>>>,
        described: Mutex<BTreeMap<String, Option<Unit>>>,
    }

    struct Cell(String, Arc<Mutex<BTreeMap<String, f64>>>);

    impl Cell {
        fn of(key: &Key, values: &Arc<Mutex<BTreeMap<String, f64>>>) -> Arc<Self> {
            let labels: Vec<_> =
                key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
            Arc::new(Self(format!("{}{{{}}}", key.name(), labels.join(",")), Arc::clone(values)))
        }

        fn set(&self, value: f64) {
            self.1.lock().unwrap_or_else(PoisonError::into_inner).insert(self.0.clone(), value);
        }
    }

    impl CounterFn for Cell {
        fn increment(&self, _: u64) {
            unreachable!("counters are given as they stand");
        }

        fn absolute(&self, value: u64) {
            self.set(value as f64);
        }
    }

    impl GaugeFn for Cell {
        fn increment(&self, _: f64) {
            unreachable!("gauges are given as they stand");
        }

        fn decrement(&self, _: f64) {
            unreachable!("gauges are given as they stand");
        }

        fn set(&self, value: f64) {
            self.set(value);
        }
    }

    impl Last {
        fn describe(&self, name: &KeyName, unit: Option<Unit>) {
            let mut described = self.described.lock().unwrap_or_else(PoisonError::into_inner);
            described.insert(name.as_str().to_owned(), unit);
        }
    }

    impl Recorder for Last {
        fn describe_counter(&self, name: KeyName, unit: Option<Unit>, _: SharedString) {
            self.describe(&name, unit);
        }

        fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, _: SharedString) {
            self.describe(&name, unit);
        }

        fn describe_histogram(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
            unreachable!("there is no histogram {}", name.as_str());
        }

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            Counter::from_arc(Cell::of(key, &self.values))
        }

        fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::from_arc(Cell::of(key, &self.values))
        }

        fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
            unreachable!("there is no histogram {key}");
        }
    }

    #[test]
    fn a_recorder_gets_every_figure_with_the_programs_labels() {
        let (recorder, kcp) = (Last::default(), used());
        metrics::with_local_recorder(&recorder, || {
            whitewater::metrics::describe();
            (0..3).for_each(|_| whitewater::metrics::record(&kcp.stats(), &[("peer", "seven")]));
        });
        let values = recorder.values.lock().unwrap_or_else(PoisonError::into_inner);
        let value = |name: &str| *values.get(name).unwrap_or_else(|| panic!("no {name} in {values:#?}"));
        let stats = kcp.stats();
        let resends = value("whitewater_kcp_resends_total{peer=seven,cause=timeout}");
        assert_eq!(resends, f64::from(stats.resends_timeout));
        assert_eq!(value("whitewater_kcp_rto_seconds{peer=seven}"), stats.rto.as_secs_f64());
        let described = recorder.described.lock().unwrap_or_else(PoisonError::into_inner);
        let unit = |name: &str| described.get(name).copied().flatten();
        assert_eq!(unit("whitewater_kcp_rto_seconds"), Some(Unit::Seconds));
        assert_eq!(unit("whitewater_kcp_bytes_sent_total"), Some(Unit::Bytes));
        assert_eq!(unit("whitewater_kcp_resends_total"), Some(Unit::Count));
        assert!(
            values.keys().all(|key| key.split('{').next().is_some_and(|name| described.contains_key(name)))
        );
    }
}
