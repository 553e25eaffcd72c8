//! Warnings of the libraries on standard error: what a server cannot do any more, and why.

use log::{Level, LevelFilter, Log, Metadata, Record};
use std::io::{self, Write as _};

struct Warnings;

/// From now on.
pub(crate) fn show() {
    if log::set_logger(&Warnings).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}

impl Log for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= Level::Warn
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let _ = writeln!(io::stderr(), "{} {}: {}", record.level(), record.target(), record.args());
        }
    }

    fn flush(&self) {}
}
