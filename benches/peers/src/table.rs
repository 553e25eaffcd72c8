//! A row of a table: the figure of each implementation, and its ratio to whitewater's.

use std::fmt;

/// The median, the least and the greatest of some measurements.
pub(crate) struct Spread {
    pub(crate) median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let (min, max) = (values[0], values[values.len() - 1]);
        Self { median: values[values.len() / 2], min, max }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", figure(self.min), figure(self.max))
    }
}

/// `ww 123 ns [120..130]  ikcp.c 456 ns (3.7x) [450..470]  ..`: the others are compared with the first.
pub(crate) fn spreads(unit: &str, peers: &[(&str, Spread)]) -> String {
    let base = peers[0].1.median;
    let cell = |(index, (name, spread)): (usize, &(&str, Spread))| {
        format!("{} [{spread}]", value(name, spread.median, unit, (index > 0).then_some(base)))
    };
    peers.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ")
}

/// The same for single figures.
pub(crate) fn values(unit: &str, peers: &[(&str, f64)]) -> String {
    let base = peers[0].1;
    let cell = |(index, &(name, median)): (usize, &(&str, f64))| {
        value(name, median, unit, (index > 0).then_some(base))
    };
    peers.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ")
}

fn value(name: &str, value: f64, unit: &str, base: Option<f64>) -> String {
    // A ratio to almost zero is meaningless.
    let ratio = base.filter(|base| *base > 0.5).map(|base| format!(" ({:.1}x)", value / base));
    format!("{name} {} {unit}{}", figure(value), ratio.unwrap_or_default())
}

fn figure(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        _ if value.abs() < 10.0 => format!("{value:.2}"),
        _ if value.abs() < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}
