//! The one clock of the drivers.

use crate::time::Time;
use std::time::Instant;

/// A monotonic clock that shows zero when it is made. A copy goes on with the same epoch.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: Instant,
}

impl Clock {
    /// A clock whose epoch is now.
    #[must_use]
    pub fn new() -> Self {
        Self { epoch: Instant::now() }
    }

    /// The time since its epoch.
    #[must_use]
    pub fn now(&self) -> Time {
        Time::ZERO + self.epoch.elapsed()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}
