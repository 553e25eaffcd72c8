//! What drivers have of the system beside sockets: one clock, and random bytes.

use crate::time::Time;
use getrandom::SysRng;
use rand_core::{TryRng, UnwrapErr};
use std::io;
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

/// What sessions take their keys and numbers from. It panics where the system gave bytes before and then does not: keys that can be
/// guessed are worse than no program.
///
/// # Errors
///
/// The system has none to give.
pub(super) fn random() -> io::Result<UnwrapErr<SysRng>> {
    SysRng.try_next_u64()?;
    Ok(UnwrapErr(SysRng))
}
