//! The local clock in microseconds and the clock of the wire in milliseconds. The caller passes in the time:
//! nothing below `net` reads a clock.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

/// A point in time, in µs since an epoch that the caller chooses. It must come from a monotonic clock.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Time(u64);

impl Time {
    /// The epoch.
    pub const ZERO: Self = Self(0);

    /// The time `micros` µs after the epoch.
    #[inline]
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// The time `millis` ms after the epoch.
    #[inline]
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1000))
    }

    /// µs since the epoch.
    #[inline]
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Whole ms since the epoch.
    #[inline]
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1000
    }

    /// Time elapsed since `earlier`; zero if `earlier` is in the future.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// This time on the clock of the wire: ms, wrapping at 2^32 (49.7 days).
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the wire's clock wraps")]
    pub const fn wire(self) -> Millis {
        Millis(self.as_millis() as u32)
    }

    /// The low 32 bits of the µs, which identify a transmission. They wrap after 71 minutes.
    #[expect(clippy::cast_possible_truncation, reason = "32 bits identify a transmission")]
    pub(crate) const fn token(self) -> Millis {
        Millis(self.0 as u32)
    }

    /// µs since `earlier`; 0 if `earlier` is in the future.
    #[inline]
    pub(crate) const fn micros_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The time `micros` µs later.
    #[inline]
    pub(crate) const fn after(self, micros: u64) -> Self {
        Self(self.0.saturating_add(micros))
    }

    /// The time `micros` µs earlier.
    #[inline]
    pub(crate) const fn before(self, micros: u64) -> Self {
        Self(self.0.saturating_sub(micros))
    }

    /// Later than any other time, meaning never. The minimum of many times is cheaper to compute with this
    /// than with an `Option` around each.
    pub(crate) const NEVER: Self = Self(u64::MAX);

    /// `None` for [`NEVER`](Self::NEVER).
    #[inline]
    pub(crate) const fn ever(self) -> Option<Self> {
        if self.0 == Self::NEVER.0 { None } else { Some(self) }
    }

    /// The first time at which the clock of the wire shows `at`, or `self` if it already has.
    pub(crate) fn when(self, at: Millis) -> Self {
        match u64::try_from(at.since(self.wire())) {
            Ok(ahead) if ahead > 0 => Self::from_millis(self.as_millis().saturating_add(ahead)),
            _ => self,
        }
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    #[inline]
    fn add(self, duration: Duration) -> Self {
        // Avoids the 128-bit arithmetic of `as_micros`.
        let micros = duration.as_secs().saturating_mul(1_000_000);
        Self(self.0.saturating_add(micros).saturating_add(duration.subsec_micros().into()))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06} s", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// A time on the clock of the wire: ms, wrapping at 2^32. Such times have a distance but no order.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "a number with a name")]
pub struct Millis(pub u32);

impl Millis {
    /// ms from `earlier` to `self`; negative if `earlier` is in the future. Source: ikcp.c `_itimediff`.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0).cast_signed()
    }

    /// The time `ms` ms later.
    #[inline]
    #[must_use]
    pub const fn add(self, ms: u32) -> Self {
        Self(self.0.wrapping_add(ms))
    }

    /// Whether this time has been reached at `now`.
    #[inline]
    #[must_use]
    pub const fn is_due(self, now: Self) -> bool {
        now.since(self) >= 0
    }

    /// The earlier of two times less than 2^31 ms apart.
    #[inline]
    #[must_use]
    pub const fn earlier(self, other: Self) -> Self {
        if other.since(self) < 0 { other } else { self }
    }

    /// The later of two times less than 2^31 ms apart.
    #[inline]
    #[must_use]
    pub const fn later(self, other: Self) -> Self {
        if other.since(self) > 0 { other } else { self }
    }
}

/// A duration in whole µs.
pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_returns_the_first_microsecond_that_shows_the_wire_time() {
        let now = Time::from_micros((1 << 32) * 1000 - 300);
        let at = now.when(Millis(7));
        assert_eq!(at, Time::from_millis((1 << 32) + 7));
        assert_eq!(at.wire(), Millis(7));
        assert_eq!(now.when(Millis(u32::MAX - 3)), now);
    }

    #[test]
    fn a_duration_that_would_overflow_saturates() {
        assert_eq!((Time::from_micros(9) + Duration::MAX).as_micros(), u64::MAX);
        assert_eq!(Time::ZERO.since(Time::from_millis(1)), Duration::ZERO);
    }
}
