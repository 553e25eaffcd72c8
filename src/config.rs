//! How every config is checked: nothing is clamped, and an error names the field, its value and the range.
//! Also how errors are declared.

use std::ops::RangeInclusive;
use std::time::Duration;
use thiserror::Error;

/// A field of a config is out of range.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
#[error("{field} is {value}, outside {min} to {max}")]
pub struct ConfigError {
    /// The name of the field.
    pub field: &'static str,
    /// Its value; for times, in ms.
    pub value: u64,
    /// The least allowed value.
    pub min: u64,
    /// The largest allowed value.
    pub max: u64,
}

/// Checks one field of a config.
///
/// # Errors
///
/// If it is out of range.
pub fn in_range<T: Copy + PartialOrd + Into<u64>>(
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

/// A duration in whole ms, for [`in_range`].
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The number by which a setting is checked: numbers themselves, times in ms, lists by their length; `None`:
/// unchecked.
pub(crate) trait Setting {
    fn number(&self) -> Option<u64>;
}

macro_rules! integers {
    ($($int:ty)*) => {$(
        impl Setting for $int {
            fn number(&self) -> Option<u64> {
                Some((*self).into())
            }
        }
    )*};
}
integers! { u8 u16 u32 u64 }

impl Setting for Duration {
    fn number(&self) -> Option<u64> {
        Some(millis(*self))
    }
}

impl<T> Setting for Vec<T> {
    fn number(&self) -> Option<u64> {
        Some(self.len() as u64)
    }
}

impl<T: Setting> Setting for Option<T> {
    fn number(&self) -> Option<u64> {
        self.as_ref()?.number()
    }
}

/// Declares settings: each field with its default and, if it has one, its range for `check_ranges`.
macro_rules! settings {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[doc = $doc:literal])* pub $field:ident: $type:ty = $default:expr $(, $range:expr)?;)*
        }
    ) => {
        $(#[$meta])*
        #[expect(clippy::exhaustive_structs, reason = "made with `..Default::default()`")]
        pub struct $name {
            $($(#[doc = $doc])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $name {
            fn check_ranges(&self) -> Result<(), $crate::config::ConfigError> {
                $($(if let Some(number) = $crate::config::Setting::number(&self.$field) {
                    $crate::config::in_range(stringify!($field), number, $range)?;
                })?)*
                Ok(())
            }
        }
    };
}

/// Declares errors. Each variant is documented by the comment before it and by its message.
macro_rules! errors {
    ($(
        $(#[$meta:meta])*
        $name:ident {
            $($(#[$more:meta])* $message:literal $variant:ident $({ $($field:ident: $type:ty),* })?,)*
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Eq, thiserror::Error, PartialEq)]
        #[non_exhaustive]
        pub enum $name {
            $(
                $(#[$more])*
                #[doc = concat!("\n\n“", $message, "”")]
                #[error($message)]
                $variant $({ $(#[doc = "As in the message."] $field: $type),* })?,
            )*
        }
    )*};
}
