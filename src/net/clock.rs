//! What drivers need from the system besides sockets: a clock and random bytes.

use crate::time::Time;
use getrandom::SysRng;
use rand_core::{TryRng, UnwrapErr};
use std::io;
use std::time::Instant;

/// A monotonic clock that starts at zero. A copy keeps the same epoch.
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

/// The random source for the keys and numbers of sessions. It panics if the system provided bytes before and then
/// fails: predictable keys are worse than no program.
///
/// # Errors
///
/// The system provides no random bytes.
pub(super) fn random() -> io::Result<UnwrapErr<SysRng>> {
    SysRng.try_next_u64()?;
    Ok(UnwrapErr(SysRng))
}
