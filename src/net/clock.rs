//! What drivers need from the system besides sockets: a clock and random bytes.

use crate::time::Time;
use getrandom::SysRng;
use rand_core::{TryRng, UnwrapErr};
use std::io;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// A monotonic clock that starts at zero. A copy keeps the same epoch.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: Instant,
    instant: fn() -> Instant,
}

impl Clock {
    /// A clock whose epoch is now.
    #[must_use]
    pub fn new() -> Self {
        Self::of(Instant::now)
    }

    /// The same by another clock of the system, such as that of a runtime which may be paused.
    pub(super) fn of(instant: fn() -> Instant) -> Self {
        Self { epoch: instant(), instant }
    }

    /// The time since its epoch.
    #[must_use]
    pub fn now(&self) -> Time {
        Time::ZERO + (self.instant)().saturating_duration_since(self.epoch)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// The system's clock of the day, which may be wrong and may jump.
#[derive(Debug, Default)]
pub(super) struct WallClock {
    due: Time,
}

impl WallClock {
    /// What it shows, since 1970, if a machine should be told again.
    pub(super) fn read(&mut self, now: Time) -> Option<Duration> {
        if now < self.due {
            return None;
        }
        self.due = now + READ_EACH;
        Some(UNIX_EPOCH.elapsed().unwrap_or_default())
    }
}

/// Connect tokens are valid for seconds at least.
const READ_EACH: Duration = Duration::from_secs(1);

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_told_the_time_of_day_once_a_second() {
        let mut wall = WallClock::default();
        let mut told = |ms| wall.read(Time::from_millis(ms));
        assert!(told(0).is_some_and(|unix| unix.as_secs() > 1_700_000_000));
        assert_eq!((told(0), told(999)), (None, None));
        assert!(told(1000).is_some() && told(1001).is_none() && told(90_000).is_some());
    }
}
