//! What every config is checked with: nothing is clamped, an error names field, value and range.

use std::ops::RangeInclusive;
use std::time::Duration;
use thiserror::Error;

/// A field of a config out of its range.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
#[error("{field} is {value}, outside {min} to {max}")]
pub struct ConfigError {
    /// The field.
    pub field: &'static str,
    /// Its value; times in ms.
    pub value: u64,
    /// Least value allowed.
    pub min: u64,
    /// Largest value allowed.
    pub max: u64,
}

pub(crate) fn in_range<T: Copy + PartialOrd + Into<u64>>(
    field: &'static str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<(), ConfigError> {
    if range.contains(&value) {
        return Ok(());
    }
    let (min, max) = range.into_inner();
    Err(ConfigError { field, value: value.into(), min: min.into(), max: max.into() })
}

/// Whole ms of a time, for [`in_range`].
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
