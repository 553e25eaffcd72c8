//! A progress line on stderr, if that is a terminal.

use std::io::{IsTerminal, Write as _, stderr};

/// A progress bar that is redrawn in place.
pub(crate) struct Bar {
    of: u64,
    watched: bool,
}

impl Bar {
    pub(crate) fn new(of: u64) -> Self {
        Self { of, watched: stderr().is_terminal() }
    }

    /// `done` of the whole is done; `doing` is next.
    pub(crate) fn show(&self, done: u64, doing: &str) {
        if self.watched {
            let full = usize::try_from(WIDTH * done.min(self.of) / self.of.max(1)).unwrap_or_default();
            let (full, empty) = LINE.split_at_checked(full).unwrap_or_default();
            eprint!("\r[{full}{}] {doing}\x1b[K", ".".repeat(empty.len()));
            let _ = stderr().flush();
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if self.watched {
            eprint!("\r\x1b[K");
        }
    }
}

const LINE: &str = "########################################";
const WIDTH: u64 = LINE.len() as u64;
