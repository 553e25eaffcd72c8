//! How every config is checked: nothing is clamped, and an error names the field and either its value with
//! the allowed range or what to do instead. Also how errors are declared.

use std::ops::RangeInclusive;
use std::time::Duration;
use thiserror::Error;

/// A field of a config is wrong. Its `Display` says what to do.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
#[error("{}", self.text())]
pub struct ConfigError {
    /// The name of the field.
    pub field: &'static str,
    /// Its value, or the length of a list, in `unit`.
    pub value: u64,
    /// The least allowed value.
    pub min: u64,
    /// The largest allowed value.
    pub max: u64,
    /// The unit of the value and the range: `ms`, `bytes`, `length` for a list, or empty for a plain number.
    pub unit: &'static str,
    /// What is wrong and what to do, if the problem is not a range; the value and the range are then 0.
    /// Otherwise empty.
    pub cure: &'static str,
}

impl ConfigError {
    fn text(&self) -> String {
        let Self { field, value, min, max, unit, cure } = *self;
        if !cure.is_empty() {
            return format!("`{field}` {cure}");
        }
        let [value, min, max] = [value, min, max].map(|number| match unit {
            MILLIS if number >= 1000 && number.is_multiple_of(1000) => format!("{} s", number / 1000),
            "" | LENGTH => number.to_string(),
            unit => format!("{number} {unit}"),
        });
        let of = if unit == LENGTH { "the length of " } else { "" };
        format!("{of}`{field}` is {value}, outside {min} to {max}")
    }
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
    let (min, max) = range.into_inner();
    checked(field, value.into(), min.into()..=max.into(), "")
}

/// Like [`in_range`], for a time; the range is in ms.
pub(crate) fn time_in_range(
    field: &'static str,
    value: Duration,
    range: RangeInclusive<u64>,
) -> Result<(), ConfigError> {
    checked(field, millis(value), range, MILLIS)
}

/// Fails if `is_wrong`. `cure` says what is wrong and what to do, as the rest of a sentence that begins with
/// the name of the field.
pub(crate) const fn unless(
    is_wrong: bool,
    field: &'static str,
    cure: &'static str,
) -> Result<(), ConfigError> {
    if is_wrong {
        return Err(ConfigError { field, value: 0, min: 0, max: 0, unit: "", cure });
    }
    Ok(())
}

pub(crate) fn checked(
    field: &'static str,
    value: u64,
    range: RangeInclusive<u64>,
    unit: &'static str,
) -> Result<(), ConfigError> {
    if range.contains(&value) {
        return Ok(());
    }
    let (min, max) = range.into_inner();
    Err(ConfigError { field, value, min, max, unit, cure: "" })
}

/// A duration in whole ms.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

const MILLIS: &str = "ms";
const LENGTH: &str = "length";

/// The number by which a setting is checked: numbers themselves, times in ms, lists by their length; `None`:
/// unchecked.
pub(crate) trait Setting {
    /// The unit of that number.
    const UNIT: &'static str = "";

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
    const UNIT: &'static str = MILLIS;

    fn number(&self) -> Option<u64> {
        Some(millis(*self))
    }
}

impl<T> Setting for Vec<T> {
    const UNIT: &'static str = LENGTH;

    fn number(&self) -> Option<u64> {
        Some(self.len() as u64)
    }
}

impl<T: Setting> Setting for Option<T> {
    const UNIT: &'static str = T::UNIT;

    fn number(&self) -> Option<u64> {
        self.as_ref()?.number()
    }
}

/// Declares settings: each field with its default and, if it has one, its range for `check_ranges`, followed
/// by the unit if the type does not imply it. `without Default` is for types in which some fields have no
/// working default; they have constructors, which start from `base`.
macro_rules! settings {
    ($(#[$meta:meta])* pub struct $name:ident without Default { $($fields:tt)* }) => {
        settings! { @ $(#[$meta])* #[expect(clippy::exhaustive_structs, reason = "made with `..Self::insecure(session)` and its like")] $name $($fields)* }
    };
    ($(#[$meta:meta])* pub struct $name:ident { $($fields:tt)* }) => {
        settings! { @ $(#[$meta])* #[expect(clippy::exhaustive_structs, reason = "made with `..Default::default()`")] $name $($fields)* }

        impl Default for $name {
            fn default() -> Self {
                Self::base()
            }
        }
    };
    (
        @ $(#[$meta:meta])* $name:ident
        $($(#[doc = $doc:literal])* pub $field:ident: $type:ty = $default:expr $(, $range:expr $(, $unit:literal)?)?;)*
    ) => {
        $(#[$meta])*
        pub struct $name {
            $($(#[doc = $doc])* pub $field: $type,)*
        }

        impl $name {
            fn base() -> Self {
                Self { $($field: $default,)* }
            }

            fn check_ranges(&self) -> Result<(), $crate::config::ConfigError> {
                $($(if let Some(number) = $crate::config::Setting::number(&self.$field) {
                    let [.., unit] = [<$type as $crate::config::Setting>::UNIT $(, $unit)?];
                    $crate::config::checked(stringify!($field), number, $range, unit)?;
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
